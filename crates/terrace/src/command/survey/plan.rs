//! How a survey spends its time: at most a minute, or a quarter of one.
//!
//! The order matters: memory that nobody used comes first, because only then it
//! is still cold; the levels of memory are measured before and after the disks.

use machine::Root;
use machine::cpu::CacheClaims;
use measure::faults::FaultPlan;
use measure::memory::PageKind;
use measure::memory::latency::{self, LatencyPlan};
use measure::memory::levels::LevelPlan;
use measure::trial::Schedule;
use model::ChaseOrder;
use model::probe::CacheLevel;
use std::time::Duration;

/// Main memory is measured over a buffer of this size, where it fits.
const RAM_BYTES: u64 = 256 << 20;

/// Memory measured in must be this many times the largest cache.
pub const TIMES_CACHE: u64 = 4;

/// Most of that in a quick survey: new memory can take seconds a GiB, and each part takes its own.
/// Seen: of a guest that claims an L3 cache of 480 MiB no device was measured, for want of time.
/// Where this is less than [`TIMES_CACHE`] times the cache, the figures say so.
const QUICK_RAM_BYTES: u64 = 512 << 20;

/// The plan of one survey.
#[derive(Clone, Debug)]
pub struct SurveyPlan {
    /// The end of everything.
    pub total: Duration,
    /// First touch.
    pub faults: FaultPlan,
    /// The curve that shows the edges of the caches.
    pub ladder: LatencyPlan,
    /// The second search for those edges, after the disks.
    pub edges_again: Duration,
    /// 4 KiB pages beside huge ones.
    pub translation: LatencyPlan,
    /// One pass over all levels of memory.
    pub levels_pass: Duration,
    /// How its trials are cut.
    pub schedule: Schedule,
    /// One device.
    pub device: Duration,
    /// Bytes written to one device, at most; all of it is removed again.
    pub written_bytes: u64,
    /// One RAM disk.
    pub ram_disk: Duration,
    /// The processor alone.
    pub compute: Duration,
}

impl SurveyPlan {
    /// The plan for a survey of a minute at most, or of 15 s.
    pub fn new(quick: bool, ram_bytes: u64) -> Self {
        let ram_bytes = if quick { ram_bytes.min(QUICK_RAM_BYTES) } else { ram_bytes };
        let pick = |full_ms: u64, quick_ms: u64| {
            Duration::from_millis(if quick { quick_ms } else { full_ms })
        };
        let rounds = if quick { 3 } else { 5 };
        let curve =
            |sizes: Vec<u64>, pages: Vec<PageKind>, rounds: u32, budget: Duration| LatencyPlan {
                sizes,
                pages,
                orders: vec![ChaseOrder::Random],
                schedule: Schedule { trial_ns: 1_500_000, rounds, ..Schedule::default() },
                budget,
                cpu: None,
            };
        let mut sizes = latency::ladder(4 << 10, 64 << 20, if quick { 3 } else { 4 });
        sizes.retain(|&size| size < ram_bytes);
        sizes.push(ram_bytes);
        let both = vec![PageKind::Transparent, PageKind::Base];
        Self {
            total: pick(57_000, 14_000),
            faults: FaultPlan {
                limit: if quick { 64 << 20 } else { 192 << 20 },
                wait: pick(2_500, 0),
                ways: vec![
                    measure::faults::TouchMethod::Base,
                    measure::faults::TouchMethod::Transparent,
                ],
                budget: pick(9_000, 2_000),
                cpu: None,
            },
            ladder: curve(sizes, vec![PageKind::Transparent], rounds, pick(8_000, 3_000)),
            edges_again: pick(3_000, 1_000),
            // Enough trials for error bars: one size is cheap.
            translation: curve(vec![ram_bytes], both, 21, pick(5_000, 2_000)),
            levels_pass: pick(5_000, 1_300),
            schedule: Schedule { trial_ns: 1_000_000, rounds: 40, ..Schedule::default() },
            device: pick(9_000, 2_500),
            written_bytes: if quick { 512 << 20 } else { 1 << 30 },
            ram_disk: pick(2_000, 700),
            compute: pick(500, 200),
        }
    }
}

