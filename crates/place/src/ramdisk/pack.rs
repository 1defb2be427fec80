//! A data file of the store while it is written: bytes of many files, one after the other.
//!
//! Full blocks are written behind by a thread ([`block_writer`]), the last one at the sync. Without
//! a commit the file is removed.

mod block_writer;

use super::content::read_whole;
use super::store::data_name;
use block_writer::{ALIGNMENT, BLOCK_BYTES, BlockWriter, empty_block};
use std::fs::File;
use sys::Result;
use sys::directory::Directory;
use sys::file::{self, CacheAdvice};
use sys::memory::AlignedBuffer;

/// The data file of one generation.
#[derive(Debug)]
pub(super) struct Pack<'s> {
    directory: &'s Directory,
    number: u64,
    /// Made with the first byte.
    data: Option<PackData>,
    /// Bytes that were only counted: nothing is made.
    counted: Option<u64>,
    is_kept: bool,
}

/// A data file that exists.
#[derive(Debug)]
struct PackData {
    file: File,
    writer: BlockWriter,
    /// Where the block that is filled begins: a multiple of [`ALIGNMENT`].
    start: u64,
    block: AlignedBuffer,
    filled: usize,
}

impl<'s> Pack<'s> {
    /// A data file that is made with its first byte.
    pub(super) fn new(directory: &'s Directory, number: u64) -> Self {
        Self { directory, number, data: None, counted: None, is_kept: false }
    }

    /// Counts what would be appended.
    pub(super) fn counting(directory: &'s Directory) -> Self {
        Self { directory, number: 0, data: None, counted: Some(0), is_kept: false }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that were appended.
    pub(super) fn bytes(&self) -> u64 {
        let written = self.data.as_ref().map_or(0, |data| data.start + data.filled as u64);
        self.counted.unwrap_or(written)
    }

    /// Appends `bytes`; where they begin. An error may be of what was appended before.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.bytes();
        if let Some(counted) = &mut self.counted {
            *counted += bytes.len() as u64;
        } else if !bytes.is_empty() {
            let data = match &mut self.data {
                Some(data) => data,
                none => none.insert(PackData::create(self.directory, self.number)?),
            };
            data.append(bytes)?;
        }
        Ok(offset)
    }

    /// Forgets what was appended from `bytes` on.
    pub(super) fn cut(&mut self, bytes: u64) -> Result<()> {
        if let Some(counted) = &mut self.counted {
            *counted = bytes;
            return Ok(());
        }
        self.data.as_mut().map_or(Ok(()), |data| data.cut(bytes))
    }

