//! What a cache that exists already has brought, by its own counters: bcache, dm-cache, L2ARC.
//!
//! Counters that are not there are absent; without them nothing is claimed.

use serde::Serialize;

/// What the JSON calls itself.
pub const RECEIPT_SCHEMA: &str = "terrace.boost_receipt/1";

/// Which program of the kernel keeps the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// bcache.
    Bcache,
    /// The device mapper's cache, also LVM's.
    DmCache,
    /// The second level of ZFS' cache.
    L2arc,
}

impl CacheKind {
    /// Its name for a person.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bcache => "bcache",
            Self::DmCache => "dm-cache",
            Self::L2arc => "L2ARC",
        }
    }
}

/// Reads of one device and the time that they took, since it appeared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceReads {
    /// The kernel's name of the device.
    pub device: String,
    /// Reads that were completed.
    pub reads: u64,
    /// The time that they took, summed over reads.
    pub read_ms: u64,
}

impl DeviceReads {
    /// Milliseconds of one read.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.read_ms as f64 / self.reads.max(1) as f64
    }
}

/// The counters of one cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheCounters {
    /// Which program of the kernel it is of.
    pub kind: CacheKind,
    /// The device that it serves; `arcstats` for all pools together.
    pub name: String,
    /// Whether it also takes writes that are not on the disk yet; `None` if that is not known.
    pub is_write_back: Option<bool>,
    /// Reads that it answered: of dm-cache since the cache was made, else since it was attached.
    pub hits: Option<u64>,
    /// Reads that it did not answer, since then.
    pub misses: Option<u64>,
    /// Bytes that are on the cache and not yet on the disk.
    pub dirty_bytes: Option<u64>,
    /// Bytes that were written to the cache's device.
    pub written_bytes: Option<u64>,
    /// Reads of the disk behind it.
    pub disk: Option<DeviceReads>,
    /// Reads of the cache's own device.
    pub cache: Option<DeviceReads>,
}

/// Whether a cache is worth having.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptVerdict {
    /// It spared a good part of the time that reads take.
    WorthIt,
    /// It spared little or nothing.
    NotWorthIt,
    /// A counter is missing, there were too few reads, or what it spared of writes is not counted.
    Unproven,
}

/// What one cache has brought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheReceipt {
    /// What is known of it.
    #[serde(flatten)]
    pub counters: CacheCounters,
    /// Hits, times what a read of the disk takes longer than one of the cache, added up over reads;
    /// below 0 if the cache is slower.
    pub spared_s: Option<f64>,
    /// The judgement.
    pub verdict: ReceiptVerdict,
    /// Why, in words.
    pub why: String,
}

/// All caches of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheReceipts {
    /// [`RECEIPT_SCHEMA`].
    pub schema: &'static str,
    /// One for each cache.
    pub caches: Vec<CacheReceipt>,
    /// What could not be seen, and why.
    pub unseen: Vec<String>,
}
