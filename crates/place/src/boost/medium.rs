//! The file of a cache on its stick: found or made, and grown as it is written.
//!
//! A new file has its header before it has its name, so that one with the name is never anything
//! else. What is there already is used only if it is the medium of this cache; another one, a newer
//! one and what is none is refused and left as it is, unless a person says that it may be used.
//! A stick is often FAT, which has no holes: the file grows by segments, in their order, and ends
//! below 4 GiB.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use machine::{Root, block, mounts};
use model::bytes::GIB;
use model::device::{Alignment, BlockDevice, DeviceError};
use sys::device::FileDevice;
use sys::directory::FilePlace;
use sys::file::{Durability, FileMode, TempFile};
use sys::lock::{self, LockMode};

use super::host::NewerVersion;
use super::volume::failed;
use crate::{Error, ErrorKind, Result};

const OPERATION: &str = "use as a cache";

/// What is at the place of a cache's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumState {
    /// Nothing, or a file without a byte.
    Absent,
    /// The medium of this cache.
    Own,
    /// That of another volume, or of a key that is lost.
    OfAnother,
    /// One of a newer version.
    Newer(u16),
    /// Something else, or one that was cut in its first block.
    Foreign,
}

/// What the engine knows its medium by.
pub struct OwnMedium<'m> {
    /// Its first block.
    pub header: Vec<u8>,
    /// Its bytes when it is full.
    pub bytes: u64,
    /// Whether a first block is that of this cache; `None` if it is not one of a cache.
    pub is_own: &'m dyn Fn(&[u8]) -> Option<bool>,
    /// Whether it is of a version that is not known.
    pub newer: NewerVersion,
}

impl std::fmt::Debug for OwnMedium<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnMedium").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Where a cache's file is or will be.
#[derive(Debug)]
pub struct MediumPlace {
    place: FilePlace,
    /// The open file, if there is one.
    file: Option<File>,
    /// The disks that it is on, by their kernel names.
    pub disks: Vec<String>,
    /// The kind of the file system, as `vfat`.
    pub file_system: String,
    /// Bytes that it can have: what is free and what it has, and no more than the file system
    /// allows.
    pub bytes_max: u64,
}

impl MediumPlace {
    /// Looks at the place, and writes nothing.
    ///
    /// # Errors
    /// `Usage` for what cannot be a file; `Impossible` for memory, a network, an overlay, a file of
    /// another user, or one that other users can exchange.
    pub fn find(path: &Path, root: &Root) -> Result<Self> {
        let refused =
            |reason: &str| Error::new(ErrorKind::Impossible, OPERATION, reason.to_owned()).at(path);
        let place = FilePlace::of(path).map_err(|error| failed(path, error))?;
        if let Some(exposure) = place.directory.exposure() {
            return Err(refused(&format!("{}: {}", exposure.path.display(), exposure.why)));
        }
        let file = match place.directory.open_own(&place.name) {
            Ok(file) => Some(file),
            Err(error) if error.kind == sys::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(path, error)),
        };
        let held = file.as_ref().unwrap_or(place.directory.file());
        let about = held.metadata().map_err(|error| refused(&error.to_string()))?;
        let numbers = sys::block::device_numbers(about.dev());
        let (disks, file_system, network) = behind(root, numbers, &place.path());
        if network || disks.is_empty() {
            return Err(refused(&format!("it is on {file_system}: no disk is known behind it")));
        }
        let free = sys::file::file_system(held).map_err(|error| failed(path, error))?.free_bytes;
        let is_fat = ["vfat", "msdos"].contains(&file_system.as_str());
        let most = if is_fat { 4 * GIB - 1 } else { u64::MAX };
        let has_bytes = file.as_ref().map_or(0, |_| about.blocks() * 512);
        let bytes_max = free.saturating_add(has_bytes).min(most);
        Ok(Self { place, file, disks, file_system, bytes_max })
    }

    /// What is there, seen by the cache that knows its medium so.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn state(&self, own: &OwnMedium<'_>) -> Result<MediumState> {
        let Some(file) = &self.file else { return Ok(MediumState::Absent) };
        let path = self.path();
        let unread = |error| Error::new(ErrorKind::Failed, OPERATION, error).at(&path);
        let bytes = file.metadata().map_err(unread)?.len();
        if bytes == 0 {
            return Ok(MediumState::Absent);
        }
        let mut header = vec![0; bytes.min(own.header.len() as u64) as usize];
        file.read_exact_at(&mut header, 0).map_err(unread)?;
        if let Some(major) = (own.newer)(&header) {
            return Ok(MediumState::Newer(major));
        }
        Ok(match (own.is_own)(&header) {
            Some(true) => MediumState::Own,
            Some(false) => MediumState::OfAnother,
            None => MediumState::Foreign,
        })
    }

    /// Whether the file can be opened for the engine. `may_take` says that a person allowed to use
    /// what is there, whatever it is.
    ///
    /// # Errors
    /// `Impossible` for what is not this cache's, and without room.
    pub fn check(&self, own: &OwnMedium<'_>, may_take: bool) -> Result<MediumState> {
        let state = self.state(own)?;
        let bytes = own.bytes;
        let is_usable = may_take || matches!(state, MediumState::Absent | MediumState::Own);
        let reason = if !is_usable {
            state.refusal()
        } else if bytes > self.bytes_max {
            format!("it would have {bytes} bytes, and {} can be had there", self.bytes_max)
        } else {
            return Ok(state);
        };
        Err(Error::new(ErrorKind::Impossible, OPERATION, reason).at(self.path()))
    }

    /// Opens the file for the engine, and makes it where it is absent.
    ///
    /// # Errors
    /// As [`MediumPlace::check`]; `Impossible` if another process has it.
    pub fn open(mut self, own: &OwnMedium<'_>, may_take: bool) -> Result<MediumFile> {
        let path = self.path();
        let refused = |reason: &str| {
            Error::new(ErrorKind::Impossible, OPERATION, reason.to_owned()).at(&path)
        };
        let state = self.check(own, may_take)?;
        if state == MediumState::Absent {
            self.file = Some(self.make(own)?);
        }
        let Some(file) = self.file else { return Err(refused("it was removed")) };
        if !lock::try_take(&file, LockMode::Exclusive).map_err(|error| failed(&path, error))? {
            return Err(refused("another process has it"));
        }
        if !matches!(state, MediumState::Absent | MediumState::Own) {
            // As a new one: nothing of what was there is ever read.
            let emptied = file.set_len(0).and_then(|()| file.write_all_at(&own.header, 0));
            let taken = emptied.and_then(|()| file.sync_all());
            taken.map_err(|error| Error::new(ErrorKind::Failed, OPERATION, error).at(&path))?;
        }
        sys::file::set_direct(&file, true).map_err(|error| failed(&path, error))?;
        let device = FileDevice::new(file).map_err(|error| failed(&path, error))?;
        Ok(MediumFile { device, bytes: own.bytes })
    }

    fn make(&self, own: &OwnMedium<'_>) -> Result<File> {
        let at = |error| failed(&self.path(), error);
        let FilePlace { directory, name, .. } = &self.place;
        let begun = TempFile::create(directory, name, FileMode::OwnerOnly, Durability::Synced);
        let made = begun.map_err(at)?;
        let written = made.file().write_all(&own.header);
        written.map_err(|error| at(sys::Error::new("write", error)))?;
        // Only an empty file that was seen may be replaced.
        if self.file.is_some() { made.put() } else { made.put_new() }.map_err(at)?;
        directory.open_own(name).map_err(at)
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.place.path()
    }
}

