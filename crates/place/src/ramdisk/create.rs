//! Makes a RAM disk, which is filled from its store before it is anywhere to be seen.
//!
//! 1. Everything that can be refused is refused: size, place, store.
//! 2. It is mounted without a place in the tree ([`super::kind`]), and the newest generation
//!    restored into it.
//! 3. Under the lock of the records it gets its place by one call ([`super::record`]).
//!
//! Killed before that call it is gone with its process; afterwards it is whole and known. While it
//! is filled a floor of memory is left to others, also if they take more meanwhile.

mod mount_point;

use super::adopt::refuse_in_use;
use super::catalog::Catalog;
use super::identity::DirectoryIdentity;
use super::kind::{self, MadeRamdisk, RamdiskKind};
use super::record::{
    HugePolicy, RECORD_VERSION, RamdiskOptions, RamdiskPersist, RamdiskRecord, RamdiskRecords,
    RamdiskState, RecordedMount, absolute, remove_made_directory,
};
use super::restore::{RamdiskRestore, RamdiskRestoreReport, restore_into};
use super::snapshot::is_in_memory;
use super::store::Store;
use crate::background::{Allowance, Limits, StopReason, WatchedGroup};
use crate::tree::{TreeWalk, WalkEvent, WalkLimits};
use crate::{Error, ErrorKind, Result};
use machine::{Root, memory};
use model::Bytes;
use model::progress::{Control, Progress, ProgressSink};
use mount_point::MountPoint;
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::attributes;
use sys::directory::Directory;
use sys::file::{self, Scratch};
use sys::file_stat::{FileStat, InodeKind};
use sys::mount::{DetachedMount, MountRestrictions};

pub(super) const MAKE: &str = "make a RAM disk at";
/// What is left to the own control group: its limit is looked at every 20 ms, while workers write.
const GROUP_ROOM: Bytes = Bytes(32 << 20);
/// Bytes that are written at a time to touch memory before it is needed.
const TOUCHED_BYTES: usize = 1 << 20;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct RamdiskCreate {
    /// Where: a directory that is empty, or does not exist.
    pub mount_point: PathBuf,
    /// The most that it holds.
    pub size: Bytes,
    /// Which of its pages are huge; the kernel's default without it.
    pub huge: Option<HugePolicy>,
    /// Whether its pages never go to swap.
    pub noswap: bool,
    /// The permissions of its top; without it those that were saved, or of the directory below.
    pub mode: Option<u32>,
    /// The owner and the group of its top; without it as `mode`.
    pub owner: Option<(u32, u32)>,
    /// Whether its memory is touched before it is needed.
    pub prefault: bool,
    /// Whether a save of it is of one moment: it is btrfs on zram, else a tmpfs.
    pub atomic: bool,
    /// Where it is saved to, and restored from.
    pub persist: Option<RamdiskPersist>,
    /// Whether it may be larger than the memory that may be taken.
    pub force: bool,
    /// Whether it covers a directory with files, whose content its store has.
    pub adopted: bool,
}

/// What was made.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskCreateReport {
    /// The RAM disk.
    pub ramdisk: RamdiskRecord,
    /// Whether it is there: the command was not interrupted.
    pub is_complete: bool,
    /// What was restored to it; absent if nothing was saved.
    pub restored: Option<RamdiskRestoreReport>,
    /// Bytes of memory that were touched before they are needed.
    pub touched_bytes: u64,
    /// What is to be known besides, as sentences.
    pub notes: Vec<String>,
}

/// What a generation takes on a RAM disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentNeed {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

/// The floor of memory while a RAM disk is filled.
struct FillGuard<'p, 'q> {
    allowance: Allowance,
    top: &'p Directory,
    stop: Option<StopReason>,
    is_interrupted: bool,
    progress: &'p mut ProgressSink<'q>,
}

