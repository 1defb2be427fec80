//! A chunk of accesses before compression: what was kept of one interval, by columns.
//!
//! 1. The share that was kept, and what was lost.
//! 2. Requests: times, kinds, devices, sectors, lengths, latencies.
//! 3. Files, each named once, in order; then events of pages: times, kinds, files, indices,
//!    lengths.
//!
//! A time counts from the event before, a place from the end of the event before of the same
//! device or file and kind, so what follows each other is 0. A chunk counts from no other one.
//! [`AccessReader`] reads these chunks alone; [`super::read`] leaves them out.

use super::chunk::{ChunkKind, Chunks};
use super::columns::malformed;
use super::reader;
use super::varint::{Input, put, put_signed};
use crate::accesses::{
    AccessBatch, AccessCounts, AccessShifts, DeviceRequest, MAX_SHIFT, PageEvent, PageEventKind,
    RequestKind,
};
use crate::{Error, ErrorKind, Result, device_number};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

const MICROSECOND_NS: u64 = 1000;

/// Reads the accesses of a recording, batch by batch, without the rest of it.
#[derive(Debug)]
pub struct AccessReader<R> {
    chunks: Chunks<R>,
    /// The end of the last batch.
    until_ns: u64,
    has_ended: bool,
}

impl AccessReader<BufReader<File>> {
    /// Reads the accesses of the recording at `path`, one file.
    ///
    /// # Errors
    /// [`ErrorKind::NotARecording`] for another file; others when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = sys::file::open_input(path);
        let file = opened.map_err(|error| Error::io("open", path, error.source))?;
        Self::new(BufReader::new(file)).map_err(|error| error.at(path))
    }
}

impl<R: Read + Seek> AccessReader<R> {
    /// Reads the accesses of the recording that `source` holds.
    ///
    /// # Errors
    /// [`ErrorKind::NotARecording`] for another file or a newer major version.
    pub fn new(source: R) -> Result<Self> {
        Ok(Self { chunks: reader::start(source)?, until_ns: 0, has_ended: false })
    }

