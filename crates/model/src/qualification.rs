//! What `boost qualify` measured of a stick or a disk, and whether it would help as a cache.
//!
//! Probes fill [`Qualification`], the rules of `explain` judge it, `advise --with` reads it back
//! from JSON. A figure that could not be measured is `None`, with the reason beside it; every
//! figure says who served the requests, because a page cache answers for any stick.

use crate::{Estimate, Latency};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name and version of the JSON.
pub const SCHEMA: &str = "terrace.boost.qualify/1";

/// The blocks that a cache reads at random.
pub const READ_BLOCK_BYTES: u64 = 4 << 10;
/// The blocks that a cache writes at random.
pub const WRITE_BLOCK_BYTES: u64 = 512 << 10;

/// The least rate of [`READ_BLOCK_BYTES`] at random that is worth it: the line of ReadyBoost.
pub const READ_LINE_BYTES_PER_S: f64 = 2.5e6;
/// The rate from which such reads were called fast.
pub const FAST_READ_BYTES_PER_S: f64 = 5e6;
/// The least rate of [`WRITE_BLOCK_BYTES`] at random: the line of ReadyBoost.
pub const WRITE_LINE_BYTES_PER_S: f64 = 1.75e6;
/// The rate from which such writes were called fast.
pub const FAST_WRITE_BYTES_PER_S: f64 = 3e6;

/// Everything that is known of a stick or a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Qualification {
    /// What was measured.
    pub target: QualifiedTarget,
    /// Bytes of the nameless file; `None` for a block device, which is only read.
    pub file_bytes: Option<u64>,
    /// Reads of 4 KiB at random places, one at a time.
    pub random_read: Option<RequestFigures>,
    /// Writes of 512 KiB at random places, one at a time.
    pub random_write: Option<RequestFigures>,
    /// Reads of 4 KiB at random places while another thread writes 512 KiB at random places.
    pub read_while_writing: Option<RequestFigures>,
    /// Reading in sequence.
    pub sequential_read: Option<TransferFigures>,
    /// Writing in sequence, all of it: burst and what follows.
    pub sequential_write: Option<TransferFigures>,
    /// The part of the writing before its rate fell; `None` where it did not fall.
    pub burst: Option<WriteBurst>,
    /// The rate of writing after the knee, or of all of it without a knee, in bytes a second.
    pub sustained_write: Option<Estimate>,
    /// Whether the bytes that it claims to hold are there.
    pub capacity: CapacityCheck,
    /// What it is attached by; `None` with the reason in `link_unseen`.
    pub link: Option<StickLink>,
    /// Why the link cannot be seen.
    pub link_unseen: Option<String>,
    /// The unit in which its flash is erased.
    pub erase_block: EraseBlock,
    /// The disk that it would help.
    pub disk: Option<ComparedDisk>,
    /// Why that was not measured.
    pub disk_unseen: Option<String>,
    /// What follows from all this.
    pub verdict: QualificationVerdict,
    /// Bytes written, all of them in nameless files: this one, and that of `--for`.
    pub written_bytes: u64,
    /// What the reader should know: what was left out, and why.
    pub notes: Vec<String>,
    /// The failure that ended it early: a stick that was pulled, an I/O error.
    pub failure: Option<String>,
    /// Whether Ctrl-C or the end of its time came before all was measured.
    pub is_cut_short: bool,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QualifiedTarget {
    /// The path as it was given.
    pub path: PathBuf,
    /// Whether it is a block device, which is only read.
    pub is_block_device: bool,
    /// The type of the file system; `None` for a block device or where it has no known name.
    pub file_system: Option<String>,
    /// The kernel name of the whole disk, as `sda`.
    pub disk: Option<String>,
    /// The partition of it, as `sda1`.
    pub partition: Option<String>,
    /// The name that the maker gave it.
    pub model: Option<String>,
    /// The size that the disk claims, in bytes.
    pub claimed_bytes: Option<u64>,
}

/// Requests of one kind, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestFigures {
    /// Bytes of each request.
    pub block_bytes: u64,
    /// How many were made.
    pub requests: u64,
    /// The rate in bytes a second: each trial is a number of requests in sequence, over their time.
    pub bytes_per_s: Option<Estimate>,
    /// The time of one request in nanoseconds: median, percentiles and interval.
    pub service_ns: Option<Latency>,
    /// The mean time of one request in nanoseconds, which is what many of them add up to.
    pub mean_ns: Option<f64>,
    /// Who served them: `device`, `page cache`, `RAM`; empty: no counter says.
    pub served_by: String,
    /// The counters that say so, in one clause.
    pub served_reason: String,
}

/// A transfer in sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferFigures {
    /// Bytes that were moved.
    pub bytes: u64,
    /// The time that they took, in seconds, until they were durable.
    pub wall_s: f64,
    /// The rate in bytes a second: each trial is a stretch of at least 100 ms.
    pub bytes_per_s: Option<Estimate>,
    /// The rate over time.
    pub series: Vec<TransferRate>,
    /// Who served it, as of [`RequestFigures::served_by`].
    pub served_by: String,
    /// The counters that say so, in one clause.
    pub served_reason: String,
}

/// The rate in one stretch of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferRate {
    /// Bytes that were moved before it.
    pub from_bytes: u64,
    /// Its time in nanoseconds.
    pub wall_ns: u64,
    /// Bytes a second in it.
    pub bytes_per_s: f64,
}

