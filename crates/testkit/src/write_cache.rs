//! A disk's volatile write cache, and what a power cut leaves of it. Pure: no file, no clock.
//!
//! 1. A write is kept in memory, sector by sector. A sector that is written again keeps its older
//!    versions: a real disk may have stored any of them.
//! 2. A flush gives the last version of all sectors to be stored. So does an overflow, of the
//!    lowest sectors: a real cache is small.
//! 3. A cut gives for each sector the last version that survives, by a draw. The draw depends on
//!    the seed, the place and the number of the version, not on how the guest's kernel cut
//!    and ordered its requests: the same writes and the same seed leave the same bytes.

use std::collections::BTreeMap;

use model::random::{INCREMENT, Random, mix};

/// What a disk stores as a whole.
pub const SECTOR: usize = 512;

/// As much as disks have: 64 MiB.
const SECTORS_MAX: usize = (64 << 20) / SECTOR;

/// How much of a full cache is stored: a quarter.
const STORED_SHARE: usize = 4;

/// Neighbours that are mostly kept or lost together, as powers of two of sectors: 64 KiB, 4 KiB.
const GROUPS: [u32; 2] = [7, 3];

type Sector = [u8; SECTOR];

/// The cache of one disk.
#[derive(Clone, Debug, Default)]
pub struct WriteCache {
    /// By the number of the sector; the versions in their order, at least one.
    sectors: BTreeMap<u64, Vec<Sector>>,
    /// Versions altogether.
    versions: usize,
}

/// What is to be stored: the first byte of a sector, and its bytes.
pub type Stored = (u64, Sector);

impl WriteCache {
    /// Takes a write of whole sectors; gives what is to be stored because the cache is full.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Vec<Stored> {
        let (sectors, _) = data.as_chunks::<SECTOR>();
        for (number, sector) in (offset / SECTOR as u64..).zip(sectors) {
            self.sectors.entry(number).or_default().push(*sector);
        }
        self.versions += sectors.len();
        let mut stored = Vec::new();
        if self.versions > SECTORS_MAX {
            while self.versions > SECTORS_MAX / STORED_SHARE * (STORED_SHARE - 1) {
                let Some((number, versions)) = self.sectors.pop_first() else { break };
                self.versions -= versions.len();
                stored.extend(versions.last().map(|last| (start(number), *last)));
            }
        }
        stored
    }

    /// Puts what is cached over what was read from the disk; whole sectors.
    pub fn overlay(&self, offset: u64, data: &mut [u8]) {
        let first = offset / SECTOR as u64;
        let (sectors, _) = data.as_chunks_mut::<SECTOR>();
        for (number, versions) in self.sectors.range(first..first + sectors.len() as u64) {
            if let Some(last) = versions.last() {
                sectors[(number - first) as usize] = *last;
            }
        }
    }

    /// Forgets the sectors of a write that was stored at once.
    pub fn forget(&mut self, offset: u64, len: usize) {
        let first = offset / SECTOR as u64;
        for number in first..first + (len / SECTOR) as u64 {
            self.versions -= self.sectors.remove(&number).map_or(0, |versions| versions.len());
        }
    }

    /// All that is to be stored by a flush; nothing is cached afterwards.
    #[must_use]
    pub fn flush(&mut self) -> Vec<Stored> {
        self.versions = 0;
        let sectors = std::mem::take(&mut self.sectors).into_iter();
        sectors.filter_map(|(number, versions)| Some((start(number), *versions.last()?))).collect()
    }

    /// What a power cut leaves; nothing is cached afterwards.
    #[must_use]
    pub fn cut(&mut self, seed: u64) -> Vec<Stored> {
        self.versions = 0;
        let mut kept = Vec::new();
        for (number, versions) in std::mem::take(&mut self.sectors) {
            let last = (0..versions.len()).rfind(|version| survives(seed, number, *version as u64));
            kept.extend(last.map(|last| (start(number), versions[last])));
        }
        kept
    }

    /// Sectors that are not stored.
    #[must_use]
    pub fn unstored_sectors(&self) -> usize {
        self.sectors.len()
    }
}

fn start(number: u64) -> u64 {
    number * SECTOR as u64
}

