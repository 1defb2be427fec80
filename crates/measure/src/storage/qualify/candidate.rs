//! What the path names: a directory with room for a nameless file, or a block device. What is not
//! behind a disk of this machine is refused here, with the reason.

use crate::storage::failed;
use crate::storage::target::{StorageTarget, TargetKind};
use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::block::{self, Disk};
use machine::mounts::{self, Mount};
use model::qualification::QualifiedTarget;
use std::path::{Path, PathBuf};
use sys::device::FileDevice;

/// Devices that are memory, by what they hang on.
const MEMORY: [&str; 2] = ["zram", "brd"];
/// Devices that are reached over a network.
const NETWORK: [&str; 2] = ["nbd", "iscsi"];

/// The opened target and what is behind it.
#[derive(Debug)]
pub(super) struct Candidate<'r> {
    pub(super) root: &'r Root,
    pub(super) target: StorageTarget,
    pub(super) facts: QualifiedTarget,
    /// The whole disk.
    pub(super) disk: Option<Disk>,
    /// The mount of a directory.
    pub(super) mount: Option<Mount>,
    pub(super) notes: Vec<String>,
}

impl<'r> Candidate<'r> {
    /// Opens `path`; in a directory this makes the nameless file.
    ///
    /// # Errors
    /// As [`super::qualify`].
    pub(super) fn open(path: &Path, root: &'r Root) -> Result<Self> {
        let target = StorageTarget::open(path, root)?;
        let facts = target.facts(root)?;
        if facts.kind == TargetKind::File {
            return Err(refused(path, ErrorKind::Usage, "it is a file; name its directory"));
        }
        let is_block_device = facts.kind == TargetKind::BlockDevice;
        let device = target.device();
        let disk = device.and_then(|(major, minor)| block::of_device(root, major, minor));
        let mount = if is_block_device { None } else { mount_of(path, root, device) };
        let system = (!is_block_device).then(|| target.file_system());
        let is_network = system.is_some_and(|system| system.network)
            || mount.as_ref().is_some_and(|mount| mount.network);
        if let Some(reason) = refusal(&target, mount.as_ref(), disk.as_ref(), is_network) {
            return Err(refused(path, ErrorKind::Impossible, &reason));
        }
        let transport = disk.as_ref().and_then(|disk| disk.transport.as_deref());
        let notes = transport
            .filter(|transport| NETWORK.contains(transport))
            .map(|transport| format!("it is reached over a network ({transport})"));
        let claimed_bytes = disk.as_ref().and_then(|disk| disk.size).map(|size| size.0);
        let facts = QualifiedTarget {
            path: path.to_owned(),
            is_block_device,
            file_system: mount.as_ref().map(|mount| mount.fs_type.clone()).or(facts.file_system),
            disk: disk.as_ref().map(|disk| disk.name.clone()),
            partition: disk.as_ref().and_then(|disk| disk.partition.clone()),
            model: disk.as_ref().and_then(|disk| disk.model.clone()),
            claimed_bytes,
        };
        let file_system = facts.file_system.clone().filter(|_| !is_block_device);
        let facts = QualifiedTarget { file_system, ..facts };
        Ok(Self { root, target, facts, disk, mount, notes: notes.into_iter().collect() })
    }

    /// Whether it is a block device, which is only read.
    pub(super) fn is_device(&self) -> bool {
        self.facts.is_block_device
    }

    /// The node of the whole disk.
    pub(super) fn disk_node(&self) -> Option<PathBuf> {
        self.disk.as_ref().map(|disk| node(&disk.name))
    }

    /// The whole disk, opened for reading past the page cache.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn raw(&self) -> std::result::Result<FileDevice, String> {
        let disk = self.disk.as_ref().ok_or("no disk is known behind it")?;
        open_raw(disk)
    }

    /// Another opening of the own file, or of the device, past the page cache.
    ///
    /// # Errors
    /// `Impossible` where the file system has no direct I/O.
    pub(super) fn direct(&self) -> Result<FileDevice> {
        let path = self.target.path();
        FileDevice::new(self.target.direct()?).map_err(|error| failed("open", path, error))
    }
}

