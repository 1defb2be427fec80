//! What the probes of a survey return: the rules judge it, and tiers and curves display it. No
//! other shape of these figures lies between a probe and the JSON.
//!
//! Whatever could not be measured is `None`, zero or left out of its list. Each type reads and
//! writes as JSON, so that a test can hold a recorded machine.

use crate::estimate::{Estimate, Latency};
use crate::knee::Edge;
use serde::{Deserialize, Serialize};

/// The word of [`DeviceReport::served_by`] if the requests reached the device.
pub const SERVED_BY_DEVICE: &str = "device";

/// One cache of the processor, as measured and as claimed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheLevel {
    /// 1, 2 or 3.
    pub level: u8,
    /// Where the latency climbs; `None` if the curve shows no edge for this level.
    pub measured: Option<Edge>,
    /// `/sys/devices/system/cpu/cpu*/cache`.
    pub sysfs_bytes: Option<u64>,
    /// The CPUID instruction.
    pub cpuid_bytes: Option<u64>,
    /// What the C library was configured with or concluded.
    pub libc_bytes: Option<u64>,
    /// How many CPUs share it, by the kernel's `shared_cpu_list`, else by CPUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<u32>,
    /// The edges of the later searches; `None` if the edge was searched for only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searches: Option<EdgeSearches>,
}

/// Where several searches found the edge of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeSearches {
    /// How many searches there were.
    pub made: u32,
    /// How many of them found an edge.
    pub found: u32,
    /// The smallest size that fit, bytes.
    pub low_bytes: u64,
    /// The largest size that fit, bytes.
    pub high_bytes: u64,
}

/// Two searches agree within one step of the coarsest ladder, which has three to a doubling.
const SAME_EDGE: f64 = 1.34;

impl CacheLevel {
    /// Adds the edge that a later search found, if any.
    pub fn add_search(&mut self, edge: Option<&Edge>) {
        let of = |edge: &Edge| EdgeSearches {
            made: 1,
            found: 1,
            low_bytes: edge.fits_bytes,
            high_bytes: edge.fits_bytes,
        };
        let first = self
            .measured
            .as_ref()
            .map(of)
            .unwrap_or(EdgeSearches { made: 1, ..EdgeSearches::default() });
        let mut all = self.searches.unwrap_or(first);
        all.made += 1;
        if let Some(edge) = edge {
            let is_first = all.found == 0;
            all.found += 1;
            all.low_bytes =
                if is_first { edge.fits_bytes } else { all.low_bytes.min(edge.fits_bytes) };
            all.high_bytes = all.high_bytes.max(edge.fits_bytes);
        }
        self.searches = Some(all);
        // One search missed it: what another found is better than nothing.
        self.measured = self.measured.or(edge.copied());
    }

    /// The sizes between which the edge moved from search to search; `None` if it stayed.
    #[must_use]
    pub fn moved_between(&self) -> Option<(u64, u64)> {
        let all = self.searches.filter(|all| all.found > 1)?;
        let is_same = all.high_bytes as f64 <= all.low_bytes as f64 * SAME_EDGE;
        (!is_same).then_some((all.low_bytes, all.high_bytes))
    }

    /// Whether more than one search found an edge.
    #[must_use]
    pub fn is_found_again(&self) -> bool {
        self.searches.is_some_and(|all| all.found > 1)
    }

    /// Whether each search found the same edge.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let is_complete = self.searches.is_none_or(|all| all.found == all.made);
        is_complete && self.moved_between().is_none()
    }

    /// The largest size that the hardware claims.
    #[must_use]
    pub fn hardware_bytes(&self) -> Option<u64> {
        self.sysfs_bytes.max(self.cpuid_bytes)
    }
}

