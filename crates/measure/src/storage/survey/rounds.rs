//! The interleaved windows on one device: write, read, read with four times as many requests in
//! flight (a volume's limit does not care), one random read at a time, 32 at a time.

use super::windows::{RequestWindows, Windows};
use crate::disturbance::Bracket;
use crate::storage::iolat::{Access, IolatPlan, Prober};
use crate::storage::random::RandomReader;
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::storage::{failed, per_second};
use crate::{Budget, Error, ErrorKind, Result};
use model::bytes::{KIB, MIB, show_rate};
use model::estimate::{Better, Estimate};
use model::probe::{DepthRate, DeviceReport};
use std::fs::File;
use std::time::Duration;
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
const PILOT_TIME: Duration = Duration::from_millis(200);
/// Bytes read to learn how fast reading is: beyond what a limit lets through at once.
const PILOT: u64 = 16 * MIB;

/// The windows and what they run on.
pub(super) struct Rounds<'a> {
    target: &'a StorageTarget,
    /// How the file is read.
    pub(super) access: Access,
    prober: Prober<FileDevice>,
    stream: Stream,
    /// As `stream`, [`DEEP`] requests in flight; `None` without direct I/O.
    wide: Option<Stream>,
    deep: Option<RandomReader>,
    bytes: u64,
    block: u64,
    start_ns: u64,
    write_at: u64,
    read_at: u64,
    pub(super) done: RoundResults,
}

/// What the windows gave so far.
#[derive(Default)]
pub(super) struct RoundResults {
    /// Bytes that they wrote and read.
    pub(super) written: u64,
    pub(super) read: u64,
    writes: Windows,
    /// The time of all windows of writes, and of the flushes at their ends.
    write_ns: u64,
    flush_ns: u64,
    reads: Windows,
    wides: Windows,
    ones: RequestWindows,
    deeps: RequestWindows,
    /// What the reader should know.
    pub(super) notes: Vec<String>,
}

/// Opens the target for single requests: direct, or buffered without read-ahead.
pub(super) fn open(target: &StorageTarget, access: Access) -> Result<FileDevice> {
    if access == Access::Direct {
        return target.direct_device();
    }
    sys::file::advise(target.file(), 0, 0, CacheAdvice::Random)
        .map_err(|e| failed("advise on", target.path(), e))?;
    target.cached_device()
}

impl<'a> Rounds<'a> {
    /// Prepares everything; `bytes_per_ns` is what filling the file suggests.
    pub(super) fn new(
        target: &'a StorageTarget,
        bytes: u64,
        seed: u64,
        bytes_per_ns: f64,
    ) -> Result<Self> {
        let (access, mode) = match target.direct() {
            Ok(_) => (Access::Direct, TransferMode::Direct),
            Err(_) => (Access::Cold, TransferMode::Buffered),
        };
        let device = open(target, access)?;
        let file = device.file();
        let block = block_for(bytes_per_ns.min(pilot(file, mode, bytes, seed)?));
        let mut done = RoundResults::default();
        let (mut wide, mut deep) = (None, None);
        if access == Access::Direct {
            wide = Stream::new(file, mode, block, DEEP, seed).ok();
            match RandomReader::new(file, bytes, DEEP, RANDOM_BLOCK) {
                Ok(reader) => deep = Some(reader),
                Err(error) => {
                    let reason = model::error_chain(&error);
                    done.notes.push(format!("no random reads at depth: {reason}"));
                }
            }
        } else {
            let note = "no direct I/O there: buffered reads after eviction instead";
            done.notes.push(note.to_owned());
        }
        Ok(Self {
            target,
            access,
            stream: Stream::new(file, mode, block, DEPTH, seed)?,
            wide,
            deep,
            prober: Prober::new(device, bytes, &IolatPlan::default(), seed)?,
            bytes,
            block,
            start_ns: sys::clock::now_ns(),
            write_at: 0,
            read_at: 0,
            done,
        })
    }

