//! A request scheduler that does not fit the device.
//!
//! BFQ weighs each request to be fair to processes that wait for an arm; on a
//! device that answers in less time than it takes to weigh, it is in the way. And
//! an arm without any scheduler moves in the order of asking. In a guest the host
//! schedules, so none is right there.

use super::Outcome;
use super::devices::{DeviceLatency, FASTEST_ARM_NS, called, latency, queue_file};
use crate::finding::{Class, Finding, Severity, Told};
use crate::observed::{DeviceSeen, Observed};
use crate::wording::{shell_word, survey_path};
use model::duration::show_ns;
use model::{Evidence, Grade};

/// The id of this rule's findings. A device that takes 2 ms or more and is called
/// rotating counts as one with an arm.
pub const ID: &str = "device_scheduler_at_odds";

/// A device that answers faster is too fast for BFQ. Picked: local flash takes 30
/// to 120 us, and the few microseconds that BFQ needs a request are then felt.
pub const FAST_NS: f64 = 200_000.0;

/// A scheduler that does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSchedulerAtOdds {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// The scheduler.
    pub scheduler: String,
    /// The one that fits.
    pub better: &'static str,
    /// What one read takes.
    pub latency: DeviceLatency,
}

/// Compares each device's scheduler with its latency.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let Some(scheduler) = &device.scheduler else {
        return Outcome::unchecked(format!("{} shows no scheduler", device.name));
    };
    let latency = match latency(device) {
        Ok(latency) => latency,
        Err(reason) => return Outcome::Unchecked(reason),
    };
    let has_arm = device.rotational == Some(true) && latency.ns.low >= FASTEST_ARM_NS;
    let better = match scheduler.as_str() {
        "bfq" if latency.ns.high < FAST_NS => "none",
        "none" if has_arm && !device.virtualized => "mq-deadline",
        _ => return Outcome::Fine,
    };
    Outcome::found(Finding::DeviceSchedulerAtOdds(DeviceSchedulerAtOdds {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        scheduler: scheduler.clone(),
        better,
        latency,
    }))
}

impl Told for DeviceSchedulerAtOdds {
    fn report(&self) -> model::Finding {
        let file = queue_file(&self.name, "scheduler");
        let device = called(&self.path, &self.name);
        let latency = show_ns(self.latency.ns.median);
        let why = if self.better == "none" {
            "too fast for a scheduler made to share a disk's arm"
        } else {
            "slow enough that the order of requests counts"
        };
        let risk = if self.better == "none" {
            "processes that read much are no longer held back for others"
        } else {
            "each request costs a little more processor time"
        };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "{device} uses the request scheduler {} and answers a random read in {latency}: {why}.",
                self.scheduler
            ),
            tier: Some(self.tier.clone()),
            evidence: vec![
                self.latency.evidence(),
                Evidence::new(
                    format!("scheduler {}", self.scheduler),
                    1.0,
                    "count",
                    file.clone(),
                ),
            ],
            // Both figures are read; that the other would be faster was not tried.
            grade: Grade::Inferred,
            remedy: Some(format!(
                "Try the other until the next boot: echo {} | sudo tee {}, and measure again. Risk: {risk}.",
                self.better,
                shell_word(&file)
            )),
            confirm: Some(survey_path(&self.path)),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Setting, 1.2)
    }
}
