//! What a power cut at any moment leaves on a disk whose writes and flushes were kept: the disk is
//! written once, and each moment and seed gives a state of it, with the volatile cache of
//! [`crate::write_cache`]. Takes the disk's size twice in memory, and the writes.

use crate::write_cache::{SECTOR, Stored, WriteCache};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// One change of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskChange {
    /// Bytes were written, whole sectors.
    Write { offset: u64, data: Vec<u8> },
    /// What was written before is on the medium.
    Flush,
}

/// A disk at a moment that goes on: what is on its medium, and what is in its cache.
#[derive(Debug)]
pub struct CutDisk {
    medium: Vec<u8>,
    cache: WriteCache,
    changes: Vec<DiskChange>,
    done: usize,
    /// Whether a flush is kept to.
    flushes: bool,
}

impl CutDisk {
    pub(crate) fn new(medium: Vec<u8>) -> Self {
        Self { medium, cache: WriteCache::default(), changes: Vec::new(), done: 0, flushes: true }
    }

    pub(crate) fn set_changes(&mut self, changes: Vec<DiskChange>) {
        self.changes = changes;
    }

    /// A disk that answers a flush and does nothing, to show that a judge notices it.
    #[must_use]
    pub fn ignoring_flushes(self) -> Self {
        Self { flushes: false, ..self }
    }

    /// All changes that were kept.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Writes to `file` what a power cut leaves after the first `moment` changes; returns how many
    /// sectors were in the cache. Moments must not go back.
    ///
    /// # Errors
    /// When the file takes it not.
    ///
    /// # Panics
    /// For a moment before that of the last call.
    pub fn cut_into(&mut self, moment: usize, seed: u64, file: &File) -> io::Result<usize> {
        assert!(self.done <= moment, "a moment that is over");
        for change in &self.changes[self.done..moment] {
            let stored = match change {
                DiskChange::Write { offset, data } => self.cache.write(*offset, data),
                DiskChange::Flush if self.flushes => self.cache.flush(),
                DiskChange::Flush => Vec::new(),
            };
            for (offset, sector) in stored {
                let start = offset as usize;
                self.medium[start..start + SECTOR].copy_from_slice(&sector);
            }
        }
        self.done = moment;
        file.set_len(0)?;
        file.set_len(self.medium.len() as u64)?;
        write_data(file, &self.medium)?;
        let kept: Vec<Stored> = self.cache.clone().cut(seed);
        kept.iter().try_for_each(|(offset, sector)| file.write_all_at(sector, *offset))?;
        Ok(self.cache.unstored_sectors())
    }
}

/// Writes what is not zero.
fn write_data(file: &File, bytes: &[u8]) -> io::Result<()> {
    const PIECE: usize = 64 << 10;
    for (number, piece) in bytes.chunks(PIECE).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            file.write_all_at(piece, (number * PIECE) as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;

    fn disk() -> CutDisk {
        let write = |sector: u64, byte| DiskChange::Write {
            offset: sector * SECTOR as u64,
            data: vec![byte; 64 * SECTOR],
        };
        let mut disk = CutDisk::new(vec![0; 1024 * SECTOR]);
        disk.set_changes(vec![write(0, 1), DiskChange::Flush, write(128, 2), write(0, 3)]);
        disk
    }

    /// How many sectors begin with each byte of 0 to 3.
    fn left(disk: &mut CutDisk, moment: usize, seed: u64) -> [usize; 4] {
        let directory = TempDir::new();
        let path = directory.join("disk");
        let file = File::create(&path).unwrap();
        disk.cut_into(moment, seed, &file).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let mut counts = [0; 4];
        bytes.chunks(SECTOR).for_each(|sector| counts[usize::from(sector[0])] += 1);
        counts
    }

    #[test]
    fn what_was_flushed_is_there_at_each_moment_after_it_and_the_rest_in_part() {
        let mut one = disk();
        assert_eq!(left(&mut one, 0, 1), [1024, 0, 0, 0]);
        assert!(left(&mut one, 1, 1)[1] < 64 || left(&mut one, 1, 2)[1] < 64);
        assert_eq!(left(&mut one, 2, 1)[1], 64);
        let all: Vec<[usize; 4]> = (0..20).map(|seed| left(&mut one, 4, seed)).collect();
        // Older or newer, and never lost.
        assert!(all.iter().all(|counts| counts[1] + counts[3] == 64), "{all:?}");
        assert!(all.iter().any(|counts| counts[2] > 0 && counts[2] < 64), "{all:?}");
        let mut other = disk().ignoring_flushes();
        assert!((0..20).any(|seed| left(&mut other, 2, seed)[1] < 64));
    }
}
