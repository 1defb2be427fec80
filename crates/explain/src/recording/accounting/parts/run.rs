//! Parts of the time on a processor: what it was spent on, and what the host took meanwhile.
//!
//! Shares of an exact time: by samples of the processors if there are enough, which tell system
//! calls and page faults apart; else user and kernel by ticks.

use super::{Part, Parts};
use crate::recording::accounting::bar::times_grown;
use crate::recording::accounting::machine;
use crate::recording::accounting::processor_samples::{
    CLASSES, ORIGINS, ProcessorSamples, SampledTime,
};
use crate::recording::accounting::threads::TASKSTATS;
use model::explanation::{CALL_PART, TimePart, TimeSlice};
use model::{Evidence, Grade};

/// So many system calls are parts of their own.
const MOST_CALLS: usize = 8;

/// And only from this part of the run on: one in a hundred.
const LEAST_CALL_PART: u64 = 100;

/// Splits `run` by samples of the processors. Returns whether there were enough of them.
pub(super) fn by_samples(parts: &mut Parts) -> bool {
    let view = parts.view;
    let run = parts.slice(TimeSlice::Run).filter(|ns| *ns > 0);
    let Some((samples, run)) = ProcessorSamples::of(view).zip(run) else {
        return false;
    };
    let mut add = |name: String, time: SampledTime| {
        let (slice, grade) = (TimeSlice::Run, Grade::Measured);
        parts.add(Part::new(name, slice, time.ns, grade, time.evidence));
    };
    add(TimePart::Kernel.into(), samples.kernel(run));
    for (part, series) in ORIGINS.into_iter().chain(CLASSES) {
        let time = samples.time([series], run);
        add(part.into(), time);
    }
    let calls = samples.calls(run).into_iter().take(MOST_CALLS);
    for (call, time) in calls.filter(|(_, time)| time.ns >= run / LEAST_CALL_PART) {
        add(format!("{CALL_PART}{}", id_of(call)), time);
    }
    true
}

/// A name that may stand in an id: a damaged file may hold any.
fn id_of(call: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    call.chars().map(letter).collect()
}

/// Splits `run` in the proportion in which the kernel's ticks met user mode and kernel: the
/// sum is exact, the split is a sample of it.
pub(super) fn split(parts: &mut Parts) {
    let Some(run) = parts.slice(TimeSlice::Run).filter(|ns| *ns > 0) else {
        return;
    };
    let Some((user, system, source)) = ticks(parts) else {
        return;
    };
    let both = u128::from(user) + u128::from(system);
    if both == 0 {
        return;
    }
    let user_ns = u128::from(run) * u128::from(user) / both;
    let user_ns = u64::try_from(user_ns).unwrap_or(run).min(run);
    let by_user = Evidence::time("user time by ticks", user, source).seen_in(["tree.user_ns"]);
    let by_kernel =
        Evidence::time("kernel time by ticks", system, source).seen_in(["tree.system_ns"]);
    for (name, ns, evidence) in [
        (TimePart::User, user_ns, [by_user.clone(), by_kernel.clone()]),
        (TimePart::Kernel, run - user_ns, [by_kernel, by_user]),
    ] {
        parts.add(Part::new(name, TimeSlice::Run, ns, Grade::Inferred, evidence));
    }
}

/// User and kernel time from the source that covers most threads.
fn ticks<'a>(parts: &Parts<'a>) -> Option<(u64, u64, &'a str)> {
    if let Some(rows) = &parts.sources.rows
        && (rows.user_ns > 0 || rows.system_ns > 0)
    {
        return Some((rows.user_ns, rows.system_ns, TASKSTATS));
    }
    let view = parts.view;
    if let Some(usage) = view.usage().filter(|_| view.is_command()) {
        return Some((usage.user_ns, usage.system_ns, "wait4"));
    }
    let user = view.growth("tree.user_ns")?;
    let system = view.growth("tree.system_ns")?;
    Some((user, system, view.source("tree.user_ns")))
}

/// The machine's run, by the same ticks that it is made of.
pub(super) fn split_machine(parts: &mut Parts) {
    for (name, counters) in [
        (TimePart::User, &["stat.cpu.user_ns", "stat.cpu.nice_ns"][..]),
        (TimePart::Kernel, &["stat.cpu.system_ns"]),
        (TimePart::Interrupts, &["stat.cpu.irq_ns", "stat.cpu.softirq_ns"]),
    ] {
        let evidence = times_grown(parts.view, counters);
        let lengths = counters.iter().filter_map(|c| parts.view.growth(c));
        let Some(ns) = lengths.reduce(u64::saturating_add) else {
            continue;
        };
        parts.add(Part::new(name, TimeSlice::Run, ns, Grade::Measured, evidence));
    }
}

/// What the host took from the processors while they had work, in the share that the
/// subject had of that work: nobody tells whose time was taken.
pub(super) fn steal(parts: &mut Parts) {
    let view = parts.view;
    let stolen = view.growth("stat.cpu.steal_ns").unwrap_or(0);
    let busy = machine::busy_ns(view).unwrap_or(0);
    let run = parts.slice(TimeSlice::Run).unwrap_or(0);
    if busy == 0 {
        return;
    }
    let ns = u128::from(stolen) * u128::from(run.min(busy)) / u128::from(busy);
    parts.add(Part::new(
        TimePart::Steal,
        TimeSlice::Run,
        u64::try_from(ns).unwrap_or(u64::MAX),
        Grade::Inferred,
        [
            Evidence::time("stat.cpu.steal_ns", stolen, view.source("stat.cpu.steal_ns")),
            Evidence::time("run of all processes", busy, view.source("stat.cpu.user_ns"))
                .seen_in(machine::RUN),
        ],
    ));
}
