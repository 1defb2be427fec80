//! The interleaved windows on one device: write, read, read with four times as many
//! requests in flight (a volume's limit does not care), one random read at a time,
//! 32 at a time.

use super::latency_of;
use super::windows::Windows;
use crate::disturbance::Bracket;
use crate::storage::evict::evict;
use crate::storage::failed;
use crate::storage::iolat::{Access, IolatPlan, Prober};
use crate::storage::per_second;
use crate::storage::random::RandomReader;
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::{Budget, Error, Result};
use model::Histogram;
use model::bytes::{KIB, MIB};
use model::estimate::Better;
use model::probe::{DepthRate, DeviceReport};
use std::fs::File;
use sys::device::FileDevice;
use sys::file::CacheAdvice;

/// Rounds: twice the six that an interval needs, for windows that are thrown away.
const ROUNDS: u32 = 12;
/// Windows in a round.
const KINDS: u32 = 5;
/// Sequential requests in flight: fills rotating disks and flash alike.
const DEPTH: u32 = 8;
/// The largest and smallest sequential request.
const BLOCK: u64 = MIB;
const LEAST_BLOCK: u64 = 64 * KIB;
/// Random requests in flight: the depth that data sheets are written for.
const DEEP: u32 = 32;
const RANDOM_BLOCK: u64 = 4 * KIB;
/// The most that the pilot may take.
const PILOT_TIME: std::time::Duration = std::time::Duration::from_millis(200);

/// The windows and what they run on.
pub(super) struct Rounds<'a> {
    target: &'a StorageTarget,
    access: Access,
    file: File,
    stream: Stream,
    /// As `stream`, [`DEEP`] requests in flight; `None` without direct I/O.
    wide: Option<Stream>,
    deep: Option<RandomReader>,
    bytes: u64,
    seed: u64,
    block: u64,
    start_ns: u64,
    write_at: u64,
    read_at: u64,
    written: u64,
    read: u64,
    writes: Windows,
    reads: Windows,
    wides: Windows,
    ones: Windows,
    one_rates: Windows,
    deeps: Windows,
    one_times: Histogram,
    deep_times: Histogram,
    notes: Vec<String>,
}

/// Opens the target for single requests: direct, or buffered without read-ahead.
pub(super) fn open(target: &StorageTarget, access: Access) -> Result<File> {
    if access == Access::Direct {
        return target.direct();
    }
    let path = target.path();
    sys::file::advise(target.file(), 0, 0, CacheAdvice::Random)
        .map_err(|e| failed("advise on", path, e))?;
    target.reopened()
}

impl<'a> Rounds<'a> {
    /// Prepares everything; `bytes_per_ns` is what filling the file suggests.
    pub(super) fn new(
        target: &'a StorageTarget,
        bytes: u64,
        seed: u64,
        bytes_per_ns: f64,
    ) -> Result<Self> {
        let access = match target.direct() {
            Ok(_) => Access::Direct,
            Err(_) => Access::Cold,
        };
        let file = open(target, access)?;
        let mode = match access {
            Access::Direct => TransferMode::Direct,
            Access::Cold | Access::Cached => TransferMode::Buffered,
        };
        let block = block_for(bytes_per_ns.min(pilot(&file, mode, bytes, seed)?));
        let mut notes = Vec::new();
        let deep = match access {
            Access::Direct => match RandomReader::new(&file, bytes, DEEP, RANDOM_BLOCK) {
                Ok(reader) => Some(reader),
                Err(error) => {
                    notes.push(format!("no random reads at depth: {}", model::error_chain(&error)));
                    None
                }
            },
            Access::Cold | Access::Cached => {
                notes.push("no direct I/O there: buffered reads after eviction instead".to_owned());
                None
            }
        };
        Ok(Self {
            target,
            access,
            stream: Stream::new(&file, mode, block, DEPTH, seed)?,
            wide: match mode {
                TransferMode::Direct => Stream::new(&file, mode, block, DEEP, seed).ok(),
                TransferMode::Buffered | TransferMode::Uncached => None,
            },
            file,
            deep,
            bytes,
            seed,
            block,
            start_ns: sys::clock::now_ns(),
            write_at: 0,
            read_at: 0,
            written: 0,
            read: 0,
            writes: Windows::default(),
            reads: Windows::default(),
            wides: Windows::default(),
            ones: Windows::default(),
            one_rates: Windows::default(),
            deeps: Windows::default(),
            one_times: Histogram::new(),
            deep_times: Histogram::new(),
            notes,
        })
    }

