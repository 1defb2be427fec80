//! The bars of the whole machine: processor time instead of thread time.
//!
//! Nearly all threads of a machine sleep nearly always, so a bar of their lives shows
//! nothing. What a machine has to give is its processors' time: what they ran, what the
//! host took, and when they were idle, by the kernel's ticks.

use super::bar::{Bar, FilledBar, times_grown};
use super::sampled;
use super::source::Sources;
use super::wall;
use crate::recording::View;
use model::explanation::TimeSlice;
use model::{Evidence, Grade};

/// What counts as running; guest time is part of user and nice.
pub(in crate::recording) const RUN: [&str; 5] = [
    "stat.cpu.user_ns",
    "stat.cpu.nice_ns",
    "stat.cpu.system_ns",
    "stat.cpu.irq_ns",
    "stat.cpu.softirq_ns",
];
const STEAL: &str = "stat.cpu.steal_ns";
const IOWAIT: &str = "stat.cpu.iowait_ns";
const IDLE: &str = "stat.cpu.idle_ns";

/// What all processors ran; `None` where that was not recorded.
pub(super) fn busy_ns(view: &View) -> Option<u64> {
    let grown = RUN.iter().filter_map(|name| view.growth(name));
    grown.reduce(u64::saturating_add)
}

/// The processors' time: as many as are online, times the wall time.
pub(super) fn processors_bar(view: &View) -> FilledBar {
    let processors = u64::from(view.facts().processors.max(1));
    let whole_ns = processors.saturating_mul(view.wall_ns());
    let mut bar = Bar::new("the time of all processors", whole_ns);
    if let Some(ns) = busy_ns(view) {
        bar.add(TimeSlice::Run, ns, Grade::Measured, times_grown(view, &RUN));
    }
    // The kernel gives idle time to iowait when a thread that last ran on the processor
    // waits for a device; with several processors that is a hint.
    for (slice, name, grade) in [
        (TimeSlice::Steal, STEAL, Grade::Measured),
        (TimeSlice::BlockIo, IOWAIT, Grade::Inferred),
        (TimeSlice::Idle, IDLE, Grade::Measured),
    ] {
        if let Some(ns) = view.growth(name) {
            bar.add(slice, ns, grade, times_grown(view, &[name]));
        }
    }
    let whole = Evidence::time("processors, times time", whole_ns, "CLOCK_MONOTONIC");
    bar.close(whole)
}

/// Two clocks of the kernel may differ by so much of the wall time.
const DIFFERENCE: f64 = 0.05;

/// How long some thread ran by events, and how long all processors did by their own count, where
/// the former is longer: some kernels lose the switch to the idle task.
pub(in crate::recording) fn too_much_run_ns(view: &View) -> Option<(u64, u64)> {
    let by_events = view.sum("trace.wall.run_ns")?;
    let by_ticks = busy_ns(view)?.saturating_add(view.growth(STEAL).unwrap_or(0));
    let allowed = by_ticks.saturating_add((view.wall_ns() as f64 * DIFFERENCE) as u64);
    (by_events > allowed).then_some((by_events, by_ticks))
}

/// The wall time: by events, unless they contradict what the processors ran; else as much of each
/// interval as any processor can have run in it.
pub(super) fn wall_bar(view: &View, sources: &Sources) -> FilledBar {
    let by_events = sources.events.then(|| wall::by_events(view, sources)).flatten();
    if let Some(filled) = by_events.filter(|_| too_much_run_ns(view).is_none()) {
        return filled;
    }
    let names = [RUN[0], RUN[1], RUN[2], RUN[3], RUN[4], STEAL, IOWAIT, IDLE];
    let mut bar = Bar::new(wall::OF, view.wall_ns());
    if let Some(intervals) = sampled::intervals(view, names) {
        let [run @ .., steal, iowait, idle] = wall::first_come(&intervals);
        let run = run.into_iter().fold(0, u64::saturating_add);
        for (slice, ns, counters) in [
            (TimeSlice::Run, run, &RUN[..]),
            (TimeSlice::Steal, steal, &[STEAL]),
            (TimeSlice::BlockIo, iowait, &[IOWAIT]),
            (TimeSlice::Idle, idle, &[IDLE]),
        ] {
            if counters.iter().any(|name| view.series(name).is_some()) {
                bar.add(slice, ns, Grade::Inferred, times_grown(view, counters));
            }
        }
    }
    wall::close(view, bar)
}
