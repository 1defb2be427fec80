//! Saves a directory as the next generation.
//!
//! 1. The newest generation is read. The directory is walked by descriptors: an entry whose inode,
//!    metadata and time of change are those that were saved is done with. Of others the content is
//!    compared by hashes; pieces that the store has not are appended to a data file.
//! 2. The data file is synced, then the manifest gets its name by one rename: now it counts.
//!
//! Of an atomic RAM disk a snapshot is walked in its place ([`super::snapshot`]).
//!
//! A time of change has grains, and through a shared mapping only the first write to a page moves
//! it. So an entry that changed just before it was read, or that is mapped shared, is noted as
//! unsettled: the next save compares its content.

mod entry_saver;
mod save_progress;
mod walk_ahead;

use super::catalog::Catalog;
use super::content::KnownContent;
use super::current::{CurrentDirectory, split};
use super::freeze::{FreezeCommands, Frozen};
use super::identity::DirectoryIdentity;
use super::manifest::{DayBytes, Entry, Line, Manifest};
use super::pack::Pack;
use super::snapshot::{SaveSnapshot, is_in_memory, is_other_subvolume};
use super::store::{Generation, Loaded, MOST_CHANGES, Store};
use crate::tree::TreeEntry;
use crate::{EntryFailure, Error, ErrorKind, Result};
use entry_saver::{EntrySaver, Saved};
use machine::Root;
use machine::maps::{self, SharedMappings};
use machine::mounts;
use model::Bytes;
use model::progress::ProgressSink;
use save_progress::SaveProgress;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sys::attributes::FileTime;
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};
use walk_ahead::{WalkAhead, WalkedEntry};

/// Failures that are named; the others are counted.
const MOST_NAMED: usize = 1000;
/// A change of so many lines is written also if content and metadata are the same: the next save is
/// quicker for it.
const MANY_LINES: u64 = 64;
/// A file that changed just before a snapshot may have its new time and its old content there: a
/// write sets the time once, when it begins, and may move 2 GiB or be held back then. The next save
/// compares it.
const UNSURE_SECONDS: i64 = 60;
/// Data files of which less than half is needed are not named any more, from this size on.
const SMALLEST_REWRITTEN: u64 = 1 << 20;
/// Nor are the smallest if there are more than this.
const MOST_DATA_FILES: usize = 256;

/// What is to be saved.
#[derive(Clone, Debug)]
pub struct SaveRequest {
    /// The directory.
    pub source: PathBuf,
    /// The directory of the store; made if it does not exist.
    pub store: PathBuf,
    /// How many generations stay.
    pub keep: usize,
    /// Saves another directory than the one that was saved or restored last.
    pub force: bool,
    /// What holds back its users while it is read.
    pub freeze: Option<FreezeCommands>,
    /// Waits while another process uses the store.
    pub wait: bool,
}

/// What was saved.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SaveReport {
    /// The generation that holds the directory now; 0 before the first.
    pub generation: u64,
    /// Whether this save made it.
    pub is_new: bool,
    /// Whether all of the directory was looked at: it was not interrupted.
    pub is_complete: bool,
    /// Entries of the generation.
    pub entries: u64,
    /// Entries that were new or had changed, in content or metadata.
    pub changed_entries: u64,
    /// Entries that were gone.
    pub removed_entries: u64,
    /// Bytes of the data file that was written.
    pub data_bytes: u64,
    /// Bytes of the manifest that was written.
    pub manifest_bytes: u64,
    /// Bytes of memory that were compared or written.
    pub read_bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// Entries that were not saved, or only as the generation before had them: the first 1,000.
    pub failures: Vec<EntryFailure>,
    /// How many there are.
    pub failure_count: u64,
    /// Processes whose mappings this user may not see.
    pub unseen_processes: u64,
    /// How long the users were frozen; absent if they were not.
    pub frozen_seconds: Option<f64>,
    /// Whether a snapshot was read: it is what a power cut would have left.
    pub is_snapshot: bool,
    /// Why the users may still be frozen.
    pub thaw_failure: Option<String>,
    /// What is to be known besides, as sentences.
    pub notes: Vec<String>,
}

