//! The files of `file-copy-2008`: made from a seed, put out of the page cache before each copy, and
//! read once after it.

use crate::{Error, Result};
use model::random::Random;
use place::tree::{TreeWalk, WalkEvent, WalkLimits};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use sys::cachestat;
use sys::directory::Directory;
use sys::file::{self, CacheAdvice};
use sys::file_stat::InodeKind;

/// As many as in 2008.
pub(super) const FILES: u64 = 69;
const MODE: u32 = 0o600;
const SEED: u64 = 2008;
const BUFFER_BYTES: usize = 1 << 20;
/// A copied block and one that was not must differ.
const BLOCK_BYTES: usize = 4096;

/// The sizes of the files: between half and one and a half of their mean, together `total`.
pub(super) fn sizes(total: u64) -> Vec<u64> {
    const PARTS: u64 = 1000;
    let mut random = Random(SEED);
    let weights: Vec<u64> = (0..FILES).map(|_| PARTS / 2 + random.below(PARTS)).collect();
    let sum: u64 = weights.iter().sum();
    let of = |weight: u64| (u128::from(total) * u128::from(weight) / u128::from(sum)) as u64;
    let mut sizes: Vec<u64> = weights.into_iter().map(of).collect();
    let rest = total - sizes.iter().sum::<u64>();
    if let Some(last) = sizes.last_mut() {
        *last += rest;
    }
    sizes
}

/// Makes the files in `directory`, of bytes that do not compress, and puts them on its disk.
pub(super) fn make(directory: &Path, total: u64) -> Result<()> {
    let directory = Directory::open(directory)?;
    let mut random = Random(SEED);
    let mut buffer = vec![0; BUFFER_BYTES];
    random.fill(&mut buffer);
    for (number, size) in (1..).zip(sizes(total)) {
        let name = OsString::from(format!("file-{number:02}"));
        let file = directory.create_new(&name, MODE)?;
        write(&file, size, &mut buffer, &mut random).map_err(|error| {
            let reason = sys::plain_reason(&error);
            Error::failed(format!("cannot write below {}: {reason}", directory.path().display()))
        })?;
        if sys::interrupt::requested() {
            return Err(Error::failed("interrupted before anything was measured"));
        }
    }
    Ok(file::sync_file_system(directory.file())?)
}

fn write(
    mut file: &File,
    size: u64,
    buffer: &mut [u8],
    random: &mut Random,
) -> std::io::Result<()> {
    let mut left = size;
    while left > 0 && !sys::interrupt::requested() {
        for block in buffer.chunks_exact_mut(BLOCK_BYTES) {
            block[..8].copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let bytes = left.min(buffer.len() as u64);
        file.write_all(&buffer[..bytes as usize])?;
        left -= bytes;
    }
    Ok(())
}

/// What reading files once took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstRead {
    pub(super) ns: u64,
    pub(super) bytes: u64,
    /// Of these, what was in the page cache before; absent if the kernel does not say.
    pub(super) cached_bytes: Option<u64>,
}

/// Puts all files below `directory` out of the page cache; what stayed in it, in bytes.
pub(super) fn evict(directory: &Path) -> Result<Option<u64>> {
    for_each_file(directory, |file| Ok(file::advise(file, 0, 0, CacheAdvice::DontNeed)?))?;
    cached(directory)
}

/// Bytes of the files below `directory` that are in the page cache.
pub(super) fn cached(directory: &Path) -> Result<Option<u64>> {
    let mut sum = Some(0);
    for_each_file(directory, |file| {
        let cached = cachestat::of(file, 0, 0).ok().map(|cached| cached.cached_bytes());
        sum = sum.zip(cached).map(|(sum, more)| sum + more);
        Ok(())
    })?;
    Ok(sum)
}

/// Reads all files below `directory` once, as an indexer does; `None` after Ctrl-C.
pub(super) fn read_once(directory: &Path) -> Result<Option<FirstRead>> {
    let mut read = FirstRead { cached_bytes: cached(directory)?, ..FirstRead::default() };
    let mut buffer = vec![0; BUFFER_BYTES];
    let started = Instant::now();
    for_each_file(directory, |file| {
        let mut offset = 0;
        while !sys::interrupt::requested() {
            match file::read_at(file, &mut buffer, offset)? {
                0 => break,
                got => offset += got as u64,
            }
        }
        read.bytes += offset;
        Ok(())
    })?;
    read.ns = started.elapsed().as_nanos() as u64;
    Ok((!sys::interrupt::requested()).then_some(read))
}

fn for_each_file(directory: &Path, mut each: impl FnMut(&File) -> Result<()>) -> Result<()> {
    let mut walk = TreeWalk::below(Directory::open(directory)?, WalkLimits::default())?;
    while let Some(event) = walk.next() {
        if let WalkEvent::Entry(entry) = event
            && entry.stat.kind == InodeKind::File
        {
            each(&entry.directory.open_regular(entry.name)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_repeat_and_add_up() {
        for total in [160 << 20, 2_600_000_000] {
            let all = sizes(total);
            assert_eq!((all.len() as u64, all.iter().sum::<u64>()), (FILES, total));
            assert_eq!(all, sizes(total));
            assert!(all.iter().all(|size| *size >= total / FILES / 3));
        }
    }

    #[test]
    fn files_are_made_evicted_and_read() {
        let directory = testkit::TempDir::new();
        make(directory.path(), 4 << 20).unwrap();
        let left = evict(directory.path()).unwrap();
        let read = read_once(directory.path()).unwrap().unwrap();
        assert_eq!(read.bytes, 4 << 20);
        assert_eq!(read.cached_bytes, left);
        let again = read_once(directory.path()).unwrap().unwrap();
        if let Some(cached) = again.cached_bytes {
            assert!(cached >= 4 << 20);
        }
    }
}
