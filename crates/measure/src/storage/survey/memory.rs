//! Files whose bytes are in memory: the page cache's copy of a device's file, and a file on a RAM
//! disk. Calls of 1 MiB for rates, 4 KiB for latency, in turn.

use super::windows::{RequestWindows, Windows};
use crate::disturbance::Bracket;
use crate::storage::failed;
use crate::storage::iolat::{IolatPlan, Prober};
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::{Budget, Result};
use machine::Root;
use model::Bytes;
use model::bytes::{KIB, MIB};
use model::estimate::Better;
use model::probe::{DeviceReport, RamDiskReport};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use sys::device::FileDevice;

/// Bytes of a call for the rates.
const CALL: u64 = MIB;
/// Bytes of one window of the rates: some 10 ms.
const WINDOW: u64 = 32 * MIB;
/// Requests of one window of the latency: below a millisecond, and a median of them does not see
/// the timer's grain.
const REQUESTS: u64 = 512;
/// Rounds at most; the interval of a median of 30 is a third of the quartiles'.
const ROUNDS: u32 = 30;
/// The size of the file on a RAM disk: that of a cached file, since the two are compared.
const RAM_FILE: Bytes = Bytes(super::CACHED);

/// Measures a RAM disk at `dir` for about `total`.
///
/// # Errors
/// As [`StorageTarget::open`] and [`StorageTarget::fit`]; `Failed` when its own file cannot be
/// written or read.
pub fn survey_ram_disk(dir: &Path, total: Duration, root: &Root) -> Result<RamDiskReport> {
    let budget = Budget::of(total);
    let target = StorageTarget::open(dir, root)?;
    let (fitted, note) = target.fit(root, RAM_FILE, Bytes(WINDOW))?;
    let seed = target.draw_seed()?;
    let mut stream = Stream::new(target.file(), TransferMode::Buffered, CALL, 1, seed)?;
    let half = budget.part(budget.left() / 2);
    let first = stream.write(0..fitted.0, &half).checked().map_err(|error| error.at(dir))?;
    let mut bracket = Bracket::for_this_thread(root, None);
    let mut cached = CachedFile::new(target.file(), stream, first.whole_until, seed)?;
    cached.rounds(true, &budget, &mut bracket).map_err(|e| e.at(dir))?;
    Ok(RamDiskReport {
        path: dir.display().to_string(),
        random_read_ns: cached.requests.latency(),
        read_bytes_per_s: cached.reads.estimate(Better::Higher),
        first_write_bytes_per_s: first.bytes_per_s(),
        write_bytes_per_s: cached.writes.estimate(Better::Higher),
        file_bytes: cached.bytes,
        notes: note.into_iter().collect(),
        ..RamDiskReport::default()
    })
}

/// Reads the first `bytes` of `file` into the cache, then measures for `report` how fast they are
/// read there.
///
/// # Errors
/// `Failed` when a read fails.
pub(super) fn cached_file(
    file: &File,
    bytes: u64,
    seed: u64,
    budget: &Budget,
    bracket: &mut Bracket,
    report: &mut DeviceReport,
) -> Result<()> {
    let mut stream = Stream::new(file, TransferMode::Buffered, CALL, 1, seed)?;
    let warm = stream.read(0..bytes, &budget.part(budget.left() / 2)).checked()?;
    let mut cached = CachedFile::new(file, stream, warm.whole_until, seed)?;
    cached.rounds(false, budget, bracket)?;
    report.page_cache_bytes = Some(cached.bytes);
    report.page_cache_read_ns = cached.requests.latency();
    report.page_cache_read_bytes_per_s = cached.reads.estimate(Better::Higher);
    Ok(())
}

/// The first bytes of a file, which are in memory, and what the windows on it gave.
struct CachedFile {
    stream: Stream,
    prober: Prober<FileDevice>,
    bytes: u64,
    reads: Windows,
    writes: Windows,
    requests: RequestWindows,
}

impl CachedFile {
    fn new(file: &File, stream: Stream, bytes: u64, seed: u64) -> Result<Self> {
        let device = FileDevice::over(file)
            .map_err(|error| failed("open", Path::new("the test file"), error))?;
        Ok(Self {
            stream,
            prober: Prober::new(device, bytes, &IolatPlan::default(), seed)?,
            bytes,
            reads: Windows::default(),
            writes: Windows::default(),
            requests: RequestWindows::default(),
        })
    }

    fn rounds(&mut self, write: bool, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let mut at = 0;
        for _ in 0..ROUNDS {
            if budget.over() || self.bytes < 4 * KIB {
                break;
            }
            let range = at..(at + WINDOW).min(self.bytes);
            at = if range.end == self.bytes { 0 } else { range.end };
            let stream = &mut self.stream;
            if write {
                self.writes.transfer(bracket, || stream.write(range.clone(), budget))?;
            }
            self.reads.transfer(bracket, || stream.read(range, budget))?;
            self.requests.one_at_a_time(bracket, &mut self.prober, |count| count < REQUESTS)?;
        }
        Ok(())
    }
}