/// How a directory differs from the newest generation of its store.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// The newest generation; 0 if nothing was saved yet.
    pub generation: u64,
    /// When it was saved, seconds since 1970; absent before the first.
    pub saved_at: Option<i64>,
    /// Whether all of the directory was looked at: it was not interrupted.
    pub is_complete: bool,
    /// Entries that are new or changed, in content or metadata.
    pub changed_entries: u64,
    /// Entries of the generation that are gone.
    pub removed_entries: u64,
    /// Entries that could not be compared.
    pub failed_entries: u64,
    /// Bytes of content that the store has not.
    pub unsaved_bytes: u64,
}

impl Comparison {
    /// Whether the generation has all of it.
    #[must_use]
    pub fn is_saved(&self) -> bool {
        self.changed_entries + self.removed_entries + self.failed_entries == 0
    }

    /// What is not saved, as the beginning of a sentence: `3 new or changed entries (12 KiB) are`.
    #[must_use]
    pub fn unsaved_words(&self) -> String {
        let parts = [
            (self.changed_entries, "new or changed"),
            (self.removed_entries, "removed"),
            (self.failed_entries, "unreadable"),
        ];
        let shown: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", model::text::count(*number)))
            .collect();
        let number = self.changed_entries + self.removed_entries + self.failed_entries;
        let (noun, verb) = if number == 1 { ("entry", "is") } else { ("entries", "are") };
        let bytes = match self.unsaved_bytes {
            0 => String::new(),
            bytes => format!(" ({})", Bytes(bytes)),
        };
        format!("{} {noun}{bytes} {verb}", shown.join(" and "))
    }
}

/// The directory that is saved, when the save began.
struct SavedTop<'r> {
    root: &'r Root,
    /// What is read: the directory, or a snapshot of it.
    source: Directory,
    stat: FileStat,
    /// Which directory it is, not which snapshot.
    identity: DirectoryIdentity,
    began: FileTime,
    /// Which of its files are mapped; of a snapshot none is.
    mapped: SharedMappings,
    is_snapshot: bool,
    /// Paths in a snapshot at which another file system is mounted: it has what is below that.
    covered: HashSet<Vec<u8>>,
}

/// The generation before.
#[derive(Clone, Copy)]
struct SavedBase {
    generation: u64,
    /// How many manifests it takes.
    manifests: usize,
    /// Whether it is of the same directory.
    is_same: bool,
}

/// A save under way.
struct Save<'s> {
    store: &'s Store,
    catalog: Catalog,
    /// Bytes that the new generation names of each data file.
    data: BTreeMap<u64, u64>,
    /// Data files that it does not name any more.
    unwanted: BTreeSet<u64>,
    seen: HashSet<u64>,
    /// Directories that could not be read: what is below stays as it was saved.
    unread: Vec<Vec<u8>>,
    /// Whether there is a generation before.
    has_base: bool,
    /// Lines of the new generation that differ from the one before.
    lines: Vec<u8>,
    line_count: u64,
    /// What the store wrote before.
    wrote: DayBytes,
    report: SaveReport,
}

