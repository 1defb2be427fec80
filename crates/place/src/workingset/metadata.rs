//! Reads directories and inodes into memory for the next `find` or `git status`. Listing a
//! directory may change its access time.

use crate::Result;
use crate::background::{Allowance, StopReason};
use crate::tree::{self, WalkEvent};
use machine::Root;
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What a walk read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkCounts {
    /// Directories listed.
    pub directories: u64,
    /// Entries whose inode was read.
    pub inodes: u64,
    /// Directories and entries that could not be read.
    pub refused: u64,
    /// Why it ended early, if it did.
    pub stopped: Option<StopReason>,
}

/// Walks `trees`, each on its own file system only, and follows no link.
///
/// # Errors
/// `Usage` for a tree that is not there.
pub fn warm_metadata(
    root: &Root,
    trees: &[PathBuf],
    allowance: &mut Allowance,
) -> Result<WalkCounts> {
    let mut walked = WalkCounts::default();
    for tree in trees {
        tree::walk(root, tree, &mut |met| {
            match met {
                WalkEvent::Enter(_) => walked.directories += 1,
                WalkEvent::Entry(_) => walked.inodes += 1,
                WalkEvent::Refused(..) => walked.refused += 1,
                WalkEvent::OtherFileSystem(_) | WalkEvent::Leave(_) => {}
            }
            walked.stopped = allowance.check_limits(Bytes(0));
            walked.stopped.map_or(ControlFlow::Continue(()), |_| ControlFlow::Break(()))
        })?;
        if walked.stopped.is_some() {
            break;
        }
    }
    Ok(walked)
}
