//! Does the plan: calls the probes in order and keeps what they returned.
//!
//! A probe that fails leaves its place empty with the reason; the survey goes on.
//! Nothing is computed here beyond when to stop.

use super::places::{Place, Places};
use super::plan::{self, Plan};
use machine::Root;
use measure::compute::{ComputePlan, ComputeReport};
use measure::disturbance::Tally;
use measure::faults::FaultReport;
use measure::memory::PagesGranted;
use measure::memory::latency::LatencyReport;
use measure::memory::levels::{LevelReport, Levels, Store};
use measure::storage::{DeviceLimits, DeviceReport, RamDiskReport};
use measure::{Budget, Error, storage};
use model::duration::CLOCK_TICK_NS;
use model::survey::Skipped;
use std::time::Duration;

/// Everything a survey saw, as the probes returned it.
#[derive(Debug, Default)]
pub struct Seen {
    /// First touch.
    pub faults: Option<FaultReport>,
    /// The curve of latency over sizes.
    pub ladder: Option<LatencyReport>,
    /// 4 KiB pages beside huge ones.
    pub translation: Option<LatencyReport>,
    /// The levels of memory.
    pub levels: Vec<LevelReport>,
    /// What was granted to the largest buffer that asked for huge pages.
    pub granted: Option<PagesGranted>,
    /// The processor alone.
    pub compute: Option<ComputeReport>,
    /// Devices.
    pub devices: Vec<(Place, DeviceReport)>,
    /// RAM disks.
    pub ram_disks: Vec<(Place, RamDiskReport)>,
    /// What failed or was left out.
    pub skipped: Vec<Skipped>,
    /// Processor counters over the whole survey.
    pub processor: Processor,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
}

/// What happened to the processors while the survey ran.
#[derive(Debug, Default)]
pub struct Processor {
    /// Time the host took, all processors, nanoseconds.
    pub stolen_ns: Option<u64>,
    /// Wall time of the survey, nanoseconds.
    pub wall_ns: u64,
    /// Bandwidth periods of the group that limits us, and throttled ones.
    pub periods: Option<(u64, u64)>,
    /// Time the group was throttled, nanoseconds.
    pub throttled_ns: Option<u64>,
    /// The limit, processors.
    pub quota_cores: Option<f64>,
    /// The group.
    pub cgroup: Option<String>,
}

/// Told what is being measured, for a progress line.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// Runs the survey.
pub fn run(
    plan: &Plan,
    places: Places,
    root: &Root,
    stop: &Budget,
    progress: Progress<'_>,
) -> Seen {
    let mut seen = Seen {
        skipped: places.skipped,
        ..Seen::default()
    };
    let before = ProcessorReading::now(root);
    progress("new memory");
    let faults = measure::faults::measure(&plan.faults, root, stop);
    seen.faults = seen.keep("new memory", faults);
    progress("cache edges");
    let ladder = measure::memory::latency::measure(&plan.ladder, root, stop);
    seen.ladder = seen.keep("memory latency", ladder);
    progress("page walks");
    let translation = measure::memory::latency::measure(&plan.translation, root, stop);
    seen.translation = seen.keep("page walks", translation);
    progress("processor");
    let compute = ComputePlan {
        budget: plan.compute,
        ..ComputePlan::default()
    };
    seen.compute = seen.keep("processor", measure::compute::measure(&compute, root, stop));
    let claims = machine::cpu::read(root).caches;
    let found = seen
        .ladder
        .as_ref()
        .map_or(&[][..], |ladder| &ladder.caches);
    let ram_bytes = plan.translation.sizes.first().copied().unwrap_or(4 << 20);
    let levels = plan::levels(&claims, found, ram_bytes);
    match Store::resident(&levels, root, stop) {
        Err(error) => {
            seen.skip("memory levels", &error);
            seen.disks(plan, places.places, root, stop, progress);
        }
        Ok(mut store) => {
            seen.granted = Some(store.granted());
            let mut bench = Levels::over(&mut store, &levels);
            progress("memory levels");
            let first = bench.sit(&plan.schedule, root, &stop.part(plan.sitting));
            seen.keep("memory levels", first);
            seen.disks(plan, places.places, root, stop, progress);
            progress("memory levels again");
            let second = bench.sit(&plan.schedule, root, &stop.part(plan.sitting));
            seen.keep("memory levels", second);
            seen.levels = bench.reports();
        }
    }
    seen.processor = before.until(ProcessorReading::now(root));
    seen.interrupted = stop.interrupted();
    seen
}

