//! The walk of a copy: makes directories, links and special files itself, and sends regular files
//! to the threads that move data.
//!
//! The target is walked beside the source, by descriptors: a directory that becomes a link
//! meanwhile leads nowhere. What exists at the final place is looked at only where the copy merges
//! into directories that exist.

use super::plan::{CopyItem, CopyPlan};
use super::send::FileSender;
use super::staging::Staging;
use super::{CopyShared, DirectoryPair, Existing, FileJob, Queues, check};
use crate::fit::{MisfitEffect, NameCollisions};
use crate::metadata::create_like;
use crate::tree::{
    MOST_OPEN_DIRECTORIES, TreeDirectory, TreeEntry, TreeWalk, WalkEvent, WalkLimits,
};
use crate::{Result, metadata::FileMetadata};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sys::directory::{Directory, DirectoryStack};
use sys::file_stat::{FileStat, InodeKind};

/// Until a file is complete only its owner may read it.
const OWNER_ONLY: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// Times of FAT have two seconds. A source that was changed so recently could seem complete.
const COARSE_SECONDS: i64 = 2;
const RECENT_SECONDS: i64 = 10;

impl FileJob {
    /// The target's file: empty, or what an earlier run left if the copy goes on in it.
    pub(super) fn open_target(&self, shared: &CopyShared<'_>) -> sys::Result<File> {
        if self.resume_from > 0 {
            return self.pair.target.open_own_linked(&self.target_name);
        }
        shared.offsets.forget(&self.stat)?;
        self.make_target()
    }

    /// The target's file, empty.
    pub(super) fn make_target(&self) -> sys::Result<File> {
        let target = &self.pair.target;
        if self.is_made {
            let made = target.open_own_linked(&self.target_name)?;
            // Of a first attempt: its data would stay where the source has holes now.
            made.set_len(0).map_err(|error| sys::Error::new("set the length", error))?;
            return Ok(made);
        }
        match target.create_new(&self.target_name, OWNER_ONLY) {
            Err(error) if error.is_name_taken() => {
                // What an earlier run did not complete.
                target.remove(&self.target_name)?;
                target.create_new(&self.target_name, OWNER_ONLY)
            }
            made => made,
        }
    }
}

impl Drop for DirectoryPair {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Walks all sources, and ends when everything was sent or the copy was stopped.
pub(super) fn walk_all(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    staging: &Staging,
    queues: &Queues,
) -> Result<()> {
    shared.outcome.leftovers(staging.others());
    let sender = FileSender::new(shared, queues);
    for item in &plan.items {
        if shared.is_stopped() {
            break;
        }
        let existing = match &item.target_name {
            Some(name) => plan.into.subdirectory(name).ok(),
            None => Some(plan.into.reopen()?),
        };
        let walk = CopyWalk { shared, staging, sender: &sender };
        match (&item.name, &item.target_name) {
            (Some(name), Some(target_name)) if item.stat.kind != InodeKind::Directory => {
                walk.one_entry(plan, item, name, target_name)?;
            }
            _ => walk.tree(item, existing)?,
        }
    }
    if !shared.is_stopped() {
        sender.send();
    }
    Ok(())
}

struct CopyWalk<'a, 'b> {
    shared: &'a CopyShared<'b>,
    staging: &'a Staging,
    sender: &'a FileSender<'a>,
}

impl CopyWalk<'_, '_> {
    /// A source that is no directory.
    fn one_entry(
        &self,
        plan: &CopyPlan,
        item: &CopyItem,
        name: &OsStr,
        target_name: &OsStr,
    ) -> Result<()> {
        let pair = self.pair(&item.parent, self.staging.tree())?;
        let entry = TreeEntry { directory: &item.parent, name, stat: &item.stat };
        let at_target = TreeEntry { name: target_name, ..entry };
        if self.fits(&at_target, None) {
            self.entry(&entry, &pair, target_name, Some(&plan.into));
        }
        Ok(())
    }