    /// Runs the windows until `budget` ends, writing at most `room` bytes.
    pub(super) fn run(&mut self, room: u64, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let window = budget.left() / (ROUNDS * KINDS);
        let clone = self.file.try_clone().map_err(|source| {
            failed("open", self.target.path(), sys::Error::new("duplicate", source))
        })?;
        let device = self.target.device_over(clone)?;
        let mut prober = Prober::new(&device, self.bytes, &IolatPlan::default(), self.seed)?;
        for round in 0..ROUNDS {
            for turn in 0..KINDS {
                if budget.over() {
                    return Ok(());
                }
                let part = budget.part(window);
                match (turn + round) % KINDS {
                    0 => self.write_window(room / u64::from(ROUNDS), &part, bracket)?,
                    1 => self.read_window(&part, bracket)?,
                    2 => self.wide_window(&part, bracket)?,
                    3 => self.one_window(&mut prober, &part, bracket)?,
                    _ => self.deep_window(&part, bracket)?,
                }
            }
        }
        Ok(())
    }

    /// Writes up to `most` bytes over the file, and makes them durable.
    fn write_window(&mut self, most: u64, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let most = most / self.block * self.block;
        if self.write_at + most.max(self.block) > self.bytes {
            self.write_at = 0;
        }
        let range = self.write_at..(self.write_at + most).min(self.bytes);
        let (stream, file, written) = (&mut self.stream, self.target.file(), &mut self.written);
        let mut until = range.start;
        self.writes.window(bracket, || {
            let start_ns = sys::clock::now_ns();
            let moved = stream.write(range, budget);
            *written += moved.bytes;
            until = moved.whole_until;
            if let Some(error) = moved.failure {
                return Err(error);
            }
            sys::file::sync_data(file)
                .map_err(|e| Error::io(crate::ErrorKind::Failed, "sync", &e.source))?;
            let rate = per_second(moved.bytes, sys::clock::now_ns() - start_ns);
            Ok(rate.filter(|_| moved.bytes > 0))
        })?;
        self.write_at = until;
        Ok(())
    }

    fn read_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        if self.access != Access::Direct {
            evict(self.target.file()).map_err(|e| failed("evict", self.target.path(), e))?;
        }
        let (stream, windows) = (&mut self.stream, &mut self.reads);
        let place = (&mut self.read_at, self.bytes / self.block * self.block);
        stream_window(stream, windows, place, &mut self.read, budget, bracket)
    }

    fn wide_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let Some(stream) = &mut self.wide else {
            return Ok(());
        };
        let place = (&mut self.read_at, self.bytes / self.block * self.block);
        stream_window(stream, &mut self.wides, place, &mut self.read, budget, bracket)
    }

    fn one_window(
        &mut self,
        prober: &mut Prober<'_, FileDevice>,
        budget: &Budget,
        bracket: &mut Bracket,
    ) -> Result<()> {
        if self.access != Access::Direct {
            evict(self.target.file()).map_err(|e| failed("evict", self.target.path(), e))?;
        }
        let (times, read) = (&mut self.one_times, &mut self.read);
        let mut rate = None;
        self.ones.window(bracket, || {
            let mut window = Histogram::new();
            let mut busy_ns = 0;
            while !budget.over() {
                let ns = prober.request()?;
                window.add(ns);
                times.add(ns);
                busy_ns += ns;
            }
            *read += window.len() * RANDOM_BLOCK;
            rate = per_second(window.len(), busy_ns);
            Ok::<_, Error>(window.quantile_ns(0.5))
        })?;
        // Judged with the window above: the same requests.
        self.one_rates.same_as(&self.ones, rate);
        Ok(())
    }

    fn deep_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let Some(reader) = &mut self.deep else {
            return Ok(());
        };
        let (times, read) = (&mut self.deep_times, &mut self.read);
        self.deeps.window(bracket, || {
            let run = reader.run(budget, times);
            *read += run.requests * RANDOM_BLOCK;
            match run.failure {
                Some(error) => Err(error),
                None => Ok(per_second(run.requests, run.wall_ns).filter(|_| run.requests > 0)),
            }
        })
    }

    /// Bytes that the windows wrote.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written
    }

    /// Bytes that the windows read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read
    }

    /// What the reader should know.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// How the file is read.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// The part of the report that the windows fill.
    pub(super) fn report(&self) -> DeviceReport {
        let random_reads_per_s = self.one_rates.estimate(Better::Higher);
        let read_bytes_per_s = self.reads.estimate(Better::Higher);
        let depth = [
            self.streamed(self.stream.depth() as u32, &self.reads),
            self.streamed(DEEP, &self.wides),
            random(1, &self.one_rates, &self.one_times),
            random(DEEP, &self.deeps, &self.deep_times),
        ];
        DeviceReport {
            random_read_ns: latency_of(&self.ones, &self.one_times),
            random_reads_per_s,
            depth: depth.into_iter().flatten().collect(),
            series_spread: read_bytes_per_s.as_ref().and_then(|rate| rate.spread),
            read_bytes_per_s,
            write_bytes_per_s: self.writes.estimate(Better::Higher),
            reads: self.reads.over_time(self.start_ns),
            writes: self.writes.over_time(self.start_ns),
            block_bytes: self.block,
            sequential_depth: self.stream.depth() as u32,
            file_bytes: self.bytes,
            written_bytes: self.written,
            ..DeviceReport::default()
        }
    }

    /// Sequential reads. Whole windows are timed, not their requests.
    fn streamed(&self, depth: u32, rates: &Windows) -> Option<DepthRate> {
        let bytes_per_s = rates.estimate(Better::Higher)?.median;
        Some(DepthRate {
            depth,
            block_bytes: self.block,
            requests_per_s: bytes_per_s * (1.0 / self.block as f64),
            bytes_per_s,
            p50_ns: None,
        })
    }
}

