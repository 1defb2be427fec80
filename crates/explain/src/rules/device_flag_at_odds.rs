//! A device whose rotational flag does not fit its latency.
//!
//! The kernel orders requests, reads ahead and spreads swap by that flag. A device
//! called rotating that answers faster than any disk can turn has no arm; one
//! called not rotating that is as slow as an arm and gains nothing from a deep
//! queue has one.

use super::Outcome;
use super::depth::{growth, small_blocks};
use super::devices::{DeviceLatency, FASTEST_ARM_NS, called, latency, queue_file};
use crate::finding::{Class, Finding, Severity, Told};
use crate::observed::{DeviceSeen, Observed};
use crate::wording::{shell_word, survey_path};
use model::Evidence;
use model::duration::show_ns;

/// The id of this rule's findings. A device called rotating is at odds below 2 ms:
/// half a turn of the fastest disks.
pub const ID: &str = "device_flag_at_odds";

/// No flash that is idle needs this long for 4 KiB. Seen: 1 ms for USB sticks,
/// 10 to 14 ms for disks with an arm. Network volumes, 1 to 10 ms, are told apart
/// by what a deep queue gains.
pub const SLOWEST_FLASH_NS: f64 = 5_000_000.0;

/// An arm serves a deep queue in a better order and gains up to about 3 times the
/// requests by it; what gains more serves several at once.
pub const MOST_ARM_GROWTH: f64 = 3.0;

/// A flag that does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFlagAtOdds {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// What the flag says.
    pub rotational: bool,
    /// What one read takes.
    pub latency: DeviceLatency,
}

/// Compares each device's flag with its latency.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let Some(rotational) = device.rotational else {
        return Outcome::unchecked(format!("{} has no rotational flag", device.name));
    };
    let latency = match latency(device) {
        Ok(latency) => latency,
        Err(reason) => return Outcome::Unchecked(reason),
    };
    let at_odds = if rotational {
        latency.ns.high < FASTEST_ARM_NS
    } else if latency.ns.low > SLOWEST_FLASH_NS {
        // A volume far away is as slow as an arm, but serves many at once.
        let points = small_blocks(&device.depth, 16 << 10);
        match growth(&points, |p| p.requests_per_s) {
            Ok(growth) => growth <= MOST_ARM_GROWTH,
            Err(reason) => return Outcome::unchecked(reason),
        }
    } else {
        false
    };
    if !at_odds {
        return Outcome::Fine;
    }
    Outcome::found(Finding::DeviceFlagAtOdds(DeviceFlagAtOdds {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        rotational,
        latency,
    }))
}

impl Told for DeviceFlagAtOdds {
    fn report(&self) -> model::Finding {
        let file = queue_file(&self.name, "rotational");
        let device = called(&self.path, &self.name);
        let latency = show_ns(self.latency.ns.median);
        let (flag, right, claim) = if self.rotational {
            let claim = format!(
                "The kernel takes {device} for a rotating disk, but it answers a random read in {latency}: no disk can in under {}.",
                show_ns(FASTEST_ARM_NS)
            );
            (1.0, "0", claim)
        } else {
            let claim = format!(
                "The kernel does not take {device} for a rotating disk, but a random read takes {latency} and a deep queue does not help, as with a disk's arm."
            );
            (0.0, "1", claim)
        };
        let mut grade = self.latency.grade();
        if !self.rotational {
            // A slow volume behind a limit looks the same.
            grade = model::Grade::Inferred;
        }
        model::Finding {
            id: ID.to_owned(),
            claim,
            tier: Some(self.tier.clone()),
            evidence: vec![
                Evidence::new("rotational flag", flag, "count", file.clone()),
                self.latency.evidence(),
            ],
            grade,
            remedy: Some(format!(
                "Correct it until the next boot: echo {right} | sudo tee {} (a udev rule makes it last). \
                 Risk: file systems and the scheduler choose other ways; measure again.",
                shell_word(&file)
            )),
            confirm: Some(survey_path(&self.path)),
        }
    }

    fn severity(&self) -> Severity {
        let factor = if self.rotational {
            FASTEST_ARM_NS / self.latency.ns.median
        } else {
            self.latency.ns.median / SLOWEST_FLASH_NS
        };
        // The flag alone slows little: it never comes before one that was timed.
        Severity::new(Class::Setting, 1.0 + factor.ln().max(0.0) / 10.0)
    }
}
