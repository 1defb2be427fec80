//! The end of a copy: directories get their metadata, and everything gets its name.
//!
//! A directory gets its metadata when nothing is put into it any more; how names are given is in
//! [`super::merge`].

use super::CopyShared;
use super::merge::{Merged, give, merge};
use super::plan::CopyPlan;
use super::staging::{Staging, sync_failed};
use crate::Result;
use crate::metadata::FileMetadata;
use crate::tree::{MOST_OPEN_DIRECTORIES, TreeWalk, WalkEvent, WalkLimits};
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
            // The first name was the one whose data was copied.
            shared.outcome.uncount_name();
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

/// Gives everything its name, and makes that durable. Returns what the target itself gets, if its
/// entries are those of a source (`SRC/.`).
///
/// # Errors
/// Where the target's directory cannot be written to. What cannot be put in place alone is in the
/// report.
pub(super) fn put_in_place(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    staging: &Staging,
) -> Result<Option<FileMetadata>> {
    let is_target = plan.items.iter().any(|item| item.target_name.is_none());
    let metadata = is_target.then(|| FileMetadata::of(staging.tree().file())).transpose()?;
    let merged = merge(shared, staging, &plan.into)?;
    if merged == Merged::Below {
        // Names in several directories.
        staging.make_durable()?;
    } else {
        plan.into.sync().map_err(sync_failed)?;
    }
    Ok(metadata)
}

/// Gives the target the metadata of a source, after the hidden directory left it.
pub(super) fn dress_target(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    metadata: &FileMetadata,
) -> Result<()> {
    shared.outcome.losses(&give(metadata, &plan.into)?);
    plan.into.sync()?;
    Ok(())
}