/// The size that stands for main memory: far beyond the largest cache anyone
/// claims, and no more than an eighth of what may be used here.
pub fn ram_bytes(root: &Root, claims: &[CacheClaims]) -> u64 {
    let cache = claims.iter().filter_map(largest_claim).max().unwrap_or(0);
    let wanted = RAM_BYTES.max(cache * TIMES_CACHE).next_power_of_two();
    let most = measure::memory::arena::most_bytes(root).map_or(u64::MAX, |(most, _)| most / 8);
    // A power of two, so that repeated surveys measure at the same size.
    let bounded = if wanted > most { (most + 1).next_power_of_two() / 2 } else { wanted };
    bounded.max(4 << 20)
}

/// The sizes at which each level is measured: from what is claimed, so that every
/// survey of a machine measures at the same sizes; halved where the measured edge
/// says that the level does not hold so much.
pub fn levels(claims: &[CacheClaims], measured: &[CacheLevel], ram_bytes: u64) -> Vec<LevelPlan> {
    let mut levels = Vec::new();
    let mut below = 0;
    for claim in claims {
        let Some(claimed) = smallest_claim(claim) else {
            continue;
        };
        let fits = measured
            .iter()
            .find(|cache| cache.level == claim.level)
            .and_then(|cache| cache.measured.as_ref())
            .map_or(claimed, |edge| edge.fits_bytes);
        let mut size = power_of_two_below(latency::middle(below, claimed));
        while size > fits.max(8 << 10) && size > 2 * below {
            size /= 2;
        }
        levels.push(LevelPlan { name: format!("L{}", claim.level), size_bytes: size });
        below = claimed;
    }
    levels.push(LevelPlan { name: "RAM".to_owned(), size_bytes: ram_bytes });
    levels
}

fn smallest_claim(claim: &CacheClaims) -> Option<u64> {
    let claims = [claim.sysfs, claim.cpuid, claim.libc];
    claims.iter().flatten().map(|bytes| bytes.0).filter(|&bytes| bytes > 0).min()
}

fn largest_claim(claim: &CacheClaims) -> Option<u64> {
    // libc's belief is left out: it has been seen at 12 times the truth.
    let claims = [claim.sysfs, claim.cpuid];
    claims.iter().flatten().map(|bytes| bytes.0).max()
}

fn power_of_two_below(size: u64) -> u64 {
    (size + 1).next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Bytes;

    fn claim(level: u8, kib: u64) -> CacheClaims {
        CacheClaims {
            level,
            sysfs: Some(Bytes(kib << 10)),
            cpuid: None,
            libc: None,
            line_bytes: Some(64),
            shared_by: None,
        }
    }

    #[test]
    fn levels_lie_inside_what_is_claimed() {
        let claims = [claim(1, 48), claim(2, 1024), claim(3, 32 << 10)];
        let sizes: Vec<u64> =
            levels(&claims, &[], 256 << 20).iter().map(|level| level.size_bytes >> 10).collect();
        assert_eq!(sizes, [16, 128, 4096, 256 << 10]);
    }

    #[test]
    fn a_machine_without_claims_still_has_memory() {
        let levels = levels(&[], &[], 64 << 20);
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].name, "RAM");
    }

    #[test]
    fn a_quick_survey_takes_little_memory_however_large_a_cache_is_claimed() {
        for (quick, expected) in [(true, QUICK_RAM_BYTES), (false, 2 << 30)] {
            assert_eq!(SurveyPlan::new(quick, 2 << 30).translation.sizes, [expected]);
        }
    }

    #[test]
    fn both_plans_end_in_their_time() {
        for (quick, most) in [(false, 60), (true, 15)] {
            let plan = SurveyPlan::new(quick, 256 << 20);
            assert!(plan.total < Duration::from_secs(most));
            let parts = plan.faults.budget
                + plan.ladder.budget
                + plan.edges_again
                + plan.translation.budget
                + plan.levels_pass * 2
                + plan.device
                + plan.ram_disk
                + plan.compute;
            assert!(parts <= plan.total, "{parts:?} of {:?}", plan.total);
        }
    }
}
