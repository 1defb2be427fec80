//! Snapshots: what is in memory now, by name and without content, to be restored after a reboot or
//! a cache drop. Files by path, inode, change time and ranges; processes by executable and ranges.
//!
//! `docs/snapshot.md` draws the file. A damaged or hostile one is refused within bounded memory.

mod format;

pub use format::{decode, encode};
pub use model::frame::reseal_end as reseal;

use super::files::{self, UsedFile};
use super::targets::{self, Selection, TargetProcess};
use crate::cached::Access;
use crate::read_plan::{FileIdentity, WantedFile};
use crate::tree::{self, WalkEvent};
use crate::{Error, ErrorKind, Result};
use crate::{path_text, ranges};
use machine::Root;
use machine::pagemap::{Page, Pagemap};
use machine::reach::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use sys::directory::FilePlace;
use sys::file::{Durability, FileMode};
use sys::file_stat::InodeKind;

/// What is in memory at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// The files.
    pub files: Vec<CachedFile>,
    /// The processes.
    pub processes: Vec<ProcessSnapshot>,
    /// The page cache of the machine then, bytes: pages of files that have a disk.
    pub cached_bytes: Option<u64>,
    /// Of it, listed here.
    pub found_bytes: u64,
    /// What was left out, each in a line; not stored in the file.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// How much of the page cache could not be listed; `None` if the kernel does not report
    /// how large it was.
    #[must_use]
    pub fn unseen_bytes(&self) -> Option<u64> {
        let cached_bytes = self.cached_bytes?;
        Some(cached_bytes.saturating_sub(self.found_bytes))
    }
}

/// A file and what of it was in the page cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedFile {
    /// Its path.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// What it was.
    pub identity: FileIdentity,
    /// The ranges in the page cache, page-aligned, ascending, merged.
    #[serde(with = "format::steps")]
    pub cached: Vec<Range<u64>>,
}

/// A process and its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSnapshot {
    /// Its number then.
    pub pid: u32,
    /// When it started, ticks since boot.
    pub start_ticks: u64,
    /// Its `comm`.
    pub name: String,
    /// Its executable.
    #[serde(with = "path_text::optional")]
    pub executable: Option<PathBuf>,
    /// The address ranges of anonymous memory that were present.
    #[serde(with = "format::steps")]
    pub present: Vec<Range<u64>>,
}

impl ProcessSnapshot {
    /// Whether `target` is this process. Number, start and executable must agree: the start
    /// counts from the boot, so number and start alone may come again after the next one.
    #[must_use]
    pub fn is_process(&self, root: &Root, target: &TargetProcess) -> bool {
        (self.pid, self.start_ticks) == (target.pid, target.start_ticks)
            && self.executable == executable(root, target.pid)
    }
}

/// The parts of a snapshot's files that are not in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingFiles {
    /// The files with the ranges to read.
    pub files: Vec<WantedFile>,
    /// Files that were replaced or changed, are gone, or are not on a disk.
    pub changed_files: u64,
}

/// Lists what `selection` and the files below `trees` have in memory.
///
/// # Errors
/// Those of [`super::targets::find`]; `Usage` for a tree that is not there.
pub fn take(root: &Root, selection: &Selection, trees: &[PathBuf]) -> Result<Snapshot> {
    let targets = targets::find(root, selection)?;
    let mut snapshot = Snapshot {
        at_ns: now_ns(),
        cached_bytes: machine::memory::page_cache(root).map(|bytes| bytes.0),
        ..Snapshot::default()
    };
    let mut seen = HashSet::new();
    let mut access = Access::new(root);
    for UsedFile { path, identity, .. } in files::in_use(root, &targets, &mut access)? {
        seen.insert((identity.device, identity.inode));
        // A path that leads through a process means nothing once that is gone.
        if !path.starts_with(root.path("/proc")) {
            snapshot.add(path, &identity, &mut access);
        }
    }
    for tree in trees {
        // A link on the way is followed now: a restore follows none that leads to another mount.
        let tree = tree::real(tree)?;
        tree::walk(root, &tree, &mut |met| {
            if let WalkEvent::Entry(entry) = met
                && entry.stat.kind == InodeKind::File
                && entry.stat.bytes > 0
            {
                let identity = FileIdentity::of_stat(entry.stat);
                if seen.insert((identity.device, identity.inode)) {
                    snapshot.add(entry.path(), &identity, &mut access);
                }
            }
            tree::unless_interrupted()
        })?;
    }
    snapshot.processes = targets.iter().filter_map(|one| process_snapshot(root, one)).collect();
    snapshot.notes = access.notes();
    Ok(snapshot)
}

impl Snapshot {
    /// Adds the file if any of it is in the page cache.
    fn add(&mut self, path: PathBuf, identity: &FileIdentity, access: &mut Access) {
        // Files in RAM are not opened: they have no disk to be restored from.
        let Ok(open) = access.open(&path, identity) else {
            return;
        };
        let all = 0..identity.bytes;
        let Ok(Some(cached)) = access.questions.ranges_of(&open, &[all]) else {
            return;
        };
        if cached.is_empty() {
            return;
        }
        self.found_bytes = self.found_bytes.saturating_add(ranges::total(&cached));
        self.files.push(CachedFile { path, identity: *identity, cached });
    }
}

