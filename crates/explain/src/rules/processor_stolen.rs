//! Processor time that the host took away during the survey.
//!
//! A guest's kernel counts the time in which it wanted to run and the host ran
//! something else. Trials that met it were thrown away; what remains is that this
//! machine does not have the processors that it shows.

use super::SurveyVerdict;
use super::processor::{processor, slowdown};
use crate::finding::{Class, found};
use crate::numbers::share;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::{Evidence, Finding, Grade};

/// The least share of stolen time. Picked: below it the survey's own trials can
/// still be freed of it; 2 % were seen on a guest that nobody would call crowded.
const LEAST_SHARE: f64 = 0.05;

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let processor = processor(observed)?;
    let counted = processor.steal_share.and_then(share);
    let stolen = counted.ok_or("this kernel does not count stolen time")?.min(1.0);
    if stolen < LEAST_SHARE {
        return Err(NoFinding::Nothing);
    }
    let online = f64::from(processor.online_cpus);
    let claim = format!(
        "During the survey the host took {} of this guest's processor time for others.",
        percent(stolen),
    );
    let evidence = [
        Evidence::new("stolen time", stolen, "ratio", "/proc/stat"),
        Evidence::new("processors online", online, "count", "/proc/stat"),
    ];
    let finding = Finding::new(Grade::Measured, claim, evidence)
        .remedy(
            "Ask whoever runs the host for processors of your own, or move to another host. \
             Risk: it may cost money, and the next host may be as full.",
        )
        .confirm("terrace measure compute");
    let factor = slowdown(stolen);
    found(Class::Everything, factor, finding)
}