/// The node of a disk with this kernel name.
pub(super) fn node(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

/// Opens the whole disk for reading past the page cache; the error is words.
fn open_raw(disk: &Disk) -> std::result::Result<FileDevice, String> {
    let path = node(&disk.name);
    let words = |error: sys::Error| match error.kind {
        sys::ErrorKind::Denied if sys::process::effective_uid() != 0 => {
            format!("reading {} needs root", path.display())
        }
        _ => model::error_chain(&error),
    };
    let file = sys::file::open_read(&path, true).map_err(words)?;
    if sys::block::numbers_of(&file).map_err(words)? != Some((disk.major, disk.minor)) {
        return Err(format!("{} is not the disk {}", path.display(), disk.name));
    }
    FileDevice::new(file).map_err(words)
}

/// The mount that holds the own file: that of its device number, not what the path leads to by now.
/// Only where a file system gives its files invented numbers (btrfs) the path has to do.
fn mount_of(path: &Path, root: &Root, device: Option<(u32, u32)>) -> Option<Mount> {
    let all = mounts::read(root);
    let is_of_device = |mount: &&Mount| Some((mount.major, mount.minor)) == device;
    let resolved = path.canonicalize().ok();
    let behind = resolved.and_then(|path| mounts::behind(&all, &path));
    let by_device = behind.filter(is_of_device).or_else(|| all.iter().rev().find(is_of_device));
    by_device.or(behind).cloned()
}

fn refusal(
    target: &StorageTarget,
    mount: Option<&Mount>,
    disk: Option<&Disk>,
    is_network: bool,
) -> Option<String> {
    let name = mount.map_or("the file system", |mount| mount.fs_type.as_str());
    if target.in_ram() {
        return Some(format!("it is {name}, which is memory already"));
    }
    if is_network {
        return Some(format!("it is {name}: its files are on another machine"));
    }
    if name == "overlay" || target.file_system().name == Some("overlay") {
        return Some("it is an overlay: name a directory of the file system below it".to_owned());
    }
    let Some(disk) = disk else {
        return Some(format!("it is {name}: no disk is known behind it"));
    };
    let transport = disk.transport.as_deref().unwrap_or_default();
    let is_memory = MEMORY.contains(&transport);
    is_memory.then(|| format!("{} is memory already ({transport})", disk.name))
}

fn refused(path: &Path, kind: ErrorKind, reason: &str) -> Error {
    Error::new(kind, "qualify", reason).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use testkit::{FakeRoot, TempDir};

    /// What this machine would say of a directory if that were `disk`, mounted as `fs_type`; `None`
    /// where the directory is in memory or on an overlay, with the reason printed.
    fn opened(disk: &str, fs_type: &str) -> Option<std::result::Result<Vec<String>, String>> {
        let directory = TempDir::new();
        let (major, minor) =
            sys::block::device_numbers(std::fs::metadata(directory.path()).unwrap().dev());
        let place = format!("/sys/devices/virtual/block/{disk}");
        let fake = FakeRoot::new()
            .files(&place, &[("dev", &format!("{major}:{minor}")), ("size", "2048")])
            .link(
                &format!("/sys/dev/block/{major}:{minor}"),
                &format!("../../devices/virtual/block/{disk}"),
            )
            .file(
                "/proc/self/mountinfo",
                format!("20 1 {major}:{minor} / / rw - {fs_type} server:/photos rw\n"),
            );
        let root = Root::at(fake.path());
        let answer = Candidate::open(directory.path(), &root);
        let said = answer.map(|candidate| candidate.notes).map_err(|error| {
            assert_eq!(error.kind, ErrorKind::Impossible, "{error}");
            error.to_string()
        });
        if said.as_ref().is_err_and(|said| said.contains("tmpfs") || said.contains("overlay")) {
            testkit::skip("temporary files on a disk");
            return None;
        }
        Some(said)
    }

    #[test]
    fn a_network_is_refused_or_called_what_it_is() {
        let Some(said) = opened("vdz", "nfs4") else { return };
        assert!(said.unwrap_err().contains("it is nfs4: its files are on another machine"));
        // A device over a network can be measured as a disk can.
        let notes = opened("nbd0", "ext4").unwrap().unwrap();
        assert_eq!(notes, ["it is reached over a network (nbd)"]);
        assert!(opened("vdz", "ext4").unwrap().unwrap().is_empty());
    }

    #[test]
    fn memory_behind_a_file_system_is_refused() {
        for (disk, transport) in [("zram1", "zram"), ("ram0", "brd")] {
            let Some(said) = opened(disk, "ext4") else { return };
            let said = said.unwrap_err();
            assert!(said.contains(&format!("{disk} is memory already ({transport})")), "{said}");
        }
    }
}
