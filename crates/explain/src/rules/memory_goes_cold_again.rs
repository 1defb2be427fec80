//! Freed memory that is slow again a few seconds later.
//!
//! A balloon with free page reporting returns free blocks of 2 MiB to the host, so
//! memory that was paid for once has to be paid for again. The share of slow
//! faults before and after a wait shows it; the kernel's count of what it
//! reported, which only root can read, proves it.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::numbers::{bytes, share, sound};
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::duration::show_ns;
use model::{Bytes, Evidence, Finding, Grade};

/// By how much the share of slow faults must rise. Seen: 1.2 to 97.7 % for blocks
/// of 2 MiB after 3 s, 1.4 to 8.1 % for scattered 4 KiB pages after 6 s, of which
/// few are in a block that is free as a whole, at little cost.
const LEAST_RISE: f64 = 0.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure faults";

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let faults = observed.faults.as_ref().ok_or("first touch of memory was not measured")?;
    if !faults.virtualized {
        return Err(NoFinding::Nothing);
    }
    let recooled =
        faults.recooled.as_ref().ok_or("memory was not freed, left alone and touched again")?;
    let (Some(waited_s), Some(before), Some(after)) = (
        sound(recooled.waited_s),
        share(recooled.before_slow_share),
        share(recooled.after_slow_share),
    ) else {
        return Err("the share of slow faults after a wait is not known".into());
    };
    if after - before < LEAST_RISE {
        return Err(NoFinding::Nothing);
    }
    let (before, after) = (before.min(1.0), after.min(1.0));
    let slow = |name, share| Evidence::new(name, share, "ratio", SOURCE);
    let mut evidence = vec![
        slow("slow faults, retouched at once", before),
        slow("slow faults after the wait", after),
        Evidence::new("wait", waited_s, "s", SOURCE),
    ];
    if let Some(ns) = recooled.after_p50_ns.and_then(sound) {
        evidence.push(Evidence::new("median fault after the wait", ns, "ns", SOURCE));
    }
    // Without the kernel's count something else may have taken the memory.
    let (why, grade) = match bytes(recooled.reported_to_host_bytes) {
        Some(reported) => {
            let (name, source) = ("given back to the host", "/sys/module/page_reporting");
            evidence.push(Evidence::bytes(name, reported, source));
            let reported = Bytes(reported);
            let why = format!("The kernel gave {reported} back to the host meanwhile.");
            (why, Grade::Measured)
        }
        None => {
            let why = "The host seems to take it back while it is free.";
            (why.to_owned(), Grade::Inferred)
        }
    };
    let claim = format!(
        "Memory that is freed is slow again {} later: slow faults rise from {} to {}. {why}",
        show_ns(waited_s * 1e9),
        percent(before),
        percent(after),
    );
    let finding = Finding::new(grade, claim, evidence)
        .tier("RAM, new")
        .remedy(
            "Let programs keep their memory: one arena that is reused, and for the C library \
             GLIBC_TUNABLES=glibc.malloc.trim_threshold set above what they free and take again. \
             Risk: what they hold is missing elsewhere.",
        )
        .confirm("terrace measure faults");
    // A page that was warm is cold: shares of 1 % and 98 % are a factor of 50.
    let factor = (1.0 - before) / (1.0 - after).max(0.02);
    found(Class::Level, factor, finding)
}
