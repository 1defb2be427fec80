//! A CPU limit of the control group that stopped the survey.
//!
//! The kernel counts the periods in which the group had used up its limit and was
//! stopped for the rest. Figures taken across a stop are those of the limit, not
//! of the machine.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::sound;
use crate::observed::{Observed, ProcessorSeen};
use crate::wording::{count, percent, times};
use model::duration::show_ns;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "processor_throttled";

/// The least share of periods with a stop. Picked: a stop in one of twenty periods
/// of 100 ms is one every 2 s, which trials of milliseconds mostly miss.
pub const LEAST_SHARE: f64 = 0.05;

/// Fewer periods say nothing: ten are one second.
pub const LEAST_PERIODS: u64 = 10;

/// Where the counts come from.
const SOURCE: &str = "cpu.stat";

/// Stops by a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorThrottled {
    /// Periods with a stop.
    pub throttled_periods: u64,
    /// All periods in which the group ran.
    pub periods: u64,
    /// How long it was stopped, in seconds.
    pub throttled_s: Option<f64>,
    /// The limit, in processors.
    pub quota_cores: Option<f64>,
    /// The group with the limit.
    pub cgroup: Option<String>,
}

/// Counts the stops.
pub fn check(observed: &Observed) -> Outcome {
    let Some(processor) = &observed.processor else {
        return Outcome::unchecked("the processors' time was not counted");
    };
    let (Some(throttled), Some(periods)) = (processor.throttled_periods, processor.periods) else {
        return Outcome::unchecked("no CPU limit could be read for the own group");
    };
    match stopped(processor) {
        Some(share) if share >= LEAST_SHARE => {
            Outcome::found(Finding::ProcessorThrottled(ProcessorThrottled {
                throttled_periods: throttled.min(periods),
                periods,
                throttled_s: processor.throttled_s.and_then(sound),
                quota_cores: processor.quota_cores.and_then(sound),
                cgroup: processor.cgroup.clone(),
            }))
        }
        _ => Outcome::Fine,
    }
}

/// The share of periods with a stop, 0 to 1; `None` where there are too few.
pub(super) fn stopped(processor: &ProcessorSeen) -> Option<f64> {
    let (throttled, periods) = (processor.throttled_periods?, processor.periods?);
    (periods >= LEAST_PERIODS).then(|| throttled.min(periods) as f64 / periods as f64)
}

impl ProcessorThrottled {
    fn share(&self) -> f64 {
        self.throttled_periods as f64 / self.periods as f64
    }
}

impl Told for ProcessorThrottled {
    fn report(&self) -> model::Finding {
        let mut evidence = vec![
            Evidence::new(
                "periods with a stop",
                self.throttled_periods as f64,
                "count",
                SOURCE,
            ),
            Evidence::new("periods", self.periods as f64, "count", SOURCE),
        ];
        let mut limit = "A CPU limit".to_owned();
        if let Some(cores) = self.quota_cores {
            evidence.push(Evidence::new("limit", cores, "processors", "cpu.max"));
            limit.push_str(&format!(" of {} processors", times(cores)));
        }
        if let Some(group) = &self.cgroup {
            limit.push_str(&format!(" (group {group})"));
        }
        let mut claim = format!(
            "{limit} stopped the survey in {} of {} periods ({})",
            count(self.throttled_periods),
            count(self.periods),
            percent(self.share()),
        );
        if let Some(seconds) = self.throttled_s {
            evidence.push(Evidence::new("time stopped", seconds, "s", SOURCE));
            claim.push_str(&format!(", {} altogether", show_ns(seconds * 1e9)));
        }
        claim.push('.');
        model::Finding {
            id: ID.to_owned(),
            claim,
            tier: None,
            evidence,
            grade: Grade::Measured,
            remedy: Some(
                "Have the limit raised (cpu.max of the group, or the container's CPU limit), or run \
                 fewer threads than it allows. Risk: what this group gets, others lose."
                    .to_owned(),
            ),
            confirm: Some("terrace measure compute".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Everything, 1.0 / (1.0 - self.share()).max(0.01))
    }
}
