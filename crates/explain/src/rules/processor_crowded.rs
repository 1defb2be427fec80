//! Other programs that held the processor while the survey waited for it.
//!
//! The scheduler counts how long a thread was ready and did not run. A CPU limit
//! makes that count grow too, so a survey that was stopped by one is not called
//! crowded.

use super::{Outcome, processor_throttled};
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::share;
use crate::observed::Observed;
use crate::wording::percent;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "processor_crowded";

/// The least share of its time that the survey waited. Picked: one trial in ten
/// that meets another program can still be thrown away.
pub const LEAST_SHARE: f64 = 0.1;

/// Time spent waiting for a processor.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorCrowded {
    /// Share of the survey's time.
    pub run_delay_share: f64,
    /// Processors that the survey may run on.
    pub usable_cpus: u32,
    /// Processors online.
    pub online_cpus: u32,
}

/// Reads the share.
pub fn check(observed: &Observed) -> Outcome {
    let Some(processor) = &observed.processor else {
        return Outcome::unchecked("the processors' time was not counted");
    };
    let Some(run_delay_share) = processor.run_delay_share.and_then(share) else {
        return Outcome::unchecked("this kernel does not count waiting for a processor");
    };
    let by_limit = processor_throttled::stopped(processor)
        .is_some_and(|share| share >= processor_throttled::LEAST_SHARE);
    if run_delay_share < LEAST_SHARE || by_limit {
        return Outcome::Fine;
    }
    Outcome::found(Finding::ProcessorCrowded(ProcessorCrowded {
        run_delay_share,
        usable_cpus: processor.usable_cpus,
        online_cpus: processor.online_cpus,
    }))
}

impl ProcessorCrowded {
    fn remedy(&self) -> String {
        let mut remedy = "Stop or move what else runs here, then survey again.".to_owned();
        if self.usable_cpus < self.online_cpus {
            remedy
                .push_str(" Or allow it more of the processors that are online (taskset, cpuset).");
        }
        remedy.push_str(" Risk: what is stopped does not do its work.");
        remedy
    }
}

impl Told for ProcessorCrowded {
    fn report(&self) -> model::Finding {
        let few = if self.usable_cpus < self.online_cpus {
            let (usable, online) = (self.usable_cpus, self.online_cpus);
            format!(", and it may use {usable} of {online} only")
        } else {
            String::new()
        };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "The survey waited {} of its time for a processor: other programs held it{few}.",
                percent(self.run_delay_share)
            ),
            tier: None,
            evidence: vec![
                Evidence::new(
                    "ready but not running",
                    self.run_delay_share,
                    "ratio",
                    "/proc/thread-self/schedstat",
                ),
                Evidence::new(
                    "processors it may use",
                    f64::from(self.usable_cpus),
                    "count",
                    "sched_getaffinity",
                ),
            ],
            grade: Grade::Measured,
            remedy: Some(self.remedy()),
            confirm: Some("terrace measure compute".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        // Waiting 20 % of the time makes work take 1.25 times as long.
        Severity::new(
            Class::Everything,
            1.0 / (1.0 - self.run_delay_share).max(0.01),
        )
    }
}
