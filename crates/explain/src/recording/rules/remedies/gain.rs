//! What the subject is expected to gain by a remedy, as a range of factors.
//!
//! A unit of its work runs, waits in the queue of the processors, and waits for devices. A remedy
//! takes processor time or waits away. What is left decides: where processors are free, the sum of
//! the rest (Amdahl); where they are full, the processor time of the whole machine for a unit of
//! work (the utilisation law), and the queue shrinks with the subject's own processor time.

use super::super::run_view::part_of;
use super::super::{RunView, memory_limit, small_calls};
use crate::recording::accounting::PROCESSORS_RUN;
use crate::recording::limited::are_processors_busy;
use model::Grade;
use model::explanation::{Cause, ExpectedGain, TimePart, TimeSlice};

/// No more is expected: what is left is then too little to be known. Picked.
const MOST: f64 = 10.0;

/// So much of a measured wait goes away at least: another cause takes the place of the rest.
/// Picked.
const SURE_SHARE_MEASURED: f64 = 0.5;

/// The same of a wait that is inferred. Picked.
const SURE_SHARE_INFERRED: f64 = 0.2;

/// Of the wait for processors so much goes away at least with more of them. Picked.
const QUEUE_SHARE: f64 = 0.25;

/// What all threads of a machine waited for processors and devices.
const MACHINE_WAITS: [&str; 2] = ["trace.sched.queue_ns", "trace.sched.block_io_ns"];

/// Findings whose time is on processors.
const ON_PROCESSORS: &[&str] = &[
    "first_touch",
    "memory_backed_lazily",
    "thp_fallback",
    "copy_on_write",
    "compaction",
    "numa_remote",
    "reclaim_direct",
    "small_reads",
    "small_writes",
    "file_storm",
    "exec_storm",
    "mmap_storm",
    "page_clearing",
    "kernel_copying",
    "kernel_locks",
    "network_processing",
    "thread_switching",
    "interrupts",
    "zero_pages_swapped",
];

/// Findings whose time is wall time in which all threads slept.
const ASLEEP: &[&str] = &[
    "timer_sleep",
    "socket_wait",
    "pipe_wait",
    "poll_wait",
    "file_lock_wait",
    "file_system_wait",
    "children_wait",
];

/// What a remedy takes away, thread time.
#[derive(Clone, Copy, Debug, Default)]
struct Removed {
    /// On processors, at least.
    run_low_ns: u64,
    /// At most.
    run_high_ns: u64,
    /// Waiting for something else than a processor.
    wait_ns: u64,
}

/// The time of the subject's threads that its work takes.
#[derive(Clone, Copy, Debug)]
struct Work {
    run_ns: u64,
    queue_ns: u64,
    /// All of it.
    whole_ns: u64,
}

pub(super) fn expected(run: &RunView, cause: &Cause) -> Option<ExpectedGain> {
    let ns = cause.ns?;
    let id = cause.finding.id.as_str();
    let sure = sure_share(cause);
    let work = work(run);
    match id {
        "cpu_contention" => Some(of_queue(run, work, ns)),
        "cpu_limit" | "processor_stolen" => Some(range(
            fewer(work.whole_ns, part_of(ns, sure)),
            fewer(work.whole_ns, ns),
            "the time stopped goes away, the rest of the work stays",
        )),
        _ if ASLEEP.contains(&id) => Some(range(
            fewer(run.wall_ns(), part_of(ns, sure)),
            fewer(run.wall_ns(), ns),
            "the sleep goes away, the rest of the wall time stays",
        )),
        _ => Some(of_work(run, work, removed(run, cause, ns), sure)),
    }
}

fn sure_share(cause: &Cause) -> f64 {
    match cause.finding.grade {
        Grade::Measured => SURE_SHARE_MEASURED,
        _ => SURE_SHARE_INFERRED,
    }
}

/// The bar of a machine is of its processors; what its threads waited is beside it.
fn work(run: &RunView) -> Work {
    let run_ns = run.run_ns();
    if run.is_machine() {
        let [queue_ns, wait_ns] = MACHINE_WAITS.map(|name| run.sum(name).unwrap_or(0));
        let whole_ns = run_ns.saturating_add(queue_ns).saturating_add(wait_ns);
        return Work { run_ns, queue_ns, whole_ns };
    }
    let queue_ns = run.accounts.thread(TimeSlice::Queue);
    Work { run_ns, queue_ns, whole_ns: run.reference_ns() }
}

