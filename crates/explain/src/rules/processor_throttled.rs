//! A CPU limit of the control group that stopped the survey.
//!
//! The kernel counts the periods in which the group had used up its limit and was
//! stopped for the rest. Figures taken across a stop are those of the limit, not
//! of the machine.

use super::SurveyVerdict;
use super::processor::{processor, slowdown};
use crate::finding::{Class, found};
use crate::numbers::sound;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::{count, percent, times};
use model::duration::show_ns;
use model::probe::ProcessorLoad;
use model::{Evidence, Finding, Grade};

/// The least share of periods with a stop. Picked: a stop in one of twenty periods
/// of 100 ms is one every 2 s, which trials of milliseconds mostly miss.
const LEAST_SHARE: f64 = 0.05;

/// Fewer periods say nothing: ten are one second.
const LEAST_PERIODS: u64 = 10;

/// Where the counts come from.
const SOURCE: &str = "cpu.stat";

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let processor = processor(observed)?;
    let (Some(throttled), Some(periods)) = (processor.throttled_periods, processor.periods) else {
        return Err("no CPU limit could be read for the own group".into());
    };
    let Some(share) = stopped_by_limit(processor) else {
        return Err(NoFinding::Nothing);
    };
    let throttled = throttled.min(periods);
    let number = |name, count: u64| Evidence::count(name, count, SOURCE);
    let mut evidence = vec![number("periods with a stop", throttled), number("periods", periods)];
    let mut limit = "A CPU limit".to_owned();
    if let Some(cores) = processor.quota_cores.and_then(sound) {
        evidence.push(Evidence::new("limit", cores, "processors", "cpu.max"));
        limit.push_str(&format!(" of {} processors", times(cores)));
    }
    if let Some(group) = &processor.cgroup {
        limit.push_str(&format!(" (group {group})"));
    }
    let mut claim = format!(
        "{limit} stopped the survey in {} of {} periods ({})",
        count(throttled),
        count(periods),
        percent(share),
    );
    if let Some(seconds) = processor.throttled_s.and_then(sound) {
        evidence.push(Evidence::new("time stopped", seconds, "s", SOURCE));
        claim.push_str(&format!(", {} altogether", show_ns(seconds * 1e9)));
    }
    claim.push('.');
    let finding = Finding::new(Grade::Measured, claim, evidence)
        .remedy(
            "Have the limit raised (cpu.max of the group, or the container's CPU limit), or run \
             fewer threads than it allows. Risk: what this group gets, others lose.",
        )
        .confirm("terrace measure compute");
    let factor = slowdown(share);
    found(Class::Everything, factor, finding)
}

/// The share of periods with a stop, 0 to 1, from [`LEAST_SHARE`] on; `None` if there
/// were fewer stops, or too few periods to tell.
pub(super) fn stopped_by_limit(processor: &ProcessorLoad) -> Option<f64> {
    let (throttled, periods) = (processor.throttled_periods?, processor.periods?);
    let share = throttled.min(periods) as f64 / periods as f64;
    (periods >= LEAST_PERIODS && share >= LEAST_SHARE).then_some(share)
}