    fn next_batch(&mut self) -> std::result::Result<Option<AccessBatch>, String> {
        let is_wanted = |kind| kind == ChunkKind::Accesses;
        while let Some((header, raw)) = self.chunks.next_wanted(is_wanted)? {
            if is_wanted(header.kind) {
                let batch = decode(raw)?;
                if batch.from_ns < self.until_ns {
                    return Err("its interval begins before the end of the one before".to_owned());
                }
                self.until_ns = batch.to_ns;
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

impl<R: Read + Seek> Iterator for AccessReader<R> {
    /// A batch; or what is wrong with the file, and nothing after it.
    type Item = Result<AccessBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let offset = self.chunks.offset;
        let batch = self.next_batch().map_err(|why| {
            let why = format!("a chunk at or after byte {offset} is damaged: {why}");
            Error::new(ErrorKind::Failed, "read the accesses", why)
        });
        self.has_ended = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}

/// Appends a batch of at most [`AccessBatch::MAX_EVENTS`] of each table, its times in whole
/// microseconds of its interval.
pub(super) fn encode(batch: &AccessBatch, out: &mut Vec<u8>) {
    let from_us = batch.from_ns / MICROSECOND_NS;
    put(out, from_us);
    let to_us = (batch.to_ns / MICROSECOND_NS).max(from_us);
    put(out, to_us - from_us);
    let AccessShifts { requests, moves, touched } = batch.shifts;
    for shift in [requests, moves, touched] {
        put(out, u64::from(shift));
    }
    let AccessCounts { requests, moves, touched } = batch.lost;
    for count in [requests, moves, touched] {
        put(out, count);
    }
    encode_requests(&batch.requests, from_us, to_us, out);
    encode_pages(&batch.pages, from_us, to_us, out);
}

fn encode_requests(requests: &[DeviceRequest], from_us: u64, to_us: u64, out: &mut Vec<u8>) {
    put(out, requests.len() as u64);
    encode_times(requests.iter().map(|request| request.at_ns), from_us, to_us, out);
    out.extend(requests.iter().map(|request| request.kind as u8));
    let mut before = 0;
    for request in requests {
        let device = device_number::joined(request.device);
        put_signed(out, i64::from(device) - i64::from(before));
        before = device;
    }
    let mut ends = BTreeMap::new();
    for request in requests {
        let end = ends.entry((request.device, request.kind as u8)).or_insert(0_u64);
        put_signed(out, request.sector.wrapping_sub(*end).cast_signed());
        *end = request.sector.wrapping_add(u64::from(request.sectors));
    }
    requests.iter().for_each(|request| put(out, u64::from(request.sectors)));
    for request in requests {
        put(out, (request.latency_ns + MICROSECOND_NS / 2) / MICROSECOND_NS);
    }
}

fn encode_pages(events: &[PageEvent], from_us: u64, to_us: u64, out: &mut Vec<u8>) {
    let of_event = |event: &PageEvent| (device_number::joined(event.device), event.inode);
    let files: BTreeSet<(u32, u64)> = events.iter().map(of_event).collect();
    put(out, files.len() as u64);
    let mut before = (0, 0);
    for file in &files {
        put(out, u64::from(file.0 - before.0));
        put_signed(out, file.1.wrapping_sub(before.1).cast_signed());
        before = *file;
    }
    let numbers: BTreeMap<(u32, u64), usize> =
        files.into_iter().enumerate().map(|(number, file)| (file, number)).collect();
    put(out, events.len() as u64);
    encode_times(events.iter().map(|event| event.at_ns), from_us, to_us, out);
    out.extend(events.iter().map(|event| event.kind as u8));
    let mut number_before = 0;
    let numbered: Vec<usize> = events.iter().map(|event| numbers[&of_event(event)]).collect();
    for number in &numbered {
        put_signed(out, *number as i64 - number_before);
        number_before = *number as i64;
    }
    let mut ends = vec![[0_u64; PageEventKind::ALL.len()]; numbers.len()];
    for (event, number) in events.iter().zip(&numbered) {
        let end = &mut ends[*number][event.kind as usize];
        put_signed(out, event.index.wrapping_sub(*end).cast_signed());
        *end = event.index.wrapping_add(u64::from(event.pages));
    }
    events.iter().for_each(|event| put(out, u64::from(event.pages)));
}

/// Times in order and in the interval; what is before the one above it has that one's time.
fn encode_times(times_ns: impl Iterator<Item = u64>, from_us: u64, to_us: u64, out: &mut Vec<u8>) {
    let mut before = from_us;
    for at_ns in times_ns {
        let at_us = (at_ns / MICROSECOND_NS).min(to_us).max(before);
        put(out, at_us - before);
        before = at_us;
    }
}

/// Reads a chunk.
///
/// # Errors
/// What is impossible in it, in words.
fn decode(raw: &[u8]) -> std::result::Result<AccessBatch, String> {
    let mut input = Input::new(raw);
    // Tables of later versions follow; they are left out.
    batch(&mut input).ok_or_else(malformed)
}

fn batch(input: &mut Input<'_>) -> Option<AccessBatch> {
    let from_us = input.number()?;
    let to_us = from_us.checked_add(input.number()?)?;
    let (from_ns, to_ns) = (in_ns(from_us)?, in_ns(to_us)?);
    let mut shift = || {
        let shift = u8::try_from(input.number()?).ok()?;
        (shift <= MAX_SHIFT).then_some(shift)
    };
    let shifts = AccessShifts { requests: shift()?, moves: shift()?, touched: shift()? };
    let lost = AccessCounts {
        requests: input.number()?,
        moves: input.number()?,
        touched: input.number()?,
    };
    let requests = requests(input, from_us, to_us)?;
    let pages = pages(input, from_us, to_us)?;
    Some(AccessBatch { from_ns, to_ns, shifts, lost, requests, pages })
}

fn requests(input: &mut Input<'_>, from_us: u64, to_us: u64) -> Option<Vec<DeviceRequest>> {
    let count = count(input)?;
    let times = times(input, count, from_us, to_us)?;
    let kinds = input.bytes(count)?;
    let mut before = 0_i64;
    let mut device = || {
        before = before.checked_add(input.signed()?)?;
        u32::try_from(before).ok().map(device_number::split)
    };
    let devices = (0..count).map(|_| device()).collect::<Option<Vec<_>>>()?;
    let jumps = (0..count).map(|_| input.signed()).collect::<Option<Vec<_>>>()?;
    let lengths = small_numbers(input, count)?;
    let mut ends = BTreeMap::new();
    let mut requests = Vec::with_capacity(count);
    for event in 0..count {
        let end = ends.entry((devices[event], kinds[event])).or_insert(0_u64);
        let sector = end.wrapping_add_signed(jumps[event]);
        *end = sector.wrapping_add(u64::from(lengths[event]));
        let latency_ns = in_ns(input.number()?)?;
        // Of a kind that a later version knows nothing is known.
        if let Some(kind) = RequestKind::ALL.get(usize::from(kinds[event])) {
            requests.push(DeviceRequest {
                at_ns: times[event],
                latency_ns,
                device: devices[event],
                sector,
                sectors: lengths[event],
                kind: *kind,
            });
        }
    }
    Some(requests)
}

fn pages(input: &mut Input<'_>, from_us: u64, to_us: u64) -> Option<Vec<PageEvent>> {
    let file_count = count(input)?;
    let mut before = (0_u32, 0_u64);
    let mut file = || {
        let device = before.0.checked_add(u32::try_from(input.number()?).ok()?)?;
        before = (device, before.1.wrapping_add_signed(input.signed()?));
        Some((device_number::split(device), before.1))
    };
    let files = (0..file_count).map(|_| file()).collect::<Option<Vec<_>>>()?;
    let count = count(input)?;
    let times = times(input, count, from_us, to_us)?;
    let kinds = input.bytes(count)?;
    let mut number = 0_i64;
    let mut next_number = || {
        number = number.checked_add(input.signed()?)?;
        usize::try_from(number).ok().filter(|number| *number < file_count)
    };
    let numbers = (0..count).map(|_| next_number()).collect::<Option<Vec<_>>>()?;
    let jumps = (0..count).map(|_| input.signed()).collect::<Option<Vec<_>>>()?;
    let lengths = small_numbers(input, count)?;
    if !lengths.iter().all(|pages| (1..=PageEvent::MAX_PAGES).contains(pages)) {
        return None;
    }
    let mut ends = vec![[0_u64; PageEventKind::ALL.len()]; file_count];
    let mut events = Vec::with_capacity(count);
    for event in 0..count {
        let Some(kind) = PageEventKind::ALL.get(usize::from(kinds[event])) else {
            continue;
        };
        let end = &mut ends[numbers[event]][*kind as usize];
        let index = end.wrapping_add_signed(jumps[event]);
        *end = index.wrapping_add(u64::from(lengths[event]));
        let (device, inode) = files[numbers[event]];
        let pages = lengths[event];
        events.push(PageEvent { at_ns: times[event], device, inode, index, pages, kind: *kind });
    }
    Some(events)
}

/// How many follow: never more than there are bytes, as each takes one or more.
fn count(input: &mut Input<'_>) -> Option<usize> {
    let count = usize::try_from(input.number()?).ok()?;
    (count <= AccessBatch::MAX_EVENTS && count <= input.len()).then_some(count)
}

/// Times in order, none after the end of the interval.
fn times(input: &mut Input<'_>, count: usize, from_us: u64, to_us: u64) -> Option<Vec<u64>> {
    let mut at_us = from_us;
    let mut next = || {
        at_us = at_us.checked_add(input.number()?).filter(|at_us| *at_us <= to_us)?;
        in_ns(at_us)
    };
    (0..count).map(|_| next()).collect()
}

fn small_numbers(input: &mut Input<'_>, count: usize) -> Option<Vec<u32>> {
    (0..count).map(|_| u32::try_from(input.number()?).ok()).collect()
}

fn in_ns(us: u64) -> Option<u64> {
    us.checked_mul(MICROSECOND_NS)
}
