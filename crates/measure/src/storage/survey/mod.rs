//! What a survey needs of one device, in a few seconds and a bounded number of bytes.
//!
//! 1. Fill an own file for a share of the time: its size follows the device's speed.
//! 2. Rounds of five short windows (write, read 8 and 32 deep, one random read at a
//!    time, 32 at a time), their order rotating, so that drift meets all alike and each quantity
//!    has enough trials for an interval.
//! 3. A few requests with pauses; the same file from the page cache; as root the raw
//!    device beside the own file.

mod memory;
mod rounds;
mod windows;

pub use memory::{CachedReport, RamDiskReport, survey_ram_disk};

use super::iolat::{self, Access, IolatPlan, Prober, Requests, fill_own};
use super::latency::RequestLatency;
use super::raw::{RawComparison, raw_compare};
use super::served::{Direction, Served, ServedBy, Watch};
use super::target::{Target, TargetFacts};
use crate::disturbance::Bracket;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use machine::block::Disk;
use machine::mounts::Mount;
use model::bytes::{GIB, MIB};
use model::curves::RateAt;
use model::{Bytes, Estimate, Histogram, Latency};
use rounds::Rounds;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windows::Windows;

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
        Self {
            total: Duration::from_secs(6),
            written: Bytes(GIB),
            raw: true,
        }
    }
}

/// Reads of one size at one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthReport {
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of each.
    pub block_bytes: u64,
    /// Requests a second.
    pub requests_per_s: Estimate,
    /// Bytes a second.
    pub bytes_per_s: Estimate,
    /// From queued to ended.
    pub latency: RequestLatency,
}

/// What one device gave.
#[derive(Debug, Serialize)]
pub struct DeviceReport {
    /// On what.
    pub target: TargetFacts,
    /// The disk behind it, as sysfs describes it.
    pub disk: Option<Disk>,
    /// The mount that holds the directory.
    pub mount: Option<Mount>,
    /// Direct, or cold where the file system has no direct I/O.
    pub access: Access,
    /// 4 KiB random reads, one at a time, nanoseconds: the median of the windows'
    /// medians with its interval, the percentiles of all requests.
    pub latency_ns: Option<Latency>,
    /// All of these requests.
    pub requests: RequestLatency,
    /// Sequential reads 8 and 32 deep, 4 KiB random reads 1 and 32 deep; those 32 deep
    /// are missing where io_uring is not to be had.
    pub depths: Vec<DepthReport>,
    /// Sequential reads, bytes a second.
    pub read_bytes_per_s: Option<Estimate>,
    /// Sequential writes with the sync that makes them durable, bytes a second.
    pub write_bytes_per_s: Option<Estimate>,
    /// The same reads, window by window.
    pub reads: Vec<RateAt>,
    /// The same writes, window by window.
    pub writes: Vec<RateAt>,
    /// Bytes of each sequential request.
    pub block_bytes: u64,
    /// Sequential requests in flight.
    pub depth: u32,
    /// Single random reads 20 ms apart.
    pub paced: Option<RequestLatency>,
    /// The same file from the page cache; `None` where the time was over before.
    pub page_cache: Option<CachedReport>,
    /// Who served the windows' reads.
    pub served: Served,
    /// The raw device beside the own file.
    pub raw: Option<RawComparison>,
    /// Why there is no comparison with the raw device.
    pub raw_reason: Option<String>,
    /// Bytes of the own file.
    pub file_bytes: u64,
    /// Bytes written in all.
    pub written_bytes: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What ended it early; the figures before it count.
    #[serde(serialize_with = "super::as_text")]
    pub failure: Option<Error>,
}

