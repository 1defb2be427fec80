//! A claim about a cache's size that cannot be true.
//!
//! The measured edge is where latency climbs: what is left of the cache now. Any level can be
//! shared (hyperthreads share L1 and L2, guests share all), so a claim that is larger than the edge
//! may be true. A claim is wrong only if more was measured, or if it is the C library's and larger
//! than what the hardware itself claims. If repeated searches found different edges, only the
//! latter counts; sysfs and CPUID are called wrong only by an edge that two searches found.

use super::{SurveyVerdict, check_each};
use crate::finding::{Class, found};
use crate::numbers::{bytes, sound};
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::list;
use model::knee::Edge;
use model::probe::CacheLevel;
use model::{Bytes, Evidence, Finding, Grade};

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memlat";

/// The last of the three in the order of the claims.
const C_LIBRARY: &str = "the C library";

/// The C library adds up shares of threads: its claim cannot be true beyond this many times what
/// the hardware claims.
const MOST_BEYOND_HARDWARE: f64 = 1.34;

/// What the measured edge says of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimCheck {
    /// The edge agrees ([`Edge::agrees_with`]).
    Agrees,
    /// Less is left now; other users of the cache may hold the rest.
    MayBeTrue,
    Wrong,
}

/// One source's claim.
struct Claim {
    /// `sysfs`, `CPUID` or `the C library`.
    source: &'static str,
    bytes: u64,
    check: ClaimCheck,
}

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let if_empty = "the caches' edges were not measured";
    let check = |cache: &CacheLevel| {
        let mut levels = observed.caches.iter();
        let next = levels.find(|next| Some(next.level) == cache.level.checked_add(1));
        check_cache(cache, next.and_then(largest_hardware_claim))
    };
    check_each(&observed.caches, check, if_empty)
}

/// Checks a cache; `next_bytes` is the claimed size of the next level.
fn check_cache(cache: &CacheLevel, next_bytes: Option<u64>) -> SurveyVerdict {
    let level = cache.level;
    let edge = cache
        .measured
        .filter(is_sound)
        .ok_or_else(|| format!("no edge of the L{level} cache was found"))?;
    if is_of_next_level(&edge, cache, next_bytes) {
        let why = format!("the edge at {} may be of the next level", Bytes(edge.fits_bytes));
        return Err(format!("no edge of the L{level} cache was found: {why}").into());
    }
    let claims = claims(cache, &edge);
    if claims.is_empty() {
        return Err(format!("nothing claims a size of the L{level} cache").into());
    }
    let of = |check| -> Vec<&Claim> {
        let claims = claims.iter();
        claims.filter(|claim| claim.check == check).collect()
    };
    let wrong = of(ClaimCheck::Wrong);
    if wrong.is_empty() {
        return Err(NoFinding::Nothing);
    }
    let fits = edge.fits_bytes as f64;
    let sources: Vec<String> = wrong.iter().map(|claim| claim.source.to_owned()).collect();
    // One search alone may have met a neighbour of this minute.
    let grade = if cache.is_found_again() { Grade::Measured } else { Grade::Inferred };
    let finding = Finding::new(grade, sentence(cache, &edge, &of), evidence(cache, &edge, &claims))
        .tier(format!("L{level} cache"))
        .remedy(format!(
            "Size blocks that shall stay in this cache by {}, not by the claim of {}. \
                 Risk: it is what is left now; neighbours may leave more or less later.",
            Bytes(edge.fits_bytes),
            list(&sources),
        ))
        .confirm("terrace measure memlat");
    let off = |claim: &&Claim| (claim.bytes as f64 / fits).max(fits / claim.bytes as f64);
    let factor = wrong.iter().map(off).fold(1.0, f64::max);
    found(Class::Doubt, factor, finding)
}

/// Whether the edge is nearer to the next level's claim than to this one's: the edges are taken
/// in order, so one that noise hid leaves its place to the next.
fn is_of_next_level(edge: &Edge, cache: &CacheLevel, next_bytes: Option<u64>) -> bool {
    let own_and_next = largest_hardware_claim(cache).zip(next_bytes);
    own_and_next.is_some_and(|(own, next)| {
        next > own && edge.fits_bytes as f64 > (own as f64 * next as f64).sqrt()
    })
}