/// Whether the disk had stored this version of a sector. Of each group a third is kept, a third is
/// lost, and a third is drawn anew in smaller pieces, at last by the sector.
fn survives(seed: u64, sector: u64, version: u64) -> bool {
    let draw = |shift: u32, bound: u64| {
        let place =
            mix(sector >> shift).wrapping_add(mix(version.wrapping_add(1) << 8 | u64::from(shift)));
        Random(mix(seed.wrapping_mul(INCREMENT)) ^ place).below(bound)
    };
    for shift in GROUPS {
        match draw(shift, 3) {
            0 => return true,
            1 => return false,
            _ => {}
        }
    }
    draw(0, 2) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn sectors(byte: u8, count: usize) -> Vec<u8> {
        vec![byte; count * SECTOR]
    }

    #[test]
    fn what_was_written_last_is_read_and_flushed() {
        let mut cache = WriteCache::default();
        assert!(cache.write(512, &sectors(1, 3)).is_empty());
        assert!(cache.write(1024, &sectors(2, 1)).is_empty());
        let mut data = sectors(9, 5);
        cache.overlay(0, &mut data);
        let seen: Vec<u8> = data.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert_eq!(seen, [9, 1, 2, 1, 9]);
        let flushed = cache.flush();
        let stored: Vec<_> = flushed.iter().map(|(offset, data)| (*offset, data[0])).collect();
        assert_eq!(stored, [(512, 1), (1024, 2), (1536, 1)]);
        assert!(cache.flush().is_empty() && cache.cut(1).is_empty());
    }

    #[test]
    fn what_was_stored_at_once_is_not_overwritten_later() {
        let mut cache = WriteCache::default();
        cache.write(0, &sectors(1, 3));
        cache.forget(512, SECTOR);
        let offsets: Vec<u64> = cache.flush().iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, [0, 1024]);
    }

    #[test]
    fn a_cut_keeps_some_whole_groups_and_tears_others() {
        let mut cache = WriteCache::default();
        cache.write(0, &sectors(1, 8 << 20 >> 9));
        let kept = cache.cut(7);
        let share = kept.len() as f64 / f64::from(8 << 20 >> 9);
        assert!((0.35..0.65).contains(&share), "{share}");
        let mut by_page = BTreeMap::new();
        for (offset, _) in &kept {
            *by_page.entry(offset / 4096).or_insert(0) += 1;
        }
        let whole = by_page.values().filter(|count| **count == 8).count();
        let torn = by_page.len() - whole;
        assert!(whole > 500 && torn > 100, "{whole} whole pages, {torn} torn");
    }

    #[test]
    fn the_same_writes_and_seed_leave_the_same_however_they_came() {
        let cut = |pieces: usize, seed| {
            let mut cache = WriteCache::default();
            for at in (0..256 * KIB).step_by(pieces) {
                cache.write(at as u64, &vec![1; pieces]);
            }
            cache.cut(seed)
        };
        assert_eq!(cut(4 * KIB, 1), cut(64 * KIB, 1));
        assert_ne!(cut(4 * KIB, 1), cut(4 * KIB, 2));
    }

    #[test]
    fn a_cut_may_leave_an_older_version() {
        let versions = |seed| {
            let mut cache = WriteCache::default();
            for byte in 1..=2 {
                cache.write(0, &sectors(byte, 1));
            }
            cache.cut(seed).first().map_or(0, |(_, data)| data[0])
        };
        let seen: Vec<u8> = (0..50).map(versions).collect();
        for version in 0..=2 {
            assert!(seen.contains(&version), "{seen:?}");
        }
    }

    #[test]
    fn a_full_cache_stores_the_lowest_sectors() {
        let mut cache = WriteCache::default();
        let piece = sectors(1, SECTORS_MAX / 4);
        let len = piece.len() as u64;
        assert!((0..4).all(|number| cache.write(number * len, &piece).is_empty()));
        let stored = cache.write(4 * len, &sectors(2, 1));
        assert_eq!(stored.len(), SECTORS_MAX / 4 + 1);
        assert_eq!(stored.last().unwrap().0, len);
        assert_eq!(cache.unstored_sectors(), SECTORS_MAX / 4 * 3);
    }
}
