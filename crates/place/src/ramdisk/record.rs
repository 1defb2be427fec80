//! The RAM disks that are known here: a small JSON file for each in `/run/terrace/ramdisk/`, which
//! only root reads and which is gone after a restart of the machine, as the RAM disks are. Of those
//! that `create` made:
//!
//! 1. The file is written before the mount gets its place in the tree, and says so.
//! 2. The mount gets its place by one call.
//! 3. The file is written again: the RAM disk is there.
//!
//! All three are done under one lock, so who has the lock and meets a file of step 1 sees what a
//! killed process left: either the mount is there, and the file is completed, or the file is
//! removed. Whether a mount is still the one that was made is known by its number and by that of
//! its top directory, never by its place.

use super::devices::{self, ZramNote};
use super::identity::DirectoryIdentity;
use super::kind::RamdiskKind;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};
use sys::file_stat::FileStat;
use sys::lock::{self, LockMode};
use sys::mount::MountIdentity;

/// Where the files are.
const PLACE: &str = "/run/terrace/ramdisk";
/// The version of a file's form.
pub const RECORD_VERSION: u32 = 1;
/// A file has a few paths and numbers; a larger one is something else.
const MOST_BYTES: u64 = 64 << 10;
const LOCK: &str = "lock";
const SUFFIX: &str = ".json";
const READ: &str = "read what is known of the RAM disk from";

/// A RAM disk that was made by `create`, or that another program mounted and `keep` keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamdiskRecord {
    /// The version of this form.
    pub version: u32,
    /// Where it is mounted: an absolute path without links.
    #[serde(with = "crate::path_text")]
    pub mount_point: PathBuf,
    /// When it was made, seconds since 1970.
    pub created_at: i64,
    /// Which mount it is.
    pub mount: RecordedMount,
    /// Whether the mount has its place. Else its maker was killed in between, or is at it.
    pub is_mounted: bool,
    /// Whether the directory below the mount was made for it: `remove` removes it.
    pub made_directory: bool,
    /// Whether another program mounted it, and `keep` found it there.
    #[serde(default)]
    pub mounted_elsewhere: bool,
    /// What it was made with.
    pub options: RamdiskOptions,
    /// What it is made of.
    #[serde(default)]
    pub kind: RamdiskKind,
    /// Where it is saved to, if anywhere.
    pub persist: Option<RamdiskPersist>,
    /// Whether it covers a directory whose content it took over.
    #[serde(default)]
    pub adopted: bool,
    /// Present while the covered directory is given back: the RAM disk is read-only.
    #[serde(default)]
    pub release: Option<PendingRelease>,
}

/// How far a covered directory was given back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRelease {
    /// What takes the place of the covered directory once the RAM disk is unmounted; absent until
    /// it is whole and durable.
    pub copy: Option<PreparedCopy>,
}

/// A copy that is ready to take the place of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedCopy {
    /// The hidden directory beside that one, which holds it.
    pub hidden: String,
    /// Its inode: whether it is in its place already.
    pub inode: u64,
}

/// How a mount is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMount {
    /// The kernel's number of the mount.
    pub id: u64,
    /// Whether that number is never given again (Linux 6.8).
    pub is_unique: bool,
    /// The mount namespace in which it has that number.
    pub namespace: u64,
    /// Its top directory.
    pub top: DirectoryIdentity,
}

/// Options of a RAM disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamdiskOptions {
    /// The most that it holds.
    pub size: Bytes,
    /// Which of its pages are huge, if that was asked for.
    pub huge: Option<HugePolicy>,
    /// Whether its pages never go to swap.
    pub noswap: bool,
    /// The permissions of its top directory.
    pub mode: u32,
    /// The owner of its top directory.
    pub user: u32,
    /// The group of its top directory.
    pub group: u32,
}

/// Which pages of a RAM disk are huge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HugePolicy {
    /// Those that are whole within the file.
    WithinSize,
    /// All, if there are any.
    Always,
    /// None.
    Never,
}

