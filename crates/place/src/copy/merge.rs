//! Moves what was copied to where it is to be. What has no name there yet, a whole tree too, gets
//! it by one rename; a file that has one is replaced by a rename; a directory that exists is merged
//! with, at any depth by few descriptors. What cannot be placed is named, and the rest is.

use super::CopyShared;
use super::staging::Staging;
use crate::metadata::FileMetadata;
use crate::tree::{
    MOST_OPEN_DIRECTORIES, TreeDirectory, TreeEntry, TreeWalk, WalkEvent, WalkLimits,
};
use sys::attributes;
use sys::directory::{Directory, DirectoryStack};
use sys::file_stat::{FileStat, InodeKind};

/// What an owner needs to move names out of a directory.
const OWNER_ALL: u32 = 0o700;

/// Where names were put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merged {
    /// All names are in the one directory.
    Here,
    /// Names were also put into directories below.
    Below,
}

/// What became of an entry.
enum Placed {
    Put,
    /// Both are directories.
    Merges,
    Refused(&'static str),
}

/// Moves all entries of the copy into `into`.
///
/// # Errors
/// Where the copy cannot be walked. What cannot be placed alone is in the report.
pub(super) fn merge(
    shared: &CopyShared<'_>,
    staging: &Staging,
    into: &Directory,
) -> sys::Result<Merged> {
    let mut walk = TreeWalk::below(staging.tree().reopen()?, WalkLimits::default())?;
    let mut way = MergeWay {
        shared,
        staging,
        target: DirectoryStack::new(into.reopen()?, MOST_OPEN_DIRECTORIES),
        stats: Vec::new(),
    };
    let mut merged = Merged::Here;
    while let Some(event) = walk.next() {
        let mut is_skipped = false;
        match event {
            WalkEvent::Entry(entry) | WalkEvent::OtherFileSystem(entry) => {
                let merges = way.entry(&entry);
                is_skipped = !merges && entry.stat.kind == InodeKind::Directory;
            }
            WalkEvent::Enter(directory) if directory.depth > 0 => {
                merged = Merged::Below;
                is_skipped = !way.enter(&directory);
            }
            WalkEvent::Leave(directory) if directory.depth > 0 => way.leave(&directory),
            WalkEvent::Enter(_) | WalkEvent::Leave(_) => {}
            WalkEvent::Refused(path, error) => shared.refused(staging.final_path(&path), &error),
        }
        if is_skipped {
            walk.skip();
        }
    }
    Ok(merged)
}

/// Where the walk is at the target.
struct MergeWay<'a, 'b> {
    shared: &'a CopyShared<'b>,
    staging: &'a Staging,
    target: DirectoryStack,
    /// What the directories of the way were before names left them, which changes their times;
    /// `None` for one that cannot be merged with.
    stats: Vec<Option<FileStat>>,
}

impl MergeWay<'_, '_> {
    /// Places an entry; whether it is a directory that is to be merged with.
    fn entry(&self, entry: &TreeEntry<'_>) -> bool {
        let target = match self.target.current() {
            Ok(target) => target,
            Err(error) => {
                self.failed(self.staging.final_path(&entry.path()), &error);
                return false;
            }
        };
        let path = target.path().join(entry.name);
        match place(entry, target) {
            Ok(Placed::Put) => false,
            Ok(Placed::Merges) => true,
            Ok(Placed::Refused(why)) => {
                self.shared.outcome.failed_at(path, why);
                false
            }
            Err(error) => {
                self.failed(path, &error);
                false
            }
        }
    }

