//! The C library's memcpy below what this machine can do.
//!
//! An ordinary store first reads the line that it overwrites, so a copy moves
//! three bytes on the memory bus for each byte copied; `rep movsb` and
//! non-temporal stores move two. A C library that overrates the last-level cache
//! takes the cheap way only far above the sizes where it pays.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{Interval, bytes, interval};
use crate::observed::{CopySeen, Observed};
use crate::wording::times;
use model::bytes::show_rate;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "libc_copy_slow";

/// A gain below this is not worth another copy routine. Picked between the 1.05
/// to 1.13 seen at 1 MiB, where nobody would notice, and the 1.27 to 1.48 seen
/// from 16 MiB on.
pub const LEAST_GAIN: f64 = 1.2;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memcpy";

/// One size at which another copy wins.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Bytes copied.
    pub size_bytes: u64,
    /// The C library's memcpy, copied bytes a second.
    pub libc_bytes_per_s: Interval,
    /// The best method, copied bytes a second.
    pub best_bytes_per_s: Interval,
    /// Its name.
    pub best_method: String,
    /// Why, where the two methods' traffic explains it.
    pub overwrites_what_it_read: bool,
    /// What the C library believes the last-level cache to hold.
    pub libc_l3_bytes: Option<u64>,
    /// From which size on the C library writes past the caches.
    pub non_temporal_threshold_bytes: Option<u64>,
    beyond_caches: bool,
}

/// The sizes at which another copy wins.
#[derive(Clone, Debug, PartialEq)]
pub struct LibcCopySlow {
    /// The C library and its version.
    pub libc: String,
    /// The most telling size: beyond the caches where there is one.
    pub worst: Gain,
    /// The other sizes.
    pub others: Vec<Gain>,
}

/// Compares the two copies of every size.
pub fn check(observed: &Observed) -> Outcome {
    let mut gains = Vec::new();
    let mut judged = false;
    for copy in &observed.copies {
        let (Some(libc), Some(best)) = (
            interval(&copy.libc_bytes_per_s),
            interval(&copy.best_bytes_per_s),
        ) else {
            continue;
        };
        judged = true;
        if best.above(&libc) && best.median >= LEAST_GAIN * libc.median {
            gains.push((gain(copy, libc, best), copy.libc.clone()));
        }
    }
    // Beyond the caches first: a copy inside them depends on who shares them.
    gains.sort_by(|(a, _), (b, _)| {
        let key = |g: &Gain| (g.beyond_caches, g.factor());
        key(b)
            .partial_cmp(&key(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut gains = gains.into_iter();
    match gains.next() {
        Some((worst, libc)) => Outcome::found(Finding::LibcCopySlow(LibcCopySlow {
            libc,
            worst,
            others: gains.map(|(gain, _)| gain).collect(),
        })),
        None if judged => Outcome::Fine,
        None if observed.copies.is_empty() => Outcome::unchecked("copying was not measured"),
        None => Outcome::unchecked("too few trials of copying for error bars"),
    }
}

fn gain(copy: &CopySeen, libc: Interval, best: Interval) -> Gain {
    Gain {
        size_bytes: copy.size_bytes,
        libc_bytes_per_s: libc,
        best_bytes_per_s: best,
        best_method: copy.best_method.clone(),
        overwrites_what_it_read: copy.beyond_caches
            && copy.libc_traffic_factor > copy.best_traffic_factor,
        libc_l3_bytes: bytes(copy.libc_l3_bytes),
        non_temporal_threshold_bytes: bytes(copy.non_temporal_threshold_bytes)
            .filter(|&from| from > copy.size_bytes),
        beyond_caches: copy.beyond_caches,
    }
}

impl Gain {
    fn factor(&self) -> f64 {
        self.best_bytes_per_s.median / self.libc_bytes_per_s.median
    }

    fn evidence(&self, libc: &str) -> Vec<Evidence> {
        let size = Bytes(self.size_bytes);
        let rate = |name: String, value| Evidence::new(name, value, "bytes_per_s", SOURCE);
        vec![
            rate(
                format!("memcpy of {libc}, {size}"),
                self.libc_bytes_per_s.median,
            ),
            rate(
                format!("{}, {size}", self.best_method),
                self.best_bytes_per_s.median,
            ),
        ]
    }
}

impl LibcCopySlow {
    fn claim(&self) -> String {
        let worst = &self.worst;
        let mut claim = format!(
            "memcpy of {} copies {} at {}, {} the same memory at {}: {} times as fast.",
            self.libc,
            Bytes(worst.size_bytes),
            show_rate(worst.libc_bytes_per_s.median),
            worst.best_method,
            show_rate(worst.best_bytes_per_s.median),
            times(worst.factor()),
        );
        if worst.overwrites_what_it_read {
            claim.push_str(" Likely cause: memcpy first reads the memory that it overwrites");
            if let Some(from) = worst.non_temporal_threshold_bytes {
                claim.push_str(&format!(" and avoids that only from {} on", Bytes(from)));
                if let Some(l3) = worst.libc_l3_bytes {
                    claim.push_str(&format!(", as it believes in {} of cache", Bytes(l3)));
                }
            }
            claim.push('.');
        }
        claim
    }
}

impl Told for LibcCopySlow {
    fn report(&self) -> model::Finding {
        let mut evidence = self.worst.evidence(&self.libc);
        for gain in &self.others {
            evidence.extend(gain.evidence(&self.libc));
        }
        let believed = [
            (
                "cache that the C library believes in",
                self.worst.libc_l3_bytes,
            ),
            (
                "size from which it writes past the caches",
                self.worst.non_temporal_threshold_bytes,
            ),
        ];
        for (name, value) in believed {
            if let Some(value) = value {
                evidence.push(Evidence::new(name, value as f64, "bytes", "ld.so tunables"));
            }
        }
        model::Finding {
            id: ID.to_owned(),
            claim: self.claim(),
            tier: Some("RAM".to_owned()),
            evidence,
            // That one is faster was timed, in turns, on the same memory.
            grade: Grade::Measured,
            remedy: Some(format!(
                "In a program that copies blocks of this size, use {} instead of memcpy. \
                 Risk: small blocks can become slower, so measure the sizes that it copies; \
                 lowering the C library's threshold by GLIBC_TUNABLES brought nothing where it was tried.",
                self.worst.best_method
            )),
            confirm: Some("terrace measure memcpy".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Level, self.worst.factor())
    }
}
