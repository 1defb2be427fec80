//! Walking a directory tree in the order of the inodes, on one file system, following no link.
//!
//! The idea: inodes are on the disk in the order of their numbers, and names are not, so each
//! directory is listed first and its entries are visited sorted. A mount that may hang is not
//! asked even what it is. [`warm_metadata`] reads directories and inodes into memory so, for the
//! next `find` or `git status`; listing a directory may change its access time.

use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::reach::Reach;
use std::fs::{DirEntry, Metadata, ReadDir};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many entries are sorted at once: bounds the memory that a huge directory costs.
const ENTRIES_AT_ONCE: usize = 64 << 10;

/// Ends a walk after an interrupt.
pub(crate) fn unless_interrupted() -> ControlFlow<()> {
    if sys::interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What a walk meets.
pub(crate) enum WalkEvent<'a> {
    /// A directory that was opened.
    Directory,
    /// Anything that has an inode, directories included, before they are opened.
    Entry(&'a Path, &'a Metadata),
    /// A directory or an entry that may not be read.
    Refused,
}

/// `top` as an absolute path whose directories are no links; the last name is as it is.
///
/// # Errors
/// `Usage` where it is not there.
pub(crate) fn real(top: &Path) -> Result<PathBuf> {
    let absent = |error| absent(top, &error);
    match (top.parent(), top.file_name()) {
        (Some(parent), Some(name)) => {
            // `.` if the path is one name.
            Ok(Path::new(".").join(parent).canonicalize().map_err(absent)?.join(name))
        }
        _ => top.canonicalize().map_err(absent),
    }
}

fn absent(top: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Usage, "look below", sys::plain_reason(error)).at(top)
}

/// Calls `visit` with `top` and everything below it, until it breaks.
///
/// # Errors
/// `Usage` where `top` is not there.
pub(crate) fn walk(
    root: &Root,
    top: &Path,
    visit: &mut dyn FnMut(WalkEvent<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let metadata = std::fs::symlink_metadata(top).map_err(|error| absent(top, &error))?;
    let real = real(top)?;
    let mut reach = Reach::new(root);
    let mut walk = Walk {
        // The mount of `top` itself is the caller's choice.
        reach: reach.is_safe(&real).then_some(reach),
        top,
        real,
        device: metadata.dev(),
        waiting: Vec::new(),
        visit,
    };
    // How it broke off is the visitor's own business.
    let _ = walk.enter(top, &metadata);
    Ok(())
}

struct Walk<'a> {
    /// `None` where the walk is on a mount that may hang.
    reach: Option<Reach>,
    top: &'a Path,
    real: PathBuf,
    device: u64,
    waiting: Vec<PathBuf>,
    visit: &'a mut dyn FnMut(WalkEvent<'_>) -> ControlFlow<()>,
}

impl Walk<'_> {
    fn enter(&mut self, top: &Path, metadata: &Metadata) -> ControlFlow<()> {
        self.meet(top, metadata)?;
        while let Some(directory) = self.waiting.pop() {
            let Ok(mut listing) = std::fs::read_dir(&directory) else {
                (self.visit)(WalkEvent::Refused)?;
                continue;
            };
            (self.visit)(WalkEvent::Directory)?;
            loop {
                let entries = next_sorted(&mut listing);
                if entries.is_empty() {
                    break;
                }
                for entry in entries {
                    let path = entry.path();
                    if !self.is_safe(&path) {
                        continue;
                    }
                    match entry.metadata() {
                        Ok(metadata) => self.meet(&path, &metadata)?,
                        Err(_) => (self.visit)(WalkEvent::Refused)?,
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether `path` is not where a mount that may hang begins.
    fn is_safe(&mut self, path: &Path) -> bool {
        let below = path.strip_prefix(self.top).unwrap_or(path);
        let real = self.real.join(below);
        self.reach.as_mut().is_none_or(|reach| reach.is_safe(&real))
    }

    fn meet(&mut self, path: &Path, metadata: &Metadata) -> ControlFlow<()> {
        if metadata.dev() != self.device {
            return ControlFlow::Continue(());
        }
        if metadata.is_dir() {
            self.waiting.push(path.to_owned());
        }
        (self.visit)(WalkEvent::Entry(path, metadata))
    }
}

/// The next entries of a directory, by inode.
fn next_sorted(listing: &mut ReadDir) -> Vec<DirEntry> {
    let mut entries: Vec<DirEntry> = listing.flatten().take(ENTRIES_AT_ONCE).collect();
    entries.sort_unstable_by_key(DirEntryExt::ino);
    entries
}