    /// Runs the windows until `budget` ends, writing at most `room` bytes.
    pub(super) fn run(&mut self, room: u64, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let window = budget.left() / (ROUNDS * KINDS);
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
                    3 => self.one_window(&part, bracket)?,
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
        let (stream, file) = (&mut self.stream, self.target.file());
        let RoundResults { written, writes, write_ns, flush_ns, .. } = &mut self.done;
        self.write_at = writes.window(bracket, || {
            let start_ns = sys::clock::now_ns();
            let moved = stream.write(range, budget);
            *written += moved.bytes;
            let moved = moved.checked()?;
            let written_ns = sys::clock::now_ns();
            sys::file::sync_data(file)
                .map_err(|e| Error::io(ErrorKind::Failed, "sync", &e.source))?;
            let end_ns = sys::clock::now_ns();
            *write_ns += end_ns - start_ns;
            *flush_ns += end_ns - written_ns;
            let rate = per_second(moved.bytes, end_ns - start_ns);
            Ok((rate.filter(|_| moved.bytes > 0), moved.whole_until))
        })?;
        Ok(())
    }

    fn read_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        self.make_cold()?;
        let place = (&mut self.read_at, self.bytes / self.block * self.block);
        let done = &mut self.done;
        stream_window(&mut self.stream, &mut done.reads, place, &mut done.read, budget, bracket)
    }

    fn wide_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let Some(stream) = &mut self.wide else {
            return Ok(());
        };
        let place = (&mut self.read_at, self.bytes / self.block * self.block);
        let done = &mut self.done;
        stream_window(stream, &mut done.wides, place, &mut done.read, budget, bracket)
    }

    fn one_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        self.make_cold()?;
        let requests =
            self.done.ones.one_at_a_time(bracket, &mut self.prober, |_| !budget.over())?;
        self.done.read += requests * RANDOM_BLOCK;
        Ok(())
    }

    fn deep_window(&mut self, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let Some(reader) = &mut self.deep else {
            return Ok(());
        };
        let RequestWindows { rates, times, .. } = &mut self.done.deeps;
        let read = &mut self.done.read;
        rates.window(bracket, || {
            let run = reader.run(budget, times);
            *read += run.requests * RANDOM_BLOCK;
            match run.failure {
                Some(error) => Err(error),
                None => {
                    let rate = per_second(run.requests, run.wall_ns);
                    Ok((rate.filter(|_| run.requests > 0), ()))
                }
            }
        })
    }

    /// Without direct I/O a read is cold only after eviction.
    fn make_cold(&self) -> Result<()> {
        if self.access != Access::Direct {
            self.target.evict().map_err(|e| failed("evict", self.target.path(), e))?;
        }
        Ok(())
    }

    /// The part of the report that the windows fill.
    pub(super) fn report(&self) -> DeviceReport {
        let done = &self.done;
        let read_bytes_per_s = done.reads.estimate(Better::Higher);
        let depth = [
            self.streamed(self.stream.depth() as u32, &done.reads),
            self.streamed(DEEP, &done.wides),
            done.ones.depth_rate(1, RANDOM_BLOCK),
            done.deeps.depth_rate(DEEP, RANDOM_BLOCK),
        ];
        DeviceReport {
            random_read_ns: done.ones.latency(),
            random_reads_per_s: done.ones.rates.estimate(Better::Higher),
            depth: depth.into_iter().flatten().collect(),
            series_spread: read_bytes_per_s.as_ref().and_then(|rate| rate.spread),
            read_bytes_per_s,
            write_bytes_per_s: done.writes.estimate(Better::Higher),
            reads: done.reads.over_time(self.start_ns),
            writes: done.writes.over_time(self.start_ns),
            block_bytes: self.block,
            sequential_depth: self.stream.depth() as u32,
            file_bytes: self.bytes,
            written_bytes: done.written,
            ..DeviceReport::default()
        }
    }

    /// What the rate of writes covers where it is above that of reads.
    pub(super) fn write_note(&self) -> Option<String> {
        let RoundResults { writes, reads, write_ns, flush_ns, .. } = &self.done;
        let [writes, reads] = [writes, reads].map(|all| all.estimate(Better::Higher));
        write_note(&writes?, &reads?, *flush_ns as f64 / (*write_ns).max(1) as f64)
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

/// Flushes that take no more than this share of the time wait for no medium. Picked; seen: 0.2 %
/// where a host took the writes into its memory.
const SHORT_FLUSHES: f64 = 0.05;

/// What a rate of writes above that of reads covers, as far as the share of the time in flushes
/// shows it; `None` where their intervals overlap.
fn write_note(writes: &Estimate, reads: &Estimate, flush_share: f64) -> Option<String> {
    if writes.low? <= reads.high? {
        return None;
    }
    let [write_rate, read_rate] = [writes, reads].map(|rate| show_rate(rate.median));
    let share = flush_share * 100.0;
    let why = if flush_share <= SHORT_FLUSHES {
        "so they end in a cache of the host or the drive, and this is the rate of the way there"
    } else {
        "so a medium takes part, and why it reads more slowly is not known"
    };
    Some(format!(
        "writes ({write_rate}) are faster than reads ({read_rate}); the flushes that make them \
         durable took {share:.1} % of the time, {why}"
    ))
}

/// One window of sequential reads from `place` (where to go on, and the end).
fn stream_window(
    stream: &mut Stream,
    windows: &mut Windows,
    (at, end): (&mut u64, u64),
    read: &mut u64,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Result<()> {
    // A short rest would make a short window: start again instead.
    let next = |until: u64| if end - until >= end / 4 { until } else { 0 };
    // A limit that is a bucket of tokens fills it while other windows run, and lets that much
    // through at once: 118 MB/s were seen of a volume held to 105. So the bucket is emptied first,
    // untimed.
    let emptied = stream.read(*at..end, &budget.part(budget.left() / 3));
    *read += emptied.bytes;
    let start = next(emptied.whole_until);
    windows.transfer(bracket, || {
        let moved = stream.read(start..end, budget);
        *read += moved.bytes;
        *at = next(moved.whole_until);
        moved
    })?;
    Ok(())
}

/// The rate of reading, in bytes a nanosecond: a volume may be held to a rate for reads alone, so
/// the rate of filling the file does not show it.
fn pilot(file: &File, mode: TransferMode, bytes: u64, seed: u64) -> Result<f64> {
    let mut stream = Stream::new(file, mode, LEAST_BLOCK, DEPTH, seed)?;
    let end = PILOT.min(bytes / LEAST_BLOCK * LEAST_BLOCK);
    let start_ns = sys::clock::now_ns();
    let moved = stream.read(0..end, &Budget::of(PILOT_TIME));
    let elapsed_ns = sys::clock::now_ns() - start_ns;
    Ok(moved.checked()?.bytes.max(LEAST_BLOCK) as f64 / elapsed_ns.max(1) as f64)
}

/// The sequential block: so small that a window of 100 ms has many of them in it even when all
/// [`DEPTH`] must end before it does.
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

    #[test]
    fn writes_above_reads_say_what_they_cover() {
        let rates = |values: [f64; 6]| Estimate::from_values(&values, Better::Higher, 0).unwrap();
        let reads = rates([1.5e9, 1.52e9, 1.54e9, 1.56e9, 1.58e9, 1.6e9]);
        let writes = rates([2.2e9, 2.22e9, 2.24e9, 2.26e9, 2.28e9, 2.3e9]);
        let note = |writes: &Estimate, share| write_note(writes, &reads, share);
        let cached = note(&writes, 0.002).unwrap();
        assert!(cached.contains("took 0.2 % of the time, so they end in a cache"), "{cached}");
        assert!(note(&writes, 0.4).unwrap().ends_with("is not known"));
        let near = rates([1.4e9, 1.5e9, 1.6e9, 2.2e9, 2.3e9, 2.4e9]);
        assert_eq!(note(&near, 0.002), None, "their intervals overlap");
        assert_eq!(write_note(&reads, &writes, 0.002), None);
    }
}
