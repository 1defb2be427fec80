//! A read-ahead too small for the device.
//!
//! A program that reads a file from front to back has at most two windows of
//! read-ahead in flight. A device that needs more in flight to reach its rate,
//! because it is far away or wide, then waits for its reader. The rate of a plain
//! read is reckoned from the windows and the device's latency.

use super::SurveyVerdict;
use super::devices::{device_label, device_latency, queue_file};
use crate::finding::{Class, found};
use crate::numbers::{interval, sound};
use crate::verdict::NoFinding;
use crate::wording::{shell_word, survey_path};
use model::bytes::{KIB, MIB, show_rate};
use model::probe::DeviceReport;
use model::{Bytes, Evidence, Finding, Grade};

/// A plain read that reaches this share of the device's rate is not held back
/// enough to matter. Seen: 0.26 (282 of 1,074 MiB/s) with 128 KiB.
const LEAST_SHARE: f64 = 0.6;

/// A window this large is never the limit: 2 MiB in 1 ms are 2 GB/s.
const LARGE_ENOUGH_BYTES: u64 = 2 * MIB;

/// Windows in flight: the one that is read and the one that was asked for early.
const WINDOWS: f64 = 2.0;

/// The source of the plain read's rate, as evidence gives it.
const RECKONED: &str = "reckoned from read-ahead and latency";

pub(super) fn check(device: &DeviceReport) -> SurveyVerdict {
    let name = &device.name;
    let window = device.read_ahead_bytes.ok_or_else(|| format!("{name} shows no read-ahead"))?;
    let full =
        best_rate(device).ok_or_else(|| format!("no sequential rate of {name} was measured"))?;
    let plain = plain_rate(device, window, full)?;
    if window >= LARGE_ENOUGH_BYTES || plain >= LEAST_SHARE * full {
        return Err(NoFinding::Nothing);
    }
    let rate = |name, rate, source| Evidence::new(name, rate, "bytes_per_s", source);
    let file = queue_file(name, "read_ahead_kb");
    let remedy = format!(
        "Try more until the next boot: echo {} | sudo tee {}, and measure again. \
         Risk: random reads of mapped files fetch more than they need.",
        better_window(window, full / plain) / KIB,
        shell_word(&file)
    );
    let claim = format!(
        "A plain read of {} can get about {} of the {} that the device gives: its read-ahead of \
         {} asks for too little at a time.",
        device_label(device),
        show_rate(plain),
        show_rate(full),
        Bytes(window),
    );
    let evidence = [
        Evidence::bytes("read-ahead", window, file),
        rate("device with its queue filled", full, "measure seqio"),
        rate("plain read through the page cache", plain, RECKONED),
    ];
    // That a larger window helps was not tried.
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier(&device.tier)
        .remedy(remedy)
        .confirm(survey_path(&device.path));
    let factor = full / plain;
    found(Class::Level, factor, finding)
}

/// The best rate that was measured of the device with its own queue filled.
fn best_rate(device: &DeviceReport) -> Option<f64> {
    let deep = device.depth.iter().filter_map(|p| sound(p.bytes_per_s));
    let sequential = device.read_bytes_per_s.as_ref().and_then(interval);
    deep.chain(sequential.map(|rate| rate.low)).reduce(f64::max)
}

/// The rate that the windows allow: all that is in flight, each time one answer takes.
fn plain_rate(device: &DeviceReport, window: u64, full: f64) -> Result<f64, String> {
    // Without read-ahead each page is asked for by itself.
    let window = window.max(4 * KIB) as f64;
    let answer_s = device_latency(device)?.ns.median / 1e9 + window / full;
    Ok((WINDOWS * window / answer_s).min(full))
}

/// A window that would do: what is in flight now, times what is missing, as a power of
/// two.
fn better_window(window: u64, missing: f64) -> u64 {
    let wanted = window.max(4 * KIB) as f64 * missing;
    (wanted as u64).clamp(256 * KIB, 2 * LARGE_ENOUGH_BYTES).next_power_of_two()
}
