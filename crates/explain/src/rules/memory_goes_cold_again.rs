//! Freed memory that is slow again a few seconds later.
//!
//! A balloon with free page reporting returns free blocks of 2 MiB to the host, so
//! memory that was paid for once has to be paid for again. The share of slow
//! faults before and after a wait shows it; the kernel's count of what it
//! reported, which only root can read, proves it.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{bytes, share, sound};
use crate::observed::Observed;
use crate::wording::percent;
use model::duration::show_ns;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "memory_goes_cold_again";

/// By how much the share of slow faults must rise. Seen: 1.2 to 97.7 % for blocks
/// of 2 MiB after 3 s, 1.4 to 8.1 % for scattered 4 KiB pages after 6 s, of which
/// few lie in a block that is free as a whole and which cost nobody much.
pub const LEAST_RISE: f64 = 0.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure faults";

/// Slow faults before and after memory was left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryGoesColdAgain {
    /// How long it was left alone, in seconds.
    pub waited_s: f64,
    /// Share of slow faults just after use, 0 to 1.
    pub before_slow_share: f64,
    /// Share of slow faults after the wait, 0 to 1.
    pub after_slow_share: f64,
    /// Median fault after the wait.
    pub after_p50_ns: Option<f64>,
    /// What the kernel counted as given back to the host.
    pub reported_bytes: Option<u64>,
}

/// Compares the slow faults before and after the wait.
pub fn check(observed: &Observed) -> Outcome {
    let Some(faults) = &observed.faults else {
        return Outcome::unchecked("first touch of memory was not measured");
    };
    if !faults.virtualized {
        return Outcome::Fine;
    }
    let Some(recooled) = &faults.recooled else {
        return Outcome::unchecked("memory was not freed, left alone and touched again");
    };
    let (Some(waited_s), Some(before), Some(after)) = (
        sound(recooled.waited_s),
        share(recooled.before_slow_share),
        share(recooled.after_slow_share),
    ) else {
        return Outcome::unchecked("the share of slow faults after a wait is not known");
    };
    if after - before < LEAST_RISE {
        return Outcome::Fine;
    }
    Outcome::found(Finding::MemoryGoesColdAgain(MemoryGoesColdAgain {
        waited_s,
        before_slow_share: before.min(1.0),
        after_slow_share: after.min(1.0),
        after_p50_ns: recooled.after_p50_ns.and_then(sound),
        reported_bytes: bytes(recooled.reported_to_host_bytes),
    }))
}

impl Told for MemoryGoesColdAgain {
    fn report(&self) -> model::Finding {
        let mut evidence = vec![
            Evidence::new(
                "slow faults, retouched at once",
                self.before_slow_share,
                "ratio",
                SOURCE,
            ),
            Evidence::new(
                "slow faults after the wait",
                self.after_slow_share,
                "ratio",
                SOURCE,
            ),
            Evidence::new("wait", self.waited_s, "s", SOURCE),
        ];
        if let Some(ns) = self.after_p50_ns {
            evidence.push(Evidence::new(
                "median fault after the wait",
                ns,
                "ns",
                SOURCE,
            ));
        }
        if let Some(bytes) = self.reported_bytes {
            let source = "/sys/module/page_reporting";
            evidence.push(Evidence::new(
                "given back to the host",
                bytes as f64,
                "bytes",
                source,
            ));
        }
        let why = match self.reported_bytes {
            Some(bytes) => format!(
                "The kernel gave {} back to the host meanwhile.",
                Bytes(bytes)
            ),
            None => "The host seems to take it back while it is free.".to_owned(),
        };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "Memory that is freed is slow again {} later: slow faults rise from {} to {}. {why}",
                show_ns(self.waited_s * 1e9),
                percent(self.before_slow_share),
                percent(self.after_slow_share),
            ),
            tier: Some("RAM, new".to_owned()),
            evidence,
            // Without the kernel's count something else may have taken the memory.
            grade: match self.reported_bytes {
                Some(_) => Grade::Measured,
                None => Grade::Inferred,
            },
            remedy: Some(
                "Let programs keep their memory: one arena that is reused, and for the C library \
                 GLIBC_TUNABLES=glibc.malloc.trim_threshold set above what they free and take again. \
                 Risk: what they hold is missing elsewhere."
                    .to_owned(),
            ),
            confirm: Some("terrace measure faults".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        // A page that was warm is cold: shares of 1 % and 98 % are a factor of 50.
        let before = 1.0 - self.before_slow_share;
        let after = (1.0 - self.after_slow_share).max(0.02);
        Severity::new(Class::Level, before / after)
    }
}
