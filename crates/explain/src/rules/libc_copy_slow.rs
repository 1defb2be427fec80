//! The C library's memcpy below what this machine can do.
//!
//! An ordinary store first reads the line that it overwrites, so a copy moves
//! three bytes on the memory bus for each byte copied; `rep movsb` and
//! non-temporal stores move two. A C library that overrates the last-level cache
//! takes the cheap way only far above the sizes where it pays.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::numbers::{ErrorBars, bytes, interval};
use crate::observed::{CopySeen, Observed};
use crate::verdict::NoFinding;
use crate::wording::times;
use model::bytes::show_rate;
use model::{Bytes, Evidence, Finding, Grade};

/// A gain below this is not worth another copy routine. Picked between the 1.05
/// to 1.13 seen at 1 MiB, where nobody would notice, and the 1.27 to 1.48 seen
/// from 16 MiB on.
const LEAST_GAIN: f64 = 1.2;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memcpy";

/// One size at which another copy wins.
struct Gain<'a> {
    copy: &'a CopySeen,
    /// The C library's memcpy, copied bytes a second.
    libc: ErrorBars,
    /// The best method, copied bytes a second.
    best: ErrorBars,
}

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    if observed.copies.is_empty() {
        return Err("copying was not measured".into());
    }
    let mut compared: Vec<Gain> = observed.copies.iter().filter_map(gain).collect();
    if compared.is_empty() {
        return Err("too few trials of copying for error bars".into());
    }
    compared.retain(|gain| gain.best.above(&gain.libc) && gain.factor() >= LEAST_GAIN);
    // Beyond the caches first: a copy inside them depends on who shares them.
    compared.sort_by(|a, b| {
        let beyond = b.copy.beyond_caches.cmp(&a.copy.beyond_caches);
        beyond.then(b.factor().total_cmp(&a.factor()))
    });
    let Some(worst) = compared.first() else {
        return Err(NoFinding::Nothing);
    };
    let libc = &worst.copy.libc;
    let mut evidence: Vec<Evidence> = compared.iter().flat_map(|g| g.evidence(libc)).collect();
    if let Some(l3) = bytes(worst.copy.libc_l3_bytes) {
        let name = "cache that the C library believes in";
        evidence.push(Evidence::bytes(name, l3, "ld.so tunables"));
    }
    // That one is faster was timed, in turns, on the same memory.
    let finding = Finding::new(Grade::Measured, worst.claim(), evidence)
        .tier("RAM")
        .remedy(format!(
            "In a program that copies blocks of this size, use {} instead of memcpy. \
             Risk: small blocks can become slower, so measure the sizes that it copies; \
             lowering the C library's threshold by GLIBC_TUNABLES brought nothing where it was \
             tried.",
            worst.copy.best_method
        ))
        .confirm("terrace measure memcpy");
    let factor = worst.factor();
    found(Class::Level, factor, finding)
}

/// The two rates of one size; `None` without error bars.
fn gain(copy: &CopySeen) -> Option<Gain<'_>> {
    let libc = interval(&copy.libc_bytes_per_s)?;
    let best = interval(&copy.best_bytes_per_s)?;
    Some(Gain { copy, libc, best })
}

impl Gain<'_> {
    fn factor(&self) -> f64 {
        self.best.median / self.libc.median
    }

    fn evidence(&self, libc: &str) -> [Evidence; 2] {
        let size = Bytes(self.copy.size_bytes);
        let rate = |name, of: ErrorBars| Evidence::new(name, of.median, "bytes_per_s", SOURCE);
        [
            rate(format!("memcpy of {libc}, {size}"), self.libc),
            rate(format!("{}, {size}", self.copy.best_method), self.best),
        ]
    }

    fn claim(&self) -> String {
        let copy = self.copy;
        let mut claim = format!(
            "memcpy of {} copies {} at {}, {} the same memory at {}: {} times as fast.",
            copy.libc,
            Bytes(copy.size_bytes),
            show_rate(self.libc.median),
            copy.best_method,
            show_rate(self.best.median),
            times(self.factor()),
        );
        if copy.beyond_caches && copy.libc_traffic_factor > copy.best_traffic_factor {
            claim.push_str(" Likely cause: memcpy first reads the memory that it overwrites.");
        }
        claim
    }
}
