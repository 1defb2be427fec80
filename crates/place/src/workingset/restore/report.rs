//! The report of a restore: what was read, how much of it is in memory, and why it ended.
//! Part of the JSON of `warm restore`.

use super::plan::MemoryKind;
use crate::background::StopReason;
use crate::workingset::method::RestoreMethod;
use serde::{Deserialize, Serialize};

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// Why it ended.
    pub stop: StopReason,
    /// One for each source, in the order of work.
    pub parts: Vec<RestoredSource>,
    /// From the first read to the last, ns.
    pub elapsed_ns: u64,
    /// Of these, pauses for other tasks that wanted the processors.
    pub paused_ns: u64,
    /// Lines for a person.
    pub notes: Vec<String>,
}

/// What was done of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoredSource {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The swap area's path or the disk's name.
    pub source: String,
    /// The method that was used.
    pub method: Option<RestoreMethod>,
    /// Bytes asked for.
    pub bytes: u64,
    /// Of the pages asked for, present afterwards.
    pub present_pages: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Pages whose process or mapping was gone.
    pub gone_pages: u64,
    /// How long, ns.
    pub elapsed_ns: u64,
    /// The most faults with a read from the device that are avoided: the pages present that came
    /// from there. A page that had not left memory avoids none.
    pub avoided_faults: u64,
    /// What these would have cost, ns: each the time of the device for one page.
    pub avoided_ns: Option<u64>,
}