impl Seen {
    /// The value, or its error among what was left out.
    fn keep<T>(&mut self, name: &str, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.skip(name, &error);
                None
            }
        }
    }

    fn skip(&mut self, name: &str, error: &Error) {
        self.skipped.push(Skipped {
            name: name.to_owned(),
            reason: model::error_chain(error),
        });
    }

    /// Devices and RAM disks share what time is left before the last sitting.
    fn disks(
        &mut self,
        plan: &Plan,
        places: Vec<Place>,
        root: &Root,
        stop: &Budget,
        progress: Progress<'_>,
    ) {
        let count = places.len() as u32;
        for (i, place) in places.into_iter().enumerate() {
            let name = place.name();
            let left = stop.left().saturating_sub(plan.sitting) / (count - i as u32).max(1);
            let share = left.min(if place.in_ram {
                plan.ram_disk
            } else {
                plan.device
            });
            if share < Duration::from_millis(300) {
                let reason = "no time was left; use --path with fewer directories".to_owned();
                self.skipped.push(Skipped { name, reason });
                continue;
            }
            progress(&name);
            if place.in_ram {
                let report = storage::survey_ram_disk(&place.directory, share, root);
                let report = self.keep(&name, report);
                self.ram_disks.extend(report.map(|report| (place, report)));
            } else {
                let limits = DeviceLimits {
                    total: share,
                    written: model::Bytes(plan.written_bytes),
                    // Only root may read the raw device; asking costs nothing.
                    raw: sys::process::effective_uid() == 0,
                };
                let report = storage::survey_device(&place.directory, &limits, root);
                let report = self.keep(&name, report);
                self.devices.extend(report.map(|report| (place, report)));
            }
        }
    }

    /// All trials of the memory probes together.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.levels
            .iter()
            .for_each(|level| tally.merge(&level.tally));
        self.ladder
            .iter()
            .for_each(|ladder| tally.merge(&ladder.tally));
        tally
    }
}

/// Processor counters at one instant.
#[derive(Debug)]
struct ProcessorReading {
    at_ns: u64,
    steal_ticks: Option<u64>,
    limit: Option<machine::cgroup::CpuLimit>,
}

impl ProcessorReading {
    fn now(root: &Root) -> Self {
        Self {
            at_ns: sys::clock::now_ns(),
            steal_ticks: machine::stat::steal_ticks(root, None),
            limit: machine::cgroup::read(root).cpu,
        }
    }

    fn until(self, after: Self) -> Processor {
        let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        let (was, is) = (self.limit.as_ref(), after.limit.as_ref());
        let of = |read: fn(&machine::cgroup::CpuLimit) -> Option<u64>| {
            grown(was.and_then(read), is.and_then(read))
        };
        Processor {
            stolen_ns: grown(self.steal_ticks, after.steal_ticks)
                .map(|ticks| ticks * CLOCK_TICK_NS),
            wall_ns: after.at_ns - self.at_ns,
            periods: of(|limit| limit.periods).zip(of(|limit| limit.throttled_periods)),
            throttled_ns: of(|limit| limit.throttled_ns),
            quota_cores: is.and_then(|limit| limit.quota_cores),
            cgroup: is.map(|limit| limit.path.clone()),
        }
    }
}
