//! Files whose bytes are in memory: the page cache's copy of a device's file, and a
//! file on a RAM disk. Calls of 1 MiB for rates, 4 KiB for latency, in turn.

use super::windows::Windows;
use crate::disturbance::Bracket;
use crate::storage::failed;
use crate::storage::iolat::{IolatPlan, Prober};
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::{Budget, Result};
use machine::Root;
use model::bytes::MIB;
use model::estimate::Better;
use model::probe::RamDiskReport;
use model::{Bytes, Estimate, Histogram, Latency};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use sys::device::FileDevice;

/// Bytes of a call for the rates.
const CALL: u64 = MIB;
/// Bytes of one window of the rates: some 10 ms.
const WINDOW: u64 = 32 * MIB;
/// Requests of one window of the latency: below a millisecond, and a median of them
/// does not see the timer's grain.
const REQUESTS: u32 = 512;
/// Rounds at most; the interval of a median of 30 is a third of the quartiles'.
const ROUNDS: u32 = 30;
/// The size of the file on a RAM disk: that of a cached file, since the two are compared.
const RAM_FILE: Bytes = Bytes(super::CACHED);

/// What reading from memory through the file system costs.
#[derive(Clone, Debug)]
pub(super) struct CachedReport {
    /// Bytes of the file that were in memory.
    pub bytes: u64,
    /// Sequential reads of 1 MiB, bytes a second.
    pub read_bytes_per_s: Option<Estimate>,
    /// Random reads of 4 KiB, nanoseconds.
    pub latency_ns: Option<Latency>,
}

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
    let first = stream.write(0..fitted.0, &budget.part(budget.left() / 2));
    if let Some(error) = first.failure {
        return Err(error.at(dir));
    }
    let file_bytes = first.whole_until;
    let first_write_bytes_per_s = first.bytes_per_s();
    let mut bracket = Bracket::for_this_thread(root, None);
    let mut sides = Sides::new(target.file(), file_bytes, seed)?;
    sides.rounds(true, &budget, &mut bracket).map_err(|e| e.at(dir))?;
    let cached = sides.report();
    Ok(RamDiskReport {
        path: dir.display().to_string(),
        random_read_ns: cached.latency_ns,
        read_bytes_per_s: cached.read_bytes_per_s,
        first_write_bytes_per_s,
        write_bytes_per_s: sides.write.estimate(Better::Higher),
        file_bytes,
        notes: note.into_iter().collect(),
        ..RamDiskReport::default()
    })
}

/// Reads the first `bytes` of `file` into the cache, then measures reading them there.
///
/// # Errors
/// `Failed` when a read fails.
pub(super) fn cached_file(
    file: &File,
    bytes: u64,
    seed: u64,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Result<CachedReport> {
    let mut stream = Stream::new(file, TransferMode::Buffered, CALL, 1, seed)?;
    let warm = stream.read(0..bytes, &budget.part(budget.left() / 2));
    if let Some(error) = warm.failure {
        return Err(error);
    }
    let mut sides = Sides::new(file, warm.whole_until, seed)?;
    sides.rounds(false, budget, bracket)?;
    Ok(sides.report())
}

/// The activities on one file, and what their windows gave.
struct Sides {
    stream: Stream,
    device: FileDevice,
    bytes: u64,
    seed: u64,
    read: Windows,
    write: Windows,
    one: Windows,
    times: Histogram,
}

impl Sides {
    fn new(file: &File, bytes: u64, seed: u64) -> Result<Self> {
        let fail = |error| failed("open", Path::new("the test file"), error);
        let own = file.try_clone().map_err(|source| fail(sys::Error::new("duplicate", source)))?;
        Ok(Self {
            stream: Stream::new(file, TransferMode::Buffered, CALL, 1, seed)?,
            device: FileDevice::new(own).map_err(fail)?,
            bytes,
            seed,
            read: Windows::default(),
            write: Windows::default(),
            one: Windows::default(),
            times: Histogram::new(),
        })
    }

    fn rounds(&mut self, write: bool, budget: &Budget, bracket: &mut Bracket) -> Result<()> {
        let plan = IolatPlan::default();
        if self.bytes < plan.request.0 {
            return Ok(());
        }
        let mut prober = Prober::new(&self.device, self.bytes, &plan, self.seed)?;
        let mut at = 0;
        for _ in 0..ROUNDS {
            if budget.over() {
                break;
            }
            let range = at..(at + WINDOW).min(self.bytes);
            at = if range.end == self.bytes { 0 } else { range.end };
            if write {
                one_window(&mut self.write, bracket, || self.stream.write(range.clone(), budget))?;
            }
            one_window(&mut self.read, bracket, || self.stream.read(range.clone(), budget))?;
            let times = &mut self.times;
            self.one.window(bracket, || {
                let mut window = Histogram::new();
                for _ in 0..REQUESTS {
                    let ns = prober.request()?;
                    window.add(ns);
                    times.add(ns);
                }
                Ok::<_, crate::Error>(window.quantile_ns(0.5))
            })?;
        }
        Ok(())
    }

    fn report(&self) -> CachedReport {
        CachedReport {
            bytes: self.bytes,
            read_bytes_per_s: self.read.estimate(Better::Higher),
            latency_ns: super::latency_of(&self.one, &self.times),
        }
    }
}

/// One window of a transfer. A window that the budget cut has a rate like any other.
fn one_window(
    windows: &mut Windows,
    bracket: &mut Bracket,
    transfer: impl FnOnce() -> crate::storage::stream::TransferResult,
) -> Result<()> {
    windows.window(bracket, || {
        let moved = transfer();
        match moved.failure {
            Some(error) => Err(error),
            None => Ok(moved.bytes_per_s().filter(|_| moved.bytes > 0)),
        }
    })
}
