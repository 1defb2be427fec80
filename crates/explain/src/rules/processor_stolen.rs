//! Processor time that the host took away during the survey.
//!
//! A guest's kernel counts the time in which it wanted to run and the host ran
//! something else. Trials that met it were thrown away; what remains is that this
//! machine does not have the processors that it shows.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::share;
use crate::observed::Observed;
use crate::wording::percent;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "processor_stolen";

/// The least share of stolen time. Picked: below it the survey's own trials can
/// still be freed of it; 2 % were seen on a guest that nobody would call crowded.
pub const LEAST_SHARE: f64 = 0.05;

/// Time that the host took.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorStolen {
    /// Share of the processors' time, 0 to 1.
    pub steal_share: f64,
    /// Processors that it was taken from.
    pub online_cpus: u32,
}

/// Reads the share.
pub fn check(observed: &Observed) -> Outcome {
    let Some(processor) = &observed.processor else {
        return Outcome::unchecked("the processors' time was not counted");
    };
    let Some(steal_share) = processor.steal_share.and_then(share) else {
        return Outcome::unchecked("this kernel does not count stolen time");
    };
    if steal_share < LEAST_SHARE {
        return Outcome::Fine;
    }
    Outcome::found(Finding::ProcessorStolen(ProcessorStolen {
        steal_share: steal_share.min(1.0),
        online_cpus: processor.online_cpus,
    }))
}

impl Told for ProcessorStolen {
    fn report(&self) -> model::Finding {
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "During the survey the host took {} of this guest's processor time for others.",
                percent(self.steal_share),
            ),
            tier: None,
            evidence: vec![
                Evidence::new("stolen time", self.steal_share, "ratio", "/proc/stat"),
                Evidence::new(
                    "processors online",
                    f64::from(self.online_cpus),
                    "count",
                    "/proc/stat",
                ),
            ],
            grade: Grade::Measured,
            remedy: Some(
                "Ask whoever runs the host for processors of your own, or move to another host. \
                 Risk: it may cost money, and the next host may be as full."
                    .to_owned(),
            ),
            confirm: Some("terrace measure compute".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Everything, 1.0 / (1.0 - self.steal_share).max(0.01))
    }
}
