//! `measure faults`: what the first touch of memory costs, and what it costs again.
//!
//! 1. Fresh memory is touched page by page, each touch timed: on 4 KiB pages, on
//!    huge ones, and by `MADV_POPULATE_WRITE` (timed as a whole).
//! 2. It is freed and touched again at once: now the host has it.
//! 3. It is freed, left for a while, and touched again: a host that takes
//!    free memory back makes it cold again.
//!
//! Several runs are combined in `combine`.
//!
//! No guest counter shows the host's part; only the shape of the histogram does.
//! So cold memory must come first: this probe runs before all that use memory.

mod combine;

use crate::calibrate::{self, Overhead};
use crate::disturbance::{Bracket, Disturbance, Tally};
use crate::memory::{SkippedMethod, arena};
use crate::runs::{RunOrder, Runs};
use crate::{Budget, Error, ErrorKind, Result, compute, team};
use machine::Root;
use model::bytes::MIB;
use model::histogram::{Bar, Histogram, Modes};
use model::{Bytes, Covers, Estimate};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sys::memory::{Mapping, Pages};

/// The default limit of what is touched.
pub const DEFAULT_LIMIT: u64 = 512 << 20;

/// Modes closer than this are one: the host's fault costs 5 to 60 times the guest's.
const MODES_APART: f64 = 3.0;

/// A second mode with fewer of the faults is a tail.
const MODE_SHARE: f64 = 0.01;

/// How memory is touched first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TouchMethod {
    /// A store to each 4 KiB page.
    #[serde(rename = "4k")]
    Base,
    /// A store to each 2 MiB, huge pages asked for.
    #[serde(rename = "thp")]
    Transparent,
    /// `MADV_POPULATE_WRITE` of 4 KiB pages, 2 MiB at a time.
    #[serde(rename = "populate")]
    Populate,
}

impl TouchMethod {
    /// All ways.
    pub const ALL: [TouchMethod; 3] =
        [TouchMethod::Base, TouchMethod::Transparent, TouchMethod::Populate];

    /// The word used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            TouchMethod::Base => "4k",
            TouchMethod::Transparent => "thp",
            TouchMethod::Populate => "populate",
        }
    }

    fn pages(self) -> Pages {
        match self {
            TouchMethod::Base | TouchMethod::Populate => Pages::Base,
            TouchMethod::Transparent => Pages::Transparent,
        }
    }
}

/// When memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TouchPhase {
    /// As the kernel gave it.
    First,
    /// Right after the same amount was freed.
    Again,
    /// After it was freed and left alone for the plan's wait.
    AfterWait,
}

impl TouchPhase {
    /// The word used in results.
    pub fn name(self) -> &'static str {
        match self {
            TouchPhase::First => "first",
            TouchPhase::Again => "again",
            TouchPhase::AfterWait => "after_wait",
        }
    }
}

/// The options of the probe.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// Touch at most this many bytes at a time; the ways share them.
    pub limit: u64,
    /// How long freed memory is left alone; zero skips the third phase.
    pub wait: Duration,
    /// Ways, one after the other; each with memory of its own.
    pub ways: Vec<TouchMethod>,
    /// Time for everything.
    pub budget: Duration,
    /// The processor; `None` takes the first allowed.
    pub cpu: Option<usize>,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            wait: Duration::from_secs(3),
            ways: TouchMethod::ALL.to_vec(),
            budget: Duration::from_secs(30),
            cpu: None,
        }
    }
}

