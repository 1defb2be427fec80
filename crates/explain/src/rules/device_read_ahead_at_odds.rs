//! A read-ahead too small for the device.
//!
//! A program that reads a file from front to back has at most two windows of
//! read-ahead in flight. A device that needs more in flight to reach its rate,
//! because it is far away or wide, then waits for its reader. Where the read
//! through the page cache was timed, that counts; else the windows are reckoned.

use super::Outcome;
use super::devices::{called, latency, queue_file};
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{interval, sound};
use crate::observed::{DeviceSeen, Observed};
use crate::wording::{shell_word, survey_path};
use model::bytes::{KIB, MIB, show_rate};
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "device_read_ahead_at_odds";

/// A plain read that reaches this share of the device's rate is not held back
/// enough to matter. Seen: 0.26 (282 of 1,074 MiB/s) with 128 KiB.
pub const LEAST_SHARE: f64 = 0.6;

/// A window this large is never the limit: 2 MiB in 1 ms are 2 GB/s.
pub const LARGE_ENOUGH_BYTES: u64 = 2 * MIB;

/// Windows in flight: the one that is read and the one that was asked for early.
const WINDOWS: f64 = 2.0;

/// A read-ahead that holds the device back.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReadAheadAtOdds {
    /// The device's name.
    pub name: String,
    /// Where it was reached.
    pub path: String,
    /// Its tier.
    pub tier: String,
    /// The window.
    pub read_ahead_bytes: u64,
    /// The device's rate with enough in flight.
    pub device_bytes_per_s: f64,
    /// The rate of a plain read.
    pub plain_bytes_per_s: f64,
    /// Whether the plain read was timed, not reckoned.
    pub timed: bool,
}

/// Compares each device's rate with what its read-ahead allows.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(observed.devices.iter().map(one), "no device was measured")
}

fn one(device: &DeviceSeen) -> Outcome {
    let name = &device.name;
    let Some(window) = device.read_ahead_bytes else {
        return Outcome::unchecked(format!("{name} shows no read-ahead"));
    };
    let Some(device_rate) = best_rate(device) else {
        return Outcome::unchecked(format!("no sequential rate of {name} was measured"));
    };
    let timed = device.buffered_read_bytes_per_s.as_ref().and_then(interval);
    let (plain, judged_by) = match timed {
        Some(rate) => (rate.median, rate.high),
        None => match reckoned(device, window, device_rate) {
            Ok(rate) => (rate, rate),
            Err(reason) => return Outcome::Unchecked(reason),
        },
    };
    if window >= LARGE_ENOUGH_BYTES || judged_by >= LEAST_SHARE * device_rate {
        return Outcome::Fine;
    }
    Outcome::found(Finding::DeviceReadAheadAtOdds(DeviceReadAheadAtOdds {
        name: device.name.clone(),
        path: device.path.clone(),
        tier: device.tier.clone(),
        read_ahead_bytes: window,
        device_bytes_per_s: device_rate,
        plain_bytes_per_s: plain,
        timed: timed.is_some(),
    }))
}

/// The best rate that was seen of the device with its own queue filled.
fn best_rate(device: &DeviceSeen) -> Option<f64> {
    let deep = device.depth.iter().filter_map(|p| sound(p.bytes_per_s));
    let sequential = device.read_bytes_per_s.as_ref().and_then(interval);
    deep.chain(sequential.map(|rate| rate.low)).reduce(f64::max)
}

/// The rate that the windows allow: all that is in flight, each time one answer takes.
fn reckoned(device: &DeviceSeen, window: u64, device_rate: f64) -> Result<f64, String> {
    // Without read-ahead each page is asked for by itself.
    let window = window.max(4 * KIB) as f64;
    let answer_s = latency(device)?.ns.median / 1e9 + window / device_rate;
    Ok((WINDOWS * window / answer_s).min(device_rate))
}

impl DeviceReadAheadAtOdds {
    /// A window that would do: what is in flight now, times what is missing, as a
    /// power of two.
    fn better_bytes(&self) -> u64 {
        let missing = self.device_bytes_per_s / self.plain_bytes_per_s;
        let wanted = self.read_ahead_bytes.max(4 * KIB) as f64 * missing;
        (wanted as u64)
            .clamp(256 * KIB, 2 * LARGE_ENOUGH_BYTES)
            .next_power_of_two()
    }
}

impl Told for DeviceReadAheadAtOdds {
    fn report(&self) -> model::Finding {
        let file = queue_file(&self.name, "read_ahead_kb");
        let how = if self.timed {
            "measure seqio"
        } else {
            "reckoned from read-ahead and latency"
        };
        let window = Bytes(self.read_ahead_bytes);
        let verb = if self.timed { "gets" } else { "can get about" };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "A plain read of {} {verb} {} of the {} that the device gives: its read-ahead of {window} asks for too little at a time.",
                called(&self.path, &self.name),
                show_rate(self.plain_bytes_per_s),
                show_rate(self.device_bytes_per_s),
            ),
            tier: Some(self.tier.clone()),
            evidence: vec![
                Evidence::new(
                    "read-ahead",
                    self.read_ahead_bytes as f64,
                    "bytes",
                    file.clone(),
                ),
                Evidence::new(
                    "device with its queue filled",
                    self.device_bytes_per_s,
                    "bytes_per_s",
                    "measure seqio",
                ),
                Evidence::new(
                    "plain read through the page cache",
                    self.plain_bytes_per_s,
                    "bytes_per_s",
                    how,
                ),
            ],
            // That a larger window helps is known only when it was tried.
            grade: Grade::Inferred,
            remedy: Some(format!(
                "Try more until the next boot: echo {} | sudo tee {}, and measure again. \
                 Risk: random reads of mapped files fetch more than they need.",
                self.better_bytes() / KIB,
                shell_word(&file)
            )),
            confirm: Some(survey_path(&self.path)),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(
            Class::Level,
            self.device_bytes_per_s / self.plain_bytes_per_s,
        )
    }
}
