//! Does the plan: calls the probes in order and keeps what they returned.
//!
//! A probe that fails leaves its place empty with the reason; the survey goes on.
//! Nothing is computed here beyond when to stop.

use super::places::{SurveyPlace, SurveyPlaces};
use super::plan::{self, SurveyPlan};
use super::swap;
use crate::command::machine_facts;
use machine::Root;
use machine::cpu::CacheClaims;
use machine::memory::Memory;
use measure::compute::{ComputePlan, ComputeReport};
use measure::disturbance::Tally;
use measure::faults::FaultReport;
use measure::memory::PagesGranted;
use measure::memory::latency::LatencyReport;
use measure::memory::levels::{LevelBuffers, LevelReport, Levels};
use measure::storage::DeviceLimits;
use measure::{Budget, Error, storage};
use model::duration::CLOCK_TICK_NS;
use model::machine::MachineFacts;
use model::probe::{DeviceReport, ProcessorLoad, RamDiskReport, SwapArea};
use model::progress::{Progress, ProgressSink};
use model::survey::Skipped;
use std::time::Duration;

/// Everything a survey saw, as the probes returned it.
#[derive(Debug, Default)]
pub struct SurveyResults {
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
    pub devices: Vec<DeviceReport>,
    /// RAM disks.
    pub ram_disks: Vec<RamDiskReport>,
    /// Swap areas.
    pub swap: Vec<SwapArea>,
    /// What failed or was left out.
    pub skipped: Vec<Skipped>,
    /// Processor counters over the whole survey.
    pub processor: ProcessorLoad,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
}

/// The machine as it was before anything was measured.
#[derive(Debug)]
pub struct SurveyedMachine {
    /// What a reader needs to judge the figures.
    pub facts: MachineFacts,
    /// What the caches are said to hold.
    pub caches: Vec<CacheClaims>,
    /// Main memory and the settings of its pages.
    pub memory: Memory,
}

impl SurveyedMachine {
    /// Reads all of it.
    pub fn read(root: &Root) -> Self {
        let (cpu, memory) = (machine::cpu::read(root), machine::memory::read(root));
        Self { caches: cpu.caches.clone(), facts: machine_facts::with(root, cpu, &memory), memory }
    }
}

/// Runs the survey.
pub fn run(
    plan: &SurveyPlan,
    places: SurveyPlaces,
    machine: &SurveyedMachine,
    root: &Root,
    stop: &Budget,
    progress: &mut ProgressSink<'_>,
) -> SurveyResults {
    let mut seen = SurveyResults { skipped: places.skipped, ..SurveyResults::default() };
    let before = ProcessorReading::now(root);
    let _ = progress(Progress::step("new memory"));
    let faults = measure::faults::measure(&plan.faults, root, stop);
    seen.faults = seen.keep("new memory", faults);
    let _ = progress(Progress::step("cache edges"));
    let ladder = measure::memory::latency::measure(&plan.ladder, root, stop);
    seen.ladder = seen.keep("memory latency", ladder);
    let _ = progress(Progress::step("page walks"));
    let translation = measure::memory::latency::measure(&plan.translation, root, stop);
    seen.translation = seen.keep("page walks", translation);
    let _ = progress(Progress::step("processor"));
    let compute = ComputePlan { budget: plan.compute, ..ComputePlan::default() };
    seen.compute = seen.keep("processor", measure::compute::measure(&compute, root, stop));
    let found = seen.ladder.as_ref().map_or(&[][..], |ladder| &ladder.caches);
    let ram_bytes = plan.translation.sizes.first().copied().unwrap_or(4 << 20);
    let levels = plan::levels(&machine.caches, found, ram_bytes);
    match LevelBuffers::resident(&levels, root, stop) {
        Err(error) => {
            seen.skip("memory levels", &error);
            seen.disks(plan, places.places, machine, root, stop, progress);
            seen.swap_and_edges(plan, root, stop, progress);
        }
        Ok(mut store) => {
            seen.granted = Some(store.granted());
            let mut bench = Levels::over(&mut store, &levels);
            let _ = progress(Progress::step("memory levels"));
            let first = bench.measure_pass(&plan.schedule, root, &stop.part(plan.levels_pass));
            seen.keep("memory levels", first);
            seen.disks(plan, places.places, machine, root, stop, progress);
            seen.swap_and_edges(plan, root, stop, progress);
            let _ = progress(Progress::step("memory levels again"));
            let second = bench.measure_pass(&plan.schedule, root, &stop.part(plan.levels_pass));
            seen.keep("memory levels", second);
            seen.levels = bench.reports();
        }
    }
    seen.processor = before.until(ProcessorReading::now(root), &machine.facts);
    seen.processor.run_delay_share = seen.tally().run_delay_share();
    seen.interrupted = stop.interrupted();
    seen
}

