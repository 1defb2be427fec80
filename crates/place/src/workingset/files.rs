//! Files that live processes use, and what of them is not in the page cache.
//!
//! The idea: a mapped file's mapped ranges are what its process touches; an open file's whole
//! length may be.
//! Files in RAM (tmpfs) belong to [`super::shared`]; files without a name are left out.

use super::targets::TargetProcess;
use crate::Result;
use crate::cached::Access;
use crate::ranges;
use crate::read_plan::FileIdentity;
use machine::Root;
use machine::maps::MappingKind;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub identity: FileIdentity,
    /// Which processes use it: indices into the targets.
    pub targets: Vec<u32>,
    /// The byte ranges that they mapped, or the whole file if one holds it open; merged.
    pub used: Vec<Range<u64>>,
    /// Of these, bytes in the page cache; `None` where the kernel does not say.
    pub cached_bytes: Option<u64>,
    /// Of these, the ranges that are not in the page cache.
    pub absent: Vec<Range<u64>>,
}

/// Finds the regular files that `targets` have mapped or open, each once, and asks what of
/// them is in the page cache.
///
/// # Errors
/// None of a single process; `Impossible` where /proc cannot be read at all.
pub fn find(root: &Root, targets: &[TargetProcess], access: &mut Access) -> Result<Vec<UsedFile>> {
    let mut files = in_use(root, targets, access)?;
    for file in &mut files {
        if sys::interrupt::requested() {
            break;
        }
        let Ok(open) = access.open(&file.path, &file.identity) else {
            continue;
        };
        if let Ok(Some(cached)) = access.questions.ranges_of(&open, &file.used) {
            file.cached_bytes = Some(ranges::total(&cached));
            file.absent = ranges::without(&file.used, &cached);
        }
    }
    Ok(files)
}

/// As [`find`], without asking for what is in the page cache.
pub(super) fn in_use(
    root: &Root,
    targets: &[TargetProcess],
    access: &mut Access,
) -> Result<Vec<UsedFile>> {
    let mut found = Found::new(root, access)?;
    for (index, target) in (0..).zip(targets) {
        if sys::interrupt::requested() {
            break;
        }
        let base = namespace_of(root, target.pid, &found.own_namespace);
        // A process that has ended meanwhile uses nothing.
        for mapping in machine::maps::read(root, target.pid).unwrap_or_default() {
            let length = mapping.range.end - mapping.range.start;
            let part = mapping.offset..mapping.offset.saturating_add(length);
            if let (MappingKind::File, false, Some(path)) =
                (mapping.kind, mapping.deleted, mapping.path)
            {
                found.add(&base, path, index, Some(part));
            }
        }
        for path in open_paths(root, target.pid) {
            found.add(&base, path, index, None);
        }
    }
    let mut files = found.files;
    for file in &mut files {
        file.used = ranges::merged(std::mem::take(&mut file.used));
    }
    Ok(files)
}

/// The files found so far.
struct Found<'a> {
    access: &'a mut Access,
    own_namespace: Option<PathBuf>,
    files: Vec<UsedFile>,
    /// The file at each path, an index into `files`. Libraries are mapped by every process.
    by_path: HashMap<PathBuf, Option<usize>>,
    by_identity: HashMap<(u64, u64), usize>,
}

impl<'a> Found<'a> {
    fn new(root: &Root, access: &'a mut Access) -> Result<Self> {
        let proc = root.path("/proc");
        std::fs::read_dir(&proc).map_err(|error| {
            let reason = sys::plain_reason(&error);
            crate::Error::new(crate::ErrorKind::Impossible, "look for processes in", reason)
                .at(&proc)
        })?;
        Ok(Self {
            access,
            own_namespace: mount_namespace(root, "self"),
            files: Vec::new(),
            by_path: HashMap::new(),
            by_identity: HashMap::new(),
        })
    }

    /// Notes that the target `index` uses `part` of the file, or all of it.
    fn add(&mut self, base: &Path, path: PathBuf, index: u32, part: Option<Range<u64>>) {
        if !path.is_absolute() {
            return;
        }
        let path = base.join(path.strip_prefix("/").unwrap_or(&path));
        let known = match self.by_path.get(&path) {
            Some(known) => *known,
            None => {
                let place = self.place(&path);
                self.by_path.insert(path, place);
                place
            }
        };
        let Some(file) = known.and_then(|place| self.files.get_mut(place)) else {
            return;
        };
        if file.targets.last() != Some(&index) {
            file.targets.push(index);
        }
        let end = file.identity.end();
        let part = part.unwrap_or(0..end);
        file.used.push(part.start.min(end)..part.end.min(end));
    }

    /// The index of the file at `path`; `None` if it is not a file on a disk.
    fn place(&mut self, path: &Path) -> Option<usize> {
        let file = self.access.reach.open(path).ok()?;
        let identity = FileIdentity::of(&file.metadata().ok()?);
        let key = (identity.device, identity.inode);
        if let Some(place) = self.by_identity.get(&key) {
            return Some(*place);
        }
        let system = sys::file::file_system(&file).ok()?;
        // Pages of tmpfs are shared memory; /proc and /sys have none at all.
        if system.in_ram || matches!(system.name, Some("proc" | "sysfs")) {
            return None;
        }
        let place = self.files.len();
        self.by_identity.insert(key, place);
        self.files.push(UsedFile {
            path: path.to_owned(),
            identity,
            targets: Vec::new(),
            used: Vec::new(),
            cached_bytes: None,
            absent: Vec::new(),
        });
        Some(place)
    }
}

/// The directory that the paths of a process start from: the root as this process sees it, or
/// for a process of a container its own, through /proc.
fn namespace_of(root: &Root, pid: u32, own: &Option<PathBuf>) -> PathBuf {
    let its = mount_namespace(root, pid);
    if its.is_some() && its != *own {
        root.path(format!("/proc/{pid}/root"))
    } else {
        root.path("/")
    }
}

fn mount_namespace(root: &Root, pid: impl std::fmt::Display) -> Option<PathBuf> {
    std::fs::read_link(root.path(format!("/proc/{pid}/ns/mnt"))).ok()
}

/// The paths of the files that a process holds open; those without a name any more are left out.
fn open_paths(root: &Root, pid: u32) -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir(root.path(format!("/proc/{pid}/fd")));
    descriptors
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| !path.as_os_str().as_bytes().ends_with(b" (deleted)"))
        .collect()
}
