//! Reads one entry: its metadata, and the pieces of its content. One that changes meanwhile is read
//! again.

use super::save_progress::SaveProgress;
use crate::metadata::FileMetadata;
use crate::ramdisk::content::{ContentError, KnownContent, pieces_of};
use crate::ramdisk::manifest::Entry;
use crate::ramdisk::pack::Pack;
use crate::tree::TreeEntry;
use machine::maps::SharedMappings;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use sys::attributes::FileTime;
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};
use sys::{Error, ErrorKind};

/// A file that changes while it is read is read so often.
const ATTEMPTS: u32 = 3;
/// A time of change may be this much older than the change: the kernel's clock for it moves at each
/// tick, at least 100 times a second.
const GRAIN_NS: i128 = 20_000_000;

/// What became of an entry.
#[derive(Debug)]
pub(super) enum Saved {
    /// It is saved.
    Entry(Entry),
    /// It was removed meanwhile.
    Gone,
    /// It could not be read, with the reason.
    Failed(Vec<u8>, String),
    /// The store could not be written.
    StoreFailed(Error),
    /// The caller ended the save meanwhile.
    Stopped,
}

/// Reads entries.
#[derive(Debug)]
pub(super) struct EntrySaver<'m> {
    began: FileTime,
    mapped: &'m SharedMappings,
    buffer: Vec<u8>,
    read_bytes: u64,
}

impl<'m> EntrySaver<'m> {
    /// For a save that began at `began`, when `mapped` were mapped shared.
    pub(super) fn new(began: FileTime, mapped: &'m SharedMappings) -> Self {
        Self { began, mapped, buffer: Vec::new(), read_bytes: 0 }
    }

    /// Bytes of files that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The entry of an open directory.
    pub(super) fn directory(&self, open: &Directory, path: Vec<u8>, stat: &FileStat) -> Saved {
        match self.entry_of(open.file(), path.clone(), *stat) {
            Ok(entry) => Saved::Entry(entry),
            Err(error) => failed(path, error),
        }
    }

    /// Saves an entry of a tree. Of a file the pieces `known` stay that are still its content.
    pub(super) fn save(
        &mut self,
        found: &TreeEntry<'_>,
        path: Vec<u8>,
        known: KnownContent<'_>,
        pack: &mut Pack<'_>,
        progress: &mut SaveProgress<'_, '_>,
    ) -> Saved {
        match found.stat.kind {
            InodeKind::File => self.file(found, path, known, pack, progress),
            InodeKind::Directory => match found.directory.subdirectory(found.name) {
                Ok(open) => self.directory(&open, path, found.stat),
                Err(error) => failed(path, error),
            },
            _ => match self.special(found, path.clone()) {
                Ok(entry) => Saved::Entry(entry),
                Err(error) => failed(path, error),
            },
        }
    }

    fn special(&self, found: &TreeEntry<'_>, path: Vec<u8>) -> sys::Result<Entry> {
        let held = found.directory.hold(found.name)?;
        let mut entry = self.entry_of(&held, path, *found.stat)?;
        if entry.stat.kind == InodeKind::Link {
            let target = found.directory.read_link(found.name)?;
            entry.link_target = Some(target.as_bytes().to_vec());
        }
        Ok(entry)
    }

    fn file(
        &mut self,
        found: &TreeEntry<'_>,
        path: Vec<u8>,
        known: KnownContent<'_>,
        pack: &mut Pack<'_>,
        progress: &mut SaveProgress<'_, '_>,
    ) -> Saved {
        let file = match open_newest(found) {
            Ok(file) => file,
            Err(error) => return failed(path, error),
        };
        // One more than that: the first one may end by a pause alone.
        for attempt in 0..=ATTEMPTS {
            let start = pack.bytes();
            let before = match FileStat::of(&file) {
                Ok(stat) => stat,
                Err(error) => return failed(path, error),
            };
            // Only the first one gives way to others: what changes again and again must be read at
            // once.
            // Writes through a mapping change no time after the first, so that of such a file a
            // pause would not be seen.
            let may_pause = attempt == 0 && !self.mapped.inodes.contains(&before.inode);
            let mut goes_on = |bytes| {
                let was_asked = may_pause && progress.read(bytes);
                !was_asked || !progress.is_stopped() && is_unchanged(&file, &before)
            };
            let buffer = &mut self.buffer;
            let pieces = pieces_of(&file, before.bytes, known, pack, buffer, &mut goes_on);
            if progress.is_stopped() {
                return Saved::Stopped;
            }
            let pieces = match pieces {
                Ok(pieces) => pieces,
                Err(ContentError::Read(error)) => {
                    return match pack.cut(start) {
                        Ok(()) => failed(path, error),
                        Err(error) => Saved::StoreFailed(error),
                    };
                }
                Err(ContentError::Store(error)) => return Saved::StoreFailed(error),
            };
            let mut entry = match self.entry_of(&file, path.clone(), before) {
                Ok(entry) => entry,
                Err(error) => return failed(path, error),
            };
            match pieces {
                Some(pieces) if entry.stat.changed == before.changed => {
                    self.read_bytes +=
                        pieces.iter().map(|piece| u64::from(piece.bytes)).sum::<u64>();
                    entry.pieces = pieces;
                    return Saved::Entry(entry);
                }
                _ => {
                    if let Err(error) = pack.cut(start) {
                        return Saved::StoreFailed(error);
                    }
                }
            }
        }
        Saved::Failed(path, "it changed each time while it was read".to_owned())
    }

    /// The entry without what only its kind has. Its state is read now, after its content.
    fn entry_of(&self, file: &File, path: Vec<u8>, before: FileStat) -> sys::Result<Entry> {
        let FileMetadata { mut stat, extended } = FileMetadata::of(file)?;
        let is_mapped = self.mapped.inodes.contains(&stat.inode);
        let is_settled = !is_mapped
            && stat.changed == before.changed
            && nanoseconds(stat.changed) + GRAIN_NS < nanoseconds(self.began);
        (stat.device, stat.allocated_bytes, stat.created, stat.mount) = (0, 0, None, None);
        match stat.kind {
            // They change with every entry.
            InodeKind::Directory => (stat.bytes, stat.links) = (0, 1),
            InodeKind::File => {}
            _ => stat.bytes = 0,
        }
        if stat.special().is_none() {
            stat.special_device = 0;
        }
        Ok(Entry { path, stat, is_settled, link_target: None, extended, pieces: Vec::new() })
    }
}

/// Opens what has the name now: a program may have put a new file in the place of the one that was
/// found.
fn open_newest(found: &TreeEntry<'_>) -> sys::Result<File> {
    let mut opened = found.directory.open_found(found.name, found.stat);
    for _ in 1..ATTEMPTS {
        if opened.as_ref().is_err_and(|error| error.number() == Some(STALE)) {
            let now = found.directory.stat(found.name)?;
            opened = found.directory.open_found(found.name, &now);
        }
    }
    opened
}

/// Whether a file has not changed since; what cannot be asked is found out by its reader.
fn is_unchanged(file: &File, before: &FileStat) -> bool {
    FileStat::of(file).is_ok_and(|now| now.changed == before.changed)
}

fn nanoseconds(time: FileTime) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

/// What became of an entry that cannot be read.
pub(super) fn failed(path: Vec<u8>, error: Error) -> Saved {
    if error.kind == ErrorKind::NotFound {
        return Saved::Gone;
    }
    Saved::Failed(path, sys::plain_reason(&error.source))
}

/// `ESTALE`: the name is another inode by now.
const STALE: i32 = 116;
