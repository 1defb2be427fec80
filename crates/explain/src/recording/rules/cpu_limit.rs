//! A CPU limit of a control group stopped the subject.
//!
//! The kernel counts the periods in which a group had used up its quota, and how long it was
//! stopped. Stopped threads are runnable, so the time lies inside the queue.

use super::limited::{HeldGroup, evidence, in_words, none_held, others};
use super::limits::{MOST_LEVELS, group_path};
use super::{RunVerdict, RunView};
use crate::recording::limited::{self, LimitedGroup};
use crate::verdict::{NoFinding, clear, clear_count};
use crate::wording::{long_time, often, times};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding, Grade};
use std::cmp::Reverse;

/// Of groups without series of their own.
const OTHERS: &str = "cpu.throttled_periods";

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return of_machine(run);
    }
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
    evidence.extend(limit.map(|cores| limit_evidence(&base, cores)));
    // A group above holds others, who may have been stopped instead.
    let grade = if worst == 0 { Grade::Measured } else { Grade::Inferred };
    let finding = Finding::new(grade, claim, evidence).remedy(
        "Have the limit raised (cpu.max of the group, or the container's CPU limit), or run \
         fewer threads than it allows. Risk: what this group gets, others lose.",
    );
    Ok(Cause::new(Some(ns), finding))
}

/// Of the whole machine: every group that was stopped, the longest first.
fn of_machine(run: &RunView) -> RunVerdict {
    let mut held: Vec<HeldGroup> =
        limited::stopped(run).into_iter().filter_map(|group| stopped_group(run, group)).collect();
    held.retain(HeldGroup::is_worth_naming);
    held.sort_by_key(|one| Reverse(one.ns));
    let has_others = others(run, OTHERS) > 0;
    let ns = stopped_on_machine(run);
    if held.is_empty() {
        return none_held(run, OTHERS);
    }
    if !run.hurts(ns) {
        let stopped = Evidence::time("stopped by CPU limits", ns, "cpu.stat");
        let series = held.iter().map(|one| one.group.series("cpu.throttled_ns"));
        return clear(Some(stopped.seen_in(series)));
    }
    let stopped = long_time(ns as f64);
    let claim = format!("Stopped for {stopped} by CPU limits: {}", in_words(&held, has_others));
    let finding = Finding::new(run.part_grade(TimePart::CpuLimit), claim, evidence(&held)).remedy(
        "Raise the limit (cpu.max of the group, or the container's CPU limit), or run fewer \
         threads in it than it allows. Risk: what this group gets, others lose.",
    );
    Ok(Cause::new(Some(ns), finding))
}

/// A group with what stopped it; `None` if nothing did.
fn stopped_group<'a>(run: &RunView<'a>, group: LimitedGroup<'a>) -> Option<HeldGroup<'a>> {
    let periods = group.growth(run, "cpu.throttled_periods").filter(|periods| *periods > 0)?;
    let ns = group.stopped_ns(run);
    let base = group.series("cpu");
    let limit = cores(run, &base);
    let of = limit.map(|cores| format!(", {} processors", times(cores))).unwrap_or_default();
    let names =
        ["throttled_ns", "throttled_periods", "periods"].map(|name| format!("{base}.{name}"));
    let mut evidence: Vec<Evidence> = names.iter().filter_map(|name| run.grown(name)).collect();
    evidence.extend(limit.map(|cores| limit_evidence(&base, cores)));
    let words = format!("{} ({}{of})", long_time(ns as f64), often(periods));
    Some(HeldGroup { group, ns, is_timed: true, words, evidence })
}

/// Time stopped of all groups of the machine.
pub(super) fn stopped_on_machine(run: &RunView) -> u64 {
    run.part_ns(TimePart::CpuLimit).unwrap_or(0)
}

fn limit_evidence(base: &str, cores: f64) -> Evidence {
    Evidence::new("limit", cores, "processors", "cpu.max")
        .seen_in(["quota_us", "period_us"].map(|name| format!("{base}.{name}")))
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
