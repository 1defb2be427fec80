//! What each process has in RAM, in swap and in the page cache, and what a restore would read.
//! Reads nothing back: the plan of a restore is made and thrown away.

use super::anonymous::{self, AnonymousPages};
use super::files::{self, UsedFile};
use super::restore::{self, PlannedSource, RestoreRequest};
use super::shared::{self, SharedObject};
use super::targets::{self, Selection, TargetProcess};
use crate::Result;
use crate::cached::Access;
use crate::ranges;
use machine::Root;
use machine::cgroup;
use machine::mounts::{self, Mount};
use model::doctor::POINTER;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use sys::process::{Capability, has_capability};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkingSetReport {
    /// One for each process, most in swap first.
    pub processes: Vec<ProcessMemory>,
    /// What a restore would read, by source.
    pub parts: Vec<PlannedSource>,
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
pub struct ProcessMemory {
    /// Its number.
    pub pid: u32,
    /// Its `comm`.
    pub name: String,
    /// Its control group, that of the memory controller.
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

/// Looks. What several processes use is counted for each of them, and once in `found_bytes`.
///
/// # Errors
/// Those of [`super::restore::plan`].
pub fn show(root: &Root, request: &RestoreRequest) -> Result<WorkingSetReport> {
    let mut plan = restore::plan(root, request)?;
    if request.selection == Selection::All && !has_capability(Capability::SysPtrace) {
        let note = "processes of other users are not seen: that takes the capability SYS_PTRACE";
        plan.notes.push(format!("{note} ({POINTER})"));
    }
    let targets = targets::find(root, &request.selection)?;
    // The plan has asked the same, and its notes name what was left out.
    let mut access = Access::new(root);
    let files = files::find(root, &targets, &mut access)?;
    let used = UsedMemory {
        mounts: mounts::read(root),
        // Where it may not be seen, a note of the plan says so.
        shared: shared::find(root, &targets).ok(),
        by_target: by_target(targets.len(), &files),
        files,
    };
    let mut processes = Vec::new();
    let refusals = anonymous::scan_all(root, &targets, |index, pages| {
        processes.push(used.process(root, &targets[index as usize], index, &pages));
    });
    processes.sort_by_key(|process: &ProcessMemory| {
        let shared = process.shared_swapped_bytes.unwrap_or(0);
        let swapped = process.swapped_bytes.saturating_add(shared);
        Reverse((swapped, process.resident_bytes))
    });
    // All that may be looked into can be none; of those that were named it is a refusal.
    let is_refused = request.selection != Selection::All && processes.is_empty();
    if let Some(note) = refusals.note(is_refused)?.filter(|note| !plan.notes.contains(note)) {
        plan.notes.push(note);
    }
    let cached_bytes = machine::memory::page_cache(root).map(|bytes| bytes.0);
    let found_bytes = ranges::sum(used.files.iter().filter_map(|file| file.cached_bytes));
    Ok(WorkingSetReport {
        processes,
        parts: plan.parts,
        cached_bytes,
        found_bytes,
        unseen_bytes: cached_bytes.map(|cached| cached.saturating_sub(found_bytes)),
        notes: plan.notes,
    })
}

/// What the processes use together.
struct UsedMemory {
    mounts: Vec<Mount>,
    shared: Option<Vec<SharedObject>>,
    files: Vec<UsedFile>,
    /// The files of each target: indices into `files`.
    by_target: Vec<Vec<usize>>,
}

fn by_target(targets: usize, files: &[UsedFile]) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); targets];
    for (at, file) in files.iter().enumerate() {
        for target in &file.targets {
            found[*target as usize].push(at);
        }
    }
    found
}

impl UsedMemory {
    /// What the target with this index has.
    fn process(
        &self,
        root: &Root,
        target: &TargetProcess,
        index: u32,
        pages: &AnonymousPages,
    ) -> ProcessMemory {
        let group = cgroup::memory_group_of(root, &self.mounts, target.pid);
        let page_bytes = sys::process::page_bytes() as u64;
        let shared = self.shared.as_deref();
        let objects = || {
            let all = shared.into_iter().flatten();
            all.filter(|object| object.targets.contains(&index))
        };
        let files = || {
            let own = self.by_target[index as usize].iter();
            own.map(|at| &self.files[*at])
        };
        // Of a file whose cache is unknown all would count as absent: it is left out.
        let known = || files().filter_map(|file| Some((file, file.cached_bytes?)));
        let is_known = known().next().is_some() || files().next().is_none();
        let shared_present: u64 = objects().map(|object| object.present_bytes).sum();
        let shared_swapped = objects().map(|object| ranges::total(&object.swapped));
        ProcessMemory {
            pid: target.pid,
            name: target.name.clone(),
            group: group.and_then(|place| Some(place.groups().first()?.path.clone())),
            resident_bytes: pages.present_pages * page_bytes + shared_present,
            swapped_bytes: pages.swapped.len() as u64 * page_bytes,
            shared_swapped_bytes: shared.map(|_| shared_swapped.sum()),
            file_cached_bytes: is_known.then(|| ranges::sum(known().map(|(_, cached)| cached))),
            file_absent_bytes: is_known
                .then(|| ranges::sum(known().map(|(file, _)| ranges::total(&file.absent)))),
        }
    }
}
