//! What to do about a recording's findings: each remedy with what the subject is expected to gain
//! by it, the model behind that number, and the setting that a trial would change.
//!
//! docs/findings.md defines the models and says when a remedy is only to be tried.

use serde::{Deserialize, Serialize};

/// How much faster the subject is expected to be, as a range of factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedGain {
    /// The least that the model gives, at least 1.
    pub low: f64,
    /// The most, at least `low`.
    pub high: f64,
    /// The model in a clause: `the waits go away, the rest of the work stays`.
    pub model: String,
}

impl ExpectedGain {
    /// The middle of the range by ratio; what remedies are ordered by.
    #[must_use]
    pub fn middle(&self) -> f64 {
        (self.low * self.high).sqrt()
    }
}

/// A setting of the kernel that a remedy changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its file, below /proc/sys or /sys.
    pub path: String,
    /// What it was when it was recorded.
    pub from: String,
    /// What it becomes.
    pub to: String,
    /// The change in words: `the memory limit of group /app from 256 MiB to 1 GiB`.
    pub words: String,
}

/// Memory that an earlier pressure left in swap, and that `terrace warm restore` brings back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvictedMemory {
    /// The process whose it is; `None` for a group.
    pub pid: Option<u32>,
    /// The group whose it is, by its path; `None` for a process.
    pub group: Option<String>,
    /// The command that restores it.
    pub command: String,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// The id of the finding that it is for.
    pub finding: String,
    /// What to do, with its risk.
    pub text: String,
    /// What it is expected to bring; `None` where no model gives a number.
    pub gain: Option<ExpectedGain>,
    /// Whether the model is too weak to promise the gain: the remedy is to be tried.
    pub is_to_be_tried: bool,
    /// The command that tries it, if there is one.
    pub try_command: Option<String>,
    /// What that command changes, if a program can change it and put it back.
    pub change: Option<SettingChange>,
    /// The memory that it restores, if that is the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<EvictedMemory>,
}
