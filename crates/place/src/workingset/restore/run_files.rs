//! Restores shared memory and files, and lists directories, under the same allowance.
//!
//! Files are read from inside the control group of a process that uses them, so that they are
//! charged where they are used. This process reads those of its own group and of a snapshot.

use super::plan::{FileGroup, FileRead, MemoryKind, PlannedWork};
use super::run::RestoreRun;
use crate::background::{GROUP_MARGIN, StopReason};
use crate::workingset::cgroup_reader;
use crate::workingset::read::{self, ReadCounts};
use crate::workingset::{metadata, shared};
use crate::{ErrorKind, Result};
use model::Control;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Restores shared memory, object by object.
pub(super) fn restore_shared(run: &mut RestoreRun<'_>, work: &PlannedWork) -> Option<StopReason> {
    let mut stop = None;
    let swapped = work.shared.iter().filter(|object| !object.swapped.is_empty());
    for object in swapped {
        let start = Instant::now();
        let mut reported = 0;
        let amounts = shared::restore(object, &mut |progress| {
            run.advance_to(progress.done, &mut reported);
            stop = run.check();
            Control::stop_if(stop.is_some())
        });
        let speed = work.shared_speed;
        run.add_part(MemoryKind::Shared, &object.name, amounts, start, speed);
        if stop.is_some() {
            break;
        }
    }
    stop
}

/// Restores files, group by group and disk by disk.
///
/// # Errors
/// `Failed` if a helper ended early.
pub(super) fn restore_files(
    run: &mut RestoreRun<'_>,
    work: &PlannedWork,
) -> Result<Option<StopReason>> {
    // Bytes restored into each group: the kernel counts them as room, since it could reclaim them.
    let mut restored: BTreeMap<&Path, u64> = BTreeMap::new();
    for files in &work.files {
        let start = Instant::now();
        let group = files.group.as_ref().map(|group| group.directory.as_path());
        let before = group.and_then(|group| restored.get(group)).copied();
        let (read, stop) = read_files(run, files, before.unwrap_or(0))?;
        if let Some(group) = group {
            *restored.entry(group).or_default() += read.bytes;
        }
        if read.changed_files > 0 {
            let note = format!("{} files are left out: changed since", read.changed_files);
            run.report.notes.push(note);
        }
        let amounts = (read.bytes, read.present_bytes);
        run.add_part(MemoryKind::File, &files.source, amounts, start, files.speed);
        match stop {
            // The next group may have room.
            Some(StopReason::GroupLimit) => run.group_left_out = true,
            Some(stop) => return Ok(Some(stop)),
            None => {}
        }
    }
    Ok(None)
}

/// Lists directories and inodes. This comes last: it may evict nothing that is wanted more.
///
/// # Errors
/// `Usage` for a tree that does not exist.
pub(super) fn warm_metadata(run: &mut RestoreRun<'_>) -> Result<Option<StopReason>> {
    let trees = &run.request.metadata;
    if trees.is_empty() {
        return Ok(None);
    }
    let walked = metadata::warm_metadata(run.root, trees, &mut run.allowance)?;
    run.report.notes.push(format!(
        "{} directories with {} entries were listed, {} were refused",
        walked.directories, walked.inodes, walked.refused
    ));
    Ok(run.check())
}

/// Reads what has room in its group, into which `restored` bytes of files came before. More would
/// evict what was just read.
fn read_files(
    run: &mut RestoreRun<'_>,
    files: &FileRead,
    restored: u64,
) -> Result<(ReadCounts, Option<StopReason>)> {
    let group = files.group.as_ref();
    let free = group.and_then(|group| run.allowance.group_room(group.target));
    let room = free.map(|free| free.0.saturating_sub(GROUP_MARGIN.0 + restored));
    let fitting = files.plan.limited_to(room);
    let cut = matches!(fitting, Cow::Owned(_)).then_some(StopReason::GroupLimit);
    // What this process reads is charged to its own group.
    let (own, other) = match group {
        Some(group) if group.is_own => (Some(group), None),
        other => (None, other),
    };
    if let Some((other, helper)) = other.zip(run.request.helper.as_ref()) {
        let (mut stop, mut reported) = (None, 0);
        let read = cgroup_reader::read_inside(&other.directory, helper, &fitting, &mut |read| {
            run.advance_to(read.bytes, &mut reported);
            stop = group_limit(run, other).or_else(|| run.check_unblocked());
            Control::stop_if(stop.is_some())
        });
        match read {
            Err(error) if error.kind == ErrorKind::Impossible => {
                let note = format!("files are charged to this process's group: {error}");
                run.report.notes.push(note);
            }
            read => return Ok((read?, stop.or(cut))),
        }
    }
    // The room of another group does not bind what is not charged to it.
    let (plan, cut) = match own {
        Some(_) => (&*fitting, cut),
        None => (&files.plan, None),
    };
    let (mut stop, mut reported) = (None, 0);
    let read = read::pieces(plan, &mut |read| {
        run.advance_to(read.bytes, &mut reported);
        stop = own.and_then(|own| group_limit(run, own)).or_else(|| run.check());
        Control::stop_if(stop.is_some())
    });
    Ok((read, stop.or(cut)))
}

/// Whether the group that is charged is full.
fn group_limit(run: &RestoreRun<'_>, group: &FileGroup) -> Option<StopReason> {
    let is_full = run.allowance.is_group_full(group.target);
    is_full.then_some(StopReason::GroupLimit)
}
