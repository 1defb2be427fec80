//! Where a survey looks: the directories of interest, one for each file system,
//! with those that would hang, wake a disk or write over a network left out and named.
//!
//! Nothing is touched here but metadata, and that only where it answers in time.

use machine::Root;
use machine::block::Disk;
use machine::memory::Memory;
use machine::mounts::{self, Mount};
use measure::{Error, ErrorKind};
use model::probe::{DeviceReport, RamDiskReport};
use model::survey::Skipped;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A mount that does not answer a stat in this time is left out. Picked: a local
/// disk that spins answers in milliseconds, a dead server never.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Where RAM disks usually are.
const RAM_DISKS: [&str; 2] = ["/dev/shm", "/run/shm"];

/// A directory to measure in, and what is behind it.
#[derive(Clone, Debug)]
pub struct SurveyPlace {
    /// The directory, as it was named.
    pub directory: PathBuf,
    /// Its mount.
    pub mount: Mount,
    /// The disk behind the mount; `None` where the file system hides it.
    pub disk: Option<Disk>,
    /// Whether the file system keeps its files in RAM.
    pub in_ram: bool,
}

impl SurveyPlace {
    /// The tier's name: the mount point and the disk.
    pub fn name(&self) -> String {
        let mount = self.mount.mount_point.display();
        match &self.disk {
            Some(disk) => format!("{mount}  {}", disk.partition.as_ref().unwrap_or(&disk.name)),
            None => format!("{mount}  {}", self.mount.fs_type),
        }
    }

    /// What was measured here on a device, with what is known of the device.
    pub fn device(&self, measured: DeviceReport, is_guest: bool) -> DeviceReport {
        let disk = self.disk.clone().unwrap_or_default();
        let known = self.disk.is_some();
        DeviceReport {
            name: if known { disk.name } else { self.mount.fs_type.clone() },
            tier: self.name(),
            fs_type: self.mount.fs_type.clone(),
            capacity_bytes: disk.size.map(|bytes| bytes.0),
            rotational: disk.rotational,
            scheduler: disk.scheduler,
            read_ahead_bytes: disk.read_ahead_bytes,
            transport: disk.transport,
            virtualized: is_guest,
            ..measured
        }
    }

    /// What was measured here in RAM, with what is known of the mount.
    pub fn ram_disk(&self, measured: RamDiskReport, memory: &Memory) -> RamDiskReport {
        let (mount, fs_type) = (self.mount.mount_point.display(), &self.mount.fs_type);
        let free = sys::file::file_system_of(&self.directory).ok();
        RamDiskReport {
            tier: format!("{mount}  {fs_type}"),
            free_bytes: free.map(|system| system.free_bytes),
            huge_setting: self.huge_option().or_else(|| memory.thp.shmem_enabled.clone()),
            ..measured
        }
    }

    /// The `huge=` option of a tmpfs mount, which overrides the machine's setting.
    fn huge_option(&self) -> Option<String> {
        let options = self.mount.super_options.split(',');
        options.filter_map(|option| option.strip_prefix("huge=")).next_back().map(str::to_owned)
    }
}

/// The places of a survey, and what was left out.
#[derive(Clone, Debug, Default)]
pub struct SurveyPlaces {
    /// Devices and RAM disks, in the order they were named.
    pub places: Vec<SurveyPlace>,
    /// Left out, with the reason.
    pub skipped: Vec<Skipped>,
}

/// Finds the places: the `asked` paths, the current directory, home, the
/// temporary directory and the usual RAM disks, each file system once.
///
/// A path that was asked for and cannot be looked at is an error; the others are
/// left out.
pub fn find(asked: &[PathBuf], root: &Root) -> Result<SurveyPlaces, Error> {
    let mounts = mounts::read(root);
    let mut found = SurveyPlaces::default();
    let mut seen = HashSet::new();
    let own = own_directories().into_iter().map(|path| (path, false));
    for (path, asked) in asked.iter().map(|path| (path.clone(), true)).chain(own) {
        match place(&path, asked, &mounts, root) {
            Ok(place) => {
                if seen.insert((place.mount.major, place.mount.minor)) {
                    found.places.push(place);
                }
            }
            Err(error) if asked => return Err(error),
            Err(error) => skip(&mut found.skipped, &path, error),
        }
    }
    Ok(found)
}

