//! Threads waited for each other at a lock.
//!
//! Two ways to see it: all threads slept and most of them on locks; or, while one ran, the
//! others waited many short times. Few long waits on locks beside threads that run are a
//! pool of idle threads, which is no cause.

use super::asleep::{asleep_ns, unseen_or_silent};
use super::cause::CauseBuilder;
use super::run_view::{clear, ratio};
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{count, long_time, percent};
use model::Evidence;
use model::explanation::{TimePart, TimeSlice};

/// The rule.
pub(super) const RULE: Rule =
    Rule { id: "lock_contention", suspect: "locks", within: &[], rank: Rank::Timed, check };

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

fn check(run: &RunView) -> Verdict {
    if run.is_machine() {
        return Verdict::Silent;
    }
    let Some(lock_ns) = run.part_ns(TimePart::Lock) else {
        return unseen_or_silent(run);
    };
    let asleep = asleep_ns(run, lock_ns);
    let is_contended = contended(run, lock_ns);
    if !run.hurts_asleep(asleep) && !is_contended {
        let name = "all asleep on locks";
        let measured = Evidence::new(name, asleep as f64, "ns", "events");
        return clear(Some(measured.seen_in(run.part_series(TimePart::Lock))));
    }
    let ns = if is_contended { lock_ns } else { asleep };
    let mut evidence: Vec<Evidence> = run.part_evidence(TimePart::Lock).into_iter().collect();
    evidence.extend(run.grown("trace.sched.switches"));
    evidence.extend(run.grown("trace.sched.threads"));
    let claim = if is_contended {
        format!(
            "Threads waited {} for each other at locks ({} of their time, {} switches)",
            long_time(ns as f64),
            percent(ratio(lock_ns as f64, run.accounts.thread_ns as f64)),
            count(run.grew("trace.sched.switches").unwrap_or(0)),
        )
    } else {
        format!("All threads slept {} on locks", long_time(ns as f64))
    };
    CauseBuilder::new(RULE.id, Some(ns), run.part_grade(TimePart::Lock), claim, evidence)
        .remedy(
            "Hold the lock for less, or part what it protects; fewer threads may be as fast. \
             Risk: finer locks are easier to get wrong.",
        )
        .found()
}

fn contended(run: &RunView, lock_ns: u64) -> bool {
    let accounts = run.accounts;
    let Some(switches) = run.grew("trace.sched.switches") else {
        return false;
    };
    let at_work = run.run_ns().saturating_add(accounts.thread(TimeSlice::BlockIo));
    let working = ratio(at_work as f64, run.view.wall_ns() as f64);
    switches >= LEAST_SWITCHES
        && lock_ns / switches <= LONGEST_WAIT_NS
        && working <= MOST_AT_WORK
        && ratio(lock_ns as f64, accounts.thread_ns as f64) >= LEAST_LOCK_SHARE
        && run.hurts(lock_ns)
}
