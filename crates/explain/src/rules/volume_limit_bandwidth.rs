//! A volume that stops at a bandwidth, whatever the queue depth.
//!
//! A device that works at its own pace speeds up with more in flight, or wavers. A
//! limit set by whoever sells the volume is flat over the depths, flat over time
//! and a round figure. Each alone proves nothing, so all three are asked for, and
//! what a cable or a platter could explain is left alone.

use super::SurveyVerdict;
use super::depth::{large_blocks, plateau, small_blocks};
use super::devices::device_label;
use crate::finding::{Class, found};
use crate::numbers::{interval, share, sound};
use crate::verdict::NoFinding;
use crate::wording::{percent, survey_path};
use model::bytes::{KIB, MIB, show_rate};
use model::probe::{DepthRate, DeviceReport};
use model::{Evidence, Finding, Grade};

/// How far the rates at two depths may lie apart and still be one. Limits seen
/// were kept within 3 %; devices without one grew by 17 % and more.
const FLAT: f64 = 0.05;

/// The most that the rates of 100 ms each may vary. A limit of 100 MiB/s was kept
/// within 1 %; writes without a limit varied by 15 to 36 %.
const STEADY: f64 = 0.05;

/// How near a round figure the rate must be: half of what parts 1.25 from 1.2.
const NEAR_ROUND: f64 = 0.02;

/// What volumes are sold as, in MB/s or MiB/s, times a power of ten.
const ROUND: [f64; 12] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5, 8.0];

/// Smaller requests may be limited by their number.
const LEAST_BLOCK_BYTES: u64 = 64 * KIB;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure seqio";

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let points = large_blocks(&device.depth, LEAST_BLOCK_BYTES);
    let flat = match plateau(&points, |p| p.bytes_per_s, FLAT)? {
        Some(flat) if !is_local(device) => flat,
        _ => return Err(NoFinding::Nothing),
    };
    let spread = device.series_spread.and_then(share).ok_or_else(|| {
        let name = &device.name;
        format!("the rate of {name} over time is not known")
    })?;
    let (from, to) = (&flat.from, &flat.to);
    let limit = to.bytes_per_s;
    if spread > STEADY || !is_round(limit) || counts_requests(device, to) {
        return Err(NoFinding::Nothing);
    }
    let rate = |name: String, rate| Evidence::new(name, rate, "bytes_per_s", SOURCE);
    let name = "spread of the rates of 100 ms";
    let mut evidence = vec![
        rate(format!("read, {} in flight", from.depth), from.bytes_per_s),
        rate(format!("read, {} in flight", to.depth), limit),
        Evidence::new(name, spread, "ratio", SOURCE),
    ];
    let mut writes = String::new();
    let write = device.write_bytes_per_s.as_ref().and_then(interval);
    if let Some(write) = write.filter(|write| (write.median / limit - 1.0).abs() <= FLAT) {
        evidence.push(rate("write".to_owned(), write.median));
        writes = format!(" and writes at {}", show_rate(write.median));
    }
    let claim = format!(
        "{} reads at {} whether {} or {} requests are in flight, varies by only {}{writes}: it \
         looks like a limit of the volume.",
        device_label(device),
        show_rate(limit),
        from.depth,
        to.depth,
        percent(spread),
    );
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier(&device.tier)
        .remedy(
            "Have the volume's throughput raised where it is rented, or spread the data over \
             several volumes. Risk: it costs money, and the machine may have a limit of its own.",
        )
        .confirm(survey_path(&device.path));
    // What was asked for against what was given.
    let factor = flat.reach();
    found(Class::Level, factor, finding)
}

/// Whether a cable or a platter of this very machine explains a flat rate.
fn is_local(device: &DeviceReport) -> bool {
    let cable = matches!(device.transport.as_deref(), Some("sata" | "ata" | "usb" | "sas" | "mmc"));
    !device.virtualized && (cable || device.rotational == Some(true))
}

/// Whether small requests stop at the same number of requests: then requests are
/// what is counted, and bandwidth only follows from the size of the blocks.
fn counts_requests(device: &DeviceReport, large: &DepthRate) -> bool {
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