fn skip(skipped: &mut Vec<Skipped>, path: &Path, error: Error) {
    let name = path.display().to_string();
    // The usual places need not exist; only what exists and is left out is said.
    if error.kind != ErrorKind::Usage && !skipped.iter().any(|s| s.name == name) {
        skipped.push(Skipped { name, reason: error.reason.unwrap_or(error.operation) });
    }
}

pub(super) fn own_directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = std::env::current_dir().into_iter().collect();
    directories.extend(std::env::var_os("HOME").map(PathBuf::from));
    directories.push(std::env::temp_dir());
    directories.extend(RAM_DISKS.map(PathBuf::from));
    directories.retain(|path| path.is_absolute());
    directories
}

/// What is behind `path`; an error says why it is not to be measured.
fn place(path: &Path, asked: bool, mounts: &[Mount], root: &Root) -> Result<SurveyPlace, Error> {
    let refuse = |kind, reason: &str| Error::new(kind, "survey", reason).at(path);
    let impossible = |reason: &str| refuse(ErrorKind::Impossible, reason);
    let usage = |reason: &str| refuse(ErrorKind::Usage, reason);
    let absolute = std::path::absolute(path).map_err(|_| usage("no such path"))?;
    // Before anything touches it: what would hang, wake or mount itself is known by
    // name; and again when links are resolved, which may lead elsewhere.
    if let Some(mount) = mounts::behind(mounts, &absolute).filter(|_| !asked) {
        left_alone(root, mount).map_or(Ok(()), |reason| Err(impossible(reason)))?;
    }
    match sys::timed_stat::stat_within(&absolute, ANSWER_WITHIN) {
        None => return Err(impossible("does not answer within a second")),
        Some(Err(_)) => return Err(usage("no such directory, or not allowed")),
        Some(Ok(facts)) if !facts.is_dir() => return Err(usage("not a directory")),
        Some(Ok(_)) => {}
    }
    let real = std::fs::canonicalize(&absolute).unwrap_or(absolute);
    let mount = mounts::behind(mounts, &real)
        .cloned()
        .ok_or_else(|| impossible("its mount cannot be found"))?;
    if let Some(reason) = left_alone(root, &mount).filter(|_| !asked) {
        return Err(impossible(reason));
    }
    if !writable(&real) {
        return Err(impossible("this user may not write there"));
    }
    let in_ram = ["tmpfs", "ramfs", "devtmpfs"].contains(&mount.fs_type.as_str());
    Ok(SurveyPlace { disk: disk_behind(root, &mount), directory: real, mount, in_ram })
}

/// Why a mount is left alone unless it was asked for, if it is.
fn left_alone(root: &Root, mount: &Mount) -> Option<&'static str> {
    if mount.automount {
        Some("would mount itself when touched")
    } else if mount.network {
        Some("is on a network; name it with --path")
    } else if disk_behind(root, mount).is_some_and(|disk| disk.asleep) {
        Some("its disk sleeps; --path wakes it")
    } else {
        None
    }
}

/// The disk by the mount's device number; a file system with a number of its own
/// (btrfs) names its device as the mount's source.
fn disk_behind(root: &Root, mount: &Mount) -> Option<Disk> {
    machine::block::of_device(root, mount.major, mount.minor).or_else(|| {
        let name = mount.source.strip_prefix("/dev/")?;
        machine::block::by_name(root, name)
    })
}

