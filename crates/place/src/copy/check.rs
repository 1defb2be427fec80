//! What does not fit the target, found before the first byte is copied.
//!
//! The idea: most targets hold every name that Linux has, and have more room than the source's file
//! system has in use. Then nothing is looked through. Else the sources are walked once, which also
//! brings their metadata into memory for the copy.

use super::CopyRequest;
use super::plan::CopyPlan;
use super::staging::Staging;
use crate::fit::{
    CaseFolding, FitEntry, MisfitEffect, NameCollisions, NameRules, RoomNeeded, RoomShortage,
    TargetFacts, misfits,
};
use crate::tree::{TreeEntry, TreeWalk, WalkEvent, WalkLimits};
use crate::{EntryFailure, Error, ErrorKind, Result};
use model::Bytes;
use model::progress::Control;
use std::path::Path;
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};

/// So many entries that do not fit are named.
const MOST_NAMED: usize = 1000;
/// The caller is asked once for so many entries.
const ASK_EVERY_ENTRIES: u64 = 256;
/// So many of them are in the error's text.
const MOST_IN_TEXT: usize = 5;

/// What was found out about the target.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) facts: TargetFacts,
    /// Whether some names or kinds of entries do not fit.
    pub(super) is_restricted: bool,
}

impl Fit {
    /// What the target of a plan holds.
    pub(super) fn of(plan: &CopyPlan) -> Result<Self> {
        let facts = TargetFacts::of(&plan.into)?;
        let is_restricted = facts.names != NameRules::UNIX
            || facts.largest_file_bytes.is_some()
            || !facts.has_links
            || !facts.has_special_files;
        Ok(Self { facts, is_restricted })
    }

    /// Why an entry is not copied: it does not fit, or there is nothing of its kind.
    pub(super) fn fault(&self, entry: &TreeEntry<'_>) -> Option<(MisfitEffect, String)> {
        if !self.is_restricted {
            return None;
        }
        let entry = FitEntry { name: entry.name, stat: entry.stat, extended: &[] };
        let worst = misfits(&entry, &self.facts).into_iter().max_by_key(|found| found.effect())?;
        (worst.effect() > MisfitEffect::Reduced).then(|| (worst.effect(), worst.to_string()))
    }

    /// Whether the target's inodes keep their numbers; those of FAT do not.
    pub(super) fn has_inodes(&self) -> bool {
        self.facts.has_hard_links
    }

    /// Whether names of one directory can be the same name there.
    pub(super) fn folds_case(&self) -> bool {
        self.facts.names.folding != CaseFolding::None
    }
}

/// Looks for what does not fit: the entries that would be refused, the first 1,000.
///
/// # Errors
/// `Impossible` if there is certainly too little room.
pub fn unfit(
    request: &CopyRequest,
    plan: &CopyPlan,
    ask: &mut dyn FnMut() -> Control,
) -> Result<Vec<EntryFailure>> {
    let fit = Fit::of(plan)?;
    if !fit.is_restricted && has_room_for_all(plan, &fit.facts) {
        return Ok(Vec::new());
    }
    let mut search = Search { fit, room: RoomNeeded::default(), unfit: Vec::new() };
    for item in &plan.items {
        if item.stat.kind != InodeKind::Directory {
            let name = item.target_name.as_deref().unwrap_or_default();
            let entry = TreeEntry { directory: &item.parent, name, stat: &item.stat };
            search.entry(&entry, None);
            continue;
        }
        let top = match &item.name {
            Some(name) => item.parent.subdirectory(name)?,
            None => item.parent.reopen()?,
        };
        if search.tree(top, request.one_file_system, ask)?.is_stop() {
            break;
        }
    }
    // What an earlier run copied takes none of the room that is free.
    let is_resumed = Staging::is_there(plan) && !request.restart;
    match search.room.shortage(&search.fit.facts) {
        None => Ok(search.unfit),
        Some(_) if is_resumed => Ok(search.unfit),
        Some(shortage) => Err(too_little(shortage, plan.into_path())),
    }
}

