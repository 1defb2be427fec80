//! A cache that is not as large as something on this machine claims.
//!
//! The measured edge is where latency climbs. sysfs, CPUID and the C library each
//! claim a size, and programs size their blocks by them. Below a hypervisor all
//! three may be wrong, each in its own way; the claim names the wrong ones.

use super::{Outcome, check_each};
use crate::finding::{Class, RankedFinding};
use crate::numbers::{bytes, sound};
use crate::observed::{CacheSeen, Observed};
use crate::wording::list;
use model::knee::Edge;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings. [`Edge::agrees_with`] decides whether a claim agrees
/// with an edge: two thirds of a cache may be all that shows.
pub const ID: &str = "cache_size_differs";

/// From this level on a cache is shared, so that neighbours can take a part of it.
pub const FIRST_SHARED_LEVEL: u8 = 3;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memlat";

/// The last of the three in the order of the claims.
const C_LIBRARY: &str = "the C library";

/// One source's claim.
struct Claim {
    /// `sysfs`, `CPUID` or `the C library`.
    source: &'static str,
    bytes: u64,
    /// Whether the measured edge agrees.
    right: bool,
}

/// Compares each cache's claims with its measured edge.
pub fn check(observed: &Observed) -> Outcome {
    let if_empty = "the caches' edges were not measured";
    check_each(&observed.caches, check_cache, if_empty)
}

fn check_cache(cache: &CacheSeen) -> Outcome {
    let level = cache.level;
    let edge = cache.measured.filter(is_sound);
    let edge = edge.ok_or_else(|| format!("no edge of the L{level} cache was found"))?;
    let claims = claims(cache, &edge);
    if claims.is_empty() {
        return Err(format!("nothing claims a size of the L{level} cache"));
    }
    let (right, wrong): (Vec<&Claim>, Vec<&Claim>) = claims.iter().partition(|c| c.right);
    if wrong.is_empty() {
        return Ok(Vec::new());
    }
    let fits = edge.fits_bytes as f64;
    let by_neighbours = neighbours_explain(level, &edge, &wrong);
    let sources: Vec<String> = wrong.iter().map(|claim| claim.source.to_owned()).collect();
    let finding = model::Finding {
        id: ID.to_owned(),
        claim: sentence(level, &edge, &right, &wrong, by_neighbours),
        tier: Some(format!("L{level} cache")),
        evidence: evidence(level, &edge, &claims),
        grade: if by_neighbours {
            Grade::Inferred
        } else {
            Grade::Measured
        },
        remedy: Some(format!(
            "Size blocks that shall stay in this cache by {}, not by the claim of {}. \
             Risk: it is what is left today; neighbours may leave more or less tomorrow.",
            Bytes(edge.fits_bytes),
            list(&sources),
        )),
        confirm: Some("terrace measure memlat".to_owned()),
    };
    let off = |claim: &&Claim| (claim.bytes as f64 / fits).max(fits / claim.bytes as f64);
    let factor = wrong.iter().map(off).fold(1.0, f64::max);
    Ok(vec![RankedFinding::new(Class::Doubt, factor, finding)])
}

fn is_sound(edge: &Edge) -> bool {
    let ordered = edge.fits_bytes <= edge.spills_bytes;
    let sizes = bytes(Some(edge.fits_bytes)).is_some() && bytes(Some(edge.spills_bytes)).is_some();
    ordered && sizes && sound(edge.below_ns).is_some() && sound(edge.above_ns).is_some()
}

fn claims(cache: &CacheSeen, edge: &Edge) -> Vec<Claim> {
    let claimed = [
        ("sysfs", cache.sysfs_bytes),
        ("CPUID", cache.cpuid_bytes),
        (C_LIBRARY, cache.libc_bytes),
    ];
    let claims = claimed.into_iter().filter_map(|(source, claimed)| {
        let bytes = bytes(claimed)?;
        let right = edge.agrees_with(bytes);
        Some(Claim {
            source,
            bytes,
            right,
        })
    });
    claims.collect()
}

/// Whether neighbours in a shared cache would explain all of it: the hardware's own
/// claim is wrong too, all wrong claims are the same, and they are too large.
fn neighbours_explain(level: u8, edge: &Edge, wrong: &[&Claim]) -> bool {
    let first = wrong[0];
    level >= FIRST_SHARED_LEVEL
        && first.source != C_LIBRARY
        && first.bytes > edge.spills_bytes
        && wrong.iter().all(|claim| claim.bytes == first.bytes)
}

fn sentence(
    level: u8,
    edge: &Edge,
    right: &[&Claim],
    wrong: &[&Claim],
    by_neighbours: bool,
) -> String {
    let mut text = format!(
        "By its latency the L{level} cache holds {} but not {}: {} wrong",
        Bytes(edge.fits_bytes),
        Bytes(edge.spills_bytes),
        with_verb(wrong),
    );
    if !right.is_empty() {
        text.push_str(&format!(", {} near enough", with_verb(right)));
    }
    text.push('.');
    if by_neighbours {
        text.push_str(" Others that share this cache may hold the rest of it.");
    }
    text
}

/// Claims with their verb: `sysfs (32 MiB) and CPUID (32 MiB) are`.
fn with_verb(claims: &[&Claim]) -> String {
    let name = |claim: &&Claim| format!("{} ({})", claim.source, Bytes(claim.bytes));
    let names: Vec<String> = claims.iter().map(name).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", list(&names))
}

fn evidence(level: u8, edge: &Edge, claims: &[Claim]) -> Vec<Evidence> {
    let size = |name: &str, bytes: u64| Evidence::new(name, bytes as f64, "bytes", SOURCE);
    let mut evidence = vec![
        size("largest buffer that fits", edge.fits_bytes),
        size("next larger buffer", edge.spills_bytes),
        Evidence::new("latency inside", edge.below_ns, "ns", SOURCE),
        Evidence::new("latency beyond", edge.above_ns, "ns", SOURCE),
    ];
    evidence.extend(claims.iter().map(|claim| {
        let name = format!("L{level} claimed by {}", claim.source);
        Evidence::new(name, claim.bytes as f64, "bytes", claim.source)
    }));
    evidence
}
