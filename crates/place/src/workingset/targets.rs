//! Whose memory: processes chosen by number, control group or name, each held by a
//! descriptor so that its number cannot pass to another meanwhile.

use crate::Result;
use machine::Root;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Which processes are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These, by number.
    Processes(Vec<u32>),
    /// All in a control group and below: a path as in /proc/PID/cgroup, or a directory of
    /// the control group file system.
    Group(PathBuf),
    /// All whose executable's file name, `comm` or systemd unit is this name.
    Application(String),
    /// All that this user may look into.
    All,
}

/// A process, held.
#[derive(Debug)]
pub struct Target {
    /// Its number.
    pub pid: u32,
    /// Its `comm`.
    pub name: String,
    /// When it started, in ticks since boot: with the number it names a process for ever.
    pub start_ticks: u64,
    /// Readable once the process has ended.
    pub descriptor: OwnedFd,
}

impl Target {
    /// Whether the process still lives.
    #[must_use]
    pub fn lives(&self) -> bool {
        false
    }
}

/// Holds the processes of `selection`, kernel threads and this process excepted, in the order
/// of their numbers.
///
/// # Errors
/// `Usage` for a process, group or name that is not there; `Impossible` for one that this
/// user may not look into.
pub fn find(root: &Root, selection: &Selection) -> Result<Vec<Target>> {
    let _ = (root, selection);
    Ok(Vec::new())
}
