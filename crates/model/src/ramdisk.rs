//! What writing to a RAM disk showed, and why it was slow: passes over a file in memory, each
//! with the time of every touch and the growth of the kernel's counters.
//!
//! A touch is a write of one page. `first` and `again` get new memory, `rewrite` does not: the
//! difference between them is the price of getting memory.

use crate::finding::{Evidence, Finding, Grade};
use crate::histogram::{Bar, Histogram};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which pass over the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// New memory, as the kernel gave it.
    First,
    /// New memory, right after that of the first pass was freed.
    Again,
    /// The pages of `again` written over: no memory is taken.
    Rewrite,
    /// New memory on a RAM disk of its own that takes huge pages.
    Huge,
}

/// Why a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassEnd {
    /// All was written.
    Whole,
    /// Its time was over.
    Time,
    /// So little memory was left that another process might have been killed.
    Floor,
    /// The file system was full.
    Full,
}

/// A touch is slow from this multiple of the usual time: the host's part of a fault costs 5 to 60
/// times the guest's.
pub const SLOW: f64 = 3.0;

/// One pass over the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// Which.
    pub round: Round,
    /// Bytes written.
    pub bytes: u64,
    /// Touches: pages written.
    pub touches: u64,
    /// The time of all touches, summed; what is done between them is not in it.
    pub touch_ns: u64,
    /// Of it, ready to run while others had the processor; `None` where it cannot be read.
    pub waited_ns: Option<u64>,
    /// Of it, the processor taken away by the host; `None` where it cannot be read.
    pub stolen_ns: Option<u64>,
    /// The median touch.
    pub p50_ns: Option<f64>,
    /// The 99th percentile; absent below 100 touches.
    pub p99_ns: Option<f64>,
    /// The longest.
    pub max_ns: Option<f64>,
    /// The touches by their time, two bars for each doubling.
    pub bars: Vec<Bar>,
    /// Bytes of the file that were not in memory any more at its end; `None` where the kernel
    /// does not count them (before Linux 6.5).
    pub left_memory_bytes: Option<u64>,
    /// Why it ended; `None` for a pass whose process was killed in it.
    pub end: Option<PassEnd>,
    /// What grew from before it until after it, by the names of recordings (docs/counters.md);
    /// absent: this kernel does not count it.
    pub grew: BTreeMap<String, u64>,
}

impl Pass {
    /// A pass of which nothing is done.
    #[must_use]
    pub fn begun(round: Round) -> Self {
        Self {
            round,
            bytes: 0,
            touches: 0,
            touch_ns: 0,
            waited_ns: None,
            stolen_ns: None,
            p50_ns: None,
            p99_ns: None,
            max_ns: None,
            bars: Vec::new(),
            left_memory_bytes: None,
            end: None,
            grew: BTreeMap::new(),
        }
    }

    /// Takes over the percentiles and bars of the touches so far.
    pub fn describe(&mut self, touches: &Histogram) {
        self.touches = touches.len();
        self.p50_ns = touches.quantile_ns(0.5);
        self.p99_ns = touches.quantile_ns(0.99);
        self.max_ns = touches.max_ns();
        self.bars = touches.bars(2);
    }

    /// The part of the touches' time in which other work or the host had the processor.
    #[must_use]
    pub fn elsewhere_ns(&self) -> u64 {
        let known = [self.waited_ns, self.stolen_ns].into_iter().flatten();
        known.fold(0, u64::saturating_add).min(self.touch_ns)
    }

    /// The mean touch without what others took of the processor; `None` without touches.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let own_ns = self.touch_ns - self.elsewhere_ns();
        (self.touches > 0).then(|| own_ns as f64 / self.touches as f64)
    }

    /// The share of touches that took at least `bound_ns`, 0 to 1.
    #[must_use]
    pub fn share_from(&self, bound_ns: f64) -> f64 {
        let slow_bars = self.bars.iter().filter(|bar| bar.from_ns >= bound_ns);
        let slow: u64 = slow_bars.map(|bar| bar.count).sum();
        slow as f64 / self.touches.max(1) as f64
    }
}

/// A memory limit of a control group that binds what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLimit {
    /// Whose: 0 is the own group, 1 its parent; as in the names of the counters.
    pub level: u32,
    /// The group's path.
    pub path: String,
    /// The limit.
    pub limit_bytes: u64,
    /// What the group used before.
    pub used_bytes: Option<u64>,
}

/// Everything that was seen: what a verdict is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RamDiskObservation {
    /// Where it was written: `shared memory`, or the directory of the RAM disk.
    pub place: String,
    /// Bytes that each pass was to write.
    pub asked_bytes: u64,
    /// A touch, bytes.
    pub page_bytes: u64,
    /// The passes, in order; only the last may be unfinished.
    pub passes: Vec<Pass>,
    /// Shorter passes that alternate `again` and, where granted, `huge`: a remedy is judged by
    /// their noise. Empty if memory was short.
    #[serde(default)]
    pub repeats: Vec<Pass>,
    /// The limits of the own group and its parents.
    pub limits: Vec<GroupLimit>,
    /// Whether the process that wrote was killed, and not by Ctrl-C.
    pub killed: bool,
    /// Whether this machine is a virtual one; `None` where it is not known.
    pub is_guest: Option<bool>,
    /// Swap areas by name with what was more in use at the end of the first pass.
    pub swap_areas: Vec<(String, u64)>,
    /// What was left out, each with its reason.
    pub notes: Vec<String>,
}

