//! What a survey saw, in the shape that the rules read: numbers and words only.
//!
//! The binary fills it from probes and kernel files. Whatever could not be seen
//! is `None` or left out of its list; a rule then says so instead of guessing.
//! It reads and writes as JSON, so that a test can hold a recorded machine.

use model::Estimate;
use model::histogram::Modes;
use model::probe::{CacheLevel, DeviceReport, ProcessorLoad, RamDiskReport, SwapArea};
use serde::{Deserialize, Serialize};

/// All that the rules may look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    /// Copies in memory, one for each size that was tried.
    pub copies: Vec<CopySeen>,
    /// First touch of new memory.
    pub faults: Option<FaultsSeen>,
    /// The processor's caches, as measured and as claimed.
    pub caches: Vec<CacheLevel>,
    /// Huge pages: the setting, and what was given.
    pub pages: Option<PagesSeen>,
    /// Random access with small and with huge pages.
    pub translation: Option<TranslationSeen>,
    /// Disks, flash and volumes.
    pub devices: Vec<DeviceReport>,
    /// File systems in RAM.
    pub ram_disks: Vec<RamDiskReport>,
    /// What kept the survey from running.
    pub processor: Option<ProcessorLoad>,
    /// Swap; `None` where it could not be read, without areas if there is no swap.
    pub swap: Option<SwapSeen>,
    /// How much the trials of each tier disagree.
    pub noise: Vec<NoiseSeen>,
}

/// The C library's copy beside the best one, of one size, in alternating trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopySeen {
    /// Bytes copied by each trial.
    pub size_bytes: u64,
    /// The C library and its version: `glibc 2.36`.
    pub libc: String,
    /// Its memcpy, each copied byte counted once.
    pub libc_bytes_per_s: Estimate,
    /// The name of the fastest method.
    pub best_method: String,
    /// Its rate, each copied byte counted once.
    pub best_bytes_per_s: Estimate,
    /// Bytes on the memory bus for each byte copied by the best method: 2 or 3.
    pub best_traffic_factor: f64,
    /// The same for the C library's memcpy.
    pub libc_traffic_factor: f64,
    /// The last-level cache that the C library believes in.
    pub libc_l3_bytes: Option<u64>,
    /// Whether source and target together exceed every cache.
    pub beyond_caches: bool,
}

/// First touch of new memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultsSeen {
    /// With base pages (4 KiB).
    pub base: Option<FaultKind>,
    /// With huge pages (2 MiB).
    pub huge: Option<FaultKind>,
    /// Median of base-page faults on memory touched a moment ago.
    pub again_ns: Option<f64>,
    /// Median of huge-page faults on memory touched a moment ago.
    pub huge_again_ns: Option<f64>,
    /// Memory that was freed, left alone and touched again.
    pub recooled: Option<Recooled>,
    /// Whether a hypervisor lies beneath.
    pub virtualized: bool,
}

/// Faults of one page size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultKind {
    /// The page's size.
    pub page_bytes: u64,
    /// How many were timed.
    pub faults: u64,
    /// Their median.
    pub p50_ns: Option<f64>,
    /// Their 99th percentile.
    pub p99_ns: Option<f64>,
    /// The two modes of their times, where there are two.
    pub modes: Option<Modes>,
    /// Bytes made usable a second.
    pub bytes_per_s: f64,
}

/// Memory that was freed, left alone and touched again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recooled {
    /// How long it was left alone, in seconds.
    pub waited_s: f64,
    /// Share of slow faults on memory touched a moment ago, 0 to 1.
    pub before_slow_share: f64,
    /// Share of slow faults after the wait, 0 to 1.
    pub after_slow_share: f64,
    /// Median fault after the wait.
    pub after_p50_ns: Option<f64>,
    /// What the kernel says it gave back to the host during the wait.
    pub reported_to_host_bytes: Option<u64>,
}

/// Huge pages: the setting, and what was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PagesSeen {
    /// `always`, `madvise` or `never`.
    pub thp_setting: Option<String>,
    /// Memory that was asked for in huge pages.
    pub asked_bytes: u64,
    /// What came in huge pages (AnonHugePages in smaps).
    pub granted_bytes: Option<u64>,
}

/// Dependent loads at random, with small and with huge pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationSeen {
    /// The buffer's size.
    pub size_bytes: u64,
    /// One load, base pages.
    pub base_ns: Estimate,
    /// One load, huge pages, the same pattern.
    pub huge_ns: Estimate,
    /// Whether a hypervisor lies beneath.
    pub virtualized: bool,
}

/// Swap as `/proc/swaps` lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapSeen {
    /// The areas in use.
    pub areas: Vec<SwapArea>,
    /// Main memory.
    pub memory_bytes: u64,
}

/// How much the trials of one tier disagree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseSeen {
    /// The tier's name.
    pub tier: String,
    /// `latency`, `read`, `write` or `copy`.
    pub quantity: String,
    /// Interquartile range over the median.
    pub spread: f64,
    /// Trials kept.
    pub kept: u32,
    /// Trials thrown away because something disturbed them.
    pub discarded: u32,
    /// Share of the trials' time spent waiting for a processor.
    pub run_delay_share: Option<f64>,
    /// Share of the trials' time that the host took away.
    pub steal_share: Option<f64>,
}