/// Makes a RAM disk.
///
/// # Errors
/// `Usage` for what makes no sense, `Impossible` for what this user or machine cannot do; then, and
/// if it fails on the way, nothing is mounted.
pub fn create(
    root: &Root,
    request: &RamdiskCreate,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskCreateReport> {
    let refused = |kind, why: String| Error::new(kind, MAKE, why).at(&request.mount_point);
    if request.size.0 == 0 {
        let why = "a size of 0 would be no limit to the kernel; give it a size, as `--size 1g`";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    }
    if sys::process::effective_uid() != 0 {
        let why = "only root may mount. Your own directory in /dev/shm is a RAM disk too: `terrace \
                   ramdisk save` and `restore` work on it";
        return Err(refused(ErrorKind::Impossible, why.to_owned()));
    }
    let point = MountPoint::examine(&request.mount_point, request.adopted)?;
    if !request.force {
        refuse_beyond_memory(root, request.size, Bytes(0))
            .map_err(|error| error.at(&point.path))?;
    }
    let mut notes = Vec::new();
    let check = |persist| check_store(root, persist, &point, &mut notes);
    let persist = request.persist.as_ref().map(check).transpose()?;
    let content = |(_, store): &_| content_of(store, request, &point);
    let need = persist.as_ref().map(content).transpose()?.flatten();
    if request.adopted && need.is_none() {
        let why = "it would cover files of which its store has none";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    }
    refuse_pending_release(root, &point)?;
    if request.adopted
        && let Some((_, store)) = &persist
    {
        refuse_in_use(root, &point.path)?;
        refuse_newer(store, request, &point)?;
    }
    let persist = persist.map(|(persist, _)| persist);
    let options = options(request, &point);
    let made = kind::make(root, request, &options, point.restrictions, need)?;
    let top = made.mount.top(&point.path)?;
    let mut report = RamdiskCreateReport {
        ramdisk: RamdiskRecord {
            version: RECORD_VERSION,
            mount_point: point.path.clone(),
            created_at: now(),
            mount: RecordedMount::of(root, &top)?,
            is_mounted: false,
            made_directory: !point.is_there(),
            mounted_elsewhere: false,
            options,
            kind: made.kind,
            persist,
            adopted: request.adopted,
            release: None,
        },
        is_complete: false,
        restored: None,
        touched_bytes: 0,
        notes,
    };
    if !fill(root, request, &top, need.is_some(), &mut report, progress)? {
        return Ok(report);
    }
    report.ramdisk.options = dress(request, &top, report.ramdisk.options)?;
    drop(top);
    put(root, made, &point, &mut report.ramdisk)?;
    report.is_complete = true;
    Ok(report)
}

/// Refuses what others need. `held` of the size is in use already.
pub(super) fn refuse_beyond_memory(root: &Root, size: Bytes, held: Bytes) -> Result<()> {
    let Some(takeable) = memory::takeable(root) else {
        let why = "the kernel does not say how much memory is available; --force makes it anyway";
        return Err(Error::new(ErrorKind::Impossible, MAKE, why));
    };
    let more = Bytes(size.0.saturating_sub(held.0));
    if more <= takeable.bytes {
        return Ok(());
    }
    let wanted = if held.0 == 0 {
        format!("{size}")
    } else {
        format!("{size}, of which {held} are in use,")
    };
    let bound = if takeable.bound_by == "machine" {
        format!("{} available less {} for others", takeable.available, takeable.floor)
    } else {
        format!("limit of the control group {}", takeable.bound_by)
    };
    let why = format!(
        "{wanted} may take more than the {} of memory that can be had ({bound}); --force makes it \
         anyway",
        takeable.bytes
    );
    Err(Error::new(ErrorKind::Impossible, MAKE, why))
}

/// The store, opened or made; refused where it would be lost, or is another RAM disk's.
fn check_store(
    root: &Root,
    persist: &RamdiskPersist,
    point: &MountPoint,
    notes: &mut Vec<String>,
) -> Result<(RamdiskPersist, Store)> {
    const KEEP: &str = "keep a store in";
    let refused = |kind, why: String| Error::new(kind, KEEP, why).at(&persist.store);
    let typed = absolute(&persist.store).unwrap_or_else(|_| persist.store.clone());
    if typed.starts_with(&point.path) {
        let why = "it is on the RAM disk itself, and would be lost with it";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    }
    // Before the store is locked: a release locks the records first, too.
    let others = RamdiskRecords::lock(root)?.all()?;
    let store = Store::open_or_create(&persist.store, false)?;
    let directory = store.directory();
    if MountRestrictions::of(directory.file())?.read_only {
        let why = "it is on a file system that is read-only";
        return Err(refused(ErrorKind::Impossible, why.to_owned()));
    }
    let path = directory.path().canonicalize().unwrap_or(typed);
    for other in others {
        let is_same = other.persist.as_ref().is_some_and(|persist| persist.store == path);
        if is_same && other.state(root).0 == RamdiskState::Mounted {
            let why = format!("it is the store of the RAM disk {}", other.name());
            return Err(refused(ErrorKind::Usage, why));
        }
    }
    if is_in_memory(root, directory)? {
        notes.push("the store is in memory: it does not survive a restart".to_owned());
    }
    Ok((RamdiskPersist { store: path, ..persist.clone() }, store))
}

/// What the newest generation needs; refused if that is more than the size. `None` if nothing was
/// saved yet.
fn content_of(
    store: &Store,
    request: &RamdiskCreate,
    point: &MountPoint,
) -> Result<Option<ContentNeed>> {
    let Some(newest) = store.generations()?.last().copied() else {
        return Ok(None);
    };
    let need = ContentNeed::of(&store.load(newest)?.catalog, page_bytes());
    if need.bytes > request.size.0 {
        let why = format!(
            "generation {} of its store holds {}, more than the size of {}",
            newest.number,
            Bytes(need.bytes),
            request.size
        );
        return Err(Error::new(ErrorKind::Usage, MAKE, why).at(&point.path));
    }
    Ok(Some(need))
}

/// What a page of a RAM disk takes.
pub(super) fn page_bytes() -> u64 {
    sys::process::page_bytes() as u64
}

impl ContentNeed {
    /// Whole pages of every file, once for all its names.
    fn of(catalog: &Catalog, page_bytes: u64) -> Self {
        let (mut need, mut linked) = (Self::default(), HashSet::new());
        for (_, entry) in catalog.entries() {
            let is_first = entry.stat.links < 2 || linked.insert(entry.stat.inode);
            if entry.stat.kind != InodeKind::Directory && !is_first {
                continue;
            }
            need.inodes += 1;
            // The page behind the last one that was counted.
            let mut next = 0;
            for piece in &entry.pieces {
                let (first, end) = (piece.at / page_bytes, piece.end().div_ceil(page_bytes));
                need.bytes += end.saturating_sub(first.max(next)) * page_bytes;
                next = end.max(next);
            }
        }
        need
    }
}

fn options(request: &RamdiskCreate, point: &MountPoint) -> RamdiskOptions {
    let (mode, user, group) = point.access();
    let (user, group) = request.owner.unwrap_or((user, group));
    let (size, huge, noswap) = (request.size, request.huge, request.noswap);
    RamdiskOptions { size, huge, noswap, mode: request.mode.unwrap_or(mode), user, group }
}

/// Restores the newest generation and touches what is left, if that was asked for; whether it was
/// not interrupted.
fn fill(
    root: &Root,
    request: &RamdiskCreate,
    top: &Directory,
    has_content: bool,
    report: &mut RamdiskCreateReport,
    progress: &mut ProgressSink<'_>,
) -> Result<bool> {
    let mut guard = FillGuard::start(root, top, progress)?;
    if let Some(persist) = &report.ramdisk.persist {
        if has_content {
            let restore = RamdiskRestore {
                store: persist.store.clone(),
                target: top.path().to_owned(),
                generation: None,
                below: None,
                is_attached: true,
            };
            let restored = restore_into(root, &restore, top, &mut |amount| guard.go_on(amount))?;
            guard.refuse_shortage()?;
            refuse_full(top, &report.ramdisk.kind, &restored)?;
            refuse_loss(request, top, &restored)?;
            let is_complete = restored.is_complete;
            report.restored = Some(restored);
            if !is_complete {
                return Ok(false);
            }
        } else {
            let identity = DirectoryIdentity::new(root, &FileStat::of(top.file())?);
            Store::open(&persist.store)?.note_restored(&identity)?;
        }
    }
    if request.prefault {
        report.touched_bytes = touch(top, &mut guard)?;
        if let Some(StopReason::Floor | StopReason::GroupLimit) = guard.stop {
            report.notes.push(format!(
                "{} were touched before memory came down to what is left to others",
                Bytes(report.touched_bytes)
            ));
        } else if guard.stop.is_some() || guard.is_interrupted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses a RAM disk that became full: entries are missing then, and the next save would lose
/// them.
fn refuse_full(top: &Directory, kind: &RamdiskKind, restored: &RamdiskRestoreReport) -> Result<()> {
    let space = file::file_system(top.file())?;
    // Of btrfs it is not seen: what was begun for a file that failed is free again.
    let is_full =
        space.free_bytes < page_bytes() || space.free_inodes == Some(0) || kind.device().is_some();
    if restored.failure_count > 0 && is_full {
        let why = format!("generation {} does not fit into its size", restored.generation);
        return Err(Error::new(ErrorKind::Usage, MAKE, why).at(top.path()));
    }
    Ok(())
}

/// Refuses to cover a directory by less than all of it: `release` would remove the rest.
fn refuse_loss(
    request: &RamdiskCreate,
    top: &Directory,
    restored: &RamdiskRestoreReport,
) -> Result<()> {
    if !request.adopted || (restored.failure_count == 0 && restored.losses.is_empty()) {
        return Ok(());
    }
    let what = match (restored.failures.first(), restored.losses.first()) {
        (Some(failure), _) => format!("{}: {}", failure.path.display(), failure.reason),
        (None, Some(loss)) => {
            format!("the {} of {} entries: {}", loss.what, loss.entries, loss.reason)
        }
        (None, None) => "some entries".to_owned(),
    };
    let why = format!("a RAM disk cannot have all of the directory that it is to cover ({what})");
    Err(Error::new(ErrorKind::Impossible, MAKE, why).at(top.path()))
}

/// Refuses a place whose directory is still to be given back.
fn refuse_pending_release(root: &Root, point: &MountPoint) -> Result<()> {
    let is_pending = |one: &RamdiskRecord| one.mount_point == point.path && one.release.is_some();
    if !RamdiskRecords::lock(root)?.all()?.iter().any(is_pending) {
        return Ok(());
    }
    let why = "`terrace ramdisk release` of the directory there has not ended";
    Err(Error::new(ErrorKind::Impossible, MAKE, why).at(&point.path))
}

/// Refuses to cover a directory that changed after its store was saved to last.
fn refuse_newer(store: &Store, request: &RamdiskCreate, point: &MountPoint) -> Result<()> {
    let Some(newest) = store.generations()?.last().copied() else { return Ok(()) };
    let saved = store.manifest(newest)?.saved;
    let is_newer = |stat: &FileStat| {
        let changed = stat.changed;
        (changed.seconds, changed.nanoseconds) > (saved.seconds, saved.nanoseconds)
    };
    let limits = WalkLimits { one_file_system: true, reach: None };
    let mut walk = TreeWalk::below(point.open_or_make()?, limits)?;
    while let Some(event) = walk.next() {
        if let WalkEvent::Entry(entry) = event
            && is_newer(entry.stat)
            && !request.force
        {
            let why = format!(
                "{} changed after generation {} was saved, and the RAM disk would not have that; \
                 --force covers it",
                entry.path().display(),
                newest.number
            );
            return Err(Error::new(ErrorKind::Impossible, MAKE, why).at(&point.path));
        }
    }
    Ok(())
}

/// Writes all that is free once, and frees it again: then the host has backed that memory.
fn touch(top: &Directory, guard: &mut FillGuard<'_, '_>) -> Result<u64> {
    let total = file::file_system(top.file())?.free_bytes;
    let scratch = Scratch::create(top)?;
    let zeros = vec![0; TOUCHED_BYTES];
    let mut done = 0;
    while done < total {
        if guard.go_on(Progress::bytes("touching memory", done, Some(total))).is_stop() {
            break;
        }
        let part = (total - done).min(TOUCHED_BYTES as u64) as usize;
        match file::write_at(scratch.file(), &zeros[..part], done) {
            Ok(written) => done += written as u64,
            Err(error) if error.kind == sys::ErrorKind::NoSpace => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Gives the top what was asked for, over what was restored; the options as they are now.
fn dress(
    request: &RamdiskCreate,
    top: &Directory,
    options: RamdiskOptions,
) -> Result<RamdiskOptions> {
    if let Some((user, group)) = request.owner {
        let mode = FileStat::of(top.file())?.mode;
        attributes::set_owner(top.file(), user, group)?;
        attributes::set_mode(top.file(), mode)?;
    }
    if let Some(mode) = request.mode {
        attributes::set_mode(top.file(), mode)?;
    }
    let FileStat { mode, user, group, .. } = FileStat::of(top.file())?;
    Ok(RamdiskOptions { mode, user, group, ..options })
}

/// Gives the mount its place, known before and afterwards.
fn put(
    root: &Root,
    made: MadeRamdisk,
    point: &MountPoint,
    record: &mut RamdiskRecord,
) -> Result<()> {
    let MadeRamdisk { mount, note, .. } = made;
    let placed = put_locked(root, mount, point, record);
    // Either a record claims its device by now, or that goes.
    drop(note);
    placed
}

fn put_locked(
    root: &Root,
    mount: DetachedMount,
    point: &MountPoint,
    record: &mut RamdiskRecord,
) -> Result<()> {
    let records = RamdiskRecords::lock(root)?;
    // Another program may have used the place meanwhile.
    let place = MountPoint::examine(&point.path, record.adopted)?;
    records.refuse_to_forget(&point.path, MAKE)?;
    record.made_directory = !place.is_there();
    records.write(record)?;
    let attached = place.open_or_make().and_then(|directory| Ok(mount.attach(&directory)?));
    if let Err(error) = attached {
        remove_made_directory(record);
        records.remove(record)?;
        return Err(error);
    }
    record.is_mounted = true;
    // The RAM disk is there, and who reads the file next completes it.
    let _ = records.write(record);
    Ok(())
}

impl<'p, 'q> FillGuard<'p, 'q> {
    fn start(root: &Root, top: &'p Directory, progress: &'p mut ProgressSink<'q>) -> Result<Self> {
        let limits = Limits { hurry: true, ..Limits::usual(root) };
        let mut allowance = Allowance::start(root, limits)?;
        allowance.watch_groups([WatchedGroup::OfProcess(std::process::id())]);
        // Others wait for what is restored.
        allowance.end();
        Ok(Self { allowance, top, stop: None, is_interrupted: false, progress })
    }

    /// Reports progress; stops at the floor, at the limit of the own group, and when asked to.
    fn go_on(&mut self, amount: Progress<'_>) -> Control {
        let used = file::file_system(self.top.file()).ok().and_then(|space| space.used_bytes);
        let stop = self.allowance.check_floor(Bytes(used.unwrap_or(0)));
        let is_full = self.allowance.group_room(0).is_some_and(|room| room < GROUP_ROOM);
        self.stop = self.stop.or(stop).or(is_full.then_some(StopReason::GroupLimit));
        self.is_interrupted |= (self.progress)(amount).is_stop();
        Control::stop_if(self.is_interrupted || self.stop.is_some())
    }

    /// An error if memory was short.
    fn refuse_shortage(&self) -> Result<()> {
        let why = match self.stop {
            Some(StopReason::Floor) => {
                "memory came down to what is left to others while it was filled; nothing is mounted"
            }
            Some(StopReason::GroupLimit) => {
                "its control group came to its memory limit while it was filled; nothing is mounted"
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Impossible, MAKE, why).at(self.top.path()))
    }
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_takes_whole_pages_once_for_all_names_and_nothing_for_holes() {
        let time = "0.000000000";
        let line = |path: &str, kind: &str, links: u32, inode: u32, bytes: u32, rest: &str| {
            format!(
                "+\t{path}\t{kind}\t644\t0\t0\t{links}\t{inode}\t{time}\t{time}\t{time}\ts\t{bytes}\
                 {rest}\n"
            )
        };
        let hash = "0000000000000000";
        let piece = format!("\t:1:0:0:5000={hash},100={hash}");
        let behind_a_hole = format!("\t:1:0:1048576:1={hash}");
        let text = [
            line("", "d", 1, 1, 0, ""),
            line("a", "f", 2, 2, 5100, &piece),
            line("b", "f", 2, 2, 5100, &piece),
            line("c", "f", 1, 3, 1_048_577, &behind_a_hole),
            line("d", "f", 1, 4, 0, ""),
        ];
        let mut catalog = Catalog::default();
        catalog.apply(text.concat().into_bytes());
        for (page_bytes, pages) in [(4096, 3), (16 << 10, 2), (64 << 10, 2)] {
            let need = ContentNeed { bytes: pages * page_bytes, inodes: 4 };
            assert_eq!(ContentNeed::of(&catalog, page_bytes), need);
        }
    }
}
