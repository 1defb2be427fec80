//! A series of sizes and times without a single counter: where its knee is, what a further byte
//! costs before and after, and which reasons that fits. Pure.
//!
//! Only what the figures themselves say is said. Nothing is proven by them.

use model::duration::show_ns;
use model::ramdisk::Reason;
use serde::{Deserialize, Serialize};

/// A knee is where a further byte costs at least so many times the cheapest before. Picked: from
/// size to size it differed by at most 2.1 on memory that was there.
const KNEE: f64 = 3.0;
/// A page, for the price of one.
const PAGE_BYTES: f64 = 4096.0;
/// The least rate at which a host was seen to find memory, bytes a second: 89 MiB/s for a tenth of
/// a second, on a crowded host.
const SLOWEST_LAZY: f64 = 93e6;
/// What a disk that seeks or a limited volume writes, bytes a second.
const SLOW_DISK: std::ops::RangeInclusive<f64> = 5e6..=250e6;
/// Memory of another node is at most so many times slower.
const FAR_MEMORY: f64 = 3.0;
/// A processor that others have for more than this share of minutes is noticed by everybody.
const MOST_CROWDED: f64 = 0.9;

/// So much was written in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedWrite {
    /// Bytes.
    pub bytes: u64,
    /// Time for all of them, ns.
    pub ns: u64,
}

/// What a further byte costs between two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// From this size; 0 for the first.
    pub from_bytes: u64,
    /// To this size.
    pub to_bytes: u64,
    /// The rate of what lies between.
    pub bytes_per_s: f64,
}

/// The size after which a further byte costs several times as much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// It lies beyond this size.
    pub beyond_bytes: u64,
    /// And before this one.
    pub before_bytes: u64,
    /// How many times as much.
    pub times: f64,
    /// The slowest rate after it.
    pub bytes_per_s: f64,
}

/// How far a reason fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The figures are what it would make.
    Fits,
    /// It would make them only at an extreme.
    NotExcluded,
    /// It cannot make them.
    Excluded,
}

/// A reason and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Which.
    pub reason: Reason,
    /// How it stands.
    pub standing: Standing,
    /// Why, in a sentence.
    pub why: String,
}

/// What the series says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// From size to size.
    pub marginals: Vec<Marginal>,
    /// The first knee.
    pub knee: Option<Knee>,
    /// Each reason; empty without a knee.
    pub candidates: Vec<Candidate>,
}

/// Looks for the knee of `steps`, smallest first, and weighs every reason for it.
#[must_use]
pub fn course(steps: &[TimedWrite]) -> Course {
    let mut before = TimedWrite { bytes: 0, ns: 0 };
    let mut marginals = Vec::new();
    for step in steps {
        if step.bytes <= before.bytes {
            // It was cut short: between the two there is no further byte.
            continue;
        }
        // A larger size that took no longer is noise, and no further byte was free.
        let ns = step.ns.saturating_sub(before.ns).max(1);
        marginals.push(Marginal {
            from_bytes: before.bytes,
            to_bytes: step.bytes,
            bytes_per_s: step.bytes.saturating_sub(before.bytes) as f64 / (ns as f64 / 1e9),
        });
        before = *step;
    }
    let knee = knee(&marginals);
    Course { candidates: knee.as_ref().map(candidates).unwrap_or_default(), marginals, knee }
}

fn knee(marginals: &[Marginal]) -> Option<Knee> {
    let at = (1..marginals.len()).find(|&at| slower(marginals, at) >= KNEE)?;
    let after = marginals[at..].iter().map(|one| one.bytes_per_s);
    Some(Knee {
        beyond_bytes: marginals[at].from_bytes,
        before_bytes: marginals[at].to_bytes,
        times: slower(marginals, at),
        bytes_per_s: after.fold(f64::INFINITY, f64::min),
    })
}

/// How many times slower a part is than the slowest before it.
fn slower(marginals: &[Marginal], at: usize) -> f64 {
    let before = marginals[..at].iter().map(|one| one.bytes_per_s);
    before.fold(f64::INFINITY, f64::min) / marginals[at].bytes_per_s
}

type Judged = (Standing, String);

fn candidates(knee: &Knee) -> Vec<Candidate> {
    let disk = |why: &str| like_a_disk(knee, why);
    let not_recorded = |why: &str| (Standing::NotExcluded, why.to_owned());
    let there = "a further byte would cost what the first did";
    let swap = "a memory that is full begins to swap at a size";
    let host = "a host begins to swap when its guests take more than it has";
    let freed = "memory that must be written out first comes no faster than its disk";
    let moved = "huge pages and free blocks were not recorded";
    [
        (Reason::AlreadyBacked, (Standing::Excluded, there.to_owned())),
        (Reason::GuestSwap, disk(swap)),
        (Reason::GroupLimit, disk("a limit is reached at a size")),
        (Reason::HostOvercommitted, disk(host)),
        (Reason::BackedLazily, like_a_late_host(knee)),
        (Reason::DirectReclaim, not_recorded(freed)),
        (Reason::Compaction, not_recorded(moved)),
        (Reason::CpuContention, like_a_crowd(knee)),
        (Reason::CpuStolen, like_a_crowd(knee)),
        (Reason::Numa, like_far_memory(knee)),
    ]
    .map(|(reason, (standing, why))| Candidate { reason, standing, why })
    .into()
}

