//! `--verify`: the checksums that were taken while the source was read are compared with what the
//! device gives back, past the cache, before the copy gets its name; with `--eject` afterwards, by
//! a new mount (`mounted_check`).
//!
//! Each MiB has one number: the sum of the CRC-32C of its blocks of 4 KiB, each begun with the
//! block's place. Blocks of zeroes add nothing, so that a hole and written zeroes are the same, and
//! the order in which pieces are read does not matter.

use super::CopyShared;
use super::checksum_log::FileChecksums;
use super::large::BUFFER_BYTES;
use super::staging::Staging;
use super::yielding::{PIECE_BYTES, Yielding};
use crate::{Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use sys::directory::Directory;
use sys::file::{self, CacheAdvice};
use sys::file_stat::FileStat;
use sys::memory::AlignedBuffer;

/// What is summed at once.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// Adds a piece that begins at `offset` bytes, a multiple of [`BLOCK_BYTES`].
pub(super) fn add(checksums: &mut Vec<u32>, data: &[u8], offset: u64) {
    let mut at = offset;
    for block in data.chunks(BLOCK_BYTES as usize) {
        let index = (at / BUFFER_BYTES as u64) as usize;
        if checksums.len() <= index {
            checksums.resize(index + 1, 0);
        }
        if block.iter().any(|byte| *byte != 0) {
            let place = (at % BUFFER_BYTES as u64) as u32;
            let sum = crc32c::crc32c_append(place, block);
            checksums[index] = checksums[index].wrapping_add(sum);
        }
        at += block.len() as u64;
    }
}

/// Reads all files of the copy back.
///
/// # Errors
/// Where the checksums cannot be read. A file that differs or cannot be read is named in the
/// report and left out.
pub(super) fn read_back(shared: &CopyShared<'_>, staging: &Staging) -> Result<()> {
    let Some(log) = shared.outcome.take_checksums() else { return Ok(()) };
    let mut reader = ReadBack::below(staging.tree().reopen()?, Some(&shared.yielding))?;
    let mut records = log.records().map_err(|error| unreadable(&error))?;
    while let Some(expected) = records.next().map_err(|error| unreadable(&error))? {
        match reader.compare(&expected, &mut || shared.is_stopped()) {
            Compared::Equal => shared.outcome.verified(expected.bytes),
            Compared::Different(why) => {
                shared.outcome.differs();
                give_up(shared, staging, &mut reader, &expected, &why)?;
            }
            Compared::Unreadable(why) => give_up(shared, staging, &mut reader, &expected, &why)?,
            Compared::Stopped => return Ok(()),
        }
    }
    Ok(())
}

/// The checksums themselves are lost.
pub(super) fn unreadable(error: &io::Error) -> Error {
    Error::new(ErrorKind::Failed, "read the checksums", sys::plain_reason(error))
}

/// Leaves a file out, under all of its names.
fn give_up(
    shared: &CopyShared<'_>,
    staging: &Staging,
    reader: &mut ReadBack<'_>,
    expected: &FileChecksums,
    why: &str,
) -> Result<()> {
    let path = staging.tree().path().join(&expected.path);
    shared.outcome.failed_at(staging.final_path(&path), why);
    shared.outcome.uncount(expected);
    let removed = reader.files.directory_of(&expected.path).and_then(|(directory, name)| {
        let stat = directory.stat(name)?;
        if stat.links > 1 {
            shared.outcome.break_inode(stat.inode);
        }
        directory.remove(name)
    });
    match removed {
        Err(error) if error.kind != sys::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// What reading a file back showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Equal,
    /// Why it is not what was copied, as the end of a sentence.
    Different(String),
    /// Why nothing of it was read, likewise: its disk was pulled or a sector of it failed, or this
    /// machine could not read it. It may be what was copied.
    Unreadable(String),
    /// Not all of it was read.
    Stopped,
}

/// Reads files past the cache and compares them with their checksums.
pub(super) struct ReadBack<'a> {
    files: FilesBelow,
    /// What may be done while others use the disk.
    yielding: Option<&'a Yielding>,
    buffer: AlignedBuffer,
}

impl<'a> ReadBack<'a> {
    /// Of files below `top`.
    pub(super) fn below(top: Directory, yielding: Option<&'a Yielding>) -> Result<Self> {
        let files = FilesBelow { top, held: None };
        Ok(Self { files, yielding, buffer: AlignedBuffer::new(BUFFER_BYTES)? })
    }

    /// Reads a file and compares it, until `is_stopped`.
    pub(super) fn compare(
        &mut self,
        expected: &FileChecksums,
        is_stopped: &mut dyn FnMut() -> bool,
    ) -> Compared {
        if is_stopped() {
            return Compared::Stopped;
        }
        let opened = self.files.directory_of(&expected.path);
        let compared = opened
            .and_then(|(directory, name)| directory.open_regular(name))
            .and_then(|file| self.compare_file(&file, expected, is_stopped));
        compared.unwrap_or_else(|error| {
            let reason = sys::plain_reason(&error.source);
            let why = format!("cannot read it back: {reason}");
            if error.is_of_stored_data() {
                Compared::Different(why)
            } else {
                Compared::Unreadable(why)
            }
        })
    }

    fn compare_file(
        &mut self,
        file: &File,
        expected: &FileChecksums,
        is_stopped: &mut dyn FnMut() -> bool,
    ) -> sys::Result<Compared> {
        let bytes = FileStat::of(file)?.bytes;
        if bytes != expected.bytes {
            let why = format!("it has {bytes} bytes, and {} were copied", expected.bytes);
            return Ok(Compared::Different(why));
        }
        // Past the cache, or at least not from it.
        if file::set_direct(file, true).is_err() {
            file::sync_data(file)?;
            file::advise(file, 0, 0, CacheAdvice::DontNeed)?;
        }
        let mut found = Vec::new();
        let mut offset = 0;
        while offset < bytes {
            if is_stopped() {
                return Ok(Compared::Stopped);
            }
            // Holes are zeroes, which add nothing.
            match file::next_data(file, offset)? {
                None => break,
                Some(data) => {
                    offset = offset.max(data.start / BUFFER_BYTES as u64 * BUFFER_BYTES as u64);
                }
            }
            let got = self.read(file, offset)?;
            if got == 0 {
                return Ok(differs_from(offset));
            }
            // A direct read ends at the end of the file, which may have grown meanwhile.
            let wanted = (bytes - offset).min(got as u64) as usize;
            add(&mut found, &self.buffer[..wanted], offset);
            offset += wanted as u64;
        }
        let length = found.len().max(expected.sums.len());
        let of = |sums: &[u32], at: usize| sums.get(at).copied().unwrap_or(0);
        let first = (0..length).find(|at| of(&found, *at) != of(&expected.sums, *at));
        Ok(first.map_or(Compared::Equal, |at| differs_from(at as u64 * BUFFER_BYTES as u64)))
    }

    fn read(&mut self, file: &File, offset: u64) -> sys::Result<usize> {
        let _step = self.yielding.map(Yielding::step);
        let is_small = self.yielding.is_some_and(Yielding::is_one_at_a_time);
        let most = if is_small { PIECE_BYTES } else { self.buffer.len() };
        file::read_at(file, &mut self.buffer[..most], offset)
    }
}

fn differs_from(byte: u64) -> Compared {
    Compared::Different(format!("what the device gives back differs from byte {byte} on"))
}

/// Finds files by their paths below a directory, and follows no link. Keeps the directory of the
/// last one open, since the next one is mostly there too.
struct FilesBelow {
    top: Directory,
    held: Option<(PathBuf, Directory)>,
}

impl FilesBelow {
    /// The directory that holds the file, and its name there.
    fn directory_of<'p>(&mut self, path: &'p Path) -> sys::Result<(&Directory, &'p OsStr)> {
        let name = path.file_name().unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent == Path::new("") {
            return Ok((&self.top, name));
        }
        let held = match self.held.take() {
            Some((path, directory)) if path == parent => (path, directory),
            _ => (parent.to_owned(), below(&self.top, parent)?),
        };
        Ok((&self.held.insert(held).1, name))
    }
}

/// The directory at a path below another one.
pub(super) fn below(top: &Directory, path: &Path) -> sys::Result<Directory> {
    let mut directory = top.reopen()?;
    for component in path.components() {
        if let Component::Normal(name) = component {
            directory = directory.subdirectory(name)?;
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_holes_do_not_matter_and_places_do() {
        let block = |byte: u8| vec![byte; BLOCK_BYTES as usize];
        let sums = |pieces: &[(Vec<u8>, u64)]| {
            let mut sums = Vec::new();
            for (data, offset) in pieces {
                add(&mut sums, data, *offset);
            }
            sums.resize(2, 0);
            sums
        };
        let mib = BUFFER_BYTES as u64;
        let one = sums(&[(block(1), 0), (block(2), 8192), (block(3), mib)]);
        assert_eq!(one, sums(&[(block(3), mib), (block(2), 8192), (block(1), 0)]));
        assert_eq!(
            one,
            sums(&[(block(1), 0), (block(0), 4096), (block(2), 8192), (block(3), mib)])
        );
        assert_ne!(one, sums(&[(block(1), 4096), (block(2), 8192), (block(3), mib)]));
        assert_ne!(one, sums(&[(block(1), 0), (block(2), 8192), (vec![3; 4095], mib)]));
    }
}
