//! Other programs that held the processor while the survey waited for it.
//!
//! The scheduler counts how long a thread was ready and did not run. A CPU limit
//! makes that count grow too, so a survey that was stopped by one is not called
//! crowded.

use super::processor::{processor, slowdown};
use super::{SurveyVerdict, processor_throttled};
use crate::finding::{Class, found};
use crate::numbers::share;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::{Evidence, Finding, Grade};

/// The least share of its time that the survey waited. Picked: one trial in ten
/// that meets another program can still be thrown away.
const LEAST_SHARE: f64 = 0.1;

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let processor = processor(observed)?;
    let waited = processor
        .run_delay_share
        .and_then(share)
        .ok_or("this kernel does not count waiting for a processor")?;
    let by_limit = processor_throttled::stopped_by_limit(processor).is_some();
    if waited < LEAST_SHARE || by_limit {
        return Err(NoFinding::Nothing);
    }
    let (usable, online) = (processor.usable_cpus, processor.online_cpus);
    let mut few = String::new();
    let mut remedy = "Stop or move what else runs here, then survey again.".to_owned();
    if usable < online {
        few = format!(", and it may use {usable} of {online} only");
        remedy.push_str(" Or allow it more of the processors that are online (taskset, cpuset).");
    }
    remedy.push_str(" Risk: what is stopped does not do its work.");
    let usable = f64::from(usable);
    let source = "/proc/thread-self/schedstat";
    let claim = format!(
        "The survey waited {} of its time for a processor: other programs held it{few}.",
        percent(waited)
    );
    let evidence = [
        Evidence::new("ready but not running", waited, "ratio", source),
        Evidence::new("processors it may use", usable, "count", "sched_getaffinity"),
    ];
    let finding = Finding::new(Grade::Measured, claim, evidence)
        .remedy(remedy)
        .confirm("terrace measure compute");
    let factor = slowdown(waited);
    found(Class::Everything, factor, finding)
}