/// Where and how often a RAM disk is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamdiskPersist {
    /// The directory of the store: an absolute path.
    #[serde(with = "crate::path_text")]
    pub store: PathBuf,
    /// The time between two saves of `keep`.
    pub every_seconds: u64,
    /// How many generations stay.
    pub keep: u16,
}

/// Whether a RAM disk is where it was mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RamdiskState {
    /// It is there.
    Mounted,
    /// It was unmounted by another program.
    Unmounted,
    /// Something else is mounted there, or over it.
    Replaced,
}

/// The files of all RAM disks, locked.
#[derive(Debug)]
pub struct RamdiskRecords {
    directory: Directory,
    root: Root,
    /// Holds the lock.
    _lock: File,
}

impl HugePolicy {
    /// As tmpfs calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::WithinSize => "within_size",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl RecordedMount {
    /// The mount that an open directory, its top, is on.
    ///
    /// # Errors
    /// Where the kernel does not say which mount it is.
    pub(super) fn of(root: &Root, top: &Directory) -> Result<Self> {
        let Some(MountIdentity { id, is_unique }) = MountIdentity::of(top.file())? else {
            let why = "the kernel does not number its mounts (Linux 5.8)";
            return Err(Error::new(ErrorKind::Impossible, "tell mounts apart", why));
        };
        let namespace = root.path("/proc/self/ns/mnt").metadata().map_or(0, |about| about.ino());
        let top = DirectoryIdentity::new(root, &FileStat::of(top.file())?);
        Ok(Self { id, is_unique, namespace, top })
    }

    /// Whether both are the same file system, mounted at once. In a copy of its mount namespace a
    /// mount has another number.
    fn is_same(&self, other: &Self) -> bool {
        let is_other_namespace = self.namespace != other.namespace && self.top.is_dated();
        self.top == other.top && (self.id == other.id || is_other_namespace)
    }
}

impl RamdiskRecord {
    /// Its name in messages: the mount point.
    #[must_use]
    pub fn name(&self) -> std::path::Display<'_> {
        self.mount_point.display()
    }

    /// Whether it is where it was mounted; with its top directory if it is.
    #[must_use]
    pub fn state(&self, root: &Root) -> (RamdiskState, Option<Directory>) {
        let Ok(top) = Directory::open(&self.mount_point) else {
            return (RamdiskState::Unmounted, None);
        };
        match RecordedMount::of(root, &top) {
            Ok(mount) if mount.is_same(&self.mount) => (RamdiskState::Mounted, Some(top)),
            _ if is_mount_point(&self.mount_point, &top) => (RamdiskState::Replaced, None),
            _ => (RamdiskState::Unmounted, None),
        }
    }

    /// Its top directory, if it is where it was mounted.
    ///
    /// # Errors
    /// `Impossible` if it was unmounted or replaced.
    pub fn open(&self, root: &Root, operation: &str) -> Result<Directory> {
        let why = match self.state(root) {
            (_, Some(top)) => return Ok(top),
            (RamdiskState::Replaced, None) => {
                "something else is mounted there, and is not touched; the RAM disk that was made \
                 here cannot be reached"
                    .to_owned()
            }
            (_, None) => format!(
                "it was unmounted by another program, and {}; `terrace ramdisk remove{}",
                self.kind.after_unmount(),
                if self.kind.outlives_mount() { " --discard` gives it up" } else { "` forgets it" }
            ),
        };
        Err(Error::new(ErrorKind::Impossible, operation, why).at(&self.mount_point))
    }
}

impl RamdiskRecords {
    /// Opens the files and waits for the lock. What killed processes left is put right.
    ///
    /// # Errors
    /// `Impossible` for others than root; as for opening them.
    pub fn lock(root: &Root) -> Result<Self> {
        if sys::process::effective_uid() != 0 {
            let why = "only root makes RAM disks and sees them. Your own directory in /dev/shm is \
                       one: `terrace ramdisk save` and `restore` work on it";
            return Err(Error::new(
                ErrorKind::Impossible,
                "use the RAM disks of this machine",
                why,
            ));
        }
        let directory = Directory::create_private(&root.path(PLACE))?;
        let lock = directory.open_or_create(OsStr::new(LOCK), 0o600)?;
        lock::take(&lock, LockMode::Exclusive)?;
        let this = Self { directory, root: root.clone(), _lock: lock };
        this.put_right()?;
        Ok(this)
    }

