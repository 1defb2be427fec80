//! A request scheduler that does not fit the device.
//!
//! BFQ weighs each request to be fair to processes that wait for an arm; on a
//! device that answers in less time than it takes to weigh, it is in the way. And
//! an arm without any scheduler moves in the order of asking. In a guest the host
//! schedules, so none is right there.

use super::SurveyVerdict;
use super::devices::{FASTEST_ARM_NS, device_label, device_latency, queue_file};
use crate::finding::{Class, found};
use crate::verdict::NoFinding;
use crate::wording::{shell_word, survey_path};
use model::duration::show_ns;
use model::probe::DeviceReport;
use model::{Evidence, Finding, Grade};

/// A device that answers faster is too fast for BFQ. Picked: local flash takes 30
/// to 120 us, and the few microseconds that BFQ needs a request are then felt.
const FAST_NS: f64 = 200_000.0;

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let name = &device.name;
    let scheduler =
        device.scheduler.as_ref().ok_or_else(|| format!("{name} shows no scheduler"))?;
    let latency = device_latency(device)?;
    let has_arm = device.rotational == Some(true) && latency.ns.low >= FASTEST_ARM_NS;
    let (better, why, risk) = match scheduler.as_str() {
        "bfq" if latency.ns.high < FAST_NS => (
            "none",
            "too fast for a scheduler made to share a disk's arm",
            "processes that read much are no longer held back for others",
        ),
        "none" if has_arm && !device.virtualized => (
            "mq-deadline",
            "slow enough that the order of requests counts",
            "each request costs a little more processor time",
        ),
        _ => return Err(NoFinding::Nothing),
    };
    let file = queue_file(name, "scheduler");
    let remedy = format!(
        "Try the other until the next boot: echo {better} | sudo tee {}, and measure again. Risk: \
         {risk}.",
        shell_word(&file)
    );
    let claim = format!(
        "{} uses the request scheduler {scheduler} and answers a random read in {}: {why}.",
        device_label(device),
        show_ns(latency.ns.median)
    );
    let evidence =
        [latency.evidence(), Evidence::new(format!("scheduler {scheduler}"), 1.0, "count", file)];
    // Both figures are read; that the other would be faster was not tried.
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier(&device.tier)
        .remedy(remedy)
        .confirm(survey_path(&device.path));
    found(Class::Setting, 1.2, finding)
}