/// Whether a nameless file can be made there: the only test that knows of
/// read-only mounts, permissions and quotas alike.
fn writable(directory: &Path) -> bool {
    sys::file::Scratch::create_in(directory).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{FakeRoot, TempDir};

    /// A machine whose mount of `directory` is of this type, from this source.
    fn machine_with(directory: &Path, fs_type: &str, source: &str) -> FakeRoot {
        let point = directory.display();
        FakeRoot::new().file(
            "/proc/self/mountinfo",
            format!(
                "20 1 254:0 / / rw - ext4 /dev/vda rw\n30 20 0:77 / {point} rw - {fs_type} {source} rw\n"
            ),
        )
    }

    fn names(found: &SurveyPlaces) -> Vec<&str> {
        found.places.iter().map(|p| p.mount.fs_type.as_str()).collect()
    }

    /// `find` for a process whose home is `directory`, without any of its other places.
    fn skipped_reason(directory: &TempDir, fs_type: &str, source: &str) -> String {
        let fake = machine_with(directory.path(), fs_type, source);
        let mounts = mounts::read(&Root::at(fake.path()));
        let error = place(directory.path(), false, &mounts, &Root::at(fake.path())).unwrap_err();
        error.reason.unwrap()
    }

    #[test]
    fn what_would_hang_or_mount_itself_is_left_alone_unless_asked_for() {
        let directory = TempDir::new();
        let reason = skipped_reason(&directory, "nfs4", "server:/export");
        assert!(reason.contains("on a network"), "{reason}");
        let reason = skipped_reason(&directory, "autofs", "/etc/auto.home");
        assert!(reason.contains("mount itself"), "{reason}");
        let fake = machine_with(directory.path(), "nfs4", "server:/export");
        let root = Root::at(fake.path());
        let asked = find(&[directory.path().to_owned()], &root).unwrap();
        assert_eq!(names(&asked)[0], "nfs4");
    }

    #[test]
    fn a_disk_that_sleeps_is_not_woken() {
        let directory = TempDir::new();
        let fake = machine_with(directory.path(), "ext4", "/dev/sdq")
            .file(
                "/proc/self/mountinfo",
                format!("30 1 8:64 / {} rw - ext4 /dev/sdq rw\n", directory.path().display()),
            )
            .file("/sys/devices/sdq/dev", "8:64\n")
            .file("/sys/devices/sdq/queue/rotational", "1\n")
            .file("/sys/devices/sdq/device/power/runtime_status", "suspended\n")
            .file("/sys/devices/sdq/power/runtime_status", "suspended\n")
            .link("/sys/dev/block/8:64", "../../devices/sdq")
            .link("/sys/block/sdq", "../devices/sdq");
        let root = Root::at(fake.path());
        let mounts = mounts::read(&root);
        let error = place(directory.path(), false, &mounts, &root).unwrap_err();
        assert!(error.reason.unwrap().contains("sleeps"));
        assert!(place(directory.path(), true, &mounts, &root).is_ok());
    }

    #[test]
    fn one_file_system_is_measured_once() {
        let (one, two) = (TempDir::new(), TempDir::new());
        let fake =
            FakeRoot::new().file("/proc/self/mountinfo", "20 1 254:0 / / rw - ext4 /dev/vda rw\n");
        let paths = [one.path().to_owned(), two.path().to_owned()];
        let found = find(&paths, &Root::at(fake.path())).unwrap();
        assert_eq!(names(&found), ["ext4"]);
    }

    #[test]
    fn a_path_that_was_asked_for_must_be_a_directory() {
        let root = Root::system();
        let missing = find(&[PathBuf::from("/nonexistent")], &root).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::Usage);
        let file = find(&[PathBuf::from("/proc/self/stat")], &root).unwrap_err();
        assert_eq!(file.reason.as_deref(), Some("not a directory"));
        let proc = find(&[PathBuf::from("/proc/self")], &root).unwrap_err();
        assert_eq!(proc.kind, ErrorKind::Impossible);
    }
}
