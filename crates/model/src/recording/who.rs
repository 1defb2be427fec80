//! Who did it: what single processes used, moment by moment, and which files they read and wrote.
//!
//! Only those that matter have rows: the first of each figure in a sample, and once a second all
//! that used anything worth a row. What a process used since its last row is in its next one, so
//! nothing of it is lost between two rows; what never gets a row is only in the totals.

use super::sampled::SampledPart;
use serde::{Deserialize, Serialize};

/// What a process used, in the order of [`ProcessRow::figures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessFigure {
    /// On a processor, ns, summed over threads like all times here.
    Cpu,
    /// Runnable, waiting for a processor, ns.
    Queue,
    /// Waiting for block I/O, ns.
    BlockWait,
    /// Freeing memory for itself, or made to wait for memory, ns.
    Reclaim,
    /// Read from devices, bytes.
    ReadBytes,
    /// Made dirty, to be written to devices, bytes.
    WrittenBytes,
    /// Page faults that waited for a device.
    MajorFaults,
    /// Page faults without I/O.
    MinorFaults,
    /// Bytes that it added to the page cache, its own reads and writes both.
    CacheAdded,
    /// Bytes that were read again soon after they had been evicted.
    Refaulted,
    /// Bytes of its memory that came back from swap.
    SwappedIn,
}

impl ProcessFigure {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them, in their order.
    pub const ALL: [Self; 11] = [
        Self::Cpu,
        Self::Queue,
        Self::BlockWait,
        Self::Reclaim,
        Self::ReadBytes,
        Self::WrittenBytes,
        Self::MajorFaults,
        Self::MinorFaults,
        Self::CacheAdded,
        Self::Refaulted,
        Self::SwappedIn,
    ];

    /// Its name in JSON: `read_bytes`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Queue => "queue",
            Self::BlockWait => "block_wait",
            Self::Reclaim => "reclaim",
            Self::ReadBytes => "read_bytes",
            Self::WrittenBytes => "written_bytes",
            Self::MajorFaults => "major_faults",
            Self::MinorFaults => "minor_faults",
            Self::CacheAdded => "cache_added",
            Self::Refaulted => "refaulted",
            Self::SwappedIn => "swapped_in",
        }
    }

    /// The unit of its values: `ns`, `bytes` or `count`.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Cpu | Self::Queue | Self::BlockWait | Self::Reclaim => "ns",
            Self::MajorFaults | Self::MinorFaults => "count",
            _ => "bytes",
        }
    }
}

/// A process that has rows. A number that the kernel gave to another process later is another
/// entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its place in [`Who::processes`], from 0.
    pub id: u32,
    /// The kernel's number.
    pub pid: u32,
    /// Its parent's number when it was first seen.
    pub parent: u32,
    /// Its user's number.
    pub user: u32,
    /// When it started, since the machine did, on the clock that goes on during suspend; this and
    /// `pid` are one process only, which has an entry for each program that it ran.
    pub started_ns: u64,
    /// Its name, as `ps -o comm` shows it; of an interpreter with the name of the script, without
    /// its directory: `python3 report.py`.
    pub name: String,
    /// Its control group below its hierarchy: `/system.slice/backup.service`; empty where unknown.
    pub group: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// Whether these are several short-lived processes of this name and parent: their rows are
    /// sums, `pid` and `started_ns` are 0.
    pub is_many: bool,
}

/// What one process used between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Its [`Process::id`].
    pub process: u32,
    /// Where this row begins: the end of its last one, or when it was first looked at.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// What it used in between, by [`ProcessFigure::ALL`].
    pub figures: [u64; ProcessFigure::COUNT],
    /// Its resident memory at the end, bytes; 0 once it has ended.
    pub memory_bytes: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// How many processes the row sums up: 1, or more of [`Process::is_many`].
    pub processes: u64,
}

impl ProcessRow {
    /// One figure.
    #[must_use]
    pub fn get(&self, figure: ProcessFigure) -> u64 {
        self.figures[figure as usize]
    }
}

/// A file that has rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Its place in [`Who::files`], from 0.
    pub id: u32,
    /// Major and minor number of its file system's device, as the kernel has them.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
    /// Its path, or the end of it; `None` where it could not be learned.
    pub path: Option<String>,
}

/// What one process did with one file between two instants, through the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Its [`FileIdentity::id`].
    pub file: u32,
    /// The [`Process::id`] that did it.
    pub process: u32,
    /// Where this row begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Bytes added to the page cache.
    pub added_bytes: u64,
    /// Of them, read again soon after they had been evicted.
    pub refaulted_bytes: u64,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// Bytes of the file that left the cache because memory was needed.
    pub evicted_bytes: u64,
}

/// Samples of processors that ran one process between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// The [`Process::id`].
    pub process: u32,
    /// Where this row begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// How many, by [`SampledPart::ALL`].
    pub samples: [u64; SampledPart::COUNT],
}

impl SampleRow {
    /// All samples of the row.
    #[must_use]
    pub fn all(&self) -> u64 {
        let origins = &self.samples[..SampledPart::ORIGINS];
        origins.iter().fold(0, |all, one| all.saturating_add(*one))
    }
}

/// Requests of one process to one block device between two instants, from issue to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// The [`Process::id`] that asked, or for whose data a thread of the kernel did.
    pub process: u32,
    /// Major and minor number of the device, as the kernel has them.
    pub device: (u32, u32),
    /// Whether they are writes; else they are reads.
    pub is_write: bool,
    /// Where this row begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// How many were completed.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their times from issue to completion, added up.
    pub latency_ns: u64,
    /// How many took at most 16 us, 32 us, ...: those of one class are in no other, those that
    /// took longer than the last bound are in none.
    pub classes: [u64; Self::CLASSES],
}

impl RequestRow {
    /// How many classes of latency there are.
    pub const CLASSES: usize = 20;

    /// The longest latency of a class, ns.
    #[must_use]
    pub const fn class_limit_ns(class: usize) -> u64 {
        16_000 << class
    }
}

/// Who did it, of a whole recording, or of one of its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The processes that have rows, by their ids.
    pub processes: Vec<Process>,
    /// What they used, in order of `to_ns`.
    pub rows: Vec<ProcessRow>,
    /// The files that have rows, by their ids.
    pub files: Vec<FileIdentity>,
    /// What was done with them, in order of `to_ns`.
    pub file_rows: Vec<FileRow>,
    /// Samples of processors by process, in order of `to_ns`.
    pub samples: Vec<SampleRow>,
    /// Requests to block devices by process, in order of `to_ns`.
    pub requests: Vec<RequestRow>,
}

impl Who {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
            && self.rows.is_empty()
            && self.files.is_empty()
            && self.file_rows.is_empty()
            && self.samples.is_empty()
            && self.requests.is_empty()
    }
}