/// One series of touches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FaultSeries {
    /// How.
    pub way: TouchMethod,
    /// When.
    pub phase: TouchPhase,
    /// Bytes that one timed touch made resident.
    pub touch_bytes: u64,
    /// Timed touches.
    pub touches: u64,
    /// Page faults that the kernel counted; `None` where it cannot be read.
    pub faults: Option<u64>,
    /// Bytes made resident.
    pub bytes: u64,
    /// Bytes that huge pages backed in the end; `None` where smaps cannot be read.
    pub huge_bytes: Option<u64>,
    /// Bytes made resident a second of touching.
    pub bytes_per_s: f64,
    /// The median touch with its interval, nanoseconds. Within one run touches are taken as
    /// independent.
    pub touch_ns: Option<Estimate>,
    /// Median touch, nanoseconds.
    pub p50_ns: Option<f64>,
    /// 90th percentile, nanoseconds.
    pub p90_ns: Option<f64>,
    /// 99th percentile, nanoseconds; absent below 100 touches.
    pub p99_ns: Option<f64>,
    /// The longest, nanoseconds.
    pub max_ns: Option<f64>,
    /// Two modes, if the histogram has them.
    pub modes: Option<Modes>,
    /// The histogram, two bars for each doubling.
    pub bars: Vec<Bar>,
    /// What disturbed the series.
    pub disturbance: Disturbance,
    /// Whether the budget or Ctrl-C cut it short.
    pub cut_short: bool,
}

impl FaultSeries {
    /// The share of touches that took at least `MODES_APART` times `warm_ns`, the
    /// median on memory that was touched a moment ago; `None` without touches.
    pub fn slow_share(&self, warm_ns: Option<f64>) -> Option<f64> {
        let bound = warm_ns? * MODES_APART;
        let slow_bars = self.bars.iter().filter(|bar| bar.from_ns >= bound);
        let slow: u64 = slow_bars.map(|bar| bar.count).sum();
        (self.touches > 0).then(|| slow as f64 / self.touches as f64)
    }
}

/// The result of [`measure`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FaultReport {
    /// The series, in the order they were made.
    pub series: Vec<FaultSeries>,
    /// The limit that was kept, bytes.
    pub limit_bytes: u64,
    /// What made the limit smaller than asked, if anything did.
    pub limited_by: Option<String>,
    /// How long memory was left alone before [`TouchPhase::AfterWait`], seconds.
    pub waited_s: f64,
    /// Bytes reported to the host as free during the wait; `None` where the kernel does not say.
    pub reported_bytes: Option<u64>,
    /// Ways that were left out.
    pub left_out: Vec<SkippedMethod>,
    /// All series together.
    pub tally: Tally,
    /// The processor alone, measured in the same run: one step of the fractal control, nanoseconds.
    pub control_step_ns: Option<Estimate>,
    /// The harness's own cost; a touch is timed with one reading of the clock.
    pub overhead: Overhead,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
    /// How many runs of the probe are in it.
    pub runs: Runs,
}

impl FaultPlan {
    /// The plan of one run of several: only the first leaves memory alone for a while, which takes
    /// longer than all the rest.
    #[must_use]
    pub fn of_run(self, order: &RunOrder) -> Self {
        let wait = if order.run == 0 { self.wait } else { Duration::ZERO };
        Self { wait, budget: order.budget, ..self }
    }
}

impl FaultReport {
    /// The series of `way` in `phase`, if it was made.
    pub fn find(&self, way: TouchMethod, phase: TouchPhase) -> Option<&FaultSeries> {
        self.series.iter().find(|series| series.way == way && series.phase == phase)
    }
}

/// The largest amount that may be touched here: the limit asked for, but never
/// more than a quarter of what is available to the machine and its control group.
pub fn bounded(limit: u64, root: &Root) -> (u64, Option<String>) {
    match machine::memory::usable(root) {
        Some(usable) if usable.bytes.0 / 4 < limit => {
            let quarter = usable.bytes.0 / 4 / (2 * MIB) * (2 * MIB);
            (quarter, Some(usable.bound_by))
        }
        _ => (limit, None),
    }
}

