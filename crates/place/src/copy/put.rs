//! The end of a copy: directories get their metadata, and everything gets its name.
//!
//! What does not exist yet, a whole tree too, gets its name by one rename. A directory that exists
//! is merged with: its files are replaced one by one, each by a rename.

use super::CopyShared;
use super::plan::CopyPlan;
use super::staging::Staging;
use crate::metadata::FileMetadata;
use crate::tree::{MOST_OPEN_DIRECTORIES, TreeWalk, WalkEvent, WalkLimits};
use crate::{Error, ErrorKind, Result};
use std::ffi::OsStr;
use sys::directory::{Directory, DirectoryStack};
use sys::file_stat::InodeKind;

/// Removes all names of inodes that were not completed.
pub(super) fn remove_broken(shared: &CopyShared<'_>, staging: &Staging) -> Result<()> {
    let broken = shared.outcome.broken();
    if broken.is_empty() {
        return Ok(());
    }
    let mut walk = TreeWalk::below(staging.tree().reopen()?, WalkLimits::default())?;
    while let Some(event) = walk.next() {
        if let WalkEvent::Entry(entry) = event
            && entry.stat.kind == InodeKind::File
            && broken.contains(&entry.stat.inode)
        {
            let path = staging.final_path(&entry.path());
            entry.directory.remove(entry.name)?;
            shared.outcome.failed_at(path, "another name of it could not be copied");
        }
    }
    Ok(())
}

/// Gives the directories of the copy the metadata of those of the source.
pub(super) fn dress_directories(shared: &CopyShared<'_>, plan: &CopyPlan, staging: &Staging) {
    for item in &plan.items {
        if item.stat.kind != InodeKind::Directory {
            continue;
        }
        if let Err(error) = dress_tree(shared, item, staging) {
            shared.refused(item.path.clone(), &error);
        }
    }
}

fn dress_tree(
    shared: &CopyShared<'_>,
    item: &super::plan::CopyItem,
    staging: &Staging,
) -> sys::Result<()> {
    let source = match &item.name {
        Some(name) => item.parent.subdirectory(name)?,
        None => item.parent.reopen()?,
    };
    let target = match &item.target_name {
        Some(name) => staging.tree().subdirectory(name)?,
        None => staging.tree().reopen()?,
    };
    let one_file_system = shared.request.one_file_system;
    let mut walk =
        TreeWalk::below(source, WalkLimits { one_file_system, ..WalkLimits::default() })?;
    let mut stack = DirectoryStack::new(target, MOST_OPEN_DIRECTORIES);
    // Levels of the source that the copy does not have.
    let mut missing = 0;
    while let Some(event) = walk.next() {
        if shared.is_stopped() {
            return Ok(());
        }
        match event {
            WalkEvent::Enter(directory) if directory.depth > 0 => {
                let held = directory.directory.and_then(|held| held.path().file_name());
                let name = held.map(OsStr::to_owned).unwrap_or_default();
                if missing > 0 || stack.enter(&name).is_err() {
                    missing += 1;
                }
            }
            WalkEvent::Leave(directory) => {
                if missing > 0 {
                    missing -= 1;
                    continue;
                }
                if let Some(held) = directory.directory {
                    let dressed = stack.current().and_then(|target| dress(held, target));
                    match dressed {
                        Ok(losses) => shared.outcome.losses(&losses),
                        Err(error) => shared.refused(held.path().to_owned(), &error),
                    }
                }
                stack.leave()?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn dress(
    source: &Directory,
    target: &Directory,
) -> sys::Result<Vec<crate::metadata::MetadataLoss>> {
    give(&FileMetadata::of(source.file())?, target)
}

/// Gives a directory all metadata of another.
fn give(
    metadata: &FileMetadata,
    target: &Directory,
) -> sys::Result<Vec<crate::metadata::MetadataLoss>> {
    let mut losses = metadata.apply(target.file())?;
    losses.extend(metadata.seal(target.file())?);
    Ok(losses)
}

/// Gives everything its name, and makes that durable.
///
/// # Errors
/// Where the target's directory cannot be written to. What cannot be put in place alone is in the
/// report.
pub(super) fn put_in_place(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    staging: &Staging,
) -> Result<()> {
    let metadata = FileMetadata::of(staging.tree().file())?;
    let merged = merge(shared, staging.tree(), &plan.into)?;
    // With `SRC/.` the target itself is the copy of a directory.
    if plan.items.iter().any(|item| item.target_name.is_none())
        && let Ok(losses) = give(&metadata, &plan.into)
    {
        shared.outcome.losses(&losses);
    }
    if merged == Merged::Below {
        // Names in several directories.
        staging.make_durable()?;
    } else {
        plan.into.sync()?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Merged {
    /// All names are in the one directory.
    Here,
    /// Names were also put into directories below.
    Below,
}

/// Moves all entries of `from` into `to`.
fn merge(shared: &CopyShared<'_>, from: &Directory, to: &Directory) -> Result<Merged> {
    let mut merged = Merged::Here;
    for name in from.names()? {
        match from.move_to(&name, to, &name) {
            Ok(()) => {}
            Err(error) if error.is_name_taken() || error.kind == sys::ErrorKind::Unsupported => {
                if put_on(shared, from, to, &name)? == Merged::Below {
                    merged = Merged::Below;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(merged)
}

/// Moves an entry to where there may be one of its name.
fn put_on(
    shared: &CopyShared<'_>,
    from: &Directory,
    to: &Directory,
    name: &OsStr,
) -> Result<Merged> {
    let ours = from.stat(name)?.kind;
    let theirs = to.stat(name).ok().map(|stat| stat.kind);
    let path = to.path().join(name);
    match (ours, theirs) {
        (InodeKind::Directory, Some(InodeKind::Directory)) => {
            let (below, existing) = (from.subdirectory(name)?, to.subdirectory(name)?);
            // Before names leave it, which changes its time.
            let metadata = FileMetadata::of(below.file())?;
            merge(shared, &below, &existing)?;
            shared.outcome.losses(&give(&metadata, &existing)?);
            from.remove_directory(name)?;
            return Ok(Merged::Below);
        }
        (InodeKind::Directory, Some(_)) => {
            shared.outcome.failed_at(path, "it is not a directory, and the source is one");
        }
        (_, Some(InodeKind::Directory)) => {
            shared.outcome.failed_at(path, "it is a directory, and the source is not");
        }
        _ => {
            let put = from.replace_in(name, to, name);
            put.map_err(|error| Error::new(ErrorKind::Failed, "put in place", error).at(path))?;
        }
    }
    Ok(Merged::Here)
}