    /// A source that is a directory.
    fn tree(&self, item: &CopyItem, existing: Option<Directory>) -> Result<()> {
        let source = match &item.name {
            Some(name) => item.parent.subdirectory(name)?,
            None => item.parent.reopen()?,
        };
        let target = match &item.target_name {
            Some(name) => subdirectory(self.staging.tree(), name)?,
            None => self.staging.tree().reopen()?,
        };
        let one_file_system = self.shared.request.one_file_system;
        let limits = WalkLimits { one_file_system, ..WalkLimits::default() };
        let mut walk = TreeWalk::below(source, limits)?;
        let mut state = TreeState {
            target: DirectoryStack::new(target, MOST_OPEN_DIRECTORIES),
            existing: existing.map(|top| DirectoryStack::new(top, MOST_OPEN_DIRECTORIES)),
            missing: 0,
            pair: None,
            is_unusable: false,
            names: Vec::new(),
        };
        loop {
            if self.shared.is_stopped() {
                return Ok(());
            }
            let mut is_skipped = false;
            let step = self.shared.yielding.step();
            let event = walk.next();
            drop(step);
            let Some(event) = event else { return Ok(()) };
            match event {
                WalkEvent::Enter(directory) => is_skipped = !self.enter(&mut state, &directory),
                WalkEvent::Leave(directory) => self.leave(&mut state, &directory),
                WalkEvent::Entry(entry) if !self.fits(&entry, state.names.last_mut()) => {
                    is_skipped = entry.stat.kind == InodeKind::Directory;
                }
                WalkEvent::Entry(entry) if entry.stat.kind == InodeKind::Directory => {}
                WalkEvent::Entry(entry) => self.tree_entry(&mut state, &entry),
                WalkEvent::OtherFileSystem(entry) => self.mount_point(&state, &entry),
                WalkEvent::Refused(path, error) => self.shared.refused(path, &error),
            }
            if is_skipped {
                walk.skip();
            }
        }
    }

    /// Makes the copy of a directory and enters it; whether that worked.
    fn enter(&self, state: &mut TreeState, directory: &TreeDirectory<'_>) -> bool {
        state.pair = None;
        state.names.push(NameCollisions::default());
        self.shared.outcome.directory_done();
        if directory.depth == 0 {
            return true;
        }
        let held = directory.directory.and_then(|held| held.path().file_name());
        let name = held.map(OsStr::to_owned).unwrap_or_default();
        let exists = state.missing == 0
            && state.existing.as_mut().is_some_and(|existing| existing.enter(&name).is_ok());
        state.missing += usize::from(!exists);
        let made = state.target.current().and_then(|above| {
            match above.create_subdirectory(&name, DIRECTORY_MODE) {
                Err(error) if !error.is_name_taken() => Err(error),
                _ => Ok(()),
            }
        });
        match made.and_then(|()| state.target.enter(&name).map(drop)) {
            Ok(()) => true,
            Err(error) => {
                let path = directory.directory.map(|held| held.path().to_owned());
                self.shared.refused(path.unwrap_or_default(), &error);
                state.is_unusable = true;
                false
            }
        }
    }

    fn leave(&self, state: &mut TreeState, directory: &TreeDirectory<'_>) {
        state.pair = None;
        state.names.pop();
        if directory.depth == 0 {
            return;
        }
        if state.missing > 0 {
            state.missing -= 1;
        } else if let Some(existing) = &mut state.existing {
            // Where it is not found again, nothing is known to exist.
            if existing.leave().is_err() {
                state.missing += 1;
            }
        }
        if std::mem::take(&mut state.is_unusable) {
            return;
        }
        if let Err(error) = state.target.leave() {
            self.shared.refused(state.target_path(), &error);
        }
    }

    /// Whether the target holds the entry; one that does not fit is named, one of a kind that it
    /// does not have too.
    fn fits(&self, entry: &TreeEntry<'_>, names: Option<&mut NameCollisions>) -> bool {
        let fit = &self.shared.fit;
        let mut fault = fit.fault(entry);
        if fit.folds_case() && fault.is_none() {
            let collision = names.and_then(|names| check::collision(names, entry, fit));
            fault = collision.map(|why| (MisfitEffect::Refused, why));
        }
        let Some((_, why)) = fault else { return true };
        self.shared.outcome.failed_at(entry.path(), &why);
        false
    }

