//! A device whose rotational flag does not fit its latency.
//!
//! The kernel orders requests, reads ahead and spreads swap by that flag. A device
//! called rotating that answers faster than any disk can turn has no arm; one
//! called not rotating that is as slow as an arm and gains nothing from a deep
//! queue has one.

use super::SurveyVerdict;
use super::depth::{growth, small_blocks};
use super::devices::{FASTEST_ARM_NS, device_label, device_latency, queue_file};
use crate::finding::{Class, found};
use crate::verdict::NoFinding;
use crate::wording::{shell_word, survey_path};
use model::bytes::KIB;
use model::duration::show_ns;
use model::probe::DeviceReport;
use model::{Evidence, Finding, Grade};

/// No flash that is idle needs this long for 4 KiB. Seen: 1 ms for USB sticks,
/// 10 to 14 ms for disks with an arm. Network volumes, 1 to 10 ms, are told apart
/// by what a deep queue gains.
const SLOWEST_FLASH_NS: f64 = 5_000_000.0;

/// An arm serves a deep queue in a better order and gains up to about 3 times the
/// requests by it; what gains more serves several at once.
const MOST_ARM_GROWTH: f64 = 3.0;

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let name = &device.name;
    let rotational = device.rotational.ok_or_else(|| format!("{name} has no rotational flag"))?;
    let latency = device_latency(device)?;
    let at_odds = if rotational {
        latency.ns.high < FASTEST_ARM_NS
    } else if latency.ns.low > SLOWEST_FLASH_NS {
        // A volume far away is as slow as an arm, but serves many at once.
        growth(&small_blocks(&device.depth, 16 * KIB), |p| p.requests_per_s)? <= MOST_ARM_GROWTH
    } else {
        false
    };
    if !at_odds {
        return Err(NoFinding::Nothing);
    }
    let label = device_label(device);
    let median = latency.ns.median;
    let read = show_ns(median);
    let (right, grade, factor, claim) = if rotational {
        let arm = show_ns(FASTEST_ARM_NS);
        let claim = format!(
            "The kernel takes {label} for a rotating disk, but it answers a random read in \
             {read}: no disk can in under {arm}."
        );
        ("0", latency.grade(), FASTEST_ARM_NS / median, claim)
    } else {
        let claim = format!(
            "The kernel does not take {label} for a rotating disk, but a random read takes {read} \
             and a deep queue does not help, as with a disk's arm."
        );
        // A slow volume behind a limit looks the same.
        ("1", Grade::Inferred, median / SLOWEST_FLASH_NS, claim)
    };
    let file = queue_file(name, "rotational");
    let remedy = format!(
        "Correct it until the next boot: echo {right} | sudo tee {} (a udev rule makes it last). \
         Risk: file systems and the scheduler choose other ways; measure again.",
        shell_word(&file)
    );
    let flag = f64::from(u8::from(rotational));
    let evidence = [Evidence::new("rotational flag", flag, "count", file), latency.evidence()];
    let finding = Finding::new(grade, claim, evidence)
        .tier(&device.tier)
        .remedy(remedy)
        .confirm(survey_path(&device.path));
    // The flag alone slows little: it never comes before one that was timed.
    let factor = 1.0 + factor.ln().max(0.0) / 10.0;
    found(Class::Setting, factor, finding)
}