impl MediumState {
    /// Why it is not used, as the end of a sentence.
    fn refusal(self) -> String {
        match self {
            Self::Absent | Self::Own => String::new(),
            Self::OfAnother => "it is the cache of another volume, or its key is lost; it is left \
                                as it is"
                .to_owned(),
            Self::Newer(major) => format!(
                "it is a cache of version {major}, which this program does not know; it is left as \
                 it is"
            ),
            Self::Foreign => "it is not a cache, and is left as it is: name a new file".to_owned(),
        }
    }
}

/// An open medium, past the page cache, locked while it is held. It has its full size from the
/// start: what was never written is read as zeros, and the file grows by writes behind its end.
#[derive(Debug)]
pub struct MediumFile {
    device: FileDevice,
    bytes: u64,
}

impl MediumFile {
    /// The open file, which may end before [`BlockDevice::size_bytes`].
    #[must_use]
    pub fn file(&self) -> &File {
        self.device.file()
    }
}

impl BlockDevice for MediumFile {
    fn size_bytes(&self) -> std::result::Result<u64, DeviceError> {
        Ok(self.bytes)
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::result::Result<usize, DeviceError> {
        let wanted = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let read = self.device.read_at(&mut buffer[..wanted], offset)?;
        buffer[read..wanted].fill(0);
        Ok(wanted)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> std::result::Result<usize, DeviceError> {
        let room = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        self.device.write_at(&buffer[..room], offset)
    }

    fn discard(&self, range: Range<u64>) -> std::result::Result<(), DeviceError> {
        self.device.discard(range)
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        self.device.flush()
    }
}

/// The disks behind a file, the kind of its file system, and whether that is on another machine.
pub(super) fn behind(
    root: &Root,
    (major, minor): (u32, u32),
    path: &Path,
) -> (Vec<String>, String, bool) {
    let all = mounts::read(root);
    let is_of_device = |mount: &&mounts::Mount| (mount.major, mount.minor) == (major, minor);
    let mount = all.iter().rev().find(is_of_device).or_else(|| mounts::behind(&all, path));
    let by_number = block::of_device(root, major, minor);
    // btrfs gives its files invented numbers; its mount says what it is on.
    let disk = by_number.or_else(|| {
        let source = mount.filter(|mount| mount.major == 0 && mount.fs_type == "btrfs")?;
        block::by_name(root, &source.source)
    });
    let disks = disk.map(|disk| block::physical(root, &disk)).unwrap_or_default();
    let is_memory = |disk: &block::Disk| {
        disk.transport.as_deref().is_some_and(|transport| ["zram", "brd"].contains(&transport))
    };
    let disks = disks.into_iter().filter(|disk| !is_memory(disk)).map(|disk| disk.name).collect();
    let kind = mount.map_or_else(|| "an unknown file system".to_owned(), |on| on.fs_type.clone());
    (disks, kind, mount.is_some_and(|mount| mount.network))
}
