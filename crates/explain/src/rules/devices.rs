//! What the rules about devices share: which latency is the device's own.
//!
//! A latency that a cache answered says nothing about the device, so reads of the
//! raw device count for more than reads of the survey's own fresh file, and those
//! only where the counters say that the device served them.

use crate::numbers::{ErrorBars, latency_interval};
use model::probe::{DeviceReport, SERVED_BY_DEVICE};
use model::{Evidence, Grade};

/// No disk with an arm answers random reads faster: half a turn at 15,000 turns a
/// minute, without any movement of the arm.
pub(super) const FASTEST_ARM_NS: f64 = 2_000_000.0;

/// The latency of random reads as far as it is the device's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DeviceLatency {
    /// The latency of one read of 4 KiB, in nanoseconds.
    pub(super) ns: ErrorBars,
    /// Whether no host's cache can have answered: bare metal, or the raw device.
    pub(super) certain: bool,
}

/// The device's own latency, or why it is not known.
pub(super) fn device_latency(device: &DeviceReport) -> Result<DeviceLatency, String> {
    if let Some(ns) = device.raw_read_ns.as_ref().and_then(latency_interval) {
        return Ok(DeviceLatency { ns, certain: true });
    }
    if device.served_by != SERVED_BY_DEVICE {
        let name = &device.name;
        return Err(match device.served_by.as_str() {
            "" => format!("what answered the reads of {name} could not be counted"),
            other => format!("{other} answered the reads of {name}, not the device"),
        });
    }
    let ns = device
        .random_read_ns
        .as_ref()
        .and_then(latency_interval)
        .ok_or_else(|| format!("too few random reads of {} for error bars", device.name))?;
    let certain = !device.virtualized;
    Ok(DeviceLatency { ns, certain })
}

impl DeviceLatency {
    /// How sure a claim can be that rests on this latency.
    pub(super) fn grade(&self) -> Grade {
        if self.certain { Grade::Measured } else { Grade::Inferred }
    }

    /// The latency as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        Evidence::new("random read of 4 KiB, one at a time", self.ns.median, "ns", "measure iolat")
    }
}

/// The file of a setting of the device's queue.
pub(super) fn queue_file(name: &str, file: &str) -> String {
    format!("/sys/block/{name}/queue/{file}")
}

/// A device as a claim names it, by its path and name: `/data (vdb)`.
pub(super) fn device_label(device: &DeviceReport) -> String {
    match (device.path.as_str(), device.name.as_str()) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path} ({name})"),
    }
}