/// The fast part at the begin of a long write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteBurst {
    /// Bytes that were written before the rate fell.
    pub bytes: u64,
    /// The rate until then, in bytes a second.
    pub bytes_per_s: Estimate,
}

/// How far the claimed capacity is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityOutcome {
    /// All that was written was read back: `proved_bytes` of `claimed_bytes`.
    Proved,
    /// What was read back is not what was written: the stick does not hold what it claims.
    Refused,
    /// Nothing was written, or it was not read back past the caches.
    NotTried,
}

/// What was written and read back past the caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityCheck {
    /// What follows.
    pub outcome: CapacityOutcome,
    /// The size that the disk claims.
    pub claimed_bytes: Option<u64>,
    /// Bytes that were read back past the caches and are what was written there.
    pub proved_bytes: u64,
    /// The highest place on the disk that was written, in bytes from its start; `None` where the
    /// file system does not say.
    pub highest_place: Option<u64>,
    /// How many other places were read before and after a block was written; 0: none, with the
    /// reason in `aliases_unseen`.
    pub aliases_read: u32,
    /// Why none, or not all, were read.
    pub aliases_unseen: Option<String>,
    /// The place that changed when another was written; only of a stick that is refused.
    pub damaged_place: Option<u64>,
    /// Whether what was there before is there again.
    pub is_restored: Option<bool>,
    /// Why it was refused or not tried; `None` where it was proved.
    pub reason: Option<String>,
}

impl CapacityCheck {
    /// A check that was not made.
    #[must_use]
    pub fn not_tried(claimed_bytes: Option<u64>, reason: impl Into<String>) -> Self {
        Self {
            outcome: CapacityOutcome::NotTried,
            claimed_bytes,
            proved_bytes: 0,
            highest_place: None,
            aliases_read: 0,
            aliases_unseen: None,
            damaged_place: None,
            is_restored: None,
            reason: Some(reason.into()),
        }
    }
}

/// What a stick is attached by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StickLink {
    /// The bus: `usb`, `mmc`, `virtio`, `sata`.
    pub bus: String,
    /// The speed that was negotiated, in bits a second.
    pub bits_per_s: Option<u64>,
    /// The speed that the device itself could take, in bits a second.
    pub device_bits_per_s: Option<u64>,
    /// Hubs between it and the machine's own port.
    pub hubs: Option<u32>,
    /// The kernel's driver, as `usb-storage` or `uas`.
    pub driver: Option<String>,
    /// How much of its life is used, as the device reports it, in percent.
    pub life_used_percent: Option<u32>,
    /// What would make it faster, in a sentence.
    pub advice: Option<String>,
}

/// The unit in which flash is erased.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseBlock {
    /// Its size; `None` where it cannot be seen, with the reason in `unseen`.
    pub bytes: Option<u64>,
    /// How that is known: `read times`, or `reported` by the device.
    pub source: Option<String>,
    /// Why it cannot be seen here.
    pub unseen: Option<String>,
}

/// The disk that a stick would help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedDisk {
    /// What was read: a device or a directory.
    pub path: PathBuf,
    /// The kernel name of the whole disk.
    pub disk: Option<String>,
    /// Why this one: it was named, or it holds the root file system.
    pub why: String,
    /// Reads of 4 KiB at random places, one at a time.
    pub random_read: RequestFigures,
}

/// Whether it would help as a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suitability {
    /// It would.
    Yes,
    /// It would not.
    No,
    /// What was seen does not decide it.
    Unproven,
}

/// What follows from the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QualificationVerdict {
    /// The answer.
    pub answer: Suitability,
    /// The answer with its figures, in a sentence that needs no documents.
    pub sentence: String,
    /// Every line that was held or missed, each in a sentence.
    pub reasons: Vec<String>,
}

impl Default for QualificationVerdict {
    /// The verdict before anything was judged.
    fn default() -> Self {
        Self { answer: Suitability::Unproven, sentence: String::new(), reasons: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Better;

    /// What `advise --with` reads is what `boost qualify` writes.
    #[test]
    fn a_result_survives_its_json() {
        let figures = RequestFigures {
            block_bytes: READ_BLOCK_BYTES,
            requests: 7,
            bytes_per_s: Estimate::from_values(&[4e6; 7], Better::Higher, 0),
            service_ns: None,
            mean_ns: Some(1e6),
            served_by: "device".to_owned(),
            served_reason: "100 % of the bytes".to_owned(),
        };
        let result = Qualification {
            target: QualifiedTarget {
                path: "/media/stick".into(),
                is_block_device: false,
                file_system: Some("vfat".to_owned()),
                disk: Some("sda".to_owned()),
                partition: Some("sda1".to_owned()),
                model: None,
                claimed_bytes: Some(64_000_000_000),
            },
            file_bytes: Some(1 << 30),
            random_read: Some(figures.clone()),
            random_write: None,
            read_while_writing: None,
            sequential_read: None,
            sequential_write: None,
            burst: None,
            sustained_write: None,
            capacity: CapacityCheck::not_tried(None, "only read"),
            link: Some(StickLink { bus: "usb".to_owned(), ..StickLink::default() }),
            link_unseen: None,
            erase_block: EraseBlock::default(),
            disk: None,
            disk_unseen: Some("not root".to_owned()),
            verdict: QualificationVerdict::default(),
            written_bytes: 1 << 30,
            notes: Vec::new(),
            failure: None,
            is_cut_short: false,
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<Qualification>(&text).unwrap(), result);
        assert!(text.contains("\"outcome\":\"not_tried\"") && text.contains("\"unproven\""));
    }
}
