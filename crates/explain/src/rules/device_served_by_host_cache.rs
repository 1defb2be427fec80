//! Reads of fresh data that something below this system answers from its memory.
//!
//! A file that was just written lies in the host's (or a controller's) memory, so
//! reading it past the own page cache still does not reach the medium. Random
//! reads over the whole raw device do; they are slower by what the cache hides.

use super::SurveyVerdict;
use super::devices::{FASTEST_ARM_NS, device_label};
use crate::finding::{Class, found};
use crate::numbers::{ErrorBars, latency_interval};
use crate::verdict::NoFinding;
use crate::wording::{survey_path, times};
use model::duration::show_ns;
use model::probe::{DeviceReport, SERVED_BY_DEVICE};
use model::{Evidence, Finding, Grade};

/// Raw reads must take this many times as long. Picked: that a whole flash device
/// is slower than one file on it, as its table of addresses is large, is taken to
/// stay below 2.
const LEAST_FACTOR: f64 = 3.0;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure iolat";

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let name = &device.name;
    let raw = device.raw_read_ns.as_ref().ok_or_else(|| {
        let why = device.raw_refused.as_deref().unwrap_or("it needs root");
        format!("the raw device {name} was not read: {why}")
    })?;
    if device.served_by != SERVED_BY_DEVICE {
        return Err(format!("the reads of the own file did not leave for {name}").into());
    }
    let own = device.random_read_ns.as_ref().and_then(latency_interval);
    let (Some(own), Some(raw)) = (own, latency_interval(raw)) else {
        return Err(format!("too few random reads of {name} for error bars").into());
    };
    // A file is a small part of a disk: its arm moves less, and that alone makes
    // a factor of three. Only what is faster than a turn proves memory.
    let short_way = device.rotational == Some(true) && own.high >= FASTEST_ARM_NS;
    let factor = raw.median / own.median;
    if short_way || !raw.above(&own) || factor < LEAST_FACTOR {
        return Err(NoFinding::Nothing);
    }
    let cache = if device.virtualized {
        "the host's cache"
    } else {
        "a cache in the drive or its controller"
    };
    let read = |name, ns: ErrorBars| Evidence::new(name, ns.median, "ns", SOURCE);
    let claim = format!(
        "Fresh data on {} is read in {}, the rest of the device in {}, {} times as long: {cache} \
         seems to answer for what was just written.",
        device_label(device),
        show_ns(own.median),
        show_ns(raw.median),
        times(factor),
    );
    let evidence = [
        read("random read of the own fresh file", own),
        read("random read of the raw device", raw),
    ];
    // Nothing is wrong with it: it is the figure that must be read with care.
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier(&device.tier)
        .confirm(format!("sudo {}", survey_path(&device.path)));
    found(Class::Doubt, factor, finding)
}