/// The price of a page after the knee.
fn page(knee: &Knee) -> String {
    show_ns(PAGE_BYTES / knee.bytes_per_s * 1e9)
}

fn like_a_disk(knee: &Knee, why: &str) -> Judged {
    let page = page(knee);
    if SLOW_DISK.contains(&knee.bytes_per_s) {
        (Standing::Fits, format!("{page} a page is what a slow disk takes, and {why}"))
    } else {
        (Standing::NotExcluded, format!("{page} a page is no slow disk's time"))
    }
}

fn like_a_late_host(knee: &Knee) -> Judged {
    let page = page(knee);
    if knee.bytes_per_s >= SLOWEST_LAZY {
        (
            Standing::Fits,
            format!("{page} a page is what a host took that found memory when it was touched"),
        )
    } else {
        (
            Standing::NotExcluded,
            format!(
                "{page} a page is slower than any such host was seen; one that is itself short \
                 would be"
            ),
        )
    }
}

fn like_a_crowd(knee: &Knee) -> Judged {
    let share = 1.0 - 1.0 / knee.times;
    if share > MOST_CROWDED {
        (
            Standing::NotExcluded,
            format!(
                "others would have to have had the processor {:.0} % of the time, only beyond \
                 this size",
                share * 100.0
            ),
        )
    } else {
        (Standing::Fits, "others may have had the processor".to_owned())
    }
}

fn like_far_memory(knee: &Knee) -> Judged {
    if knee.times > FAR_MEMORY {
        (
            Standing::Excluded,
            format!("far memory is at most {FAR_MEMORY} times slower, not {:.0}", knee.times),
        )
    } else {
        (Standing::NotExcluded, "far memory may be so much slower".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn of(seconds: &[(u64, f64)]) -> Course {
        let steps: Vec<TimedWrite> = seconds
            .iter()
            .map(|(gb, s)| TimedWrite { bytes: gb * GB, ns: (s * 1e9) as u64 })
            .collect();
        course(&steps)
    }

    fn standing(course: &Course, reason: Reason) -> Standing {
        let found = course.candidates.iter().find(|one| one.reason == reason);
        found.unwrap().standing
    }

    /// The article's own figures: a threshold between 2 and 4 GB, then 64 and 35 MB/s.
    #[test]
    fn the_articles_figures_are_a_slow_disk_after_two_gigabytes() {
        let course = of(&[(1, 0.4), (2, 0.75), (4, 32.0), (8, 145.0)]);
        let knee = course.knee.unwrap();
        assert_eq!((knee.beyond_bytes, knee.before_bytes), (2 * GB, 4 * GB));
        let rates: Vec<f64> =
            course.marginals.iter().map(|one| (one.bytes_per_s / 1e6).round()).collect();
        assert_eq!(rates[2..], [64.0, 35.0]);
        for fits in [Reason::GuestSwap, Reason::GroupLimit, Reason::HostOvercommitted] {
            assert_eq!(standing(&course, fits), Standing::Fits, "{fits:?}");
        }
        assert_eq!(standing(&course, Reason::BackedLazily), Standing::NotExcluded);
        assert_eq!(standing(&course, Reason::CpuStolen), Standing::NotExcluded);
        for no in [Reason::Numa, Reason::AlreadyBacked] {
            assert_eq!(standing(&course, no), Standing::Excluded, "{no:?}");
        }
    }

    #[test]
    fn what_is_linear_has_no_knee_and_no_candidates() {
        let course = of(&[(1, 0.4), (2, 0.75), (4, 1.6), (8, 4.0)]);
        assert!(course.knee.is_none() && course.candidates.is_empty());
        assert_eq!(course.marginals.len(), 4);
        assert!(of(&[]).knee.is_none() && of(&[(1, 0.4)]).knee.is_none());
    }

    #[test]
    fn a_knee_to_a_rate_of_memory_is_a_host_and_no_disk() {
        let course = of(&[(1, 0.4), (2, 0.8), (4, 5.0)]);
        assert_eq!(standing(&course, Reason::BackedLazily), Standing::Fits);
        assert_eq!(standing(&course, Reason::GuestSwap), Standing::NotExcluded);
    }

    #[test]
    fn a_size_that_was_cut_short_is_no_knee() {
        let course = of(&[(1, 0.4), (4, 1.6), (3, 9.0), (0, 0.0)]);
        assert_eq!((course.marginals.len(), course.knee), (2, None));
    }

    #[test]
    fn a_larger_size_that_took_less_time_is_no_fault() {
        let course = of(&[(1, 0.5), (2, 0.4), (4, 0.9)]);
        assert!(course.marginals.iter().all(|one| one.bytes_per_s.is_finite()));
    }
}