/// What the remedy of a finding of `ns` takes away.
fn removed(run: &RunView, cause: &Cause, ns: u64) -> Removed {
    let id = cause.finding.id.as_str();
    let caused = cause.on_processor_ns.unwrap_or(0).min(ns);
    if ON_PROCESSORS.contains(&id) {
        return Removed { run_low_ns: 0, run_high_ns: ns, wait_ns: 0 };
    }
    let waits = Removed { run_high_ns: caused, wait_ns: ns - caused, ..Removed::default() };
    match id {
        // Reading and freeing memory is work of the kernel, for its caller and in interrupts: each
        // wait costs switches too.
        "memory_limit" => {
            let known = memory_limit::price(run).run_ns().min(ns);
            let most = kernel_of_reads(run).max(known);
            Removed { run_low_ns: known, run_high_ns: most, wait_ns: ns - known }
        }
        "cache_too_small" | "cache_evicted_by_stream" => {
            Removed { run_high_ns: kernel_of_reads(run).max(caused), ..waits }
        }
        _ => waits,
    }
}

/// The most processor time that reading from devices and freeing memory can have taken: all of the
/// kernel's, where samples say that reads are in it.
fn kernel_of_reads(run: &RunView) -> u64 {
    let reads = run.sampled_calls(small_calls::READS).map_or(0, |time| time.ns);
    let freed = run.part_ns(TimePart::DirectReclaim).unwrap_or(0);
    if reads == 0 {
        return freed;
    }
    run.kernel_ns().unwrap_or(0).max(freed)
}

/// Time taken away from work, where something remains of it that may become the limit.
fn of_work(run: &RunView, work: Work, removed: Removed, sure: f64) -> ExpectedGain {
    let left_run = work.run_ns.saturating_sub(removed.run_high_ns);
    let queue_share = left_run as f64 / work.run_ns.max(1) as f64;
    let freed_queue = work.queue_ns.saturating_sub(part_of(work.queue_ns, queue_share));
    let all = [removed.run_high_ns.min(work.run_ns), removed.wait_ns, freed_queue];
    let high = fewer(work.whole_ns, all.iter().fold(0, |sum, ns| sum.saturating_add(*ns)));
    if are_processors_busy(run) {
        // All that ran, others' work for the subject too.
        let ran = run.growth_of_all(&PROCESSORS_RUN).unwrap_or(0).max(work.run_ns);
        let low = fewer(ran, removed.run_low_ns);
        let model = if removed.run_high_ns > 0 {
            "processors are full, so work is as fast as it needs less of them"
        } else {
            "processors are full, so shorter waits may only lengthen their queue"
        };
        return range(low, high, model);
    }
    let certain = part_of(removed.run_high_ns.saturating_add(removed.wait_ns), sure);
    let low = fewer(work.whole_ns, certain.max(removed.run_low_ns));
    let model = if removed.wait_ns > 0 {
        "the waits go away, the rest of the work stays"
    } else {
        "this processor time goes away, the rest of the work stays"
    };
    range(low, high, model)
}

/// More processors, or none for others.
fn of_queue(run: &RunView, work: Work, ns: u64) -> ExpectedGain {
    let whole_ns = work.whole_ns.max(work.run_ns.saturating_add(ns));
    let model = if are_processors_busy(run) {
        "the queue goes away with enough processors, the work stays"
    } else {
        "the queue goes away, the work stays"
    };
    range(fewer(whole_ns, part_of(ns, QUEUE_SHARE)), fewer(whole_ns, ns), model)
}

/// How many times as fast `whole_ns` is without `ns` of it.
fn fewer(whole_ns: u64, ns: u64) -> f64 {
    let left = whole_ns.saturating_sub(ns);
    if whole_ns == 0 { 1.0 } else { (whole_ns as f64 / left.max(1) as f64).clamp(1.0, MOST) }
}

fn range(low: f64, high: f64, model: &str) -> ExpectedGain {
    ExpectedGain { low: low.min(high), high: high.max(low), model: model.to_owned() }
}