/// Measures the device behind the directory `dir` within `limits`.
///
/// # Errors
/// As [`Target::open`] and [`Target::fit`]; `Failed` when its own file cannot be
/// written. A failure after that is in the report.
pub fn survey_device(dir: &Path, limits: &DeviceLimits, root: &Root) -> Result<DeviceReport> {
    let budget = Budget::of(limits.total);
    let share = |percent: u32| budget.part(limits.total * percent / 100);
    let target = Target::open(dir, root)?;
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
    let watch = Watch::start(root, &target);
    let mut rounds = Rounds::new(
        &target,
        file_bytes,
        seed,
        file_bytes as f64 / fill_ns as f64,
    )?;
    let room = written.0.saturating_sub(file_bytes);
    let rounds_budget = share(ROUNDS_PERCENT);
    let failure = rounds.run(room, &rounds_budget, &mut bracket).err();
    let served = watch.finish(Direction::Read, rounds.read_bytes());
    let disk = target
        .device()
        .and_then(|(major, minor)| machine::block::of_device(root, major, minor));
    let mut report = DeviceReport {
        disk,
        mount: target.mount().cloned(),
        served,
        file_bytes,
        written_bytes: file_bytes + rounds.written_bytes(),
        notes: note.into_iter().chain(rounds.notes()).collect(),
        failure: failure.map(|error| error.at(dir)),
        ..rounds.report(target.facts(root)?)
    };
    if report.failure.is_none() {
        let after = afterwards(&target, limits, seed, &budget, &mut bracket, &mut report);
        report.failure = after.err().map(|error| error.at(dir));
    }
    Ok(report)
}

/// The parts after the rounds: paced requests, the page cache, the raw device.
fn afterwards(
    target: &Target,
    limits: &DeviceLimits,
    seed: u64,
    budget: &Budget,
    bracket: &mut Bracket,
    report: &mut DeviceReport,
) -> Result<()> {
    let bytes = report.file_bytes;
    report.paced = paced(target, report.access, bytes, seed, budget)?;
    report.compare_raw(target, limits, budget);
    if !budget.over() {
        let part = budget.part((limits.total * CACHE_PERCENT / 100).max(budget.left() / 2));
        let cached = memory::cached_file(target.file(), bytes.min(CACHED), seed, &part, bracket)?;
        report.page_cache = Some(cached);
    }
    Ok(())
}

fn paced(
    target: &Target,
    access: Access,
    bytes: u64,
    seed: u64,
    budget: &Budget,
) -> Result<Option<RequestLatency>> {
    if budget.over() {
        return Ok(None);
    }
    let file = rounds::open(target, access)?;
    let plan = IolatPlan {
        count: Some(PACED_COUNT),
        interval: PACED_INTERVAL,
        ..IolatPlan::default()
    };
    let device = target.device_over(file)?;
    // Another order than the windows', which may have reached any block already.
    let mut prober = Prober::new(&device, bytes, &plan, !seed)?;
    let requests: Requests = iolat::run(&mut prober, &plan, budget, None);
    match requests.failure {
        Some(error) => Err(error),
        None => Ok(Some(requests.latency).filter(|latency| latency.requests > 0)),
    }
}

impl DeviceReport {
    /// Compares with the raw device where that is wanted and permitted; a host's cache
    /// that shows changes who is said to have served.
    fn compare_raw(&mut self, target: &Target, limits: &DeviceLimits, budget: &Budget) {
        let outcome = match (&self.disk, self.access) {
            _ if !limits.raw => Err("not asked for".to_owned()),
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
                    raw_compare(&device, &own, self.file_bytes, disk.rotational, &part)
                })
                .map_err(|error| model::error_chain(&error)),
        };
        match outcome {
            Ok(comparison) => {
                if comparison.host_cache_suspected && self.served.by == ServedBy::Device {
                    self.served.by = ServedBy::HostCacheSuspected;
                    self.served.reason =
                        "the own fresh file is much faster than the raw device".to_owned();
                    self.served.evidence.extend(comparison.evidence.clone());
                }
                self.raw = Some(comparison);
            }
            Err(reason) => self.raw_reason = Some(reason),
        }
    }
}

/// The latency of a tier: the interval from the windows' medians, because requests
/// within one window share its luck; the percentiles from all requests.
fn latency_of(windows: &Windows, times: &Histogram) -> Option<Latency> {
    let estimate = windows.estimate(model::estimate::Better::Lower)?;
    Some(Latency {
        p50: times.quantile_ns(0.5),
        p99: times.quantile_ns(0.99),
        ..Latency::from(&estimate)
    })
}
