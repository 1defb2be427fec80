//! What a storage probe runs on: its own scratch file in a directory, a file of the user's, or a
//! block device.
//!
//! Only the scratch file is ever written. It has no name, so nothing is left behind however the
//! process ends. Everything else is opened for reading only, and its cached pages are left as they
//! are. Any other kind of path is refused here with one error.

use super::failed;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use model::bytes::MIB;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::cachestat::CacheStat;
use sys::device::FileDevice;
use sys::file::{CacheAdvice, FileSystem, Scratch};

/// How long a file system may take to say what a path is. Picked: a disk that has
/// to spin up takes up to 10 s; a network mount that is gone never answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Free space that is always left where the file system is large enough to spare it.
const MARGIN: u64 = 256 * MIB;
/// How often eviction is repeated while pages are still under write-back.
const EVICT_TRIES: u32 = 3;

/// How many files of its size the probe's own file may be moved by, on the disk. Picked: a file
/// system was seen to take two places in turn.
const PLACES: u64 = 8;

/// What sort of thing the path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory, in which the probe has its own file without a name.
    Directory,
    /// A file of the user's; only read.
    File,
    /// A block device; only read.
    BlockDevice,
}

/// What a report says about its target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The path as it was given.
    pub path: PathBuf,
    /// What it names.
    pub kind: TargetKind,
    /// The type of the file system; `None` where it has no known name.
    pub file_system: Option<String>,
    /// Whether that file system lives in RAM, whatever else is asked of it.
    pub in_ram: bool,
    /// The whole disk behind it: `vda`; `None` where none is known.
    pub disk: Option<String>,
    /// The size of the file or device, in bytes.
    pub bytes: u64,
}

/// An open target.
#[derive(Debug)]
pub struct StorageTarget {
    path: PathBuf,
    kind: TargetKind,
    /// The probe's own file; `None` unless the target is a directory.
    scratch: Option<Scratch>,
    /// Opened for reading, with the cache in use.
    file: File,
    file_system: FileSystem,
    device: Option<(u32, u32)>,
}