    /// Enters a directory that exists; whether that worked.
    fn enter(&mut self, directory: &TreeDirectory<'_>) -> bool {
        let Some(held) = directory.directory else {
            self.stats.push(None);
            return false;
        };
        let name = held.path().file_name().unwrap_or_default();
        let entered = self.target.enter(name).and_then(|_| FileStat::of(held.file()));
        let stat = match entered {
            Ok(stat) => stat,
            Err(error) => {
                self.failed(self.staging.final_path(held.path()), &error);
                self.stats.push(None);
                return false;
            }
        };
        if stat.mode & OWNER_ALL != OWNER_ALL {
            // Else names cannot leave it; its own error says so then.
            let _ = attributes::set_mode(held.file(), stat.mode | OWNER_ALL);
        }
        self.stats.push(Some(stat));
        true
    }

    /// Gives the directory that exists the metadata of the one that was merged into it.
    fn leave(&mut self, directory: &TreeDirectory<'_>) {
        let Some(stat) = self.stats.pop().flatten() else { return };
        if let (Some(held), Ok(target)) = (directory.directory, self.target.current()) {
            let given = FileMetadata::of(held.file())
                .and_then(|now| give(&FileMetadata { stat, ..now }, target));
            match given {
                Ok(losses) => self.shared.outcome.losses(&losses),
                Err(error) => {
                    let reason = sys::plain_reason(&error.source);
                    let why = format!("cannot give it what the source has: {reason}");
                    self.shared.outcome.incomplete_at(target.path().to_owned(), &why);
                }
            }
        }
        // What cannot be found again has no current directory, which each of its entries says.
        let _ = self.target.leave();
    }

    fn failed(&self, path: std::path::PathBuf, error: &sys::Error) {
        let why = format!("cannot put it in place: {}", sys::plain_reason(&error.source));
        self.shared.outcome.failed_at(path, &why);
    }
}

/// Gives a directory all metadata of another.
pub(super) fn give(
    metadata: &FileMetadata,
    target: &Directory,
) -> sys::Result<Vec<crate::metadata::MetadataLoss>> {
    let mut losses = metadata.apply(target.file())?;
    losses.extend(metadata.seal(target.file())?);
    Ok(losses)
}

/// Moves an entry to where there may be one of its name.
fn place(entry: &TreeEntry<'_>, to: &Directory) -> sys::Result<Placed> {
    let (from, name) = (entry.directory, entry.name);
    let is_directory = entry.stat.kind == InodeKind::Directory;
    match move_to(entry, to) {
        Ok(()) => return Ok(Placed::Put),
        Err(error) if error.is_name_taken() || error.kind == sys::ErrorKind::Unsupported => {}
        Err(error) => return Err(error),
    }
    let theirs = to.stat(name).ok().map(|stat| stat.kind);
    match (is_directory, theirs) {
        (true, Some(InodeKind::Directory)) => return Ok(Placed::Merges),
        (true, Some(_)) => {
            return Ok(Placed::Refused("it is not a directory, and the source is one"));
        }
        (false, Some(InodeKind::Directory)) => {
            return Ok(Placed::Refused("it is a directory, and the source is not"));
        }
        _ => {}
    }
    from.replace_in(name, to, name)?;
    Ok(Placed::Put)
}

/// Moves an entry to a name that is free.
fn move_to(entry: &TreeEntry<'_>, to: &Directory) -> sys::Result<()> {
    let (from, name) = (entry.directory, entry.name);
    match from.move_to(name, to, name) {
        // Its `..` is changed by the move, so its owner must be allowed to write to it.
        Err(error)
            if error.kind == sys::ErrorKind::Denied
                && entry.stat.kind == InodeKind::Directory
                && entry.stat.mode & OWNER_ALL != OWNER_ALL =>
        {
            writable_for(entry, || from.move_to(name, to, name))
        }
        moved => moved,
    }
}

/// Does something with a directory while its owner may write to it.
fn writable_for(
    entry: &TreeEntry<'_>,
    action: impl FnOnce() -> sys::Result<()>,
) -> sys::Result<()> {
    let held = entry.directory.hold(entry.name)?;
    attributes::set_mode(&held, entry.stat.mode | OWNER_ALL)?;
    let done = action();
    attributes::set_mode(&held, entry.stat.mode)?;
    done
}
