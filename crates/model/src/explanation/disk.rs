//! Whether it was the disk: one sentence, with the numbers that it rests on.
//!
//! docs/findings.md says when a disk is called what.

use crate::finding::Evidence;
use serde::{Deserialize, Serialize};

/// What the disk that matters most was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskState {
    /// The subject hardly waited for it.
    NotInvolved,
    /// Waited for, and answering as a survey of this machine measured it.
    Healthy,
    /// Waited for, and occupied nearly all the time.
    Busy,
    /// Waited for, not occupied, and slower than a survey of this machine measured it.
    Slow,
    /// Waited for, and nothing is kept to compare its latency with.
    Uncompared,
    /// Devices were not recorded.
    Unseen,
}

/// The answer to "is it the disk?".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskVerdict {
    /// What it was found to be.
    pub state: DiskState,
    /// The device: `vda`; empty without one.
    pub device: String,
    /// The sentence.
    pub text: String,
    /// Its numbers.
    pub evidence: Vec<Evidence>,
}