/// Saves a directory.
///
/// # Errors
/// `Usage` for what makes no sense, `Impossible` for another directory than that of the store,
/// `Failed` if the store cannot be written: its newest generation is as it was then.
pub fn save(
    root: &Root,
    request: &SaveRequest,
    progress: &mut ProgressSink<'_>,
) -> Result<SaveReport> {
    let started = Instant::now();
    let source = open_source(&request.source)?;
    let in_ram = refuse_own_store(root, &source, &FileStat::of(source.file())?, &request.store)?;
    let store = Store::open_or_create(&request.store, request.wait)?;
    let mut frozen = request.freeze.as_ref().map(FreezeCommands::freeze).transpose()?;
    let mut report = SaveReport::default();
    if in_ram {
        report.notes.push("the store is in memory: it does not survive a reboot".to_owned());
    }
    let stat = FileStat::of(source.file())?;
    let began = now();
    let (snapshot, top) = match SaveSnapshot::take(root, &source, &stat)? {
        Some((snapshot, inside)) => {
            // Its users may go on: what is read does not change any more.
            report.thawed(frozen.take());
            report.is_snapshot = true;
            (Some(snapshot), SavedTop::of_snapshot(root, inside, &stat, began)?)
        }
        None => (None, SavedTop::of_directory(root, source, stat)),
    };
    let mut report = thread::scope(|scope| {
        // It walks while the newest generation is read.
        let walk = WalkAhead::start(scope, top.source.reopen()?)?;
        save_walked(&top, &store, (request, frozen), report, walk, progress)
    })?;
    drop((top, snapshot));
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Compares what a walk meets with the newest generation, and makes the next.
fn save_walked(
    top: &SavedTop<'_>,
    store: &Store,
    (request, frozen): (&SaveRequest, Option<Frozen>),
    mut report: SaveReport,
    walk: WalkAhead,
    progress: &mut ProgressSink<'_>,
) -> Result<SaveReport> {
    let identity = top.identity.clone();
    let newest = store.generations()?.last().copied();
    store.sweep(newest.map_or(0, |newest| newest.number))?;
    let loaded = newest.and_then(|newest| match store.load(newest) {
        Ok(loaded) => Some(loaded),
        Err(error) => {
            report.notes.push(format!("{error}; everything is saved anew"));
            None
        }
    });
    // Without a date a new tmpfs may have the numbers of the one before.
    let is_emptied = !identity.is_dated()
        && top.source.names()?.is_empty()
        && loaded.as_ref().is_some_and(|loaded| loaded.catalog.len() > 1);
    let is_same =
        !is_emptied && loaded.as_ref().is_some_and(|loaded| loaded.manifest.from == identity);
    let is_restored = !is_emptied && store.restored() == Some(identity.clone());
    if newest.is_some() && !is_same && !is_restored && !request.force {
        return Err(not_the_same(&request.source));
    }
    let number = newest.map_or(0, |newest| newest.number) + 1;
    let base = loaded.as_ref().map(|loaded| SavedBase {
        generation: loaded.manifest.generation,
        manifests: loaded.manifests,
        is_same,
    });
    let mut save = Save::new(store, loaded, report)?;
    let mut pack = Pack::new(store.directory(), number);
    let walked = save.take_all(top, walk, is_same, &mut pack, progress);
    save.report.thawed(frozen);
    save.report.is_complete = walked?;
    if save.report.is_complete {
        save.finish(number, base, identity, pack)?;
    }
    let report = save.into_report();
    // Without a new generation no older one has become superfluous, but by a smaller `keep`.
    if report.is_complete && (report.is_new || store.generations()?.len() > request.keep) {
        store.retain(request.keep)?;
    }
    Ok(report)
}

/// Compares a directory with the newest generation of its store, and writes nothing. What the next
/// save would write, as long as nothing changes.
///
/// # Errors
/// As [`save`]; `Impossible` while another process saves to the store.
pub fn compare(
    root: &Root,
    source: &Path,
    store: &Path,
    progress: &mut ProgressSink<'_>,
) -> Result<Comparison> {
    compare_directory(root, open_source(source)?, store, false, progress)
}

/// As [`compare`], of an open directory. `is_copy`: another directory than that of the store, all
/// of whose content is read.
///
/// # Errors
/// As [`compare`].
pub(super) fn compare_directory(
    root: &Root,
    directory: Directory,
    store: &Path,
    is_copy: bool,
    progress: &mut ProgressSink<'_>,
) -> Result<Comparison> {
    let stat = FileStat::of(directory.file())?;
    let store = Store::open(store)?;
    let identity = DirectoryIdentity::new(root, &stat);
    let newest = store.generations()?.last().copied();
    let loaded = newest.map(|newest| store.load(newest)).transpose()?;
    let is_same = loaded.as_ref().is_some_and(|loaded| loaded.manifest.from == identity);
    if newest.is_some() && !is_same && !is_copy && store.restored() != Some(identity) {
        return Err(not_the_same(directory.path()));
    }
    let saved_at = loaded.as_ref().map(|loaded| loaded.manifest.saved.seconds);
    let mut save = Save::new(&store, loaded, SaveReport::default())?;
    // That the next save tidies the store is no change of the directory.
    save.unwanted.clear();
    let mut pack = Pack::counting(store.directory());
    let top = SavedTop::of_directory(root, directory, stat);
    let is_complete = thread::scope(|scope| {
        let walk = WalkAhead::start(scope, top.source.reopen()?)?;
        save.take_all(&top, walk, is_same, &mut pack, progress)
    })?;
    if is_complete {
        save.remove_unseen();
    }
    Ok(Comparison {
        generation: newest.map_or(0, |newest| newest.number),
        saved_at,
        is_complete,
        changed_entries: save.report.changed_entries,
        removed_entries: save.report.removed_entries,
        failed_entries: save.report.failure_count,
        unsaved_bytes: pack.bytes(),
    })
}

pub(super) fn open_source(source: &Path) -> Result<Directory> {
    Directory::open(source).map_err(|error| {
        let why = sys::plain_reason(&error.source);
        Error::new(ErrorKind::Usage, "save the directory", why).at(source)
    })
}

/// Refuses a store on the RAM disk itself, which would be lost with it. Whether the store is in
/// memory.
pub(super) fn refuse_own_store(
    root: &Root,
    source: &Directory,
    stat: &FileStat,
    store: &Path,
) -> Result<bool> {
    let existing = store.ancestors().find(|part| part.is_dir()).unwrap_or(Path::new("."));
    let there = Directory::open(existing)?;
    let is_on_it = FileStat::of(there.file())?.device == stat.device;
    let real = existing.canonicalize().unwrap_or_else(|_| existing.to_owned());
    let in_ram = is_in_memory(root, &there)?;
    if is_on_it && (in_ram || real.starts_with(source.path())) {
        let why = "it is on what is to be saved, and would be lost with it";
        return Err(Error::new(ErrorKind::Usage, "keep the store in", why).at(store));
    }
    Ok(in_ram)
}

fn not_the_same(source: &Path) -> Error {
    let why = "it is not the directory that this store saved or restored last: it was mounted again \
               or replaced, and what it held then would be lost. Restore it first, or save it with \
               --force";
    Error::new(ErrorKind::Impossible, "save", why).at(source)
}

impl SaveReport {
    /// Lets frozen users go on.
    fn thawed(&mut self, frozen: Option<Frozen>) {
        if let Some((time, thawed)) = frozen.map(Frozen::thaw) {
            self.frozen_seconds = Some(time.as_secs_f64());
            self.thaw_failure = thawed.err();
        }
    }
}

impl<'r> SavedTop<'r> {
    fn of_directory(root: &'r Root, source: Directory, stat: FileStat) -> Self {
        let identity = DirectoryIdentity::new(root, &stat);
        // Before the first entry is examined: see `EntrySaver`.
        let mapped = maps::shared(root, sys::block::device_numbers(stat.device));
        Self {
            root,
            source,
            stat,
            identity,
            began: now(),
            mapped,
            is_snapshot: false,
            covered: HashSet::new(),
        }
    }

    /// `inside` a snapshot that was begun at `began`, of a directory with the state `live`.
    fn of_snapshot(
        root: &'r Root,
        inside: Directory,
        live: &FileStat,
        began: FileTime,
    ) -> Result<Self> {
        let above = inside.path().canonicalize().unwrap_or_else(|_| inside.path().to_owned());
        let path_below = |mount: &mounts::Mount| {
            let path = mount.mount_point.strip_prefix(&above).ok()?.as_os_str().as_bytes();
            (!path.is_empty()).then(|| path.to_owned())
        };
        Ok(Self {
            root,
            stat: FileStat::of(inside.file())?,
            source: inside,
            identity: DirectoryIdentity::new(root, live),
            began: FileTime { seconds: began.seconds - UNSURE_SECONDS, ..began },
            mapped: SharedMappings::default(),
            is_snapshot: true,
            covered: mounts::read(root).iter().filter_map(path_below).collect(),
        })
    }

    /// Whether what is at a path is not in the snapshot.
    fn is_left_out(&self, path: &[u8], stat: &FileStat) -> bool {
        self.is_snapshot && (is_other_subvolume(stat) || self.covered.contains(path))
    }
}

impl<'s> Save<'s> {
    fn new(store: &'s Store, loaded: Option<Loaded>, report: SaveReport) -> Result<Self> {
        let has_base = loaded.is_some();
        let (catalog, data, wrote) = match loaded {
            Some(Loaded { manifest, catalog, .. }) => {
                let Manifest { generation: number, base, saved, .. } = manifest;
                let its_own = store.manifest_bytes(Generation { number, base });
                (catalog, manifest.data, manifest.wrote.plus(its_own, saved.seconds))
            }
            None => Default::default(),
        };
        let unwanted = unwanted(&data, &store.data_files()?);
        Ok(Self {
            store,
            catalog,
            data,
            unwanted,
            seen: HashSet::new(),
            unread: Vec::new(),
            has_base,
            lines: Vec::new(),
            line_count: 0,
            wrote,
            report,
        })
    }

    /// Takes over all that a walk meets; whether it was not interrupted.
    fn take_all(
        &mut self,
        top: &SavedTop<'_>,
        mut walk: WalkAhead,
        is_same: bool,
        pack: &mut Pack<'_>,
        progress: &mut ProgressSink<'_>,
    ) -> Result<bool> {
        self.report.unseen_processes = top.mapped.unseen_processes;
        let mut saver = EntrySaver::new(top.began, &top.mapped);
        let saved = saver.directory(&top.source, Vec::new(), &top.stat);
        self.take(saved, is_same, pack)?;
        let mut parent = CurrentDirectory::new(top.source.reopen()?);
        let mut progress = SaveProgress::new(progress);
        while let Some(walked) = walk.next()? {
            match walked {
                WalkedEntry::Found(path, stat) if top.is_left_out(&path, &stat) => {
                    self.fail(&path, "it is another subvolume, or mounted there".to_owned());
                    self.unread.push(path);
                }
                WalkedEntry::Found(path, stat) => {
                    if !(is_same && self.is_unchanged(&path, &stat)) {
                        let old = self.catalog.entry(&path);
                        let known = self.known_content(old.as_ref(), &stat, is_same);
                        let pieces = known.map_or_else(Vec::new, |known| known.pieces);
                        let known = KnownContent { pieces: &pieces, unwanted: &self.unwanted };
                        let (parent_path, name) = split(&path);
                        let saved = match parent.enter(parent_path) {
                            Ok(directory) => {
                                let entry = TreeEntry { directory, name, stat: &stat };
                                saver.save(&entry, path.clone(), known, pack, &mut progress)
                            }
                            Err(error) => entry_saver::failed(path, error),
                        };
                        self.take_with(saved, old, pack)?;
                    }
                    progress.end_entry();
                    if progress.is_stopped() {
                        return Ok(false);
                    }
                }
                WalkedEntry::OtherFileSystem(path) => {
                    self.fail(&path, "it is on another file system".to_owned());
                    self.unread.push(path);
                }
                WalkedEntry::Refused(path, error) => {
                    if error.kind != sys::ErrorKind::NotFound {
                        self.fail(&path, sys::plain_reason(&error.source));
                        self.unread.push(path);
                    }
                }
            }
        }
        self.report.read_bytes = saver.read_bytes();
        if !top.is_snapshot {
            let device = sys::block::device_numbers(top.stat.device);
            self.unsettle(&maps::shared(top.root, device), &top.mapped);
        }
        Ok(true)
    }

    /// Whether an entry is as it was saved, by its inode and its time of change. Then it is seen.
    fn is_unchanged(&mut self, path: &[u8], stat: &FileStat) -> bool {
        let Some((key, old)) = self.catalog.head(path) else { return false };
        let is_directory = stat.kind == InodeKind::Directory;
        let identity = |stat: &FileStat| {
            let links = if is_directory { 0 } else { stat.links };
            let bytes = if stat.kind == InodeKind::File { stat.bytes } else { 0 };
            (stat.kind, stat.inode, links, bytes, stat.changed, stat.modified)
        };
        let access = |stat: &FileStat| (stat.mode, stat.user, stat.group);
        let is_unchanged = old.is_settled
            && identity(&old.stat) == identity(stat)
            && access(&old.stat) == access(stat)
            && !self.names_unwanted(path);
        if is_unchanged {
            self.seen.insert(key);
        }
        is_unchanged
    }

    /// Whether an entry has pieces in data files that are not named any more.
    fn names_unwanted(&self, path: &[u8]) -> bool {
        let pieces = || self.catalog.entry(path).map_or_else(Vec::new, |entry| entry.pieces);
        !self.unwanted.is_empty()
            && pieces().iter().any(|piece| self.unwanted.contains(&piece.data))
    }

    /// The entry whose content a file probably has: its own, or that of its inode under another
    /// name.
    fn known_content(
        &mut self,
        old: Option<&Entry>,
        stat: &FileStat,
        is_same: bool,
    ) -> Option<Entry> {
        let is_its_own = old.is_some_and(|old| !is_same || old.stat.inode == stat.inode);
        if stat.kind != InodeKind::File || is_its_own {
            return old.cloned();
        }
        let renamed = if is_same { self.catalog.entry_of_inode(stat.inode) } else { None };
        renamed.or_else(|| old.cloned())
    }

    /// Takes over the top directory.
    fn take(&mut self, saved: Saved, is_same: bool, pack: &mut Pack<'_>) -> Result<()> {
        match &saved {
            Saved::Entry(entry) if is_same && self.is_unchanged(b"", &entry.stat) => Ok(()),
            _ => self.take_with(saved, self.catalog.entry(b""), pack),
        }
    }

    /// Takes over what became of an entry.
    fn take_with(&mut self, saved: Saved, old: Option<Entry>, pack: &Pack<'_>) -> Result<()> {
        match saved {
            Saved::Entry(entry) => {
                let is_different = old.as_ref().is_none_or(|old| is_different(old, &entry));
                self.report.changed_entries += u64::from(is_different);
                self.count(old.as_ref(), &entry);
                let path = entry.path.clone();
                if old.as_ref() != Some(&entry) {
                    self.put(Line::Put(entry));
                }
                self.seen.extend(self.catalog.key(&path));
                Ok(())
            }
            // Of a save that ends here nothing counts.
            Saved::Gone | Saved::Stopped => Ok(()),
            Saved::Failed(path, why) => {
                match &old {
                    Some(old) => {
                        self.seen.extend(self.catalog.key(&old.path));
                        self.fail(&path, format!("{why}; it is kept as it was saved before"));
                    }
                    None => self.fail(&path, format!("{why}; it is left out")),
                }
                Ok(())
            }
            Saved::StoreFailed(error) => {
                let path = self.store.directory().path();
                let why = sys::plain_reason(&error.source);
                let operation = format!("write data file {}", pack.number());
                Err(Error::new(ErrorKind::Failed, operation, why).at(path))
            }
        }
    }

    /// Counts the bytes of the data files that an entry names in place of another.
    fn count(&mut self, old: Option<&Entry>, new: &Entry) {
        self.forget(old);
        for piece in &new.pieces {
            *self.data.entry(piece.data).or_default() += u64::from(piece.bytes);
        }
    }

    fn forget(&mut self, old: Option<&Entry>) {
        for piece in old.into_iter().flat_map(|old| &old.pieces) {
            if let Some(bytes) = self.data.get_mut(&piece.data) {
                *bytes = bytes.saturating_sub(piece.bytes.into());
            }
        }
    }

    fn put(&mut self, line: Line) {
        let text = line.to_text();
        self.catalog.apply_line(text.as_bytes());
        if self.has_base {
            self.lines.extend_from_slice(text.as_bytes());
        }
        self.line_count += 1;
    }

    /// Notes files as unsettled that were mapped while they were saved.
    fn unsettle(&mut self, after: &SharedMappings, before: &SharedMappings) {
        if after.inodes.is_subset(&before.inodes) {
            return;
        }
        let is_mapped =
            |entry: &Entry| entry.is_settled && after.inodes.contains(&entry.stat.inode);
        let mapped: Vec<Entry> =
            self.catalog.entries().map(|(_, entry)| entry).filter(is_mapped).collect();
        for entry in mapped {
            self.put(Line::Put(Entry { is_settled: false, ..entry }));
        }
    }

    /// Removes the entries that were not met.
    fn remove_unseen(&mut self) {
        let is_gone = |(key, entry): &(u64, Entry)| {
            let is_unread = |top: &Vec<u8>| {
                let rest = entry.path.strip_prefix(top.as_slice());
                rest.is_some_and(|rest| top.is_empty() || rest.is_empty() || rest[0] == b'/')
            };
            !self.seen.contains(key) && !self.unread.iter().any(is_unread)
        };
        if self.catalog.len() == self.seen.len() as u64 {
            return;
        }
        let gone: Vec<Entry> =
            self.catalog.entries().filter(is_gone).map(|(_, entry)| entry).collect();
        for entry in gone {
            self.forget(Some(&entry));
            self.report.removed_entries += 1;
            self.put(Line::Remove(entry.path));
        }
    }

    /// Makes the generation, if anything changed.
    fn finish(
        &mut self,
        number: u64,
        base: Option<SavedBase>,
        from: DirectoryIdentity,
        mut pack: Pack<'_>,
    ) -> Result<()> {
        self.remove_unseen();
        self.report.entries = self.catalog.len();
        let changed = self.report.changed_entries + self.report.removed_entries;
        // Of another directory the store remembers which it was, whatever it restores later.
        let is_other = base.is_some_and(|base| !base.is_same);
        let is_needed =
            changed > 0 || is_other || pack.bytes() > 0 || self.line_count >= MANY_LINES;
        if let Some(base) = base.filter(|_| !is_needed) {
            self.report.generation = base.generation;
            return Ok(());
        }
        pack.sync()?;
        // The name of the data file is durable before the manifest has its own.
        self.store.directory().sync()?;
        let is_short = self.catalog.bytes() <= 2 * self.catalog.live_bytes() + (64 << 10);
        let changes = base.filter(|base| is_short && base.manifests < MOST_CHANGES);
        let lines = match changes {
            Some(_) => std::mem::take(&mut self.lines),
            None => std::mem::take(&mut self.catalog).into_live_lines(),
        };
        self.data.retain(|_, bytes| *bytes > 0);
        let saved = now();
        let manifest = Manifest {
            store: self.store.number(),
            generation: number,
            base: changes.map_or(0, |base| base.generation),
            saved,
            from,
            data: std::mem::take(&mut self.data),
            wrote: self.wrote.plus(pack.bytes(), saved.seconds),
            lines,
        };
        self.report.manifest_bytes = self.store.put(manifest)?;
        self.report.data_bytes = pack.bytes();
        pack.keep();
        (self.report.generation, self.report.is_new) = (number, true);
        Ok(())
    }

    /// What was saved. The catalog is given up before other manifests are read: it is most of the
    /// memory that a save takes.
    fn into_report(self) -> SaveReport {
        self.report
    }

    fn fail(&mut self, path: &[u8], reason: String) {
        self.report.failure_count += 1;
        if self.report.failures.len() < MOST_NAMED {
            let path = PathBuf::from(OsStr::from_bytes(path));
            self.report.failures.push(EntryFailure { path, reason });
        }
    }
}

/// Whether content or metadata differ: not only the inode and the time of its change.
fn is_different(old: &Entry, new: &Entry) -> bool {
    let kept = |entry: &Entry| {
        let stat = &entry.stat;
        let bytes = if stat.kind == InodeKind::File { stat.bytes } else { 0 };
        let access = (stat.mode, stat.user, stat.group);
        (stat.kind, access, stat.modified, bytes, stat.special_device)
    };
    kept(old) != kept(new)
        || old.link_target != new.link_target
        || old.extended != new.extended
        || old.pieces != new.pieces
}

/// Data files that are not worth what they take.
fn unwanted(live: &BTreeMap<u64, u64>, files: &BTreeMap<u64, u64>) -> BTreeSet<u64> {
    let mut unwanted: BTreeSet<u64> = live
        .iter()
        .filter(|(number, live)| {
            let bytes = files.get(number).copied().unwrap_or(0);
            bytes >= SMALLEST_REWRITTEN && **live < bytes / 2
        })
        .map(|(number, _)| *number)
        .collect();
    // What is damaged or missing cannot be kept either.
    unwanted.extend(live.keys().filter(|number| !files.contains_key(number)));
    if live.len() > MOST_DATA_FILES {
        let mut by_bytes: Vec<(u64, u64)> =
            live.iter().map(|(number, bytes)| (*bytes, *number)).collect();
        by_bytes.sort_unstable();
        let smallest = by_bytes.iter().take(MOST_DATA_FILES / 2);
        unwanted.extend(smallest.map(|(_, number)| *number));
    }
    unwanted
}

/// Now, by the clock that files have their times from.
fn now() -> FileTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    FileTime { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos().into() }
}
