//! Plans shared memory and files: what of them is not in memory, on which device, and which control
//! group is charged for it.

use super::plan::{FileGroup, FileRead, MemoryKind, PlannedSource, RestorePlan, RestoreRequest};
use crate::Result;
use crate::cached::Access;
use crate::read_plan::{Piece, ReadPlan, WantedFile};
use crate::workingset::speed::TrialPurpose;
use crate::workingset::targets::TargetProcess;
use crate::workingset::{files, shared, snapshot};
use crate::{order, ranges};
use machine::cgroup::{self, Controller, GroupPlace};
use machine::mounts::{self, Mount};
use machine::{Root, swap};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Finds shared memory in swap. A note says if this user may not see it.
pub(super) fn plan_shared(root: &Root, request: &RestoreRequest, plan: &mut RestorePlan) {
    match shared::find(root, &plan.work.targets) {
        Ok(objects) => plan.work.shared = objects,
        Err(error) => {
            let note = format!("shared memory is left out: {error}");
            return plan.notes.push(note);
        }
    }
    let objects = plan.work.shared.iter();
    let (bytes, runs) = objects.fold((0, 0), |(bytes, runs), object| {
        let swapped = &object.swapped;
        (bytes + ranges::total(swapped), runs + swapped.len() as u64)
    });
    if bytes == 0 {
        return;
    }
    let areas = swap::areas(root);
    // With several areas it is unknown which one has it: shared memory has no slots to look at.
    let only = areas.first().filter(|_| areas.len() == 1);
    // For the same reason it is unknown where on the area it begins.
    let purpose = TrialPurpose { bytes, start: None, in_order: request.estimate };
    let index = only.and_then(|area| plan.try_area(root, area, purpose));
    let speed = index.map(|index| &plan.speeds[index]);
    let source = only.map_or_else(|| "swap".to_owned(), |area| area.path.display().to_string());
    let part = PlannedSource::new(MemoryKind::Shared, source, (bytes, runs), speed);
    plan.parts.push(part);
    plan.work.shared_speed = index;
}

/// Finds the parts of files that are not in the page cache, by control group and disk.
///
/// # Errors
/// Those of [`files::find`].
pub(super) fn plan_files(
    root: &Root,
    request: &RestoreRequest,
    plan: &mut RestorePlan,
) -> Result<()> {
    let mounts = mounts::read(root);
    let mut access = Access::new(root);
    let mut by_group: BTreeMap<Option<FileGroup>, Vec<WantedFile>> = BTreeMap::new();
    match &request.snapshot {
        Some(snapshot) => {
            let missing = snapshot::missing(snapshot, &mut access);
            plan.notes.extend(changed_note(missing.changed_files));
            by_group.insert(None, missing.files);
        }
        None => {
            let mut groups = FileGroups::new(root, &mounts, &plan.work.targets);
            let found = files::find(root, &plan.work.targets, &mut access)?;
            for file in found.into_iter().filter(|file| !file.absent.is_empty()) {
                let group = file.targets.first().and_then(|user| groups.of(*user));
                let wanted = WantedFile::new(file.path, file.identity, file.absent);
                by_group.entry(group).or_default().push(wanted);
            }
        }
    }
    for (group, wanted) in by_group {
        for (device, wanted) in by_device(wanted) {
            let read_plan = order::by_position(wanted, &mut access);
            plan_device(root, request, group.clone(), (device, read_plan), plan);
        }
    }
    plan.notes.extend(access.notes());
    Ok(())
}

/// A note about files of a snapshot that are not read.
fn changed_note(files: u64) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 file of the snapshot has changed or is gone".to_owned()),
        files => Some(format!("{files} files of the snapshot have changed or are gone")),
    }
}

fn by_device(all: Vec<WantedFile>) -> BTreeMap<u64, Vec<WantedFile>> {
    let mut devices: BTreeMap<u64, Vec<WantedFile>> = BTreeMap::new();
    for wanted in all {
        devices.entry(wanted.file.identity.device).or_default().push(wanted);
    }
    devices
}

/// Plans the reads from one device for one group.
fn plan_device(
    root: &Root,
    request: &RestoreRequest,
    group: Option<FileGroup>,
    (device, read_plan): (u64, ReadPlan),
    plan: &mut RestorePlan,
) {
    let bytes = read_plan.bytes();
    if bytes == 0 {
        return;
    }
    let (major, minor) = sys::block::device_numbers(device);
    let purpose = TrialPurpose {
        bytes,
        start: read_plan.pieces.first().and_then(|piece| piece.physical),
        in_order: request.estimate,
    };
    let index = plan.try_device(root, (major, minor), None, purpose);
    let speed = index.map(|index| &plan.speeds[index]);
    let runs = read_plan.pieces.chunk_by(Piece::is_followed_by).count() as u64;
    let name = machine::block::name_of_device(root, major, minor);
    let source = name.unwrap_or_else(|| format!("{major}:{minor}"));
    let part = PlannedSource::new(MemoryKind::File, source.clone(), (bytes, runs), speed);
    plan.parts.push(part);
    plan.work.files.push(FileRead { source, group, plan: read_plan, speed: index });
}

/// The groups of targets, each read once: one process uses many files.
struct FileGroups<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    targets: &'a [TargetProcess],
    /// That of this process.
    own: Option<PathBuf>,
    by_target: HashMap<u32, Option<FileGroup>>,
    /// The first target in each.
    first: HashMap<PathBuf, u32>,
}

impl<'a> FileGroups<'a> {
    fn new(root: &'a Root, mounts: &'a [Mount], targets: &'a [TargetProcess]) -> Self {
        Self {
            root,
            mounts,
            targets,
            own: cgroup::own_group(root, Controller::Memory).and_then(directory_of),
            by_target: HashMap::new(),
            first: HashMap::new(),
        }
    }

    /// The group of the target with this index.
    fn of(&mut self, target: u32) -> Option<FileGroup> {
        if let Some(known) = self.by_target.get(&target) {
            return known.clone();
        }
        let pid = self.targets[target as usize].pid;
        let place = cgroup::memory_group_of(self.root, self.mounts, pid);
        let directory = place.and_then(directory_of);
        let group = directory.map(|directory| FileGroup {
            target: *self.first.entry(directory.clone()).or_insert(target),
            is_own: self.own.as_ref() == Some(&directory),
            directory,
        });
        self.by_target.insert(target, group.clone());
        group
    }
}

fn directory_of(group: GroupPlace) -> Option<PathBuf> {
    Some(group.groups().first()?.directory.clone())
}