    fn tree_entry(&self, state: &mut TreeState, entry: &TreeEntry<'_>) {
        if state.is_unusable {
            return;
        }
        let pair = match &state.pair {
            Some(pair) => Ok(Arc::clone(pair)),
            None => state
                .target
                .current()
                .map_err(Into::into)
                .and_then(|target| self.pair(entry.directory, target)),
        };
        let pair = match pair {
            Ok(pair) => pair,
            Err(error) => {
                return self.shared.outcome.failed_at(entry.path(), &error.source.to_string());
            }
        };
        state.pair = Some(Arc::clone(&pair));
        let existing = match (&state.existing, state.missing) {
            (Some(existing), 0) => existing.current().ok(),
            _ => None,
        };
        self.entry(entry, &pair, entry.name, existing);
    }

    /// A directory on another file system, with `--one-file-system`: an empty one, as `cp -x`.
    fn mount_point(&self, state: &TreeState, entry: &TreeEntry<'_>) {
        if entry.stat.kind != InodeKind::Directory || state.is_unusable {
            return;
        }
        let made = state.target.current().and_then(|target| subdirectory(target, entry.name));
        if let Err(error) = made {
            self.shared.refused(entry.path(), &error);
        }
    }

    /// Copies an entry that is no directory, or sends it to those that move data.
    fn entry(
        &self,
        entry: &TreeEntry<'_>,
        pair: &Arc<DirectoryPair>,
        target_name: &OsStr,
        existing: Option<&Directory>,
    ) {
        let shared = self.shared;
        let at_target = existing.and_then(|existing| existing.stat(target_name).ok());
        if at_target.is_some_and(|found| is_kept(shared.request.existing, &found, entry.stat)) {
            self.count_unmoved(entry.stat);
            return shared.outcome.kept();
        }
        let done = match entry.stat.kind {
            InodeKind::File => self.file(entry, pair, target_name),
            _ => self.special(entry, pair, target_name),
        };
        if let Err(error) = done {
            shared.refused(entry.path(), &error);
        }
    }

    /// A file is there already: it counts, so that the percent on the device reaches 100.
    fn count_unmoved(&self, stat: &FileStat) {
        if stat.kind == InodeKind::File {
            let gauges = self.shared.gauges;
            gauges.durable_bytes.add(stat.bytes);
            gauges.unmoved_bytes.add(stat.bytes);
            gauges.files_done.add(1);
        }
    }

    /// A link, pipe, socket or device.
    fn special(
        &self,
        entry: &TreeEntry<'_>,
        pair: &DirectoryPair,
        target_name: &OsStr,
    ) -> sys::Result<()> {
        let make =
            || create_like(entry.stat, entry.directory, entry.name, &pair.target, target_name);
        let made = match make() {
            Err(error) if error.is_name_taken() => {
                // Of an earlier run; it costs less to make it again than to compare it.
                pair.target.remove(target_name)?;
                make()?
            }
            made => made?,
        };
        if let Some(held) = made {
            let source = entry.directory.hold(entry.name)?;
            let metadata = FileMetadata::of(&source)?;
            let mut losses = metadata.apply(&held)?;
            losses.extend(metadata.seal(&held)?);
            self.shared.outcome.losses(&losses);
        }
        self.shared.outcome.other_done();
        Ok(())
    }

