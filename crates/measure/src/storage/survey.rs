//! What a survey needs of one device, in a few seconds and a bounded number of bytes.
//!
//! 1. Fill an own file for a share of the time: its size follows the device's speed.
//! 2. Rounds of five short windows (write, read 8 and 32 deep, one random read at a
//!    time, 32 at a time), their order rotating, so that drift meets all alike and each quantity
//!    has enough trials for an interval.
//! 3. A few requests with pauses; as root the raw device beside the own file; the same
//!    file from the page cache.

mod memory;
mod rounds;
mod windows;

pub use memory::survey_ram_disk;

use super::iolat::{self, Access, IolatPlan, Prober, fill_own};
use super::raw::raw_compare;
use super::served::{Direction, ServedWatch};
use super::target::StorageTarget;
use crate::disturbance::Bracket;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use machine::block::Disk;
use model::Bytes;
use model::bytes::{GIB, MIB};
use model::probe::{DeviceReport, SERVED_BY_DEVICE};
use rounds::Rounds;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file may take this share of the bytes that may be written; the windows the rest.
const FILE_SHARE: u64 = 4;
/// The smallest file that is worth measuring on.
const LEAST_FILE: Bytes = Bytes(8 * MIB);
/// Shares of the total time, in percent.
const FILL_PERCENT: u32 = 15;
const ROUNDS_PERCENT: u32 = 65;
const CACHE_PERCENT: u32 = 10;
/// The paced requests: enough for a median, 20 ms apart because a processor is deep
/// asleep by then and a device has gone idle.
const PACED_COUNT: u64 = 8;
const PACED_INTERVAL: Duration = Duration::from_millis(20);
/// The most of the file that is read into the page cache.
const CACHED: u64 = 128 * MIB;

/// What a survey of one device may cost.
#[derive(Clone, Copy, Debug)]
pub struct DeviceLimits {
    /// Wall time of all of it.
    pub total: Duration,
    /// Bytes written in all, the file included; all of them removed again.
    pub written: Bytes,
    /// Whether to compare with the raw device, which needs the right to read it.
    pub raw: bool,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        Self { total: Duration::from_secs(6), written: Bytes(GIB), raw: true }
    }
}

/// Measures the device behind the directory `dir` within `limits`.
///
/// # Errors
/// As [`StorageTarget::open`] and [`StorageTarget::fit`]; `Failed` when its own file cannot be
/// written. A failure after that is in the report.
pub fn survey_device(dir: &Path, limits: &DeviceLimits, root: &Root) -> Result<DeviceReport> {
    let budget = Budget::of(limits.total);
    let share = |percent: u32| budget.part(limits.total * percent / 100);
    let target = StorageTarget::open(dir, root)?;
    let seed = target.draw_seed()?;
    let (written, note) = target.fit(root, limits.written, LEAST_FILE)?;
    let size = Bytes((written.0 / FILE_SHARE).max(LEAST_FILE.0));
    let fill_start_ns = sys::clock::now_ns();
    let file_bytes = fill_own(&target, size, seed, &share(FILL_PERCENT))? / MIB * MIB;
    let fill_ns = sys::clock::now_ns() - fill_start_ns;
    if file_bytes == 0 {
        let reason = "the time ended before 1 MiB was written";
        return Err(Error::new(ErrorKind::Failed, "fill a test file in", reason).at(dir));
    }
    let mut bracket = Bracket::for_this_thread(root, None);
    let watch = ServedWatch::start(root, &target);
    let mut rounds = Rounds::new(&target, file_bytes, seed, file_bytes as f64 / fill_ns as f64)?;
    let room = written.0.saturating_sub(file_bytes);
    let rounds_budget = share(ROUNDS_PERCENT);
    let failure = rounds.run(room, &rounds_budget, &mut bracket).err();
    let served = watch.finish(Direction::Read, rounds.done.read);
    let disk =
        target.device().and_then(|(major, minor)| machine::block::of_device(root, major, minor));
    let text = |error: Error| model::error_chain(&error.at(dir));
    let mut report = DeviceReport {
        path: dir.display().to_string(),
        served_by: served.by.answered().to_owned(),
        served_reason: served.reason,
        file_bytes,
        written_bytes: file_bytes + rounds.done.written,
        notes: note
            .into_iter()
            .chain(rounds.done.notes.iter().cloned())
            .chain(rounds.write_note())
            .collect(),
        failure: failure.map(text),
        ..rounds.report()
    };
    if report.failure.is_none() {
        let access = rounds.access;
        let after =
            FinalSteps { target: &target, disk: disk.as_ref(), access, limits, budget: &budget };
        let failure = after.measure(seed, &mut bracket, &mut report).err();
        report.failure = failure.map(text);
    }
    Ok(report)
}

/// The parts after the rounds: paced requests, the raw device, the page cache.
struct FinalSteps<'a> {
    target: &'a StorageTarget,
    disk: Option<&'a Disk>,
    access: Access,
    limits: &'a DeviceLimits,
    budget: &'a Budget,
}

impl FinalSteps<'_> {
    fn measure(&self, seed: u64, bracket: &mut Bracket, report: &mut DeviceReport) -> Result<()> {
        let (target, budget, bytes) = (self.target, self.budget, report.file_bytes);
        report.paced_read_ns = self.paced_read_ns(bytes, seed)?;
        self.compare_raw(report);
        if budget.over() {
            return Ok(());
        }
        let part = budget.part((self.limits.total * CACHE_PERCENT / 100).max(budget.left() / 2));
        memory::cached_file(target.file(), bytes.min(CACHED), seed, &part, bracket, report)
    }

    /// The median time of a few requests with pauses; `None` if the time was over.
    fn paced_read_ns(&self, bytes: u64, seed: u64) -> Result<Option<f64>> {
        if self.budget.over() {
            return Ok(None);
        }
        let device = rounds::open(self.target, self.access)?;
        let count = Some(PACED_COUNT);
        let plan = IolatPlan { count, interval: PACED_INTERVAL, ..IolatPlan::default() };
        // Another order than the windows', which may have reached any block already.
        let mut prober = Prober::new(device, bytes, &plan, !seed)?;
        let requests = iolat::run(&mut prober, &plan, self.budget, None);
        requests.failure.map_or(Ok(requests.latency.p50_ns), Err)
    }

    /// Compares with the raw device where that is wanted and permitted. If a cache of the host
    /// shows, the report says so.
    fn compare_raw(&self, report: &mut DeviceReport) {
        let (target, budget) = (self.target, self.budget);
        let outcome = match (self.disk, self.access) {
            _ if !self.limits.raw => Err("not asked for".to_owned()),
            (_, Access::Cold | Access::Cached) => {
                Err("the file system has no direct I/O".to_owned())
            }
            (None, _) => Err("no disk is known behind it".to_owned()),
            _ if budget.over() => Err("the time was over".to_owned()),
            (Some(disk), Access::Direct) => target
                .direct()
                .and_then(|own| {
                    let name = disk.name.replace('!', "/");
                    let device = PathBuf::from("/dev").join(name);
                    let part = budget.part(budget.left() / 2);
                    raw_compare(&device, &own, report.file_bytes, disk.rotational, &part)
                })
                .map_err(|error| model::error_chain(&error)),
        };
        match outcome {
            Ok(comparison) => {
                if comparison.host_cache_suspected && report.served_by == SERVED_BY_DEVICE {
                    report.served_reason =
                        "the own fresh file is much faster than the raw device".to_owned();
                }
                report.raw_read_ns = comparison.raw.latency();
            }
            Err(reason) => report.raw_refused = Some(reason),
        }
    }
}
