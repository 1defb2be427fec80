//! A volume that stops at a bandwidth, whatever the queue depth.
//!
//! A device that works at its own pace speeds up with more in flight, or wavers. A
//! limit set by whoever sells the volume is flat over the depths, flat over time
//! and a round figure. Each alone proves nothing, so all three are asked for, and
//! what a cable or a platter could explain is left alone.

use super::Outcome;
use super::depth::{Plateau, large_blocks, plateau, small_blocks};
use super::devices::called;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{interval, share, sound};
use crate::observed::{DepthSeen, DeviceSeen, Observed};
use crate::wording::{percent, survey_path};
use model::bytes::{KIB, MIB, show_rate};
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "volume_limit_bandwidth";

/// How far the rates at two depths may lie apart and still be one. Limits seen
/// were kept within 3 %; devices without one grew by 17 % and more.
pub const FLAT: f64 = 0.05;

/// The most that the rates of 100 ms each may vary. A limit of 100 MiB/s was kept
/// within 1 %; writes without a limit varied by 15 to 36 %.
pub const STEADY: f64 = 0.05;

/// How near a round figure the rate must be: half of what parts 1.25 from 1.2.
pub const NEAR_ROUND: f64 = 0.02;

/// What volumes are sold as, in MB/s or MiB/s, times a power of ten.
const ROUND: [f64; 12] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5, 8.0];

/// Smaller requests may be limited by their number.
const LEAST_BLOCK_BYTES: u64 = 64 * KIB;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure seqio";

/// A rate that nothing raises.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeLimitBandwidth {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// The depths over which the rate is flat.
    pub plateau: Plateau,
    /// The spread of the rates of 100 ms each.
    pub series_spread: f64,
    /// The write rate, where it is the same.
    pub equal_write_bytes_per_s: Option<f64>,
}

/// Looks for a limit on each device.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let points = large_blocks(&device.depth, LEAST_BLOCK_BYTES);
    let flat = match plateau(&points, |p| p.bytes_per_s, FLAT) {
        Ok(Some(flat)) if !is_local(device) => flat,
        Ok(_) => return Outcome::Fine,
        Err(reason) => return Outcome::unchecked(reason),
    };
    let Some(series_spread) = device.series_spread.and_then(share) else {
        return Outcome::unchecked(format!(
            "the rate of {} over time is not known",
            device.name
        ));
    };
    let rate = flat.to.bytes_per_s;
    if series_spread > STEADY || !is_round(rate) || counts_requests(device, &flat.to) {
        return Outcome::Fine;
    }
    let write = device.write_bytes_per_s.as_ref().and_then(interval);
    Outcome::found(Finding::VolumeLimitBandwidth(VolumeLimitBandwidth {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        plateau: flat,
        series_spread,
        equal_write_bytes_per_s: write
            .map(|write| write.median)
            .filter(|median| (median / rate - 1.0).abs() <= FLAT),
    }))
}

/// Whether a cable or a platter of this very machine explains a flat rate.
fn is_local(device: &DeviceSeen) -> bool {
    let cable = matches!(
        device.transport.as_deref(),
        Some("sata" | "ata" | "usb" | "sas" | "mmc")
    );
    !device.virtualized && (cable || device.rotational == Some(true))
}

/// Whether small requests stop at the same number of requests: then requests are
/// what is counted, and bandwidth only follows from the size of the blocks.
fn counts_requests(device: &DeviceSeen, large: &DepthSeen) -> bool {
    let small = small_blocks(&device.depth, 16 * KIB);
    let deepest = small.iter().max_by_key(|point| point.depth);
    deepest
        .and_then(|point| sound(point.requests_per_s))
        .is_some_and(|requests| (requests / large.requests_per_s - 1.0).abs() <= 2.0 * FLAT)
}

/// Whether a rate is what a volume would be sold as.
fn is_round(bytes_per_s: f64) -> bool {
    [1e6, MIB as f64].into_iter().any(|unit| {
        let value = bytes_per_s / unit;
        let power = 10f64.powf(value.log10().floor());
        let near = |round: f64| (value / power / round - 1.0).abs() <= NEAR_ROUND;
        ROUND.into_iter().any(near) || near(10.0)
    })
}

impl Told for VolumeLimitBandwidth {
    fn report(&self) -> model::Finding {
        let (from, to) = (&self.plateau.from, &self.plateau.to);
        let mut evidence: Vec<Evidence> = [from, to]
            .into_iter()
            .map(|p| {
                let name = format!("read, {} in flight", p.depth);
                Evidence::new(name, p.bytes_per_s, "bytes_per_s", SOURCE)
            })
            .collect();
        evidence.push(Evidence::new(
            "spread of the rates of 100 ms",
            self.series_spread,
            "ratio",
            SOURCE,
        ));
        let mut writes = String::new();
        if let Some(rate) = self.equal_write_bytes_per_s {
            evidence.push(Evidence::new("write", rate, "bytes_per_s", SOURCE));
            writes = format!(" and writes at {}", show_rate(rate));
        }
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "{} reads at {} whether {} or {} requests are in flight, varies by only {}{writes}: it looks like a limit of the volume.",
                called(&self.path, &self.name),
                show_rate(to.bytes_per_s),
                from.depth,
                to.depth,
                percent(self.series_spread),
            ),
            tier: Some(self.tier.clone()),
            evidence,
            grade: Grade::Inferred,
            remedy: Some(
                "Have the volume's throughput raised where it is rented, or spread the data over \
                 several volumes. Risk: it costs money, and the machine may have a limit of its own."
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_volumes_are_sold_as_is_round() {
        for rate in [125e6, 124.2e6, 1000e6, 7.0 * MIB as f64, 100.0 * MIB as f64] {
            assert!(is_round(rate), "{rate}");
        }
        for rate in [135e6, 171e6, 550e6, 1.2e6, f64::NAN] {
            assert!(!is_round(rate), "{rate}");
        }
    }
}
