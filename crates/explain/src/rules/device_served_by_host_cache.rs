//! Reads of fresh data that something below this system answers from its memory.
//!
//! A file that was just written lies in the host's (or a controller's) memory, so
//! reading it past the own page cache still does not reach the medium. Random
//! reads over the whole raw device do; they are slower by what the cache hides.

use super::Outcome;
use super::devices::{FASTEST_ARM_NS, called};
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{Interval, latency_interval};
use crate::observed::{DeviceSeen, Observed, SERVED_BY_DEVICE};
use crate::wording::{survey_path, times};
use model::duration::show_ns;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "device_served_by_host_cache";

/// Raw reads must take this many times as long. Picked: that a whole flash device
/// is slower than one file on it, as its table of addresses is large, is taken to
/// stay below 2.
pub const LEAST_FACTOR: f64 = 3.0;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure iolat";

/// Fresh data and the raw device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceServedByHostCache {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// A random read of the survey's own file, in nanoseconds.
    pub own_ns: Interval,
    /// A random read of the raw device, in nanoseconds.
    pub raw_ns: Interval,
    /// Whether a hypervisor lies beneath.
    pub virtualized: bool,
}

/// Compares reads of each device's own fresh file and of the raw device.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let name = &device.name;
    let Some(raw) = &device.raw_read_ns else {
        let why = device.raw_refused.as_deref().unwrap_or("it needs root");
        return Outcome::unchecked(format!("the raw device {name} was not read: {why}"));
    };
    if device.served_by != SERVED_BY_DEVICE {
        return Outcome::unchecked(format!(
            "the reads of the own file did not leave for {name}"
        ));
    }
    let own = device.random_read_ns.as_ref().and_then(latency_interval);
    let (Some(own_ns), Some(raw_ns)) = (own, latency_interval(raw)) else {
        return Outcome::unchecked(format!("too few random reads of {name} for error bars"));
    };
    // A file is a small part of a disk: its arm moves less, and that alone makes
    // a factor of three. Only what is faster than a turn proves memory.
    let short_way = device.rotational == Some(true) && own_ns.high >= FASTEST_ARM_NS;
    if short_way || !raw_ns.above(&own_ns) || raw_ns.median < LEAST_FACTOR * own_ns.median {
        return Outcome::Fine;
    }
    Outcome::found(Finding::DeviceServedByHostCache(DeviceServedByHostCache {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        own_ns,
        raw_ns,
        virtualized: device.virtualized,
    }))
}

impl DeviceServedByHostCache {
    fn factor(&self) -> f64 {
        self.raw_ns.median / self.own_ns.median
    }
}

impl Told for DeviceServedByHostCache {
    fn report(&self) -> model::Finding {
        let who = if self.virtualized {
            "the host's cache"
        } else {
            "a cache in the drive or its controller"
        };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "Fresh data on {} is read in {}, the rest of the device in {}, {} times as long: {who} seems to answer for what was just written.",
                called(&self.path, &self.name),
                show_ns(self.own_ns.median),
                show_ns(self.raw_ns.median),
                times(self.factor()),
            ),
            tier: Some(self.tier.clone()),
            evidence: vec![
                Evidence::new(
                    "random read of the own fresh file",
                    self.own_ns.median,
                    "ns",
                    SOURCE,
                ),
                Evidence::new(
                    "random read of the raw device",
                    self.raw_ns.median,
                    "ns",
                    SOURCE,
                ),
            ],
            grade: Grade::Inferred,
            // Nothing is wrong with it: it is the figure that must be read with care.
            remedy: None,
            confirm: Some(format!("sudo {}", survey_path(&self.path))),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Doubt, self.factor())
    }
}
