//! The snapshot as bytes: a header line, one zstd frame of JSON lines, a checksum.
//!
//! `docs/snapshot.md` draws it. The reader does not trust the file: it verifies the checksum first,
//! then unpacks line by line within limits, and never panics.

use super::{CachedFile, ProcessSnapshot, Snapshot};
use crate::{Error, ErrorKind, Result};
use model::frame;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;

/// The first line; its number grows when an older reader would misread the file.
const HEADER: &[u8] = b"terrace snapshot 1\n";
/// What the header begins with in every version.
pub(super) const NAME: [u8; 17] = *b"terrace snapshot ";
/// zstd's own default: level 9 takes 4 times as long for a tenth less.
const LEVEL: i32 = 3;

/// The largest file that is read: 1,000 times a usual one.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most that it may unpack to.
const MAX_RAW_BYTES: u64 = 256 << 20;
/// The longest line: a name has 4 KiB, and ranges are cut at [`RANGES_A_LINE`].
const MAX_LINE_BYTES: u64 = 4 << 20;
/// More ranges of a file or process go on in a further line of the same.
const RANGES_A_LINE: usize = 64 << 10;
/// The most files and processes.
const MAX_RECORDS: u64 = 2 << 20;
/// The most ranges of all records, 16 bytes each in memory.
const MAX_RANGES: u64 = 16 << 20;
/// How far back zstd may refer, as a power of two: the reader holds that much. The writer's
/// level takes a quarter of it.
const WINDOW_LOG: u32 = 23;

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Machine(MachineRecord),
    File(CachedFile),
    Process(ProcessSnapshot),
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct MachineRecord {
    at_ns: i64,
    cached_bytes: Option<u64>,
    found_bytes: u64,
}

/// The snapshot as a file's bytes.
///
/// # Errors
/// `Failed` for one that is beyond the limits of [`decode`].
pub fn encode(snapshot: &Snapshot) -> Result<Vec<u8>> {
    let failed = |why: String| Error::new(ErrorKind::Failed, "write the snapshot", why);
    let broken = |error: std::io::Error| failed(sys::plain_reason(&error));
    let mut bytes = HEADER.to_vec();
    let mut packed = zstd::Encoder::new(&mut bytes, LEVEL).map_err(broken)?;
    let mut count = RecordCounts::default();
    let mut line = Vec::new();
    let mut put = |record: &Record| -> Result<()> {
        line.clear();
        serde_json::to_writer(&mut line, record).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        count.add(record, line.len() as u64).map_err(failed)?;
        packed.write_all(&line).map_err(broken)
    };
    put(&Record::Machine(MachineRecord {
        at_ns: snapshot.at_ns,
        cached_bytes: snapshot.cached_bytes,
        found_bytes: snapshot.found_bytes,
    }))?;
    for file in &snapshot.files {
        for cached in lines_of(&file.cached) {
            put(&Record::File(CachedFile { path: file.path.clone(), cached, ..*file }))?;
        }
    }
    for process in &snapshot.processes {
        for present in lines_of(&process.present) {
            put(&Record::Process(ProcessSnapshot { present, ..process.clone() }))?;
        }
    }
    packed.finish().map_err(broken)?;
    frame::append_checksum(&mut bytes);
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failed("it would be larger than is ever read".to_owned()));
    }
    Ok(bytes)
}

/// The ranges of each line, one line at least.
fn lines_of(ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
    if ranges.is_empty() {
        return vec![Vec::new()];
    }
    ranges.chunks(RANGES_A_LINE).map(<[_]>::to_vec).collect()
}

