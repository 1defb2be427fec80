//! A volume that stops at a number of requests a second.
//!
//! With more requests in flight the rate stays and every request waits longer, in
//! proportion: they queue behind something that counts. A disk's arm does the
//! same, and so does a processor that is full; both are ruled out first.

use super::SurveyVerdict;
use super::depth::{Plateau, large_blocks, plateau, small_blocks};
use super::devices::{FASTEST_ARM_NS, device_label};
use crate::finding::{Class, found};
use crate::numbers::sound;
use crate::verdict::NoFinding;
use crate::wording::{count, survey_path};
use model::bytes::KIB;
use model::duration::show_ns;
use model::probe::{DepthRate, DeviceReport};
use model::{Evidence, Finding, Grade};

/// How far the numbers at two depths may lie apart and still be one. Limits seen
/// gave 2 to 3 % more than they were set to, whatever the depth.
const FLAT: f64 = 0.08;

/// Latency must grow by this share of the growth in depth: all of it, but for the
/// requests that were served from an unused allowance.
const LEAST_GROWTH: f64 = 0.6;

/// Above this many requests a second one thread's processor time may be the
/// limit. Picked: 78,400 was the most that one thread of a guest reached.
const MOST_REQUESTS_PER_S: f64 = 50_000.0;

/// Larger requests may be limited by bandwidth.
const MOST_BLOCK_BYTES: u64 = 16 * KIB;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure iolat";

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let points = small_blocks(&device.depth, MOST_BLOCK_BYTES);
    let Some(flat) = plateau(&points, |p| p.requests_per_s, FLAT)? else {
        return Err(NoFinding::Nothing);
    };
    let (from, to) = (&flat.from, &flat.to);
    let p50 = |point: &DepthRate| point.p50_ns.and_then(sound);
    let (Some(from_ns), Some(to_ns)) = (p50(from), p50(to)) else {
        let name = &device.name;
        return Err(format!("the latency of {name} at several queue depths is not known").into());
    };
    let waits = to_ns / from_ns >= LEAST_GROWTH * flat.reach();
    let full_processor = to.requests_per_s > MOST_REQUESTS_PER_S;
    if !waits || full_processor || has_arm(device, from_ns) || counts_bytes(device, &flat) {
        return Err(NoFinding::Nothing);
    }
    let requests = |point: &DepthRate| {
        let name = format!("requests, {} in flight", point.depth);
        Evidence::new(name, point.requests_per_s, "per_s", SOURCE)
    };
    let one_request = |point: &DepthRate, ns| {
        let name = format!("one request, {} in flight", point.depth);
        Evidence::new(name, ns, "ns", SOURCE)
    };
    let claim = format!(
        "{} serves {} requests a second whether {} or {} are in flight, while each then takes {} \
         instead of {}: it looks like a limit of the volume.",
        device_label(device),
        count(to.requests_per_s.round() as u64),
        from.depth,
        to.depth,
        show_ns(to_ns),
        show_ns(from_ns),
    );
    let evidence =
        [requests(from), one_request(from, from_ns), requests(to), one_request(to, to_ns)];
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier(&device.tier)
        .remedy(
            "Have the volume's requests a second raised where it is rented, or ask for less by \
             larger requests and more cache. Risk: it costs money, or memory.",
        )
        .confirm(survey_path(&device.path));
    // What was asked for against what was given.
    let factor = flat.reach();
    found(Class::Level, factor, finding)
}

/// Whether a disk's arm explains it: called rotating, and slow enough to be.
fn has_arm(device: &DeviceReport, p50_ns: f64) -> bool {
    device.rotational == Some(true) && p50_ns >= FASTEST_ARM_NS
}

/// Whether large requests stop at the same number of bytes: then bytes are counted.
fn counts_bytes(device: &DeviceReport, flat: &Plateau) -> bool {
    let large = large_blocks(&device.depth, 4 * MOST_BLOCK_BYTES);
    let deepest = large.iter().max_by_key(|point| point.depth);
    deepest
        .and_then(|point| sound(point.bytes_per_s))
        .is_some_and(|bytes| (bytes / flat.to.bytes_per_s - 1.0).abs() <= 2.0 * FLAT)
}
