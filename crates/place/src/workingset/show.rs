//! Who has how much in RAM, in swap and in the page cache, and what a restore would read.

use super::restore::{Part, Request};
use crate::Result;
use machine::Root;
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// One for each process, most in swap first.
    pub processes: Vec<Process>,
    /// What a restore would read, by source.
    pub parts: Vec<Part>,
    /// The page cache of the machine, bytes.
    pub cached_bytes: Option<u64>,
    /// Of it, found in files that live processes use.
    pub found_bytes: u64,
    /// Of it, in files that could not be listed.
    pub unseen_bytes: Option<u64>,
    /// What cannot be seen, each in a line.
    pub notes: Vec<String>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its `comm`.
    pub name: String,
    /// Its control group, as /proc/PID/cgroup tells the memory controller's.
    pub group: Option<String>,
    /// Anonymous and shared memory in RAM, bytes.
    pub resident_bytes: u64,
    /// In swap, bytes, shared memory excepted.
    pub swapped_bytes: u64,
    /// Shared memory in swap, bytes; `None` where it cannot be seen.
    pub shared_swapped_bytes: Option<u64>,
    /// Of the files that it uses, in the page cache, bytes; `None` where it cannot be seen.
    pub file_cached_bytes: Option<u64>,
    /// Of what it mapped of files, not in the page cache, bytes.
    pub file_absent_bytes: Option<u64>,
}

/// Looks.
///
/// # Errors
/// Those of [`super::restore::plan`].
pub fn show(root: &Root, request: &Request) -> Result<Shown> {
    let _ = (root, request);
    Ok(Shown {
        processes: Vec::new(),
        parts: Vec::new(),
        cached_bytes: None,
        found_bytes: 0,
        unseen_bytes: None,
        notes: Vec::new(),
    })
}