/// The snapshot in a file's bytes.
///
/// # Errors
/// The reason as text: another file, damaged, newer, or beyond the limits.
pub fn decode(bytes: &[u8]) -> std::result::Result<Snapshot, String> {
    check_header(bytes)?;
    let damaged = || "it is damaged".to_owned();
    let covered = frame::strip_checksum(bytes).ok_or_else(damaged)?;
    let packed = covered.get(HEADER.len()..).ok_or_else(damaged)?;
    let mut unpacked = zstd::Decoder::with_buffer(packed).map_err(|_| damaged())?;
    unpacked.window_log_max(WINDOW_LOG).map_err(|_| damaged())?;
    let mut lines = BufReader::new(unpacked);
    let (mut snapshot, mut count, mut line) =
        (Snapshot::default(), RecordCounts::default(), Vec::new());
    loop {
        line.clear();
        let mut limited = (&mut lines).take(MAX_LINE_BYTES + 1);
        let length = limited.read_until(b'\n', &mut line).map_err(|_| damaged())?;
        if length == 0 {
            break;
        }
        let record: Record = serde_json::from_slice(&line).map_err(|_| damaged())?;
        let is_first = count.records == 0;
        count.add(&record, length as u64)?;
        match record {
            Record::Machine(machine) if is_first => {
                snapshot.at_ns = machine.at_ns;
                snapshot.cached_bytes = machine.cached_bytes;
                snapshot.found_bytes = machine.found_bytes;
            }
            Record::File(next) if !is_first => match snapshot.files.last_mut() {
                Some(last) if (&last.path, last.identity) == (&next.path, next.identity) => {
                    go_on(&mut last.cached, next.cached).ok_or_else(damaged)?;
                }
                _ => snapshot.files.push(next),
            },
            Record::Process(next) if !is_first => match snapshot.processes.last_mut() {
                Some(last) if (last.pid, last.start_ticks) == (next.pid, next.start_ticks) => {
                    go_on(&mut last.present, next.present).ok_or_else(damaged)?;
                }
                _ => snapshot.processes.push(next),
            },
            _ => return Err(damaged()),
        }
    }
    match count.records {
        0 => Err(damaged()),
        _ => Ok(snapshot),
    }
}

/// Appends the ranges of a further line of the same; `None` if they do not go on where those end.
fn go_on(ranges: &mut Vec<Range<u64>>, next: Vec<Range<u64>>) -> Option<()> {
    let is_behind = next.first()?.start >= ranges.last()?.end;
    ranges.extend(next);
    is_behind.then_some(())
}

fn check_header(bytes: &[u8]) -> std::result::Result<(), String> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("it is larger than any snapshot".to_owned());
    }
    if bytes.starts_with(HEADER) {
        return Ok(());
    }
    let newer = bytes.strip_prefix(&NAME).is_some_and(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && rest.get(digits) == Some(&b'\n')
    });
    Err(if newer {
        "it was written by a newer Terrace; read it with that version".to_owned()
    } else {
        "it is not a snapshot of Terrace".to_owned()
    })
}

/// How much was written or read, held against the limits.
#[derive(Default)]
struct RecordCounts {
    records: u64,
    ranges: u64,
    raw_bytes: u64,
}

impl RecordCounts {
    fn add(&mut self, record: &Record, bytes: u64) -> std::result::Result<(), String> {
        self.records += 1;
        self.raw_bytes += bytes;
        self.ranges += match record {
            Record::Machine(_) => 0,
            Record::File(file) => file.cached.len() as u64,
            Record::Process(process) => process.present.len() as u64,
        };
        let is_within = self.records <= MAX_RECORDS
            && self.ranges <= MAX_RANGES
            && self.raw_bytes <= MAX_RAW_BYTES
            && bytes <= MAX_LINE_BYTES;
        let reason = || "it lists more than any machine holds".to_owned();
        is_within.then_some(()).ok_or_else(reason)
    }
}

/// Ranges as steps: how far from the end of the last one, then how long, again and again, in
/// units of 4 KiB. The numbers are small, so that they take few bytes.
pub(super) mod steps {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ops::Range;

    /// The smallest page of any processor; others are multiples of it.
    const UNIT_BYTES: u64 = 4096;

    pub(in super::super) fn serialize<S: Serializer>(
        ranges: &[Range<u64>],
        out: S,
    ) -> Result<S::Ok, S::Error> {
        let (mut steps, mut last) = (Vec::with_capacity(2 * ranges.len()), 0);
        for range in ranges {
            let is_valid = range.start >= last && range.end > range.start;
            let is_whole = (range.start | range.end).is_multiple_of(UNIT_BYTES);
            if !(is_valid && is_whole) {
                return Err(S::Error::custom("a range is not of whole pages in order"));
            }
            steps.push((range.start - last) / UNIT_BYTES);
            steps.push((range.end - range.start) / UNIT_BYTES);
            last = range.end;
        }
        steps.serialize(out)
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        input: D,
    ) -> Result<Vec<Range<u64>>, D::Error> {
        let steps = Vec::<u64>::deserialize(input)?;
        let (pairs, rest) = steps.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(D::Error::custom("a range has no end"));
        }
        let mut last = 0u64;
        let range = |&[gap, length]: &[u64; 2]| {
            let start = last.checked_add(gap.checked_mul(UNIT_BYTES)?)?;
            last = start.checked_add(length.checked_mul(UNIT_BYTES)?)?;
            (length > 0).then_some(start..last)
        };
        let ranges: Option<Vec<_>> = pairs.iter().map(range).collect();
        ranges.ok_or_else(|| D::Error::custom("a range is impossible"))
    }
}
