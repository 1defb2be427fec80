//! The checksums of all copied files, by their paths below the copy, in the order in which the
//! files were completed. Memory does not grow with their number: beyond [`MOST_IN_MEMORY`] they are
//! written to a nameless file that is not on the target, or stay in memory where no such file can
//! be made.
//!
//! ```text
//! bytes of the path, checksums, number of the engine, number of what it lost: u32 each; length of
//! the file: u64; the path; the checksums
//! ```

use model::copy_gauges::CopyEngine;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file::{self, Scratch};
use sys::file_stat::FileStat;
use xxhash_rust::xxh3::xxh3_64;

/// So much is kept before it is written.
const MOST_IN_MEMORY: usize = 1 << 20;
const HEAD_BYTES: usize = 24;

/// What was recorded of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileChecksums {
    /// Its path below the copy; absolute when it is recorded.
    pub(super) path: PathBuf,
    /// What copied it.
    pub(super) engine: CopyEngine,
    /// The number of the set of metadata that the target does not hold of it; 0: it holds all.
    pub(super) losses: u32,
    /// Its length.
    pub(super) bytes: u64,
    /// One for each MiB; those of zeros at the end may be absent.
    pub(super) sums: Vec<u32>,
}

/// The checksums of a copy.
#[derive(Debug)]
pub(super) struct ChecksumLog {
    /// The directory that the recorded paths are below.
    top: PathBuf,
    /// The device that must not hold the nameless file.
    target_device: u64,
    spill: Option<File>,
    /// Whether the nameless file can be had, as far as known.
    may_spill: bool,
    spilled_bytes: u64,
    tail: Vec<u8>,
    /// Paths of what did not get its name, as hashes.
    unplaced: HashSet<u64>,
}

impl ChecksumLog {
    /// For files below `top`, on the device with this number.
    pub(super) fn new(top: &Path, target_device: u64) -> Self {
        Self {
            top: top.to_owned(),
            target_device,
            spill: None,
            may_spill: true,
            spilled_bytes: 0,
            tail: Vec::new(),
            unplaced: HashSet::new(),
        }
    }

    /// Whether a directory is on the device of the copy.
    pub(super) fn is_of_target(&self, directory: &Directory) -> bool {
        FileStat::of(directory.file()).is_ok_and(|stat| stat.device == self.target_device)
    }

    /// Records a complete file; `path` as it is named while the copy grows.
    pub(super) fn push(&mut self, file: &FileChecksums) {
        let path = file.path.strip_prefix(&self.top).unwrap_or(&file.path).as_os_str().as_bytes();
        for number in [path.len(), file.sums.len(), file.engine as usize, file.losses as usize] {
            self.tail.extend((number as u32).to_le_bytes());
        }
        self.tail.extend(file.bytes.to_le_bytes());
        self.tail.extend(path);
        self.tail.extend(file.sums.iter().flat_map(|sum| sum.to_le_bytes()));
        if self.tail.len() >= MOST_IN_MEMORY && self.may_spill {
            self.may_spill = self.spill_tail().is_ok();
        }
    }

