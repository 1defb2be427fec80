//! Processor time that the host took away during the survey.
//!
//! A guest's kernel counts the time in which it wanted to run and the host ran
//! something else. Trials that met it were thrown away; what remains is that this
//! machine does not have the processors that it shows.

use super::Outcome;
use super::processor::{processor, slowdown};
use crate::finding::{Class, RankedFinding};
use crate::numbers::share;
use crate::observed::Observed;
use crate::wording::percent;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "processor_stolen";

/// The least share of stolen time. Picked: below it the survey's own trials can
/// still be freed of it; 2 % were seen on a guest that nobody would call crowded.
pub const LEAST_SHARE: f64 = 0.05;

/// Compares the stolen share with its threshold.
pub fn check(observed: &Observed) -> Outcome {
    let processor = processor(observed)?;
    let stolen = processor.steal_share.and_then(share);
    let stolen = stolen.ok_or("this kernel does not count stolen time")?;
    if stolen < LEAST_SHARE {
        return Ok(Vec::new());
    }
    let stolen = stolen.min(1.0);
    let online = f64::from(processor.online_cpus);
    let finding = model::Finding {
        id: ID.to_owned(),
        claim: format!(
            "During the survey the host took {} of this guest's processor time for others.",
            percent(stolen),
        ),
        tier: None,
        evidence: vec![
            Evidence::new("stolen time", stolen, "ratio", "/proc/stat"),
            Evidence::new("processors online", online, "count", "/proc/stat"),
        ],
        grade: Grade::Measured,
        remedy: Some(
            "Ask whoever runs the host for processors of your own, or move to another host. \
             Risk: it may cost money, and the next host may be as full."
                .to_owned(),
        ),
        confirm: Some("terrace measure compute".to_owned()),
    };
    let factor = slowdown(stolen);
    Ok(vec![RankedFinding::new(Class::Everything, factor, finding)])
}
