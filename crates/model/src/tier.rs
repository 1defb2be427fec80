//! One level that data passes through, with its capacity, latency and rates.
//! What was not or cannot be measured is `None`, with the reason beside it.

use crate::estimate::{Estimate, Latency};
use crate::finding::Grade;
use serde::{Deserialize, Serialize};

/// What sort of level a tier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierKind {
    /// L1, L2 or L3.
    CpuCache,
    /// Main memory that this process has used before.
    Ram,
    /// Main memory on its first touch: the page fault and the host's own fault.
    NewMemory,
    /// A file system in RAM (tmpfs, ramfs).
    RamDisk,
    /// The kernel's cache of a device's file.
    PageCache,
    /// zram or zswap.
    CompressedRam,
    /// A swap area on a device.
    Swap,
    /// A disk, flash or network volume.
    Device,
}

/// One level of this machine as it was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// The name shown: `L1 cache`, `RAM`, `/data vdb`.
    pub name: String,
    /// What sort of level.
    pub kind: TierKind,
    /// How much it holds.
    pub capacity_bytes: Option<u64>,
    /// Time of one access.
    pub latency_ns: Option<Latency>,
    /// Sequential read rate.
    pub read_bytes_per_s: Option<Estimate>,
    /// Sequential write rate; for a device, on stable storage.
    pub write_bytes_per_s: Option<Estimate>,
    /// Copy rate inside the tier, each copied byte counted once.
    pub copy_bytes_per_s: Option<Estimate>,
    /// How it was measured: pattern, page size, request size, queue depth.
    pub method: String,
    /// How the numbers are known.
    pub grade: Grade,
    /// Why something is absent or not sure.
    pub reason: Option<String>,
    /// Whether the trials disagree too much to be leant on.
    pub noisy: bool,
}

impl Tier {
    /// A tier with nothing measured yet.
    pub fn unseen(name: impl Into<String>, kind: TierKind, reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            capacity_bytes: None,
            latency_ns: None,
            read_bytes_per_s: None,
            write_bytes_per_s: None,
            copy_bytes_per_s: None,
            method: String::new(),
            grade: Grade::Unseen,
            reason: Some(reason.into()),
            noisy: false,
        }
    }
}
