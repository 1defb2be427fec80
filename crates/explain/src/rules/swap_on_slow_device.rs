//! Swap on a device that gives single pages back slowly.
//!
//! What was swapped out comes back in whatever order it is touched, one page at a
//! time at worst, so the latency of a random read decides. An area that stands
//! unused behind compressed RAM is a last resort and left alone.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::sound;
use crate::observed::{Observed, SwapAreaSeen};
use crate::wording::{long_time, survey_path};
use model::duration::show_ns;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "swap_on_slow_device";

/// A page must take this long. At 1 ms a page 1 GiB takes 4.4 minutes to come back
/// in random order; seen: 31 s for 200 MiB at 1 ms, over 2 minutes at 10 ms.
pub const SLOW_NS: f64 = 1_000_000.0;

/// What a rotating disk is taken to need where its latency was not measured.
const ARM_NS: f64 = 10_000_000.0;

/// Pages of 4 KiB in a GiB.
const PAGES_PER_GIB: f64 = 262_144.0;

/// One slow area.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapOnSlowDevice {
    /// The file or device.
    pub path: String,
    /// The device that holds it.
    pub device: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// How much of it is taken.
    pub used_bytes: u64,
    /// What one page takes.
    pub page_ns: f64,
    /// Whether that was measured, not concluded from the rotational flag.
    pub measured: bool,
    /// Whether compressed RAM is in use already.
    pub has_compressed: bool,
}

/// Looks at each area.
pub fn check(observed: &Observed) -> Outcome {
    let Some(swap) = &observed.swap else {
        return Outcome::unchecked("the swap areas could not be read");
    };
    if swap.areas.is_empty() {
        // None at all is the matter of no_swap.
        return Outcome::Fine;
    }
    let has_compressed = swap.areas.iter().any(|area| area.compressed);
    Outcome::of_each(
        swap.areas.iter().map(|area| one(area, has_compressed)),
        "there is no swap area",
    )
}

fn one(area: &SwapAreaSeen, has_compressed: bool) -> Outcome {
    let last_resort = has_compressed && area.used_bytes == 0;
    if area.compressed || last_resort {
        return Outcome::Fine;
    }
    let latency = area.random_read_ns.and_then(sound);
    let page_ns = match (latency, area.rotational) {
        (Some(ns), _) => ns,
        (None, Some(true)) => ARM_NS,
        (None, _) => {
            let path = &area.path;
            return Outcome::unchecked(format!("the latency of the device of {path} is not known"));
        }
    };
    if page_ns < SLOW_NS {
        return Outcome::Fine;
    }
    Outcome::found(Finding::SwapOnSlowDevice(SwapOnSlowDevice {
        path: area.path.clone(),
        device: area.device.clone(),
        size_bytes: area.size_bytes,
        used_bytes: area.used_bytes,
        page_ns,
        measured: latency.is_some(),
        has_compressed,
    }))
}

impl SwapOnSlowDevice {
    fn remedy(&self) -> String {
        let flash = "Move swap to flash";
        if self.has_compressed {
            format!(
                "{flash}, or enlarge the compressed swap before it. Risk: swap wears flash out."
            )
        } else {
            format!(
                "{flash}, or put compressed RAM before it (zram or zswap). \
                 Risk: swap wears flash out, compression takes processor time."
            )
        }
    }
}

impl Told for SwapOnSlowDevice {
    fn report(&self) -> model::Finding {
        let source = if self.measured {
            "measure iolat"
        } else {
            "rotational flag"
        };
        let device = self.device.as_deref().unwrap_or(&self.path);
        let about = if self.measured { "" } else { "about " };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "Swap on {device} ({}, {} used) needs {about}{} for a page, so 1 GiB takes {} to come back in random order.",
                Bytes(self.size_bytes),
                Bytes(self.used_bytes),
                show_ns(self.page_ns),
                long_time(self.page_ns * PAGES_PER_GIB),
            ),
            tier: Some(format!("swap {device}")),
            evidence: vec![
                Evidence::new("random read of 4 KiB", self.page_ns, "ns", source),
                Evidence::new("size", self.size_bytes as f64, "bytes", "/proc/swaps"),
                Evidence::new("used", self.used_bytes as f64, "bytes", "/proc/swaps"),
            ],
            grade: if self.measured {
                Grade::Measured
            } else {
                Grade::Inferred
            },
            remedy: Some(self.remedy()),
            confirm: self
                .path
                .rfind('/')
                .filter(|_| self.measured)
                .map(|end| survey_path(if end == 0 { "/" } else { &self.path[..end] })),
        }
    }

    fn severity(&self) -> Severity {
        let class = if self.used_bytes > 0 {
            Class::Everything
        } else {
            Class::Setting
        };
        Severity::new(class, self.page_ns / SLOW_NS)
    }
}
