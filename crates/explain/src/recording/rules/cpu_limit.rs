//! A CPU limit of a control group stopped the subject.
//!
//! The kernel counts the periods in which a group had used up its quota, and how long it was
//! stopped. Stopped threads are runnable, so the time lies inside the queue.

use super::limits::{MOST_LEVELS, group_path};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{long_time, often, times};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let stopped = |level: u32| run.growth(&format!("group{level}.cpu.throttled_periods"));
    let mut levels = (0..MOST_LEVELS).filter(|level| stopped(*level).is_some());
    let first = levels.next().ok_or(NoFinding::Nothing)?;
    let worst = std::iter::once(first)
        .chain(levels)
        .max_by_key(|level| (stopped(*level), std::cmp::Reverse(*level)))
        .unwrap_or(first);
    let base = format!("group{worst}.cpu");
    let periods = stopped(worst).unwrap_or(0);
    let ns = stopped_ns(run, &base);
    if periods == 0 || !run.hurts(ns) {
        let number = run.grown(&format!("{base}.throttled_periods"));
        return clear_count(number, "throttles");
    }
    let mut claim = format!("Stopped for {} by a CPU limit", long_time(ns as f64));
    let limit = cores(run, &base);
    if let Some(cores) = limit {
        claim.push_str(&format!(" of {} processors", times(cores)));
    }
    claim.push_str(&format!(
        ": {} in {}",
        often(periods),
        group_path(run, worst, &["cpu", "unified"]),
    ));
    let names =
        ["throttled_periods", "periods", "throttled_ns"].map(|name| format!("{base}.{name}"));
    let mut evidence: Vec<Evidence> = names.iter().filter_map(|name| run.grown(name)).collect();
    evidence.extend(limit.map(|cores| {
        Evidence::new("limit", cores, "processors", "cpu.max")
            .seen_in(["quota_us", "period_us"].map(|name| format!("{base}.{name}")))
    }));
    // A group above holds others, who may have been stopped instead.
    let grade = if worst == 0 { Grade::Measured } else { Grade::Inferred };
    let finding = Finding::new(grade, claim, evidence).remedy(
        "Have the limit raised (cpu.max of the group, or the container's CPU limit), or run \
         fewer threads than it allows. Risk: what this group gets, others lose.",
    );
    Ok(Cause::new(Some(ns), finding))
}

/// Time stopped, as the subject's threads felt it: never more than they were queued.
pub(super) fn stopped_ns(run: &RunView, base: &str) -> u64 {
    let counted = run.growth(&format!("{base}.throttled_ns")).unwrap_or(0);
    let queue = run.accounts.thread(TimeSlice::Queue);
    run.part_ns(TimePart::CpuLimit).unwrap_or(counted).min(queue)
}

fn cores(run: &RunView, base: &str) -> Option<f64> {
    let value = |name: &str| run.latest(&format!("{base}.{name}"));
    let (quota, period) = (value("quota_us")?, value("period_us")?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}