fn largest_hardware_claim(cache: &CacheLevel) -> Option<u64> {
    bytes(cache.sysfs_bytes).max(bytes(cache.cpuid_bytes))
}

fn is_sound(edge: &Edge) -> bool {
    let ordered = edge.fits_bytes <= edge.spills_bytes;
    let sizes = bytes(Some(edge.fits_bytes)).is_some() && bytes(Some(edge.spills_bytes)).is_some();
    ordered && sizes && sound(edge.below_ns).is_some() && sound(edge.above_ns).is_some()
}

fn claims(cache: &CacheLevel, edge: &Edge) -> Vec<Claim> {
    let claimed =
        [("sysfs", cache.sysfs_bytes), ("CPUID", cache.cpuid_bytes), (C_LIBRARY, cache.libc_bytes)];
    let hardware = largest_hardware_claim(cache);
    let claims = claimed.into_iter().filter_map(|(source, claimed)| {
        let bytes = bytes(claimed)?;
        let is_beyond_hardware = hardware.is_some_and(|hardware| {
            source == C_LIBRARY && bytes as f64 > hardware as f64 * MOST_BEYOND_HARDWARE
        });
        // An edge that moves from search to search says nothing against a claim, and what a single
        // search saw says nothing against the hardware's own.
        let is_certain = cache.is_steady() && (source == C_LIBRARY || cache.is_found_again());
        let check = if edge.agrees_with(bytes) {
            ClaimCheck::Agrees
        } else if is_beyond_hardware || is_certain && edge.exceeds(bytes) {
            ClaimCheck::Wrong
        } else {
            ClaimCheck::MayBeTrue
        };
        Some(Claim { source, bytes, check })
    });
    claims.collect()
}

fn sentence<'c>(
    cache: &CacheLevel,
    edge: &Edge,
    of: &dyn Fn(ClaimCheck) -> Vec<&'c Claim>,
) -> String {
    let level = cache.level;
    let held = match cache.moved_between() {
        Some((low, high)) => format!(
            "By its latency between {} and {} of the L{level} cache are left now",
            Bytes(low),
            Bytes(high)
        ),
        None => format!(
            "By its latency the L{level} cache holds {} but not {} now",
            Bytes(edge.fits_bytes),
            Bytes(edge.spills_bytes)
        ),
    };
    let mut text = format!("{held}: {} wrong", with_verb(&of(ClaimCheck::Wrong)));
    let (right, larger) = (of(ClaimCheck::Agrees), of(ClaimCheck::MayBeTrue));
    if !right.is_empty() {
        text.push_str(&format!(", {} near enough", with_verb(&right)));
    }
    text.push('.');
    if !larger.is_empty() {
        let names: Vec<String> = larger.iter().map(|claim| claim.source.to_owned()).collect();
        text.push_str(&format!(
            " The claim of {} ({}) may be true: other users of the cache may hold the rest.",
            list(&names),
            Bytes(larger[0].bytes)
        ));
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

fn evidence(cache: &CacheLevel, edge: &Edge, claims: &[Claim]) -> Vec<Evidence> {
    let level = cache.level;
    let size = |name: &str, bytes: u64| Evidence::bytes(name, bytes, SOURCE);
    let mut evidence = vec![
        size("largest buffer that fits", edge.fits_bytes),
        size("next larger buffer", edge.spills_bytes),
        Evidence::new("latency inside", edge.below_ns, "ns", SOURCE),
        Evidence::new("latency beyond", edge.above_ns, "ns", SOURCE),
    ];
    evidence.extend(claims.iter().map(|claim| {
        let name = format!("L{level} claimed by {}", claim.source);
        Evidence::bytes(name, claim.bytes, claim.source)
    }));
    evidence.extend(
        cache.moved_between().map(|(_, high)| size("largest buffer that fit in any search", high)),
    );
    evidence.extend(cache.shared_by.map(|count| {
        let name = format!("CPUs that share L{level}");
        Evidence::new(name, f64::from(count), "count", "shared_cpu_list")
    }));
    evidence
}