impl StorageTarget {
    /// Opens `path`; in a directory this makes the scratch file, still empty.
    ///
    /// # Errors
    /// `Usage` for a path that does not exist, is empty, or is not a file, directory or block
    /// device; `Impossible` where permission is missing or the file system read-only.
    pub fn open(path: &Path, root: &Root) -> Result<Self> {
        let metadata = examine(path)?;
        let kind = kind_of(path, &metadata)?;
        let place = sys::file::open_read(path, false).map_err(|e| failed("open", path, e))?;
        let named_in = sys::file::file_system(&place).map_err(|e| failed("examine", path, e))?;
        if matches!(named_in.name, Some("proc" | "sysfs")) {
            return Err(refused(path, "the kernel makes its content; no disk holds it"));
        }
        let named = metadata_of(&place, path)?;
        let scratch = match kind {
            TargetKind::Directory => Some(
                Scratch::create_in(path)
                    .map_err(|e| failed("create a scratch file in", path, e))?,
            ),
            TargetKind::File | TargetKind::BlockDevice => None,
        };
        let file = match &scratch {
            Some(scratch) => scratch.reopen().map_err(|e| failed("open", path, e))?,
            None => place,
        };
        // Of what is open: the path may lead elsewhere by now.
        let file_system = sys::file::file_system(&file).map_err(|e| failed("examine", path, e))?;
        // An overlay gives its files the number of the layer below it.
        let is_overlay = file_system.name == Some("overlay");
        let opened = if is_overlay { named } else { metadata_of(&file, path)? };
        let device = device_numbers(root, kind, path, &opened);
        let target = Self { path: path.to_owned(), kind, scratch, file, file_system, device };
        if kind != TargetKind::Directory && target.bytes()? == 0 {
            return Err(refused(path, "it is empty"));
        }
        Ok(target)
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is the probe's own, and so may be written and evicted.
    pub fn is_own(&self) -> bool {
        self.scratch.is_some()
    }

    /// The file with the cache in use; writable only if it is the probe's own.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file system that holds the file (for a block device: that holds its name).
    pub fn file_system(&self) -> &FileSystem {
        &self.file_system
    }

    /// The block device behind it as major and minor number; `None` without one (RAM, network) or
    /// where it is unknown (overlay, FUSE).
    pub fn device(&self) -> Option<(u32, u32)> {
        self.device
    }

    /// Whether the file is in RAM, even if it was opened with `O_DIRECT`.
    pub fn in_ram(&self) -> bool {
        self.kind != TargetKind::BlockDevice && self.file_system.in_ram
    }

    /// The size in bytes now.
    ///
    /// # Errors
    /// `Failed` where the size cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        if self.kind == TargetKind::BlockDevice {
            return sys::block::size_bytes(&self.file)
                .map_err(|e| failed("measure the size of", &self.path, e));
        }
        self.file.metadata().map(|m| m.len()).map_err(|source| {
            failed("measure the size of", &self.path, sys::Error::new("stat", source))
        })
    }

    /// A new opening of the file with `O_DIRECT`.
    ///
    /// # Errors
    /// `Impossible` where the file system has no direct I/O.
    pub fn direct(&self) -> Result<File> {
        match &self.scratch {
            Some(scratch) => scratch.reopen_direct(),
            None => sys::file::open_read(&self.path, true),
        }
        .map_err(|e| failed("open with direct I/O", &self.path, e))
    }

    /// As [`StorageTarget::direct`], as a device.
    pub(super) fn direct_device(&self) -> Result<FileDevice> {
        FileDevice::new(self.direct()?).map_err(|e| failed("open", &self.path, e))
    }

    /// [`StorageTarget::file`] as a device.
    pub(super) fn cached_device(&self) -> Result<FileDevice> {
        FileDevice::over(&self.file).map_err(|e| failed("open", &self.path, e))
    }

    /// Drops the pages of the probe's own file from the page cache; returns the bytes that stayed,
    /// or `None` if the kernel does not report them (before Linux 6.5).
    ///
    /// Dirty pages cannot be dropped, so the file is synced first. The advice is only a request to
    /// the kernel; `cachestat` shows whether it was followed.
    ///
    /// # Errors
    /// Of the sync before, and of the advice where the file system refuses it.
    pub(super) fn evict(&self) -> sys::Result<Option<u64>> {
        sys::file::sync_data(&self.file)?;
        let mut left = None;
        for _ in 0..EVICT_TRIES {
            sys::file::advise(&self.file, 0, 0, CacheAdvice::DontNeed)?;
            left = self.cache_state(0).map(|state| state.cached_bytes());
            if left == Some(0) {
                break;
            }
        }
        Ok(left)
    }

    /// What the page cache has of the first `bytes` of the probe's own file, or of all of it if
    /// that is 0; `None` if the kernel does not report it, and for files of others.
    pub(super) fn cache_state(&self, bytes: u64) -> Option<CacheStat> {
        sys::cachestat::of(&self.file, 0, bytes).ok().filter(|_| self.is_own())
    }

    /// A seed for content and order from the kernel.
    ///
    /// # Errors
    /// `Impossible` where the kernel has no random numbers to give.
    pub fn draw_seed(&self) -> Result<u64> {
        sys::random::seed().map_err(|e| failed("draw a seed for", &self.path, e))
    }

    /// Refuses direct requests to `file` that are not whole multiples of what its file system
    /// reports; without a report the requests themselves will show.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check_direct(&self, file: &File, request: Bytes, write: bool) -> Result<()> {
        let reported = sys::file::direct_alignment(file).ok().flatten();
        let unit = reported.map_or(1, |unit| if write { unit.write } else { unit.read });
        if unit <= 1 || request.0.is_multiple_of(u64::from(unit)) {
            return Ok(());
        }
        let unit = Bytes(u64::from(unit));
        let reason = format!("direct requests there are multiples of {unit}");
        Err(Error::new(ErrorKind::Usage, "measure", reason).at(&self.path))
    }

    /// Refuses to write to anything but the probe's own file.
    ///
    /// # Errors
    /// `Usage` if the target is not a directory.
    pub fn require_own(&self) -> Result<()> {
        if self.is_own() {
            return Ok(());
        }
        let reason = "terrace writes only to its own file: name a directory";
        Err(Error::new(ErrorKind::Usage, "write to", reason).at(&self.path))
    }

    /// The largest size up to `wanted` that leaves free space on the file system, and free memory
    /// if that is in RAM; with a note if it is less than `wanted`.
    ///
    /// # Errors
    /// `Impossible` if not even `least` fits.
    pub fn fit(&self, root: &Root, wanted: Bytes, least: Bytes) -> Result<(Bytes, Option<String>)> {
        let free = self.file_system.free_bytes;
        let mut room = free - margin(free);
        let mut why = format!("{} is free there", Bytes(free));
        if self.in_ram()
            && let Some(usable) = machine::memory::usable(root)
            && usable.bytes.0 / 2 < room
        {
            // Half: what is written there is memory taken from everyone else.
            room = usable.bytes.0 / 2;
            why = format!("{} of memory is available ({})", usable.bytes, usable.bound_by);
        }
        if room < least.0 {
            let reason =
                format!("{why}, and the test file needs {least} beyond what is left to others");
            return Err(Error::new(ErrorKind::Impossible, "measure in", reason).at(&self.path));
        }
        if room >= wanted.0 {
            return Ok((wanted, None));
        }
        let fitted = Bytes(room / least.0.max(1) * least.0.max(1));
        let note = format!("the test file is {fitted} instead of {wanted}: {why}");
        Ok((fitted, Some(note)))
    }

    /// Reserves a random space, up to [`PLACES`] times `bytes` and a quarter of what is free, in
    /// another file without a name. While that is held, space for the own file is found elsewhere
    /// than in the run before. `None` in RAM and where the file system cannot reserve.
    pub(super) fn occupy(&self, bytes: u64) -> Option<Scratch> {
        if !self.is_own() || self.in_ram() {
            return None;
        }
        let most = bytes.saturating_mul(PLACES).min(self.file_system.free_bytes / 4) / MIB;
        let drawn = sys::random::seed().ok()? % (most + 1);
        let space = Scratch::create_in(&self.path).ok()?;
        sys::file::allocate(space.file(), drawn.max(1) * MIB).ok()?;
        Some(space)
    }

    /// What a report says about it.
    ///
    /// # Errors
    /// `Failed` where the size cannot be read.
    pub fn facts(&self, root: &Root) -> Result<TargetFacts> {
        let disk =
            self.device.and_then(|(major, minor)| machine::block::of_device(root, major, minor));
        Ok(TargetFacts {
            path: self.path.clone(),
            kind: self.kind,
            file_system: self.file_system.name.map(str::to_owned),
            in_ram: self.in_ram(),
            disk: disk.map(|disk| disk.name),
            bytes: self.bytes()?,
        })
    }
}

