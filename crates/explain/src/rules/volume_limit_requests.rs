//! A volume that stops at a number of requests a second.
//!
//! With more requests in flight the rate stays and every request waits longer, in
//! proportion: they queue behind something that counts. A disk's arm does the
//! same, and so does a processor that is full; both are ruled out first.

use super::Outcome;
use super::depth::{Plateau, large_blocks, plateau, small_blocks};
use super::devices::{FASTEST_ARM_NS, called};
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::sound;
use crate::observed::{DeviceSeen, Observed};
use crate::wording::{count, survey_path};
use model::bytes::KIB;
use model::duration::show_ns;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "volume_limit_requests";

/// How far the numbers at two depths may lie apart and still be one. Limits seen
/// gave 2 to 3 % more than they were set to, whatever the depth.
pub const FLAT: f64 = 0.08;

/// Latency must grow by this share of the growth in depth: all of it, but for the
/// requests that were served from an unused allowance.
pub const LEAST_GROWTH: f64 = 0.6;

/// Above this many requests a second one thread's processor time may be the
/// limit. Picked: 78,400 was the most that one thread of a guest reached.
pub const MOST_REQUESTS_PER_S: f64 = 50_000.0;

/// Larger requests may be limited by bandwidth.
const MOST_BLOCK_BYTES: u64 = 16 * KIB;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure iolat";

/// A number of requests that nothing raises.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeLimitRequests {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// The depths over which the number is flat.
    pub plateau: Plateau,
    /// Median of one request at the shallow end.
    pub from_p50_ns: f64,
    /// Median of one request at the deep end.
    pub to_p50_ns: f64,
}

/// Looks for a limit on each device.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let points = small_blocks(&device.depth, MOST_BLOCK_BYTES);
    let flat = match plateau(&points, |p| p.requests_per_s, FLAT) {
        Ok(Some(flat)) => flat,
        Ok(None) => return Outcome::Fine,
        Err(reason) => return Outcome::unchecked(reason),
    };
    let (Some(from_p50_ns), Some(to_p50_ns)) = (
        flat.from.p50_ns.and_then(sound),
        flat.to.p50_ns.and_then(sound),
    ) else {
        return Outcome::unchecked(format!(
            "the latency of {} at several queue depths is not known",
            device.name
        ));
    };
    let waits = to_p50_ns / from_p50_ns >= LEAST_GROWTH * flat.reach();
    let full_processor = flat.to.requests_per_s > MOST_REQUESTS_PER_S;
    if !waits || full_processor || has_arm(device, from_p50_ns) || counts_bytes(device, &flat) {
        return Outcome::Fine;
    }
    Outcome::found(Finding::VolumeLimitRequests(VolumeLimitRequests {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        plateau: flat,
        from_p50_ns,
        to_p50_ns,
    }))
}

/// Whether a disk's arm explains it: called rotating, and slow enough to be.
fn has_arm(device: &DeviceSeen, p50_ns: f64) -> bool {
    device.rotational == Some(true) && p50_ns >= FASTEST_ARM_NS
}

/// Whether large requests stop at the same number of bytes: then bytes are counted.
fn counts_bytes(device: &DeviceSeen, flat: &Plateau) -> bool {
    let large = large_blocks(&device.depth, 4 * MOST_BLOCK_BYTES);
    let deepest = large.iter().max_by_key(|point| point.depth);
    deepest
        .and_then(|point| sound(point.bytes_per_s))
        .is_some_and(|bytes| (bytes / flat.to.bytes_per_s - 1.0).abs() <= 2.0 * FLAT)
}

impl Told for VolumeLimitRequests {
    fn report(&self) -> model::Finding {
        let (from, to) = (&self.plateau.from, &self.plateau.to);
        let ends = [(from, self.from_p50_ns), (to, self.to_p50_ns)];
        let evidence = ends
            .into_iter()
            .flat_map(|(point, p50_ns)| {
                let flight = format!("{} in flight", point.depth);
                [
                    Evidence::new(
                        format!("requests, {flight}"),
                        point.requests_per_s,
                        "per_s",
                        SOURCE,
                    ),
                    Evidence::new(format!("one request, {flight}"), p50_ns, "ns", SOURCE),
                ]
            })
            .collect();
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "{} serves {} requests a second whether {} or {} are in flight, while each then takes {} instead of {}: it looks like a limit of the volume.",
                called(&self.path, &self.name),
                count(to.requests_per_s.round() as u64),
                from.depth,
                to.depth,
                show_ns(self.to_p50_ns),
                show_ns(self.from_p50_ns),
            ),
            tier: Some(self.tier.clone()),
            evidence,
            grade: Grade::Inferred,
            remedy: Some(
                "Have the volume's requests a second raised where it is rented, or ask for less by \
                 larger requests and more cache. Risk: it costs money, or memory."
                    .to_owned(),
            ),
            confirm: Some(survey_path(&self.path)),
        }
    }

    fn severity(&self) -> Severity {
        // What was asked for against what was given.
        Severity::new(Class::Level, self.plateau.reach())
    }
}