    /// Makes all of it durable, but its name.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.data.as_mut().map_or(Ok(()), PackData::sync)
    }

    /// A manifest names it: it stays.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl PackData {
    fn create(directory: &Directory, number: u64) -> Result<Self> {
        let block = empty_block()?;
        let file = directory.create_new(&data_name(number), 0o600)?;
        let of_writer = file.try_clone().map_err(|source| sys::Error::new("duplicate", source));
        match of_writer.and_then(BlockWriter::start) {
            Ok(writer) => Ok(Self { file, writer, start: 0, block, filled: 0 }),
            Err(error) => {
                // The next save removes it if this cannot.
                let _ = directory.remove(&data_name(number));
                Err(error)
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - self.filled));
            self.block[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = later;
            if self.filled == BLOCK_BYTES {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        self.writer.write(&mut self.block, self.filled, self.start)?;
        self.start += self.filled as u64;
        self.filled = 0;
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> Result<()> {
        if let Some(kept) = bytes.checked_sub(self.start) {
            self.filled = self.filled.min(kept as usize);
            return Ok(());
        }
        self.writer.finish()?;
        self.start = bytes - bytes % ALIGNMENT;
        self.filled = (bytes - self.start) as usize;
        // A direct read needs a whole unit.
        let head = &mut self.block[..ALIGNMENT as usize];
        let mut read = read_whole(&self.file, head, self.start);
        if read.as_ref().is_err_and(|error| error.kind == sys::ErrorKind::Invalid) {
            // It wants another alignment: what follows is cached.
            file::set_direct(&self.file, false)?;
            read = read_whole(&self.file, head, self.start);
        }
        if !read? {
            let short = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(sys::Error::new("read", short));
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let end = self.start + self.filled as u64;
        if self.filled > 0 {
            self.hand_over()?;
        }
        self.writer.finish()?;
        self.file.set_len(end).map_err(|source| sys::Error::new("cut", source))?;
        self.file.sync_all().map_err(|source| sys::Error::new("sync", source))?;
        // Only a courtesy: the pages are clean.
        let _ = file::advise(&self.file, 0, 0, CacheAdvice::DontNeed);
        Ok(())
    }
}

impl Drop for Pack<'_> {
    fn drop(&mut self) {
        if self.data.take().is_some() && !self.is_kept {
            // The next save removes it if this cannot.
            let _ = self.directory.remove(&data_name(self.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use testkit::disk_model::{DiskRequest, RequestKind};
    use testkit::{FaultPlan, FaultyFiles, TempDir};

    /// Appends, forgets and appends again, by numbers from a seed; what must be in the file then.
    fn filled(pack: &mut Pack<'_>, mut seed: u64) -> Vec<u8> {
        let mut expected: Vec<u8> = Vec::new();
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (seed >> 33) % below
        };
        for turn in 0..60 {
            let bytes = if next(3) == 0 { next(700 << 10) } else { next(5000) };
            let part: Vec<u8> = (0..bytes).map(|at| (at * 7 + turn) as u8).collect();
            assert_eq!(pack.append(&part).unwrap(), expected.len() as u64);
            expected.extend(part);
            if next(5) == 0 {
                // Within the block that is filled, or far before it.
                let back = if next(2) == 0 { next(3000) } else { next(4 << 20) };
                let end = expected.len().saturating_sub(back as usize);
                pack.cut(end as u64).unwrap();
                expected.truncate(end);
            }
            assert_eq!(pack.bytes(), expected.len() as u64);
        }
        expected
    }

    #[test]
    fn what_was_appended_and_not_cut_is_in_the_file() {
        let on_disk = TempDir::new();
        for place in [on_disk.path(), Path::new("/dev/shm")] {
            for seed in 0..8 {
                let within = TempDir::in_dir(place);
                let directory = Directory::open(within.path()).unwrap();
                let mut pack = Pack::new(&directory, 1);
                let expected = filled(&mut pack, seed);
                pack.sync().unwrap();
                let file = within.path().join(data_name(1));
                assert!(std::fs::read(&file).unwrap() == expected, "{} {seed}", place.display());
                pack.keep();
                drop(pack);
                assert!(file.exists());
            }
        }
    }

    /// What was written until the pack was cut may fail: at the latest the cut says so.
    #[test]
    fn each_write_that_fails_is_reported_when_the_pack_is_cut() {
        let within = TempDir::new();
        let files = match FaultyFiles::over(within.path(), FaultPlan::new()) {
            Ok(files) => files,
            Err(need) => return testkit::skip(need),
        };
        let directory = Directory::open(files.path()).unwrap();
        let part = vec![7; 3 * BLOCK_BYTES + 100];
        let is_reported = |number: u64| {
            let mut pack = Pack::new(&directory, number);
            let is_appended = pack.append(&part).is_ok();
            // Into the second block, which was handed over.
            let is_cut = pack.cut(BLOCK_BYTES as u64 + 10).is_ok();
            !is_appended || !is_cut
        };
        assert!(!is_reported(1));
        let is_write = |request: &&DiskRequest| request.kind == RequestKind::Write;
        let writes = files.requests().iter().filter(is_write).count() as u64;
        assert!(writes >= 3, "{writes} writes");
        for number in 0..writes {
            files.set_plan(FaultPlan::new().failing(RequestKind::Write, number));
            assert!(
                is_reported(number + 2),
                "write {number} of {writes} failed, and nothing said so"
            );
        }
    }

    #[test]
    fn without_a_commit_nothing_stays_and_what_is_counted_is_not_made() {
        let within = TempDir::new();
        let directory = Directory::open(within.path()).unwrap();
        let mut pack = Pack::new(&directory, 1);
        filled(&mut pack, 3);
        drop(pack);
        let mut counting = Pack::counting(&directory);
        filled(&mut counting, 3);
        drop(counting);
        assert_eq!(directory.names().unwrap().len(), 0);
    }
}
