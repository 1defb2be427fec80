//! What a restore is asked for: whose memory, which kinds of it, and what it may take.
//! Checked by the plan, not here.

use crate::background::Limits;
use crate::workingset::method::RestoreMethod;
use crate::workingset::snapshot::Snapshot;
use crate::workingset::targets::Selection;
use std::path::PathBuf;
use sys::helper::HiddenCommand;

/// What to restore, and what that may take.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// Whose memory.
    pub selection: Selection,
    /// These processes before all others.
    pub first: Vec<u32>,
    /// Anonymous memory.
    pub anonymous: bool,
    /// Shared memory.
    pub shared: bool,
    /// Files that live processes use; with a snapshot, the files that it names.
    pub files: bool,
    /// What was in memory once, if that is to be restored.
    pub snapshot: Option<Snapshot>,
    /// Trees whose directories and inodes are wanted.
    pub metadata: Vec<PathBuf>,
    /// Whether the plan is to say how long it takes: disks are then tried longer.
    pub estimate: bool,
    /// How to read from swap, if the person chose a method.
    pub method: Option<RestoreMethod>,
    /// What may be used.
    pub limits: Limits,
    /// The hidden command that reads inside of a group; absent, this process reads everything.
    pub helper: Option<HiddenCommand>,
}