    /// What is in memory goes to the nameless file, or stays as it is.
    fn spill_tail(&mut self) -> sys::Result<()> {
        let file = match &self.spill {
            Some(file) => file,
            None => self.spill.insert(self.scratch()?),
        };
        let mut done = 0;
        while done < self.tail.len() {
            let at = self.spilled_bytes + done as u64;
            done += file::write_at(file, &self.tail[done..], at)?.max(1);
        }
        self.spilled_bytes += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    fn scratch(&self) -> sys::Result<File> {
        // Mostly not in memory, as the directory for temporary files often is.
        let directories = [PathBuf::from("/var/tmp"), std::env::temp_dir()];
        let mut answer = Err(sys::Error::new("keep checksums", io::ErrorKind::NotFound.into()));
        for directory in directories {
            let made = Scratch::create_in(&directory).and_then(|scratch| scratch.reopen());
            answer = made.and_then(|file| {
                let is_elsewhere = FileStat::of(&file)?.device != self.target_device;
                let source = io::ErrorKind::CrossesDevices;
                is_elsewhere.then_some(file).ok_or(sys::Error::new("keep checksums", source.into()))
            });
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    /// What is at `path` is not the copy, so it is not compared.
    pub(super) fn add_unplaced(&mut self, path: &Path) {
        self.unplaced.insert(xxh3_64(path.as_os_str().as_bytes()));
    }

    /// Whether the copy at `path` below `directory` has no name, or something above it.
    pub(super) fn is_unplaced(&self, directory: &Path, path: &Path) -> bool {
        !self.unplaced.is_empty()
            && path.ancestors().any(|above| {
                let whole = directory.join(above);
                self.unplaced.contains(&xxh3_64(whole.as_os_str().as_bytes()))
            })
    }

    /// All that was recorded, in its order.
    ///
    /// # Errors
    /// Where the nameless file cannot be read.
    pub(super) fn records(&self) -> io::Result<ChecksumRecords<'_>> {
        let tail = self.tail.as_slice();
        let Some(mut spill) = self.spill.as_ref() else {
            return Ok(ChecksumRecords { source: Box::new(tail) });
        };
        spill.seek(SeekFrom::Start(0))?;
        let spilled = BufReader::new(spill.take(self.spilled_bytes));
        Ok(ChecksumRecords { source: Box::new(spilled.chain(tail)) })
    }
}

/// The records of a log, one after the other.
pub(super) struct ChecksumRecords<'a> {
    source: Box<dyn Read + 'a>,
}

impl ChecksumRecords<'_> {
    /// The next one; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<FileChecksums>> {
        let mut head = [0; HEAD_BYTES];
        // At the end nothing is left; within a record the rest must be there.
        if self.source.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        self.source.read_exact(&mut head[1..])?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let engine = CopyEngine::ALL.get(number(8) as usize).ok_or(io::ErrorKind::InvalidData)?;
        let (losses, bytes) = (number(12), u64::from(number(16)) | u64::from(number(20)) << 32);
        let mut path = vec![0; number(0) as usize];
        self.source.read_exact(&mut path)?;
        let mut sums = vec![0; number(4) as usize * 4];
        self.source.read_exact(&mut sums)?;
        let (sums, _) = sums.as_chunks::<4>();
        let sums = sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        let path = OsString::from_vec(path).into();
        Ok(Some(FileChecksums { path, engine: *engine, losses, bytes, sums }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_comes_back_in_its_order_from_the_file_and_from_memory() {
        let mut log = ChecksumLog::new(Path::new("/top"), u64::MAX);
        let expected = |at: u64| FileChecksums {
            path: PathBuf::from(format!("directory/file{at}")),
            engine: CopyEngine::ALL[at as usize % CopyEngine::ALL.len()],
            losses: at as u32 % 3,
            bytes: at << 30,
            sums: (0..at as u32 % 50).map(|sum| sum * 7).collect(),
        };
        let count = 20_000;
        for file in (0..count).map(expected) {
            log.push(&FileChecksums { path: Path::new("/top").join(&file.path), ..file });
        }
        assert!(log.spilled_bytes > 0 && !log.tail.is_empty() && log.tail.len() < MOST_IN_MEMORY);
        for _ in 0..2 {
            let mut records = log.records().unwrap();
            for file in (0..count).map(expected) {
                assert_eq!(records.next().unwrap(), Some(file));
            }
            assert_eq!(records.next().unwrap(), None);
        }
    }

    #[test]
    fn without_a_file_elsewhere_it_stays_in_memory() {
        let mut log = ChecksumLog::new(Path::new("/top"), 0);
        log.may_spill = false;
        for (path, bytes, sums) in
            [("/top/large", 1 << 40, vec![3; MOST_IN_MEMORY / 2]), ("/top/small", 5, vec![1])]
        {
            let (path, engine) = (PathBuf::from(path), CopyEngine::Plain);
            log.push(&FileChecksums { path, engine, losses: 0, bytes, sums });
        }
        assert!(log.spill.is_none());
        let mut records = log.records().unwrap();
        assert_eq!(records.next().unwrap().unwrap().sums.len(), MOST_IN_MEMORY / 2);
        assert_eq!(records.next().unwrap().unwrap().path, Path::new("small"));
        assert_eq!(records.next().unwrap(), None);
    }

    #[test]
    fn what_is_below_something_that_got_no_name_is_not_compared() {
        let mut log = ChecksumLog::new(Path::new("/top"), 0);
        log.add_unplaced(Path::new("/to/directory"));
        let is_unplaced = |path: &str| log.is_unplaced(Path::new("/to"), Path::new(path));
        assert!(is_unplaced("directory") && is_unplaced("directory/below/file"));
        assert!(!is_unplaced("directory2/file") && !is_unplaced("file"));
    }
}