    fn file(
        &self,
        entry: &TreeEntry<'_>,
        pair: &Arc<DirectoryPair>,
        target_name: &OsStr,
    ) -> sys::Result<()> {
        let shared = self.shared;
        let of_earlier_run =
            if shared.outcome.is_resumed() { pair.target.stat(target_name).ok() } else { None };
        // Its checksums are not known any more, so what is to be verified is copied again.
        let may_keep = !shared.request.verify;
        let is_sealed =
            may_keep && of_earlier_run.is_some_and(|found| is_sealed(&found, entry.stat));
        let has_names = check::has_hard_links(&shared.fit, entry.stat);
        if has_names && self.is_linked(entry, pair, target_name, is_sealed)? {
            if is_sealed {
                self.count_unmoved(entry.stat);
            } else {
                // Its data is another name's, which may not be on the device yet.
                shared.linked_files.fetch_add(1, Ordering::Relaxed);
                shared.linked_bytes.fetch_add(entry.stat.bytes, Ordering::Relaxed);
            }
            return Ok(());
        }
        if is_sealed {
            self.count_unmoved(entry.stat);
            shared.outcome.resumed();
            return Ok(());
        }
        let resume_from = of_earlier_run.filter(|_| may_keep).and_then(|found| {
            let path = pair.target.path().join(target_name);
            shared.offsets.find(entry.stat, &found, &path)
        });
        let mut is_made = has_names;
        if has_names {
            // The inode is made now, so that its next name finds it.
            if resume_from.is_none() {
                if of_earlier_run.is_some() {
                    pair.target.remove(target_name)?;
                }
                pair.target.create_new(target_name, OWNER_ONLY)?;
            }
            is_made = self.keep_inode(entry, pair, target_name)?;
        }
        let job = FileJob {
            pair: Arc::clone(pair),
            name: entry.name.to_owned(),
            target_name: target_name.to_owned(),
            stat: *entry.stat,
            is_made,
            resume_from: resume_from.unwrap_or(0),
            counted_before: None,
        };
        self.sender.add(job);
        Ok(())
    }

    /// Whether the file became another name of an inode that was met before.
    fn is_linked(
        &self,
        entry: &TreeEntry<'_>,
        pair: &DirectoryPair,
        target_name: &OsStr,
        is_sealed: bool,
    ) -> sys::Result<bool> {
        let links = self.staging.links();
        let link = link_name(entry.stat);
        let Ok(known) = links.stat(&link) else {
            if is_sealed {
                self.keep_inode(entry, pair, target_name)?;
            }
            return Ok(false);
        };
        if let Ok(found) = pair.target.stat(target_name) {
            if found.is_same_inode(&known) {
                self.shared.outcome.other_done();
                return Ok(true);
            }
            pair.target.remove(target_name)?;
        }
        match pair.target.create_hard_link(target_name, links, &link) {
            Ok(()) => {
                self.shared.outcome.other_done();
                Ok(true)
            }
            // The target has no more room for names of this inode, or none for second ones.
            Err(_) => Ok(false),
        }
    }

    /// Gives an inode of the copy the name by which its further names find it; whether there are
    /// second names. Where there are none, which is not known before, each name gets a copy.
    fn keep_inode(
        &self,
        entry: &TreeEntry<'_>,
        pair: &DirectoryPair,
        target_name: &OsStr,
    ) -> sys::Result<bool> {
        let link = link_name(entry.stat);
        match self.staging.links().create_hard_link(&link, &pair.target, target_name) {
            Err(error)
                if matches!(error.kind, sys::ErrorKind::Denied | sys::ErrorKind::Unsupported) =>
            {
                Ok(false)
            }
            made => made.map(|()| true),
        }
    }

    /// Both directories, held for the files that wait, when there is room for them.
    fn pair(&self, source: &Directory, target: &Directory) -> Result<Arc<DirectoryPair>> {
        let open = &self.shared.open_directories;
        self.sender.send_if_many_held(self.shared);
        while open.load(Ordering::Relaxed) >= self.shared.most_held && !self.shared.is_stopped() {
            self.shared.wants_batch.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(200));
        }
        let (source, target) = (source.reopen()?, target.reopen()?);
        open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(DirectoryPair { source, target, open: Arc::clone(open) }))
    }
}

/// Where the walk is at the target.
struct TreeState {
    target: DirectoryStack,
    /// What exists at the final place, as far down as it exists.
    existing: Option<DirectoryStack>,
    /// Levels of the current way that do not exist there.
    missing: usize,
    /// The current directory, once a file needed it.
    pair: Option<Arc<DirectoryPair>>,
    /// Whether the current directory could not be made.
    is_unusable: bool,
    /// The names in each directory of the way, where case is folded.
    names: Vec<NameCollisions>,
}

impl TreeState {
    fn target_path(&self) -> std::path::PathBuf {
        self.target.current().map(|held| held.path().to_owned()).unwrap_or_default()
    }
}

