//! A CPU limit of a control group stopped the subject.
//!
//! The kernel counts the periods in which a group had used up its quota, and how long it was
//! stopped. Stopped threads are runnable, so the time lies inside the queue.

use super::accused::Accused;
use super::case::clear_count;
use super::limits::{MOST_LEVELS, group_path};
use super::{Case, Rank, Rule, Verdict};
use crate::wording::{long_time, often, times};
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "cpu_limit",
    suspect: "CPU limit",
    within: &[],
    rank: Rank::Timed,
    check,
};

fn check(case: &Case) -> Verdict {
    let stopped = |level: u32| case.grew(&format!("group{level}.cpu.throttled_periods"));
    let mut levels = (0..MOST_LEVELS).filter(|level| stopped(*level).is_some());
    let Some(first) = levels.next() else {
        return Verdict::Silent;
    };
    let worst = std::iter::once(first)
        .chain(levels)
        .max_by_key(|level| (stopped(*level), std::cmp::Reverse(*level)))
        .unwrap_or(first);
    let base = format!("group{worst}.cpu");
    let periods = stopped(worst).unwrap_or(0);
    let ns = stopped_ns(case, &base);
    if periods == 0 || !case.hurts(ns) {
        let number = case.grown(&format!("{base}.throttled_periods"));
        return clear_count(number, "throttles");
    }
    let mut claim = format!("Stopped for {} by a CPU limit", long_time(ns as f64));
    let limit = cores(case, &base);
    if let Some(cores) = limit {
        claim.push_str(&format!(" of {} processors", times(cores)));
    }
    claim.push_str(&format!(
        ": {} in {}",
        often(periods),
        group_path(case, worst, &["cpu", "unified"]),
    ));
    let names = ["throttled_periods", "periods", "throttled_ns"];
    let names = names.map(|name| format!("{base}.{name}"));
    let mut evidence: Vec<Evidence> = names.iter().filter_map(|name| case.grown(name)).collect();
    evidence.extend(limit.map(|cores| {
        Evidence::new("limit", cores, "processors", "cpu.max")
            .seen_in(["quota_us", "period_us"].map(|name| format!("{base}.{name}")))
    }));
    // A group above holds others, who may have been stopped instead.
    let grade = if worst == 0 {
        Grade::Measured
    } else {
        Grade::Inferred
    };
    Accused::new(RULE.id, Some(ns), grade, claim, evidence)
        .remedy(
            "Have the limit raised (cpu.max of the group, or the container's CPU limit), or run \
             fewer threads than it allows. Risk: what this group gets, others lose.",
        )
        .blame()
}

/// Time stopped, as the subject's threads felt it: never more than they were queued.
pub(super) fn stopped_ns(case: &Case, base: &str) -> u64 {
    let counted = case.grew(&format!("{base}.throttled_ns")).unwrap_or(0);
    let queue = case.accounts.thread("queue");
    case.part_ns("cpu_limit").unwrap_or(counted).min(queue)
}

fn cores(case: &Case, base: &str) -> Option<f64> {
    let value = |name: &str| {
        let name = format!("{base}.{name}");
        case.view
            .at_end(&name)
            .or_else(|| case.view.at_start(&name))
    };
    let (quota, period) = (value("quota_us")?, value("period_us")?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}