/// One disk, flash device or volume, measured through a file on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceReport {
    /// The whole device's name in `/sys/block`: `vdb`.
    pub name: String,
    /// The directory through which it was reached: `/data`.
    pub path: String,
    /// The name of its tier: `/data  vdb`.
    pub tier: String,
    /// The type of the file system there.
    pub fs_type: String,
    /// Its size.
    pub capacity_bytes: Option<u64>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// The selected word of `queue/scheduler`.
    pub scheduler: Option<String>,
    /// `queue/read_ahead_kb`, in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// `virtio`, `nvme`, `sata`, `usb`, ...
    pub transport: Option<String>,
    /// Whether this machine is a guest.
    pub virtualized: bool,
    /// Random reads of 4 KiB of the survey's own file, one at a time: the median of the windows'
    /// medians with its interval, the percentiles of all requests.
    pub random_read_ns: Option<Latency>,
    /// The rate of these requests while they were made, requests a second.
    pub random_reads_per_s: Option<Estimate>,
    /// Reads by queue depth: small and large blocks, as far as they were tried.
    pub depth: Vec<DepthRate>,
    /// Cold sequential reads past the page cache, bytes a second.
    pub read_bytes_per_s: Option<Estimate>,
    /// Sequential writes with the sync that makes them durable, bytes a second.
    pub write_bytes_per_s: Option<Estimate>,
    /// Spread (interquartile range over median) of the rates of the read windows.
    pub series_spread: Option<f64>,
    /// The same reads, window by window.
    pub reads: Vec<RateAt>,
    /// The same writes, window by window.
    pub writes: Vec<RateAt>,
    /// Bytes of each sequential request.
    pub block_bytes: u64,
    /// Sequential requests in flight.
    pub sequential_depth: u32,
    /// Median of single random reads 20 ms apart, nanoseconds.
    pub paced_read_ns: Option<f64>,
    /// What the counters say answered the reads: [`SERVED_BY_DEVICE`], `page cache` or `RAM`; empty
    /// if nothing could be counted.
    pub served_by: String,
    /// Why this is believed, in one clause.
    pub served_reason: String,
    /// Root only: random reads of 4 KiB over the whole raw device.
    pub raw_read_ns: Option<Latency>,
    /// Why `raw_read_ns` is absent.
    pub raw_refused: Option<String>,
    /// Bytes of the own file that were read from the page cache; `None` if the time was over
    /// before.
    pub page_cache_bytes: Option<u64>,
    /// Random reads of 4 KiB of them.
    pub page_cache_read_ns: Option<Latency>,
    /// Sequential reads of them, bytes a second.
    pub page_cache_read_bytes_per_s: Option<Estimate>,
    /// Bytes of the own file.
    pub file_bytes: u64,
    /// Bytes written in all, all of them removed again.
    pub written_bytes: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What ended it early; the figures before it count.
    pub failure: Option<String>,
}

/// The rate of one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateAt {
    /// When it began, seconds since the first window of this device.
    pub at_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Whether it was thrown away because something disturbed it.
    pub disturbed: bool,
}

/// Reads at one queue depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DepthRate {
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of each request.
    pub block_bytes: u64,
    /// Requests completed a second.
    pub requests_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Median time of one request; `None` if only whole windows were timed.
    pub p50_ns: Option<f64>,
}

/// One file system in RAM, measured through a file on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RamDiskReport {
    /// The name of its tier: `/dev/shm  tmpfs`.
    pub tier: String,
    /// The directory through which it was reached.
    pub path: String,
    /// How much is free there.
    pub free_bytes: Option<u64>,
    /// Its `huge=` option: `never`, `always`, `within_size`, `advise`.
    pub huge_setting: Option<String>,
    /// Random reads of 4 KiB.
    pub random_read_ns: Option<Latency>,
    /// Sequential reads of 1 MiB, bytes a second.
    pub read_bytes_per_s: Option<Estimate>,
    /// The first writing, which has to find memory, bytes a second.
    pub first_write_bytes_per_s: Option<f64>,
    /// Writing again to the same pages in calls of 1 MiB, bytes a second.
    pub write_bytes_per_s: Option<Estimate>,
    /// Reading a disk's file that is in the page cache, by the same calls.
    pub page_cache_read_bytes_per_s: Option<Estimate>,
    /// Bytes of the test file.
    pub file_bytes: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What kept the survey from running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorLoad {
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

/// One swap area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapArea {
    /// The file or device.
    pub path: String,
    /// The whole device that holds it.
    pub device: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// How much of it is taken.
    pub used_bytes: u64,
    /// `queue/rotational` of the device.
    pub rotational: Option<bool>,
    /// Median of random 4 KiB reads of the area.
    pub random_read_ns: Option<f64>,
    /// The same reads with their interval and percentiles.
    pub latency_ns: Option<Latency>,
    /// Whether it is compressed RAM (zram).
    pub compressed: bool,
    /// Why the latency is absent.
    pub reason: Option<String>,
}
