//! Threads waited for each other at a lock.
//!
//! Two ways to see it: all threads slept and most of them on locks; or, while one ran, the
//! others waited many short times. Few long waits on locks beside threads that run are a
//! pool of idle threads, which is no cause. If more of the wall time was block I/O than work,
//! the holder of a lock waited for a device, and so did all others.

use super::asleep::{asleep_ns, unseen_or_silent};
use super::run_view::ratio;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::{count, long_time, percent};
use model::Evidence;
use model::explanation::{Cause, TimePart, TimeSlice};

/// Fewer switches than this are no contention. Picked.
const LEAST_SWITCHES: u64 = 200;

/// A mean wait longer than this is an idle thread's. Picked: critical sections that hurt
/// last microseconds to milliseconds, idle workers wait for seconds.
const LONGEST_WAIT_NS: u64 = 20_000_000;

/// Threads that work at a time, in a program whose threads wait for each other. Picked
/// above 1, as they overlap outside of the lock.
const MOST_AT_WORK: f64 = 1.5;

/// The least share of all thread time spent at locks. Picked: two threads of which one
/// waits most of the time.
const LEAST_LOCK_SHARE: f64 = 0.3;

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return Err(NoFinding::Nothing);
    }
    let Some(lock_ns) = run.part_ns(TimePart::Lock) else {
        return unseen_or_silent(run);
    };
    let asleep = asleep_ns(run, lock_ns);
    let is_contended = contended(run, lock_ns);
    if !run.hurts_asleep(asleep) && !is_contended {
        let measured = Evidence::time("all asleep on locks", asleep, "events");
        return clear(Some(measured.seen_in(run.part_series(TimePart::Lock))));
    }
    let ns = if is_contended { lock_ns } else { asleep };
    let claim = if is_contended {
        format!(
            "Threads waited {} for each other at locks ({} of their time, {} switches)",
            long_time(ns as f64),
            percent(ratio(lock_ns as f64, run.accounts.thread_ns as f64)),
            count(run.growth("trace.sched.switches").unwrap_or(0)),
        )
    } else {
        format!("All threads slept {} on locks", long_time(ns as f64))
    };
    let finding = run
        .part_finding(TimePart::Lock, claim)
        .and(run.grown("trace.sched.switches"))
        .and(run.grown("trace.sched.threads"))
        .remedy(
            "Hold the lock for less, or part what it protects; fewer threads may be as fast. \
             Risk: finer locks are easier to get wrong.",
        );
    Ok(Cause::new(Some(ns), finding))
}

fn contended(run: &RunView, lock_ns: u64) -> bool {
    let accounts = run.accounts;
    let Some(switches) = run.growth("trace.sched.switches") else {
        return false;
    };
    let at_work = run.run_ns().saturating_add(accounts.thread(TimeSlice::BlockIo));
    let working = ratio(at_work as f64, run.wall_ns() as f64);
    let is_at_device = accounts.wall(TimeSlice::BlockIo) > accounts.wall(TimeSlice::Run);
    !is_at_device
        && switches >= LEAST_SWITCHES
        && lock_ns / switches <= LONGEST_WAIT_NS
        && working <= MOST_AT_WORK
        && ratio(lock_ns as f64, accounts.thread_ns as f64) >= LEAST_LOCK_SHARE
        && run.hurts(lock_ns)
}