impl RamDiskObservation {
    /// A pass, if it was made.
    #[must_use]
    pub fn pass(&self, round: Round) -> Option<&Pass> {
        self.passes.iter().find(|pass| pass.round == round)
    }
}

/// Why writing is as slow as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The memory was there: this is what it costs.
    AlreadyBacked,
    /// Other work of this machine had the processor.
    CpuContention,
    /// The host had the processor.
    CpuStolen,
    /// The limit of a control group.
    GroupLimit,
    /// This machine swapped.
    GuestSwap,
    /// Memory had to be freed first.
    DirectReclaim,
    /// Free memory had to be moved together first.
    Compaction,
    /// The memory belongs to another NUMA node.
    Numa,
    /// The host found memory only when it was touched.
    BackedLazily,
    /// The host swaps, or has less memory than it promised.
    HostOvercommitted,
    /// It is slow, and nothing that can be seen says why.
    Unproven,
}

impl Reason {
    /// Its name in JSON, and the id of its finding.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Reason::AlreadyBacked => "already_backed",
            Reason::CpuContention => "cpu_contention",
            Reason::CpuStolen => "cpu_stolen",
            Reason::GroupLimit => "group_limit",
            Reason::GuestSwap => "guest_swap",
            Reason::DirectReclaim => "direct_reclaim",
            Reason::Compaction => "compaction",
            Reason::Numa => "numa",
            Reason::BackedLazily => "backed_lazily",
            Reason::HostOvercommitted => "host_overcommitted",
            Reason::Unproven => "unproven",
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Reason::AlreadyBacked => "memory that was there",
            Reason::CpuContention => "other work on the processor",
            Reason::CpuStolen => "the host on the processor",
            Reason::GroupLimit => "a group's memory limit",
            Reason::GuestSwap => "swap",
            Reason::DirectReclaim => "memory freed first",
            Reason::Compaction => "memory moved together first",
            Reason::Numa => "another node's memory",
            Reason::BackedLazily => "a host that backs memory late",
            Reason::HostOvercommitted => "a host short of memory",
            Reason::Unproven => "unproven",
        }
    }
}

/// What a remedy did, by its figures with and without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Faster by more than the noise.
    Helps,
    /// Slower by more than the noise.
    Harms,
    /// The noise explains the difference, or there were too few runs to know the noise.
    #[default]
    Unproven,
}

/// The lowest and the highest figure of several runs, or what the noise makes of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRange {
    /// The lowest, ns a page.
    pub low_ns: f64,
    /// The highest, ns a page.
    pub high_ns: f64,
    /// From how many runs.
    pub runs: u32,
}

/// A remedy that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedRemedy {
    /// What was done: `memory touched before`.
    pub what: String,
    /// A page before: the median of the runs' means.
    pub before_ns: f64,
    /// A page after: the median of the runs' means.
    pub after_ns: f64,
    /// The range before; `None` if there were too few runs to know the noise.
    #[serde(default)]
    pub before_range: Option<RunRange>,
    /// The range after; `None` if there were too few runs to know the noise.
    #[serde(default)]
    pub after_range: Option<RunRange>,
    /// Whether it helps.
    #[serde(default)]
    pub effect: Effect,
}

/// A cause that was checked and excluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExcludedCause {
    /// The cause.
    pub reason: Reason,
    /// The number that excludes it.
    pub evidence: Evidence,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RamDiskVerdict {
    /// Why.
    pub verdict: Reason,
    /// How sure that is.
    pub grade: Grade,
    /// The usual touch of new memory, without what made some slow; `None` without touches.
    pub usual_ns: Option<f64>,
    /// The claim with its evidence and its remedy; then other true ones, less significant.
    pub findings: Vec<Finding>,
    /// The causes that were excluded.
    pub excluded: Vec<ExcludedCause>,
    /// What cannot be seen or excluded, each in a sentence.
    pub unseen: Vec<String>,
    /// Remedies with their figures, all measured.
    pub tried: Vec<TriedRemedy>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_took_of_the_processor_is_no_time_of_the_touches() {
        let pass = |waited_ns, stolen_ns| Pass {
            touches: 10,
            touch_ns: 1000,
            waited_ns,
            stolen_ns,
            ..Pass::begun(Round::First)
        };
        assert_eq!(pass(None, None).mean_ns(), Some(100.0));
        assert_eq!(pass(Some(300), Some(200)).mean_ns(), Some(50.0));
        // A tick of steal may be longer than all touches together.
        assert_eq!(pass(Some(1), Some(10_000_000)).mean_ns(), Some(0.0));
        assert_eq!(Pass::begun(Round::First).mean_ns(), None);
    }

    #[test]
    fn ids_are_the_words_of_the_json() {
        for reason in [Reason::AlreadyBacked, Reason::CpuStolen, Reason::HostOvercommitted] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.id()));
        }
    }
}
