//! A cache that is not as large as something on this machine claims.
//!
//! The measured edge is where latency climbs. sysfs, CPUID and the C library each
//! claim a size, and programs size their blocks by them. Below a hypervisor all
//! three may be wrong, and each in its own way; the claim names who is.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{bytes, sound};
use crate::observed::{CacheSeen, Observed};
use crate::wording::list;
use model::knee::Edge;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings. When a claim agrees with an edge is the
/// matter of [`Edge::agrees_with`]: two thirds of a cache may be all that shows.
pub const ID: &str = "cache_size_differs";

/// From this level on a cache is shared, so that neighbours can take a part of it.
pub const FIRST_SHARED_LEVEL: u8 = 3;

/// The last of the three in the order of the claims.
const C_LIBRARY: &str = "the C library";

/// One party's claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Who: `sysfs`, `CPUID`, `the C library`.
    pub who: &'static str,
    /// How large, in bytes.
    pub bytes: u64,
    /// Whether the measured edge agrees.
    pub right: bool,
}

/// One cache whose claims do not fit what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSizeDiffers {
    /// The cache's level.
    pub level: u8,
    /// Where latency climbs.
    pub edge: Edge,
    /// All claims, right and wrong.
    pub claims: Vec<Claim>,
}

/// Compares each cache's claims with its measured edge.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(
        observed.caches.iter().map(one),
        "the caches' edges were not measured",
    )
}

fn one(cache: &CacheSeen) -> Outcome {
    let level = cache.level;
    let Some(edge) = cache.measured.filter(is_sound) else {
        return Outcome::unchecked(format!("no edge of the L{level} cache was found"));
    };
    let claims: Vec<Claim> = [
        ("sysfs", cache.sysfs_bytes),
        ("CPUID", cache.cpuid_bytes),
        (C_LIBRARY, cache.libc_bytes),
    ]
    .into_iter()
    .filter_map(|(who, claimed)| {
        let bytes = bytes(claimed)?;
        let right = edge.agrees_with(bytes);
        Some(Claim { who, bytes, right })
    })
    .collect();
    if claims.is_empty() {
        return Outcome::unchecked(format!("nothing claims a size of the L{level} cache"));
    }
    if claims.iter().all(|claim| claim.right) {
        return Outcome::Fine;
    }
    Outcome::found(Finding::CacheSizeDiffers(CacheSizeDiffers {
        level,
        edge,
        claims,
    }))
}

fn is_sound(edge: &Edge) -> bool {
    let ordered = edge.fits_bytes <= edge.spills_bytes;
    let sizes = bytes(Some(edge.fits_bytes)).is_some() && bytes(Some(edge.spills_bytes)).is_some();
    ordered && sizes && sound(edge.below_ns).is_some() && sound(edge.above_ns).is_some()
}

impl CacheSizeDiffers {
    fn wrong(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| !claim.right)
    }

    /// Whether neighbours in a shared cache would explain all of it: the hardware's
    /// own claim is wrong too, everyone wrong claims the same, and it is too much.
    fn neighbours_explain(&self) -> bool {
        let mut wrong = self.wrong();
        let Some(first) = wrong.next() else {
            return false;
        };
        self.level >= FIRST_SHARED_LEVEL
            && first.who != C_LIBRARY
            && first.bytes > self.edge.spills_bytes
            && wrong.all(|claim| claim.bytes == first.bytes)
    }

    fn claim(&self) -> String {
        let mut claim = format!(
            "By its latency the L{} cache holds {} but not {}: {} wrong",
            self.level,
            Bytes(self.edge.fits_bytes),
            Bytes(self.edge.spills_bytes),
            named(self.wrong()),
        );
        if self.claims.iter().any(|claim| claim.right) {
            let right = self.claims.iter().filter(|claim| claim.right);
            claim.push_str(&format!(", {} near enough", named(right)));
        }
        claim.push('.');
        if self.neighbours_explain() {
            claim.push_str(" Others that share this cache may hold the rest of it.");
        }
        claim
    }
}

/// Claims with their verb: `sysfs (32 MiB) and CPUID (32 MiB) are`.
fn named<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let names: Vec<String> = claims
        .map(|claim| format!("{} ({})", claim.who, Bytes(claim.bytes)))
        .collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", list(&names))
}

impl Told for CacheSizeDiffers {
    fn report(&self) -> model::Finding {
        let source = "measure memlat";
        let mut evidence = vec![
            Evidence::new(
                "largest buffer that fits",
                self.edge.fits_bytes as f64,
                "bytes",
                source,
            ),
            Evidence::new(
                "next larger buffer",
                self.edge.spills_bytes as f64,
                "bytes",
                source,
            ),
            Evidence::new("latency inside", self.edge.below_ns, "ns", source),
            Evidence::new("latency beyond", self.edge.above_ns, "ns", source),
        ];
        for claim in &self.claims {
            let name = format!("L{} claimed by {}", self.level, claim.who);
            evidence.push(Evidence::new(name, claim.bytes as f64, "bytes", claim.who));
        }
        model::Finding {
            id: ID.to_owned(),
            claim: self.claim(),
            tier: Some(format!("L{} cache", self.level)),
            evidence,
            grade: if self.neighbours_explain() {
                Grade::Inferred
            } else {
                Grade::Measured
            },
            remedy: Some(format!(
                "Size blocks that shall stay in this cache by {}, not by the claim of {}. \
                 Risk: it is what is left today; neighbours may leave more or less tomorrow.",
                Bytes(self.edge.fits_bytes),
                list(
                    &self
                        .wrong()
                        .map(|claim| claim.who.to_owned())
                        .collect::<Vec<_>>()
                ),
            )),
            confirm: Some("terrace measure memlat".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        let fits = self.edge.fits_bytes as f64;
        let off = |claim: &Claim| (claim.bytes as f64 / fits).max(fits / claim.bytes as f64);
        Severity::new(Class::Doubt, self.wrong().map(off).fold(1.0, f64::max))
    }
}