impl SurveyResults {
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
        self.skipped.push(Skipped { name: name.to_owned(), reason: model::error_chain(error) });
    }

    /// What must be measured even when the disks were slow, before the second pass over memory,
    /// which can be shortened: the swap areas, and the edges of the caches a second time. An edge
    /// that moves is not the cache's size. Without the second search a finding about a size is only
    /// inferred.
    fn swap_and_edges(
        &mut self,
        plan: &SurveyPlan,
        root: &Root,
        stop: &Budget,
        progress: &mut ProgressSink<'_>,
    ) {
        let _ = progress(Progress::step("swap"));
        self.swap = swap::areas(root, stop);
        let _ = progress(Progress::step("cache edges again"));
        let Some(ladder) = self.ladder.as_mut().filter(|_| !stop.over()) else {
            return;
        };
        let again = plan.ladder.to_search_edges(plan.edges_again);
        let caches = &mut ladder.caches;
        let result = measure::memory::latency::search_again(caches, &again, root, stop);
        self.keep("cache edges again", result);
    }

    /// Devices and RAM disks share what time is left before the last steps.
    fn disks(
        &mut self,
        plan: &SurveyPlan,
        places: Vec<SurveyPlace>,
        machine: &SurveyedMachine,
        root: &Root,
        stop: &Budget,
        progress: &mut ProgressSink<'_>,
    ) {
        let count = places.len() as u32;
        for (i, place) in places.into_iter().enumerate() {
            let name = place.name();
            let later = plan.levels_pass + plan.edges_again;
            let left = stop.left().saturating_sub(later) / (count - i as u32).max(1);
            let share = left.min(if place.in_ram { plan.ram_disk } else { plan.device });
            if share < Duration::from_millis(300) {
                let reason = "no time was left; use --path with fewer directories".to_owned();
                self.skipped.push(Skipped { name, reason });
                continue;
            }
            let _ = progress(Progress::step(&name));
            if place.in_ram {
                let report = storage::survey_ram_disk(&place.directory, share, root);
                let measured = self.keep(&name, report);
                let placed = measured.map(|measured| place.ram_disk(measured, &machine.memory));
                self.ram_disks.extend(placed);
            } else {
                let limits = DeviceLimits {
                    total: share,
                    written: model::Bytes(plan.written_bytes),
                    // Only root may read the raw device; asking costs nothing.
                    raw: sys::process::effective_uid() == 0,
                };
                let report = storage::survey_device(&place.directory, &limits, root);
                let measured = self.keep(&name, report);
                let is_guest = machine.facts.virtualization.is_some();
                self.devices.extend(measured.map(|measured| place.device(measured, is_guest)));
            }
        }
    }

    /// All trials of the memory probes together.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.levels.iter().for_each(|level| tally.merge(&level.tally));
        self.ladder.iter().for_each(|ladder| tally.merge(&ladder.tally));
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
            limit: machine::cgroup::tightest_cpu_limit(root),
        }
    }

    fn until(self, after: Self, facts: &MachineFacts) -> ProcessorLoad {
        let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        let (was, is) = (self.limit.as_ref(), after.limit.as_ref());
        let of = |read: fn(&machine::cgroup::CpuLimit) -> Option<u64>| {
            grown(was.and_then(read), is.and_then(read))
        };
        let stolen_ns =
            grown(self.steal_ticks, after.steal_ticks).map(|ticks| ticks * CLOCK_TICK_NS);
        let cpus = f64::from(facts.online_cpus.max(1));
        let wall_ns = (after.at_ns - self.at_ns).max(1) as f64;
        let periods = of(|limit| limit.periods).zip(of(|limit| limit.throttled_periods));
        ProcessorLoad {
            steal_share: stolen_ns.map(|stolen| stolen as f64 / wall_ns / cpus),
            run_delay_share: None,
            periods: periods.map(|(periods, _)| periods),
            throttled_periods: periods.map(|(_, throttled)| throttled),
            throttled_s: of(|limit| limit.throttled_ns).map(|ns| ns as f64 / 1e9),
            quota_cores: is.and_then(|limit| limit.quota_cores),
            cgroup: is.map(|limit| limit.path.clone()),
            usable_cpus: facts.usable_cpus,
            online_cpus: facts.online_cpus,
        }
    }
}
