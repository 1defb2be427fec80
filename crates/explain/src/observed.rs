//! What a survey saw, in the shape that the rules read: numbers and words only.
//!
//! The binary fills it from probes and kernel files. Whatever could not be seen
//! is `None` or left out of its list; a rule then says so instead of guessing.
//! It reads and writes as JSON, so that a test can hold a recorded machine.

use model::histogram::Modes;
use model::knee::Edge;
use model::{Estimate, Latency};
use serde::{Deserialize, Serialize};

/// The word of [`DeviceSeen::served_by`] where the requests reached the device.
pub const SERVED_BY_DEVICE: &str = "device";

/// All that the rules may look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    /// Copies in memory, one for each size that was tried.
    pub copies: Vec<CopySeen>,
    /// First touch of new memory.
    pub faults: Option<FaultsSeen>,
    /// The processor's caches, as measured and as claimed.
    pub caches: Vec<CacheSeen>,
    /// Huge pages: the setting, and what was given.
    pub pages: Option<PagesSeen>,
    /// Random access with small and with huge pages.
    pub translation: Option<TranslationSeen>,
    /// Disks, flash and volumes.
    pub devices: Vec<DeviceSeen>,
    /// File systems in RAM.
    pub ram_disks: Vec<RamDiskSeen>,
    /// What kept the survey from running.
    pub processor: Option<ProcessorSeen>,
    /// Swap; `None` where it could not be read, empty areas where there is none.
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

/// One cache, as measured and as claimed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSeen {
    /// 1, 2 or 3.
    pub level: u8,
    /// Where latency climbs.
    pub measured: Option<Edge>,
    /// `/sys/devices/system/cpu/cpu*/cache`.
    pub sysfs_bytes: Option<u64>,
    /// The CPUID instruction.
    pub cpuid_bytes: Option<u64>,
    /// What the C library was told or concluded.
    pub libc_bytes: Option<u64>,
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

/// One disk, flash device or volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceSeen {
    /// The whole device's name in `/sys/block`: `vdb`.
    pub name: String,
    /// Where its file system was reached: `/data`.
    pub path: String,
    /// The name of its tier: `/data  vdb`.
    pub tier: String,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// The selected word of `queue/scheduler`.
    pub scheduler: Option<String>,
    /// `queue/read_ahead_kb`, in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// `virtio`, `nvme`, `sata`, `usb`, ...
    pub transport: Option<String>,
    /// Random reads of 4 KiB of the survey's own file, one at a time.
    pub random_read_ns: Option<Latency>,
    /// Reads by queue depth: small and large blocks, as far as they were tried.
    pub depth: Vec<DepthSeen>,
    /// Cold sequential read past the page cache.
    pub read_bytes_per_s: Option<Estimate>,
    /// Sequential write up to stable storage.
    pub write_bytes_per_s: Option<Estimate>,
    /// Spread (interquartile range over median) of the rates of 100 ms each.
    pub series_spread: Option<f64>,
    /// What the counters say answered the reads: [`SERVED_BY_DEVICE`],
    /// `page cache` or `RAM`; empty where nothing could be counted.
    pub served_by: String,
    /// Root only: random reads of 4 KiB over the whole raw device.
    pub raw_read_ns: Option<Latency>,
    /// Why `raw_read_ns` is absent.
    pub raw_refused: Option<String>,
    /// Whether a hypervisor lies beneath.
    pub virtualized: bool,
    /// Reading a file of it that is in the page cache.
    pub page_cache_read_bytes_per_s: Option<Estimate>,
}

/// Reads at one queue depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DepthSeen {
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of each request.
    pub block_bytes: u64,
    /// Requests completed a second.
    pub requests_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Median time of one request.
    pub p50_ns: Option<f64>,
}

/// One file system in RAM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RamDiskSeen {
    /// The name of its tier: `/dev/shm`.
    pub tier: String,
    /// Where it is mounted.
    pub path: String,
    /// Reading a file of it.
    pub read_bytes_per_s: Option<Estimate>,
    /// Writing a file of it.
    pub write_bytes_per_s: Option<Estimate>,
    /// Reading a disk's file that is in the page cache, by the same calls.
    pub page_cache_read_bytes_per_s: Option<Estimate>,
    /// Its `huge=` option: `never`, `always`, `within_size`, `advise`.
    pub huge_setting: Option<String>,
}

/// What kept the survey from running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorSeen {
    /// Share of the processors' time that the host took away, 0 to 1.
    pub steal_share: Option<f64>,
    /// Share of its time that the survey was ready and waited for a processor.
    pub run_delay_share: Option<f64>,
    /// Periods in which the CPU limit stopped the group.
    pub throttled_periods: Option<u64>,
    /// Periods in which the group ran at all.
    pub periods: Option<u64>,
    /// How long it was stopped, in seconds, summed over its processors.
    pub throttled_s: Option<f64>,
    /// The limit, in processors.
    pub quota_cores: Option<f64>,
    /// The group that has the limit.
    pub cgroup: Option<String>,
    /// Processors that the survey may run on.
    pub usable_cpus: u32,
    /// Processors online.
    pub online_cpus: u32,
}

/// Swap as `/proc/swaps` lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapSeen {
    /// The areas in use.
    pub areas: Vec<SwapAreaSeen>,
    /// Main memory.
    pub memory_bytes: u64,
}

/// One swap area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapAreaSeen {
    /// The file or device.
    pub path: String,
    /// The device that holds it.
    pub device: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// How much of it is taken.
    pub used_bytes: u64,
    /// `queue/rotational` of the device.
    pub rotational: Option<bool>,
    /// Median of random 4 KiB reads of the device.
    pub random_read_ns: Option<f64>,
    /// Whether it is compressed RAM (zram).
    pub compressed: bool,
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