/// Whether a file that exists is left as it is.
fn is_kept(existing: Existing, found: &FileStat, source: &FileStat) -> bool {
    if found.kind == InodeKind::Directory {
        return false;
    }
    match existing {
        Existing::Replace => false,
        Existing::Keep => true,
        Existing::ReplaceOlder => {
            let time = |stat: &FileStat| (stat.modified.seconds, stat.modified.nanoseconds);
            let is_older = time(found) < time(source);
            !is_older && (time(found) > time(source) || found.bytes == source.bytes)
        }
    }
}

/// Whether a file of an earlier run is complete: it has the length and the time of the source.
fn is_sealed(found: &FileStat, source: &FileStat) -> bool {
    if found.kind != source.kind || found.bytes != source.bytes {
        return false;
    }
    if found.modified == source.modified {
        return true;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let is_recent = source.modified.seconds + RECENT_SECONDS > now.cast_signed();
    let differs = (found.modified.seconds - source.modified.seconds).abs();
    !is_recent && found.modified.nanoseconds == 0 && differs <= COARSE_SECONDS
}

/// What the inode is called while the copy runs.
pub(super) fn link_name(stat: &FileStat) -> OsString {
    format!("{:x}-{:x}", stat.device, stat.inode).into()
}

/// A directory in another one, made if it is not there.
pub(super) fn subdirectory(above: &Directory, name: &OsStr) -> sys::Result<Directory> {
    match above.create_subdirectory(name, DIRECTORY_MODE) {
        Err(error) if error.is_name_taken() => above.subdirectory(name),
        made => made,
    }
}

/// How much there is to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CopyCount {
    /// Regular files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Directories.
    pub directories: u64,
    /// Links, pipes, sockets and devices.
    pub other_entries: u64,
    /// What cannot be examined.
    pub refused: u64,
}

/// Counts what would be copied, and touches nothing.
///
/// # Errors
/// Where a source cannot be opened.
pub fn count(
    request: &super::CopyRequest,
    plan: &CopyPlan,
    ask: &mut dyn FnMut() -> model::progress::Control,
) -> Result<CopyCount> {
    let mut counted = CopyCount::default();
    walk_sources(request, plan, &mut |event| {
        match event {
            WalkEvent::Enter(_) => counted.directories += 1,
            WalkEvent::Entry(entry) => counted.add(entry.stat),
            WalkEvent::Refused(..) => counted.refused += 1,
            WalkEvent::OtherFileSystem(_) | WalkEvent::Leave(_) => {}
        }
        ask()
    })?;
    Ok(counted)
}

/// Calls `visitor` for everything that would be copied, until it says stop.
pub(super) fn visit(
    request: &super::CopyRequest,
    plan: &CopyPlan,
    visitor: &mut dyn FnMut(&FileStat) -> model::progress::Control,
) -> Result<()> {
    walk_sources(request, plan, &mut |event| match event {
        WalkEvent::Entry(entry) => visitor(entry.stat),
        _ => model::progress::Control::Continue,
    })
}

/// Walks the sources as the copy does.
fn walk_sources(
    request: &super::CopyRequest,
    plan: &CopyPlan,
    visitor: &mut dyn FnMut(&WalkEvent<'_>) -> model::progress::Control,
) -> Result<()> {
    for item in &plan.items {
        if item.stat.kind != InodeKind::Directory {
            let name = item.name.as_deref().unwrap_or_default();
            let entry = TreeEntry { directory: &item.parent, name, stat: &item.stat };
            if visitor(&WalkEvent::Entry(entry)).is_stop() {
                return Ok(());
            }
            continue;
        }
        let top = match &item.name {
            Some(name) => item.parent.subdirectory(name)?,
            None => item.parent.reopen()?,
        };
        let limits =
            WalkLimits { one_file_system: request.one_file_system, ..WalkLimits::default() };
        let mut walk = TreeWalk::below(top, limits)?;
        while let Some(event) = walk.next() {
            if visitor(&event).is_stop() {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl CopyCount {
    fn add(&mut self, stat: &FileStat) {
        match stat.kind {
            InodeKind::File => {
                self.files += 1;
                self.bytes += stat.bytes;
            }
            InodeKind::Directory => {}
            _ => self.other_entries += 1,
        }
    }
}