/// Space that is left free, so that this tool never fills a disk or `/tmp`: a quarter of what is
/// free, up to 256 MiB, but at least 5 % of it.
fn margin(free: u64) -> u64 {
    (free / 4).min(MARGIN).max(free / 20)
}

fn examine(path: &Path) -> Result<Metadata> {
    match sys::timed_stat::stat_within(path, ANSWER_WITHIN) {
        Some(answer) => answer.map_err(|e| failed("open", path, e)),
        None => {
            let reason = format!("it did not answer within {} s", ANSWER_WITHIN.as_secs());
            Err(Error::new(ErrorKind::Impossible, "open", reason).at(path))
        }
    }
}

fn metadata_of(file: &File, path: &Path) -> Result<Metadata> {
    file.metadata().map_err(|source| failed("examine", path, sys::Error::new("stat", source)))
}

fn kind_of(path: &Path, metadata: &Metadata) -> Result<TargetKind> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Ok(TargetKind::Directory)
    } else if kind.is_file() {
        Ok(TargetKind::File)
    } else if kind.is_block_device() {
        Ok(TargetKind::BlockDevice)
    } else if kind.is_fifo() {
        Err(refused(path, "it is a FIFO"))
    } else if kind.is_socket() {
        Err(refused(path, "it is a socket"))
    } else {
        Err(refused(path, "it is a character device"))
    }
}

fn refused(path: &Path, what: &str) -> Error {
    let reason = format!("{what}; name a directory, a file or a block device");
    Error::new(ErrorKind::Usage, "measure", reason).at(path)
}

/// The device that holds the data. File systems with several devices (btrfs) give files an invented
/// device number; there the source of the mount names one.
fn device_numbers(
    root: &Root,
    kind: TargetKind,
    path: &Path,
    metadata: &Metadata,
) -> Option<(u32, u32)> {
    if kind == TargetKind::BlockDevice {
        return Some(sys::block::device_numbers(metadata.rdev()));
    }
    let (major, minor) = sys::block::device_numbers(metadata.dev());
    if machine::block::of_device(root, major, minor).is_some() {
        return Some((major, minor));
    }
    let mounts = machine::mounts::read(root);
    let source = Path::new(&machine::mounts::behind(&mounts, &path.canonicalize().ok()?)?.source);
    let metadata = std::fs::metadata(source).ok()?;
    (source.is_absolute() && metadata.file_type().is_block_device())
        .then(|| sys::block::device_numbers(metadata.rdev()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::bytes::GIB;

    #[test]
    fn something_is_always_left_to_others() {
        assert_eq!(margin(0), 0);
        assert_eq!(margin(64 * MIB), 16 * MIB);
        assert_eq!(margin(2 * GIB), 256 * MIB);
        assert_eq!(margin(100 * GIB), 5 * GIB);
    }

    #[test]
    fn the_space_before_a_file_differs_from_run_to_run() {
        let directory = testkit::TempDir::new();
        let target = StorageTarget::open(directory.path(), &Root::system()).unwrap();
        if target.in_ram() || target.occupy(MIB).is_none() {
            return testkit::skip("a disk whose file system reserves space");
        }
        let reserved = |_| target.occupy(64 * MIB).unwrap().file().metadata().unwrap().len() / MIB;
        let all: std::collections::BTreeSet<u64> = (0..20).map(reserved).collect();
        assert!(all.len() > 5 && all.iter().all(|mib| (1..=512).contains(mib)), "{all:?}");
        assert!(directory.names().is_empty());
    }

    #[test]
    fn what_cannot_be_measured_says_what_it_is() {
        let error = |path: &str| StorageTarget::open(Path::new(path), &Root::system()).unwrap_err();
        let null = error("/dev/null");
        assert_eq!(null.kind, ErrorKind::Usage);
        assert!(null.to_string().contains("character device"), "{null}");
        assert_eq!(error("/absent-from-here").kind, ErrorKind::Usage);
        assert!(error("/proc/meminfo").to_string().contains("kernel"));
        assert!(error("/proc").to_string().contains("kernel"));
    }
}