/// Random reads, each of which was timed.
fn random(depth: u32, rates: &Windows, times: &Histogram) -> Option<DepthRate> {
    let requests_per_s = rates.estimate(Better::Higher)?.median;
    Some(DepthRate {
        depth,
        block_bytes: RANDOM_BLOCK,
        requests_per_s,
        bytes_per_s: requests_per_s * RANDOM_BLOCK as f64,
        p50_ns: times.quantile_ns(0.5),
    })
}

/// One window of sequential reads from `place` (where to go on, and the end).
fn stream_window(
    stream: &mut Stream,
    windows: &mut Windows,
    place: (&mut u64, u64),
    read: &mut u64,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Result<()> {
    let (at, end) = place;
    // A limit that is a bucket of tokens fills it while other windows run, and lets
    // that much through at once: 118 MB/s were seen of a volume held to 105. So the
    // bucket is emptied first, untimed.
    let emptied = stream.read(*at..end, &budget.part(budget.left() / 3));
    *read += emptied.bytes;
    let start = if end - emptied.whole_until >= end / 4 { emptied.whole_until } else { 0 };
    windows.window(bracket, || {
        let moved = stream.read(start..end, budget);
        *read += moved.bytes;
        // A short rest would make a short window: start again instead.
        let enough = end - moved.whole_until >= end / 4;
        *at = if enough { moved.whole_until } else { 0 };
        match moved.failure {
            Some(error) => Err(error),
            None => Ok(moved.bytes_per_s().filter(|_| moved.bytes > 0)),
        }
    })
}

/// Bytes read to learn how fast reading is: beyond what a limit lets through at once.
const PILOT: u64 = 16 * MIB;

/// The rate of reading, in bytes a nanosecond: a volume may be held to a rate for
/// reads alone, so the rate of filling the file does not show it.
fn pilot(file: &File, mode: TransferMode, bytes: u64, seed: u64) -> Result<f64> {
    let mut stream = Stream::new(file, mode, LEAST_BLOCK, DEPTH, seed)?;
    let end = PILOT.min(bytes / LEAST_BLOCK * LEAST_BLOCK);
    let start_ns = sys::clock::now_ns();
    let moved = stream.read(0..end, &Budget::of(PILOT_TIME));
    let elapsed_ns = sys::clock::now_ns() - start_ns;
    match moved.failure {
        Some(error) => Err(error),
        None => Ok(moved.bytes.max(LEAST_BLOCK) as f64 / elapsed_ns.max(1) as f64),
    }
}

/// The sequential block: so small that a window of 100 ms has many of them in it even
/// when all [`DEPTH`] must end before it does.
fn block_for(bytes_per_ns: f64) -> u64 {
    let in_100_ms = bytes_per_ns * 1e8;
    let block = (in_100_ms / f64::from(4 * DEPTH)) as u64;
    let power = block.checked_ilog2().map_or(0, |bits| 1 << bits);
    power.clamp(LEAST_BLOCK, BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_devices_get_small_blocks() {
        assert_eq!(block_for(1.0), MIB);
        assert_eq!(block_for(0.100), 256 * KIB);
        assert_eq!(block_for(0.007), 64 * KIB);
        assert_eq!(block_for(0.0), 64 * KIB);
        assert_eq!(block_for(f64::INFINITY), MIB);
    }
}
