//! Threads waited for each other at a lock.
//!
//! Two ways to see it: all threads slept and most of them on locks; or, while one ran, the
//! others waited many short times. Few long waits on locks beside threads that run are a
//! pool of idle threads, which is no cause.

use super::accused::Accused;
use super::asleep::{asleep_ns, unseen_or_silent};
use super::case::{clear, ratio};
use super::{Case, Rank, Rule, Verdict};
use crate::wording::{count, long_time, percent};
use model::Evidence;

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "lock_contention",
    suspect: "locks",
    within: &[],
    rank: Rank::Timed,
    check,
};

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

fn check(case: &Case) -> Verdict {
    if case.is_machine() {
        return Verdict::Silent;
    }
    let Some(lock_ns) = case.part_ns("lock") else {
        return unseen_or_silent(case);
    };
    let asleep = asleep_ns(case, lock_ns);
    let is_contended = contended(case, lock_ns);
    if !case.hurts_asleep(asleep) && !is_contended {
        let name = "all asleep on locks";
        let told = Evidence::new(name, asleep as f64, "ns", "events");
        return clear(Some(told.seen_in(case.part_series("lock"))));
    }
    let ns = if is_contended { lock_ns } else { asleep };
    let mut evidence: Vec<Evidence> = case.part_evidence("lock").into_iter().collect();
    evidence.extend(case.grown("trace.sched.switches"));
    evidence.extend(case.grown("trace.sched.threads"));
    let claim = if is_contended {
        format!(
            "Threads waited {} for each other at locks ({} of their time, {} switches)",
            long_time(ns as f64),
            percent(ratio(lock_ns as f64, case.accounts.thread_ns as f64)),
            count(case.grew("trace.sched.switches").unwrap_or(0)),
        )
    } else {
        format!("All threads slept {} on locks", long_time(ns as f64))
    };
    Accused::new(RULE.id, Some(ns), case.part_grade("lock"), claim, evidence)
        .remedy(
            "Hold the lock for less, or part what it protects; fewer threads may be as fast. \
             Risk: finer locks are easier to get wrong.",
        )
        .blame()
}

fn contended(case: &Case, lock_ns: u64) -> bool {
    let accounts = case.accounts;
    let Some(switches) = case.grew("trace.sched.switches") else {
        return false;
    };
    let at_work = case.run_ns().saturating_add(accounts.thread("block_io"));
    let working = ratio(at_work as f64, case.view.wall_ns() as f64);
    switches >= LEAST_SWITCHES
        && lock_ns / switches <= LONGEST_WAIT_NS
        && working <= MOST_AT_WORK
        && ratio(lock_ns as f64, accounts.thread_ns as f64) >= LEAST_LOCK_SHARE
        && case.hurts(lock_ns)
}