/// Touches fresh memory in each way and phase.
pub fn measure(plan: &FaultPlan, root: &Root, stop: &Budget) -> Result<FaultReport> {
    if plan.limit < 2 * MIB {
        let what = format!("touch {}", Bytes(plan.limit));
        return Err(Error::new(ErrorKind::Usage, what, "give at least 2 MiB"));
    }
    let (limit, limited_by) = bounded(plan.limit, root);
    if limit < 2 * MIB {
        return Err(Error::new(
            ErrorKind::Impossible,
            "touch fresh memory",
            format!("less than 8 MiB are available ({})", limited_by.unwrap_or_default()),
        ));
    }
    let budget = stop.part(plan.budget);
    team::alone(plan.cpu, root, |bracket| {
        let report = FaultReport {
            limit_bytes: limit,
            limited_by,
            overhead: calibrate::overhead(bracket),
            ..FaultReport::default()
        };
        let mut session = Session { plan, root, budget, bracket, report };
        // First every way on memory as it comes, before any of it was used here.
        session.all_ways(TouchPhase::First);
        session.all_ways(TouchPhase::Again);
        if !plan.wait.is_zero() && budget.left() > plan.wait {
            wait(plan.wait, root, &budget, &mut session.report);
            session.all_ways(TouchPhase::AfterWait);
        }
        let control_step_ns = compute::control(&budget, session.bracket);
        let mut report = session.report;
        report.control_step_ns = control_step_ns;
        report.interrupted = stop.over();
        if report.series.is_empty() {
            let reason = "the budget ended before the first touch";
            return Err(Error::new(ErrorKind::Impossible, "touch fresh memory", reason));
        }
        Ok(report)
    })
}

/// One run of the probe.
struct Session<'a> {
    plan: &'a FaultPlan,
    root: &'a Root,
    budget: Budget,
    bracket: &'a mut Bracket,
    report: FaultReport,
}

impl Session<'_> {
    /// One phase: every way on memory of its own.
    ///
    /// All of a phase stays mapped until its end, because memory that one way gave
    /// back would be warm for the next. So the ways share the limit.
    fn all_ways(&mut self, phase: TouchPhase) {
        let ways = &self.plan.ways;
        let each = self.report.limit_bytes / ways.len().max(1) as u64 / (2 * MIB) * (2 * MIB);
        let mut mapped = Vec::new();
        for (i, &way) in ways.iter().enumerate() {
            if self.budget.over() {
                return;
            }
            // Each way gets its share, so that a slow host cannot starve the last.
            let part = self.budget.part(self.budget.left() / (ways.len() - i) as u32);
            let bytes = each.max(2 * MIB);
            match series(way, phase, bytes, self.root, &part, self.bracket) {
                Ok((series, mapping)) => {
                    let elapsed = series.bytes as f64 / series.bytes_per_s.max(1.0) * 1e9;
                    self.report.tally.add(elapsed, &series.disturbance, false);
                    self.report.series.push(series);
                    mapped.push(mapping);
                }
                Err(error) => self
                    .report
                    .left_out
                    .push(SkippedMethod { name: way.name().to_owned(), reason: error.to_string() }),
            }
        }
    }
}

/// Sleeps in short naps, and notes how much memory was reported to the host.
fn wait(duration: Duration, root: &Root, budget: &Budget, report: &mut FaultReport) {
    let before = machine::memory::reported_to_host_bytes(root);
    let start_ns = sys::clock::now_ns();
    let part = budget.part(duration);
    while !part.over() {
        std::thread::sleep(part.left().min(Duration::from_millis(50)));
    }
    report.waited_s = (sys::clock::now_ns() - start_ns) as f64 / 1e9;
    let after = machine::memory::reported_to_host_bytes(root);
    report.reported_bytes = before.zip(after).map(|(before, after)| after.saturating_sub(before));
}