    /// All RAM disks, by mount point. A file that cannot be understood is left out.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn all(&self) -> Result<Vec<RamdiskRecord>> {
        all_in(&self.directory)
    }

    /// All RAM disks as their files are now: what a killed process left is not put right, and
    /// nothing waits for another one.
    ///
    /// # Errors
    /// Where there are none, and for others than root.
    pub fn known(root: &Root) -> Result<Vec<RamdiskRecord>> {
        all_in(&Directory::open_private(&root.path(PLACE))?)
    }

    /// The RAM disk of a name: its mount point, or the last component of that if no other has it.
    ///
    /// # Errors
    /// `Usage` if there is none or several, naming those that there are.
    pub fn find(&self, name: &Path) -> Result<RamdiskRecord> {
        let mut all = self.all()?;
        let refused = |why: String| Error::new(ErrorKind::Usage, "find a RAM disk", why).at(name);
        let real = absolute(name).ok();
        // Where its directory is gone too, the path is as it was typed.
        let is_it = |point: &Path| real.as_deref() == Some(point) || point == name;
        if let Some(at) = all.iter().position(|one| is_it(&one.mount_point)) {
            return Ok(all.swap_remove(at));
        }
        let points: Vec<String> = all.iter().map(|one| one.name().to_string()).collect();
        all.retain(|one| one.mount_point.file_name() == Some(name.as_os_str()));
        match (all.pop(), all.is_empty()) {
            (Some(found), true) => Ok(found),
            (Some(_), false) => {
                Err(refused(format!("several have this name: {}", points.join(", "))))
            }
            (None, _) if points.is_empty() => {
                Err(refused("none is known here; `terrace ramdisk create` makes one".to_owned()))
            }
            (None, _) => Err(refused(format!("those that are known here: {}", points.join(", ")))),
        }
    }

    /// Writes the file of a RAM disk, in place of an older one of its mount point.
    ///
    /// # Errors
    /// As for writing it.
    pub fn write(&self, record: &RamdiskRecord) -> Result<()> {
        let failed = |error: serde_json::Error| {
            Error::new(ErrorKind::Failed, "note the RAM disk", error.to_string())
        };
        let text = serde_json::to_vec(record).map_err(failed)?;
        // Nothing of /run survives a power cut.
        let (mode, durability) = (FileMode::OwnerOnly, Durability::Unsynced);
        let name = file_name(&record.mount_point);
        Ok(file::replace(&self.directory, &name, &text, mode, durability)?)
    }

    /// Refuses a new RAM disk in place of one that another program unmounted and whose files are on
    /// its device: without its record they would go with the device.
    ///
    /// # Errors
    /// `Impossible` then; as for the records.
    pub(super) fn refuse_to_forget(&self, point: &Path, operation: &'static str) -> Result<()> {
        let all = self.all()?;
        let before = all.iter().find(|one| one.mount_point == point);
        match before {
            Some(before) if before.kind.outlives_mount() => {
                before.open(&self.root, operation).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Removes the file of a RAM disk, and its device.
    ///
    /// # Errors
    /// As for removing it.
    pub fn remove(&self, record: &RamdiskRecord) -> Result<()> {
        self.directory.remove(&file_name(&record.mount_point))?;
        self.sweep_devices()
    }

    /// The atomic RAM disk whose files have this device number, if one was made here. Needs no
    /// lock: each file is replaced at once. `None` for others than root.
    pub(super) fn atomic_on(root: &Root, device: u64) -> Option<RamdiskRecord> {
        // The kernel gives the number of one that was unmounted to another file system.
        let is_it = |one: &RamdiskRecord| {
            one.kind.device().is_some()
                && one.mount.top.device() == device
                && one.state(root).0 != RamdiskState::Unmounted
        };
        Self::known(root).ok()?.into_iter().find(is_it)
    }

    /// Adds a zram device for a RAM disk that is being made.
    pub(super) fn add_device(&self, size: Bytes) -> Result<ZramNote> {
        devices::add(&self.root, &self.directory, size)
    }

    /// Removes the devices that no RAM disk needs any more.
    fn sweep_devices(&self) -> Result<()> {
        let needed: Vec<_> = self.all()?.iter().filter_map(|one| one.kind.device()).collect();
        devices::sweep(&self.directory, |device| needed.contains(&device))
    }

    /// Completes or removes the files of mounts that were being made when their maker was killed,
    /// and what a killed release left. What another program mounted is forgotten when it is gone.
    fn put_right(&self) -> Result<()> {
        for record in self.all()?.into_iter().filter(|record| record.release.is_some()) {
            // Another RAM disk's trouble is no reason to refuse this command: `release` says it.
            let _ = super::release::put_right(self, &self.root, &record);
        }
        for record in self.all()?.into_iter().filter(|record| record.mounted_elsewhere) {
            if record.state(&self.root).0 != RamdiskState::Mounted {
                self.remove(&record)?;
            }
        }
        for record in self.all()?.into_iter().filter(|record| !record.is_mounted) {
            if record.state(&self.root).0 == RamdiskState::Mounted {
                self.write(&RamdiskRecord { is_mounted: true, ..record })?;
            } else {
                self.remove(&record)?;
                remove_made_directory(&record);
            }
        }
        // A device that cannot be removed now is tried again next time.
        let _ = self.sweep_devices();
        Ok(())
    }
}

fn all_in(directory: &Directory) -> Result<Vec<RamdiskRecord>> {
    let names = directory.names()?;
    let mut all: Vec<RamdiskRecord> =
        names.iter().filter_map(|name| read(directory, name).ok().flatten()).collect();
    all.sort_by(|one, other| one.mount_point.cmp(&other.mount_point));
    Ok(all)
}

/// `None` for other files, and for one of a newer version.
fn read(directory: &Directory, name: &OsStr) -> Result<Option<RamdiskRecord>> {
    #[derive(Deserialize)]
    struct RecordVersion {
        version: u32,
    }
    if !name.as_bytes().ends_with(SUFFIX.as_bytes()) {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| {
        Error::new(ErrorKind::Failed, READ, error.to_string()).at(directory.path().join(name))
    };
    let mut text = Vec::new();
    let opened = directory.open_regular(name)?;
    let read = opened.take(MOST_BYTES).read_to_end(&mut text);
    read.map_err(|error| Error::io(READ, &directory.path().join(name), error))?;
    let version: RecordVersion = serde_json::from_slice(&text).map_err(damaged)?;
    if version.version != RECORD_VERSION {
        return Ok(None);
    }
    let record: RamdiskRecord = serde_json::from_slice(&text).map_err(damaged)?;
    Ok((file_name(&record.mount_point) == name).then_some(record))
}

/// Removes the directory below a mount that was made for it, if it is empty.
pub(super) fn remove_made_directory(record: &RamdiskRecord) {
    let point = &record.mount_point;
    if let (true, Some(parent), Some(name)) =
        (record.made_directory, point.parent(), point.file_name())
        && let Ok(parent) = Directory::open(parent)
    {
        // One that is not empty, or is gone, is not ours any more.
        let _ = parent.remove_directory(name);
    }
}

/// Whether something is mounted at a path, whose directory `top` is.
fn is_mount_point(point: &Path, top: &Directory) -> bool {
    let Some(parent) = point.parent().and_then(|parent| Directory::open(parent).ok()) else {
        return true;
    };
    MountIdentity::of(parent.file()).ok() != MountIdentity::of(top.file()).ok()
}

/// The path without links on the way to its last component, which is kept as it is.
pub(super) fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => Ok(whole),
    }
}

/// A file has the name of a hash: a path may be longer than a name.
fn file_name(mount_point: &Path) -> OsString {
    let hash = xxhash_rust::xxh3::xxh3_64(mount_point.as_os_str().as_bytes());
    format!("{hash:016x}{SUFFIX}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    fn record(point: &str) -> RamdiskRecord {
        let top = DirectoryIdentity::of_fields("boot", 3, 1, None);
        RamdiskRecord {
            version: RECORD_VERSION,
            mount_point: point.into(),
            created_at: 1,
            mount: RecordedMount { id: 7, is_unique: true, namespace: 4, top },
            is_mounted: true,
            made_directory: false,
            mounted_elsewhere: false,
            options: RamdiskOptions {
                size: Bytes(1 << 20),
                huge: Some(HugePolicy::WithinSize),
                noswap: false,
                mode: 0o755,
                user: 0,
                group: 0,
            },
            kind: RamdiskKind::Tmpfs,
            persist: Some(RamdiskPersist { store: "/s".into(), every_seconds: 300, keep: 3 }),
            adopted: false,
            release: None,
        }
    }

    fn records(directory: &TempDir) -> Option<RamdiskRecords> {
        match RamdiskRecords::lock(&Root::at(directory.path())) {
            Ok(records) => Some(records),
            Err(error) if error.kind == ErrorKind::Impossible => {
                testkit::skip("root");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_ram_disk_is_found_by_its_place_or_its_last_component() {
        let directory = TempDir::new();
        let Some(records) = records(&directory) else { return };
        let all = ["/a/x", "/b/x", "/b/y"].map(record);
        all.iter().for_each(|one| records.write(one).unwrap());
        assert_eq!(records.all().unwrap(), all);
        let found = |name: &str| records.find(Path::new(name)).map(|found| found.mount_point);
        assert_eq!(found("y").unwrap(), Path::new("/b/y"));
        for (name, words) in [("x", "several"), ("z", "/a/x, /b/x, /b/y")] {
            let error = found(name).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.to_string().contains(words), "{error}");
        }
        records.remove(&all[0]).unwrap();
        assert_eq!(found("x").unwrap(), Path::new("/b/x"));
    }

    #[test]
    fn what_a_killed_maker_left_is_removed_and_newer_files_stay() {
        let directory = TempDir::new();
        let Some(records_before) = records(&directory) else { return };
        let point = directory.join("made");
        std::fs::create_dir(&point).unwrap();
        let half = RamdiskRecord {
            is_mounted: false,
            made_directory: true,
            ..record(point.to_str().unwrap())
        };
        records_before.write(&half).unwrap();
        let newer = RamdiskRecord { version: RECORD_VERSION + 1, ..record("/newer") };
        records_before.write(&newer).unwrap();
        let place = records_before.directory.path().to_owned();
        drop(records_before);
        let after = records(&directory).unwrap();
        assert!(after.all().unwrap().is_empty() && !point.exists());
        assert!(place.join(file_name(Path::new("/newer"))).exists());
    }

    #[test]
    fn a_mount_is_another_one_if_its_number_or_its_top_is() {
        let made = record("/a").mount;
        assert!(made.is_same(&made));
        assert!(!RecordedMount { id: 8, ..made.clone() }.is_same(&made));
        let other = DirectoryIdentity::of_fields("boot", 3, 2, None);
        assert!(!RecordedMount { top: other, ..made.clone() }.is_same(&made));
        let copied = RecordedMount { id: 8, namespace: 5, ..made.clone() };
        assert!(!copied.is_same(&made), "without a time it may be another one");
        let time = sys::attributes::FileTime { seconds: 1, nanoseconds: 2 };
        let dated = DirectoryIdentity::of_fields("boot", 3, 1, Some(time));
        let made = RecordedMount { top: dated.clone(), ..made };
        assert!(RecordedMount { top: dated, ..copied }.is_same(&made));
    }
}
