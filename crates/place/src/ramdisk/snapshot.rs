//! A read-only snapshot of an atomic RAM disk, for as long as a save reads it: what a power cut
//! would have left, of all files at once. All that was written before is in it. Of writes beside it
//! those that were synced are in it in their order; of others any may be.
//!
//! Snapshots are beside the subvolume of the files, at the top of the file system, which is opened
//! by a mount without a place: no path leads there. Each is locked by its saver. What a killed
//! saver left is removed by the next one, and goes with the RAM disk.

use super::kind::{self, RamdiskKind};
use super::record::{RamdiskRecord, RamdiskRecords};
use crate::{Error, ErrorKind, Result};
use machine::Root;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};
use sys::lock::{self, LockMode};
use sys::mount::MountRestrictions;
use sys::{file, subvolume};

const PREFIX: &str = "save.";

/// A snapshot; removed on drop.
#[derive(Debug)]
pub(super) struct SaveSnapshot {
    /// The top of the file system.
    volume: Directory,
    name: OsString,
    /// Holds the lock.
    top: Option<Directory>,
}

impl SaveSnapshot {
    /// Makes a snapshot if `source`, whose state is `stat`, is on an atomic RAM disk that can be
    /// written to; with what is to be read in place of `source`. One that is read-only does not
    /// change anyway.
    ///
    /// # Errors
    /// `Impossible` where the RAM disk is covered; as for making the snapshot.
    pub(super) fn take(
        root: &Root,
        source: &Directory,
        stat: &FileStat,
    ) -> Result<Option<(Self, Directory)>> {
        let Some(record) = RamdiskRecords::atomic_on(root, stat.device) else { return Ok(None) };
        let RamdiskKind::Atomic(device) = record.kind else { return Ok(None) };
        if MountRestrictions::of(source.file())?.read_only {
            return Ok(None);
        }
        let failed = |error: sys::Error| {
            let why =
                format!("no snapshot of it can be made: {}", sys::plain_reason(&error.source));
            Error::new(ErrorKind::Failed, "save", why).at(source.path())
        };
        let below = path_below(&record, source)?;
        // The kernel refuses to make it of another file system.
        let files = record.open(root, "save")?;
        let opened = kind::volume(&device).and_then(|mount| mount.top(source.path()));
        let volume = opened.map_err(failed)?;
        let same = kind::files_of(&volume).and_then(|one| FileStat::of(one.file()));
        if same.map_err(failed)?.device != FileStat::of(files.file())?.device {
            let why = "its device holds another file system than when it was made";
            return Err(Error::new(ErrorKind::Impossible, "save", why).at(source.path()));
        }
        // No other saver takes a snapshot for left before it is locked.
        lock::take(volume.file(), LockMode::Exclusive)?;
        sweep(&volume);
        let name = OsString::from(format!("{PREFIX}{:016x}", sys::random::seed()?));
        // Making a snapshot writes them out too, but does not say what could not be written.
        file::sync_file_system(files.file())?;
        subvolume::snapshot(&files, &volume, &name).map_err(failed)?;
        let mut this = Self { volume, name, top: None };
        let top = this.volume.subdirectory(&this.name)?;
        lock::try_take(top.file(), LockMode::Exclusive)?;
        lock::release(this.volume.file())?;
        let mut directory = top.reopen()?;
        for part in below.iter() {
            directory = directory.subdirectory(part)?;
        }
        if FileStat::of(directory.file())?.inode != stat.inode {
            let why = "it was replaced by another directory meanwhile";
            return Err(Error::new(ErrorKind::Impossible, "save", why).at(source.path()));
        }
        this.top = Some(top);
        Ok(Some((this, directory.shown_as(source.path()))))
    }
}

impl Drop for SaveSnapshot {
    fn drop(&mut self) {
        // The lock ends here: what stays is removed by the next save.
        self.top = None;
        let _ = subvolume::destroy(&self.volume, &self.name);
    }
}

/// Whether an entry of a snapshot is the empty directory in place of a subvolume that is not in it.
pub(super) fn is_other_subvolume(stat: &FileStat) -> bool {
    stat.kind == InodeKind::Directory && stat.inode == subvolume::PLACEHOLDER_INODE
}

/// Whether what is in a directory is lost with the memory of the machine.
pub(super) fn is_in_memory(root: &Root, directory: &Directory) -> Result<bool> {
    let is_ram = file::file_system(directory.file())?.in_ram;
    let device = FileStat::of(directory.file())?.device;
    Ok(is_ram || RamdiskRecords::atomic_on(root, device).is_some())
}

/// Removes the snapshots that no process holds.
fn sweep(volume: &Directory) {
    for name in volume.names().unwrap_or_default() {
        let is_left = is_snapshot(&name)
            && volume.subdirectory(&name).is_ok_and(|left| {
                lock::try_take(left.file(), LockMode::Exclusive).unwrap_or(false)
            });
        if is_left {
            // What cannot be removed now is tried again next time.
            let _ = subvolume::destroy(volume, &name);
        }
    }
}

fn is_snapshot(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(PREFIX.as_bytes());
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The path of a directory below the top of its RAM disk.
fn path_below(record: &RamdiskRecord, source: &Directory) -> Result<PathBuf> {
    let failed = |error| Error::io("find", source.path(), error);
    let whole = source.path().canonicalize().map_err(failed)?;
    whole.strip_prefix(&record.mount_point).map(Path::to_owned).map_err(|_| {
        let why = format!(
            "it is part of the RAM disk {}, mounted at another place; save it there",
            record.name()
        );
        Error::new(ErrorKind::Usage, "save", why).at(source.path())
    })
}