/// The anonymous memory of a process that is present; `None` if this user may not read it.
fn process_snapshot(root: &Root, target: &TargetProcess) -> Option<ProcessSnapshot> {
    let mut pagemap = Pagemap::open(root, target.pid).ok()?;
    let page_bytes = sys::process::page_bytes() as u64;
    let mut present = Vec::new();
    for mapping in machine::maps::read(root, target.pid).ok()? {
        if sys::interrupt::requested() {
            return None;
        }
        if mapping.kind == machine::maps::MappingKind::Special {
            continue;
        }
        let each = |address, page| {
            let file_or_shared = false;
            if page == (Page::Present { file_or_shared }) {
                ranges::push(&mut present, address..address + page_bytes);
            }
        };
        pagemap.read(mapping.range, each).ok()?;
    }
    Some(ProcessSnapshot {
        pid: target.pid,
        start_ticks: target.start_ticks,
        name: target.name.clone(),
        executable: executable(root, target.pid),
        present,
    })
}

fn executable(root: &Root, pid: u32) -> Option<PathBuf> {
    std::fs::read_link(root.path(format!("/proc/{pid}/exe"))).ok()
}

/// The absent parts of the files of `snapshot` that are unchanged.
#[must_use]
pub fn missing(snapshot: &Snapshot, access: &mut Access) -> MissingFiles {
    let mut missing = MissingFiles::default();
    let mut order: Vec<&CachedFile> = snapshot.files.iter().collect();
    // Opening a file reads its inode: in the order of the inodes that is one sweep.
    order.sort_unstable_by_key(|file| (file.identity.device, file.identity.inode));
    for file in order {
        if sys::interrupt::requested() {
            break;
        }
        let open = match access.open(&file.path, &file.identity) {
            Ok(open) => open,
            Err(Refusal::LeftOut) => continue,
            Err(Refusal::Closed) => {
                missing.changed_files += 1;
                continue;
            }
        };
        // The device's number may differ from that in the snapshot: what it is now counts.
        let device = open.metadata().map(|now| FileIdentity::of(&now).device);
        let identity =
            FileIdentity { device: device.unwrap_or(file.identity.device), ..file.identity };
        let all = 0..file.identity.bytes;
        let Ok(now) = access.questions.ranges_of(&open, &[all]) else {
            continue;
        };
        let now = now.unwrap_or_default();
        // A snapshot of another user may name ranges beyond the end.
        let behind = file.identity.end()..u64::MAX;
        let was = ranges::without(&file.cached, std::slice::from_ref(&behind));
        let absent = ranges::without(&was, &now);
        if !absent.is_empty() {
            missing.files.push(WantedFile::new(file.path.clone(), identity, absent));
        }
    }
    missing
}

/// Writes `snapshot` to `path` atomically, readable by its owner only, since it lists what all
/// users of the machine use. Replaces an empty file or a snapshot.
///
/// # Errors
/// `Usage` where another file is there; `Failed` with the file system's reason.
pub fn write(snapshot: &Snapshot, path: &Path) -> Result<()> {
    const OPERATION: &str = "write the snapshot";
    let failed = |error: &std::io::Error| Error::io(OPERATION, path, error);
    let place = FilePlace::of(path).map_err(|error| failed(&error.source))?;
    if !may_be_replaced(&place) {
        let why = "another file is there, which is no snapshot";
        return Err(Error::new(ErrorKind::Usage, OPERATION, why).at(path));
    }
    let mode = FileMode::AsBefore { new: 0o600 };
    sys::file::replace(&place.directory, &place.name, &encode(snapshot)?, mode, Durability::Synced)
        .map_err(|error| failed(&error.source))
}

/// Whether nothing is there, or an empty file, or what begins like a snapshot.
fn may_be_replaced(place: &FilePlace) -> bool {
    match place.directory.metadata(&place.name) {
        Ok(metadata) if metadata.is_file() && metadata.len() > 0 => {
            let mut start = [0; format::NAME.len()];
            let file = place.directory.open_regular(&place.name);
            file.is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == format::NAME
        }
        Ok(metadata) => metadata.is_file(),
        // What is wrong with the name is reported when it is written.
        Err(_) => true,
    }
}

/// Reads a snapshot.
///
/// # Errors
/// `NotASnapshot` for anything else, damaged or newer.
pub fn read(path: &Path) -> Result<Snapshot> {
    const OPERATION: &str = "read the snapshot";
    let failed = |error: &std::io::Error| Error::io(OPERATION, path, error);
    let file = sys::file::open_input(path).map_err(|error| match error.kind {
        sys::ErrorKind::Invalid => {
            let why = sys::plain_reason(&error.source);
            Error::new(ErrorKind::NotASnapshot, OPERATION, why).at(path)
        }
        _ => failed(&error.source),
    })?;
    let mut bytes = Vec::new();
    file.take(format::MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    decode(&bytes).map_err(|why| Error::new(ErrorKind::NotASnapshot, OPERATION, why).at(path))
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
