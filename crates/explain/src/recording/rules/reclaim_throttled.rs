//! The kernel put threads to sleep that allocated memory faster than it could be freed.
//!
//! Mostly because what should be freed is dirty and has yet to be written. It happens inside
//! of freeing memory; at a group's memory limit that is the cause and this lies within.

use super::cause::CauseBuilder;
use super::run_view::clear;
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{long_time, often};
use model::Evidence;
use model::explanation::TimePart;

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "reclaim_throttled",
    suspect: "reclaim throttle",
    within: &["memory_limit", "reclaim_direct", "swapping"],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let Some(ns) = run.part_ns(TimePart::ReclaimThrottle) else {
        return Verdict::Silent;
    };
    if !run.hurts(ns) {
        return clear(run.part_evidence(TimePart::ReclaimThrottle));
    }
    let times = run.grew("trace.vmscan.throttles");
    let mut claim =
        format!("Put to sleep for {} until dirty memory was written", long_time(ns as f64),);
    if let Some(times) = times.filter(|times| *times > 0) {
        claim.push_str(&format!(", {}", often(times)));
    }
    let mut evidence: Vec<Evidence> =
        run.part_evidence(TimePart::ReclaimThrottle).into_iter().collect();
    evidence
        .extend(run.all_grown(&["trace.vmscan.throttles", "vmstat.nr_vmscan_immediate_reclaim"]));
    let grade = run.part_grade(TimePart::ReclaimThrottle);
    CauseBuilder::new(RULE.id, Some(ns), grade, claim, evidence)
        .remedy(
            "Start writing earlier (a smaller vm.dirty_background_bytes), or give the group more \
             memory. Risk: data that is soon overwritten is then written in vain.",
        )
        .found()
}