/// The error of what does not fit, unless such entries are to be skipped.
pub(super) fn refuse(unfit: &[EntryFailure], plan: &CopyPlan) -> Error {
    let named: Vec<String> = unfit
        .iter()
        .take(MOST_IN_TEXT)
        .map(|found| format!("{} ({})", found.path.display(), found.reason))
        .collect();
    let more = match unfit.len().saturating_sub(MOST_IN_TEXT) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let why = format!(
        "it cannot hold {}{more}; --dry-run lists them, --skip-unfit leaves them out",
        named.join(", ")
    );
    Error::new(ErrorKind::Impossible, "copy to", why).at(plan.into_path())
}

struct Search {
    fit: Fit,
    room: RoomNeeded,
    unfit: Vec<EntryFailure>,
}

impl Search {
    fn tree(
        &mut self,
        top: Directory,
        one_file_system: bool,
        ask: &mut dyn FnMut() -> Control,
    ) -> Result<Control> {
        let limits = WalkLimits { one_file_system, ..WalkLimits::default() };
        let mut walk = TreeWalk::below(top, limits)?;
        let mut names: Vec<NameCollisions> = Vec::new();
        let mut met: u64 = 0;
        while let Some(event) = walk.next() {
            match event {
                WalkEvent::Enter(_) => names.push(NameCollisions::default()),
                WalkEvent::Leave(_) => drop(names.pop()),
                WalkEvent::Entry(entry) => self.entry(&entry, names.last_mut()),
                WalkEvent::OtherFileSystem(_) | WalkEvent::Refused(..) => {}
            }
            met += 1;
            if met.is_multiple_of(ASK_EVERY_ENTRIES) && ask().is_stop() {
                return Ok(Control::Stop);
            }
        }
        Ok(Control::Continue)
    }

    fn entry(&mut self, entry: &TreeEntry<'_>, names: Option<&mut NameCollisions>) {
        let fault = self
            .fit
            .fault(entry)
            .filter(|(effect, _)| *effect == MisfitEffect::Refused)
            .map(|(_, why)| why)
            .or_else(|| collision(names?, entry, &self.fit));
        match fault {
            Some(reason) if self.unfit.len() < MOST_NAMED => {
                self.unfit.push(EntryFailure { path: entry.path(), reason });
            }
            Some(_) => {}
            None => self.room.add(entry.stat, &self.fit.facts),
        }
    }
}

/// The name that an entry collides with, in words.
pub(super) fn collision(
    names: &mut NameCollisions,
    entry: &TreeEntry<'_>,
    fit: &Fit,
) -> Option<String> {
    let with = names.add(entry.name, &fit.facts.names)?;
    Some(crate::fit::Misfit::Collision(with.to_owned()).to_string())
}

/// Whether the target has more room than all file systems of the sources have in use.
fn has_room_for_all(plan: &CopyPlan, facts: &TargetFacts) -> bool {
    let mut devices: Vec<u64> = Vec::new();
    let (mut bytes, mut inodes) = (0u64, 0u64);
    for item in &plan.items {
        if item.stat.kind != InodeKind::Directory {
            bytes = bytes.saturating_add(item.stat.bytes);
            inodes += 1;
            continue;
        }
        if devices.contains(&item.stat.device) {
            continue;
        }
        devices.push(item.stat.device);
        let Ok(system) = sys::file::file_system(item.parent.file()) else { return false };
        let (Some(used_bytes), Some(used_inodes)) = (system.used_bytes, system.used_inodes) else {
            return false;
        };
        bytes = bytes.saturating_add(used_bytes);
        inodes = inodes.saturating_add(used_inodes);
    }
    // Other file systems below the sources are found by the walk only; twice the room is enough for
    // most of them, and what is full midway is said then.
    bytes.saturating_mul(2) < facts.free_bytes
        && facts.free_inodes.is_none_or(|free| inodes.saturating_mul(2) < free)
}

fn too_little(shortage: RoomShortage, path: &Path) -> Error {
    let why = match shortage {
        RoomShortage::Bytes { needed, free } => {
            format!("at least {} are needed, and {} are free", Bytes(needed), Bytes(free))
        }
        RoomShortage::Inodes { needed, free } => {
            format!("at least {needed} inodes are needed, and {free} are free")
        }
    };
    Error::new(ErrorKind::Impossible, "copy to", why).at(path)
}

/// Whether a file may have several names at the target.
pub(super) fn has_hard_links(fit: &Fit, stat: &FileStat) -> bool {
    stat.links > 1 && fit.facts.has_hard_links
}
