//! Swap on a device that gives single pages back slowly.
//!
//! What was swapped out comes back in whatever order it is touched, one page at a
//! time at worst, so the latency of a random read decides. An unused area
//! behind compressed RAM is a last resort and left alone.

use super::{SurveyVerdict, check_each};
use crate::finding::{Class, found};
use crate::numbers::sound;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::{long_time, survey_path};
use model::duration::show_ns;
use model::probe::SwapArea;
use model::{Bytes, Evidence, Finding, Grade};

/// A page must take this long. At 1 ms a page 1 GiB takes 4.4 minutes to come back
/// in random order; seen: 31 s for 200 MiB at 1 ms, over 2 minutes at 10 ms.
const SLOW_NS: f64 = 1_000_000.0;

/// What a rotating disk is taken to need where its latency was not measured.
const ARM_NS: f64 = 10_000_000.0;

/// Pages of 4 KiB in a GiB.
const PAGES_PER_GIB: f64 = 262_144.0;

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let swap = observed.swap.as_ref().ok_or("the swap areas could not be read")?;
    if swap.areas.is_empty() {
        // None at all is what no_swap finds.
        return Err(NoFinding::Nothing);
    }
    let has_compressed = swap.areas.iter().any(|area| area.compressed);
    let check = |area: &SwapArea| check_area(area, has_compressed);
    check_each(&swap.areas, check, "there is no swap area")
}

fn check_area(area: &SwapArea, has_compressed: bool) -> SurveyVerdict {
    let path = &area.path;
    let last_resort = has_compressed && area.used_bytes == 0;
    if area.compressed || last_resort {
        return Err(NoFinding::Nothing);
    }
    let latency = area.random_read_ns.and_then(sound);
    let (page_ns, about, source, grade) = match (latency, area.rotational) {
        (Some(ns), _) => (ns, "", "measure iolat", Grade::Measured),
        (None, Some(true)) => (ARM_NS, "about ", "rotational flag", Grade::Inferred),
        (None, _) => {
            return Err(format!("the latency of the device of {path} is not known").into());
        }
    };
    if page_ns < SLOW_NS {
        return Err(NoFinding::Nothing);
    }
    let device = area.device.as_deref().unwrap_or(path);
    let bytes = |name, bytes: u64| Evidence::bytes(name, bytes, "/proc/swaps");
    let directory = path.rfind('/').filter(|_| latency.is_some());
    let claim = format!(
        "Swap on {device} ({}, {} used) needs {about}{} for a page, so 1 GiB takes {} to come \
         back in random order.",
        Bytes(area.size_bytes),
        Bytes(area.used_bytes),
        show_ns(page_ns),
        long_time(page_ns * PAGES_PER_GIB),
    );
    let evidence = [
        Evidence::new("random read of 4 KiB", page_ns, "ns", source),
        bytes("size", area.size_bytes),
        bytes("used", area.used_bytes),
    ];
    let finding = Finding {
        confirm: directory.map(|end| survey_path(if end == 0 { "/" } else { &path[..end] })),
        ..Finding::new(grade, claim, evidence)
            .tier(format!("swap {device}"))
            .remedy(remedy(has_compressed))
    };
    let class = if area.used_bytes > 0 { Class::Everything } else { Class::Setting };
    let factor = page_ns / SLOW_NS;
    found(class, factor, finding)
}

fn remedy(has_compressed: bool) -> &'static str {
    if has_compressed {
        "Move swap to flash, or enlarge the compressed swap before it. Risk: swap wears flash out."
    } else {
        "Move swap to flash, or put compressed RAM before it (zram or zswap). \
         Risk: swap wears flash out, compression takes processor time."
    }
}