/// Maps `limit` bytes and touches them; the memory goes back with the mapping.
fn series(
    way: TouchMethod,
    phase: TouchPhase,
    limit: u64,
    root: &Root,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Result<(FaultSeries, Mapping)> {
    let mut mapping = Mapping::anonymous(limit as usize, way.pages()).map_err(|source| {
        Error::caused(ErrorKind::Impossible, format!("map {}", Bytes(limit)), source)
    })?;
    let touch_bytes = match way {
        TouchMethod::Base => sys::process::page_bytes(),
        TouchMethod::Transparent | TouchMethod::Populate => 2 << 20,
    };
    let mut histogram = Histogram::new();
    let before = bracket.read();
    let usage_before = sys::usage::thread().ok();
    let start = sys::clock::now_ns();
    let bytes = match way {
        TouchMethod::Populate => populate(&mut mapping, touch_bytes, budget, &mut histogram)?,
        _ => touch(mapping.as_mut_slice(), touch_bytes, budget, &mut histogram),
    };
    let elapsed_ns = (sys::clock::now_ns() - start).max(1) as f64;
    let faults = usage_before
        .zip(sys::usage::thread().ok())
        .map(|(before, after)| after.minor_faults - before.minor_faults);
    let mut disturbance = Disturbance::between(&before, &bracket.read());
    // Faults are what is measured here, so they disturb nothing.
    disturbance.minor_faults = None;
    let granted = machine::smaps::of_range(root, mapping.address(), mapping.len());
    let huge_bytes = granted.map(|granted| granted.anon_huge.0);
    if way == TouchMethod::Transparent {
        all_huge(huge_bytes, bytes)?;
    }
    let series = FaultSeries {
        way,
        phase,
        touch_bytes: touch_bytes as u64,
        touches: histogram.len(),
        faults,
        bytes,
        huge_bytes,
        bytes_per_s: bytes as f64 * 1e9 / elapsed_ns,
        touch_ns: touch_time(&histogram),
        p50_ns: histogram.quantile_ns(0.5),
        p90_ns: histogram.quantile_ns(0.9),
        p99_ns: histogram.quantile_ns(0.99),
        max_ns: histogram.max_ns(),
        modes: histogram.modes(MODES_APART, MODE_SHARE),
        bars: histogram.bars(2),
        disturbance,
        cut_short: bytes < limit,
    };
    Ok((series, mapping))
}

/// The median of the touches of one run.
fn touch_time(histogram: &Histogram) -> Option<Estimate> {
    let interval = histogram.median_interval_ns();
    Some(Estimate {
        median: histogram.quantile_ns(0.5)?,
        best: histogram.min_ns()?,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        spread: None,
        trials: u32::try_from(histogram.len()).unwrap_or(u32::MAX),
        discarded: 0,
        covers: Covers::WithinRun,
        runs: 1,
    })
}

/// One store makes 2 MiB resident only where a huge page was granted; elsewhere it
/// makes 4 KiB, and a rate reckoned from it would be 512 times too high.
fn all_huge(huge_bytes: Option<u64>, touched_bytes: u64) -> Result<()> {
    match huge_bytes {
        Some(huge) if (huge as f64) < touched_bytes as f64 * LEAST_GRANTED => Err(Error::new(
            ErrorKind::Impossible,
            "touch huge pages",
            format!("the kernel granted {} of {} as huge pages", Bytes(huge), Bytes(touched_bytes)),
        )),
        _ => Ok(()),
    }
}

/// The share of a buffer that must be huge pages for its touches to be of them.
const LEAST_GRANTED: f64 = 0.98;

/// Touches between two checks of the budget: 10 ms when the host has to find each page.
const CHECK_EVERY: usize = 1024;

/// Stores one byte every `step` bytes, each store timed from the end of the last:
/// one reading of the clock for each.
fn touch(memory: &mut [u8], step: usize, budget: &Budget, histogram: &mut Histogram) -> u64 {
    let check_every = if step > sys::process::page_bytes() { 1 } else { CHECK_EVERY };
    let mut bytes = 0;
    let mut last = sys::clock::now_ns();
    for (i, byte) in memory.iter_mut().step_by(step).enumerate() {
        *std::hint::black_box(byte) = 1;
        let now = sys::clock::now_ns();
        histogram.add(now - last);
        bytes += step as u64;
        last = now;
        if i % check_every == check_every - 1 {
            if budget.over() {
                break;
            }
            last = sys::clock::now_ns();
        }
    }
    bytes.min(memory.len() as u64)
}

/// Populates `step` bytes at a time, each call timed.
fn populate(
    mapping: &mut Mapping,
    step: usize,
    budget: &Budget,
    histogram: &mut Histogram,
) -> Result<u64> {
    let mut bytes = 0;
    while bytes < mapping.len() && !budget.over() {
        let length = step.min(mapping.len() - bytes);
        let start = sys::clock::now_ns();
        mapping
            .populate_write_range(bytes, length)
            .map_err(|source| Error::caused(ErrorKind::Impossible, "populate memory", source))?;
        histogram.add(sys::clock::now_ns() - start);
        bytes += length;
    }
    Ok(bytes as u64)
}

/// Whether `bytes` more fit, for callers that plan several series.
pub fn check(plan: &FaultPlan, root: &Root) -> Result<()> {
    arena::check_fits(root, bounded(plan.limit, root).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_of_small_pages_are_never_reckoned_as_huge() {
        assert!(all_huge(Some(0), 16 << 20).is_err());
        assert!(all_huge(Some(8 << 20), 16 << 20).is_err());
        assert!(all_huge(Some(16 << 20), 16 << 20).is_ok());
    }

    fn quick(limit: u64, ways: Vec<TouchMethod>) -> FaultPlan {
        FaultPlan { limit, wait: Duration::ZERO, ways, budget: Duration::from_secs(20), cpu: None }
    }

    #[test]
    fn every_page_is_touched_once_and_the_kernel_agrees() {
        let stop = Budget::of(Duration::from_secs(60));
        let report =
            measure(&quick(16 << 20, vec![TouchMethod::Base]), &Root::system(), &stop).unwrap();
        let first = report.find(TouchMethod::Base, TouchPhase::First).unwrap();
        assert_eq!(first.touches, 4096);
        assert_eq!(first.bytes, 16 << 20);
        let faults = first.faults.unwrap();
        assert!((4096..4200).contains(&faults), "{faults}");
        assert_eq!(first.bars.iter().map(|bar| bar.count).sum::<u64>(), 4096);
        assert!(first.p50_ns.unwrap() > 50.0);
        assert_eq!(first.huge_bytes, Some(0));
    }

    #[test]
    fn huge_pages_fault_once_for_512_pages() {
        let stop = Budget::of(Duration::from_secs(60));
        let plan = quick(16 << 20, vec![TouchMethod::Transparent, TouchMethod::Populate]);
        let report = measure(&plan, &Root::system(), &stop).unwrap();
        let huge = report.find(TouchMethod::Transparent, TouchPhase::Again).unwrap();
        assert_eq!(huge.touches, 4);
        assert_eq!(huge.p99_ns, None, "4 touches have no 99th percentile");
        if huge.huge_bytes == Some(8 << 20) {
            assert!(huge.faults.unwrap() < 100, "{:?}", huge.faults);
        }
        assert_eq!(report.find(TouchMethod::Populate, TouchPhase::First).unwrap().bytes, 8 << 20);
    }

    #[test]
    fn no_more_than_a_quarter_of_what_is_there() {
        let (limit, by) = bounded(u64::MAX, &Root::system());
        let usable = machine::memory::usable(&Root::system()).unwrap();
        assert!(limit <= usable.bytes.0 / 4 + (64 << 20));
        assert!(by.is_some());
        let none = quick(0, vec![TouchMethod::Base]);
        let stop = Budget::of(Duration::from_secs(1));
        assert_eq!(measure(&none, &Root::system(), &stop).unwrap_err().kind, ErrorKind::Usage);
    }
}
