//! A data file of the store while it is written: bytes of many files, one after the other.
//!
//! It is written behind in windows, so that no heap of unwritten pages waits for the sync at the
//! end, and its pages leave the cache. Without a commit the file is removed.

use super::store::data_name;
use std::fs::File;
use std::mem;
use sys::Result;
use sys::directory::Directory;
use sys::file::{self, CacheAdvice};

/// Bytes that are written by one call.
const WRITE_BYTES: usize = 1 << 20;
/// So much is handed to the device at a time.
const WINDOW_BYTES: u64 = 8 << 20;

/// The data file of one generation.
#[derive(Debug)]
pub(super) struct Pack<'s> {
    directory: &'s Directory,
    number: u64,
    file: Option<File>,
    /// What was not yet handed to the kernel.
    buffer: Vec<u8>,
    /// Bytes that were.
    written: u64,
    /// Where the window begins whose writing was not started.
    window: u64,
    is_kept: bool,
    /// Whether bytes are only counted, and nothing is made.
    is_counting: bool,
}

impl<'s> Pack<'s> {
    /// A data file that is made with its first byte.
    pub(super) fn new(directory: &'s Directory, number: u64) -> Self {
        let buffer = Vec::new();
        let (is_kept, is_counting) = (false, false);
        Self { directory, number, file: None, buffer, written: 0, window: 0, is_kept, is_counting }
    }

    /// Counts what would be appended.
    pub(super) fn counting(directory: &'s Directory) -> Self {
        let mut pack = Self::new(directory, 0);
        pack.is_counting = true;
        pack
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that were appended.
    pub(super) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends `bytes`; where they begin.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.bytes();
        if self.is_counting {
            self.written += bytes.len() as u64;
            return Ok(offset);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.write_out()?;
        }
        Ok(offset)
    }

    /// Forgets what was appended from `bytes` on.
    pub(super) fn cut(&mut self, bytes: u64) {
        if bytes >= self.written {
            self.buffer.truncate((bytes - self.written) as usize);
        } else {
            self.buffer.clear();
            self.written = bytes;
            self.window = self.window.min(bytes);
        }
    }

    /// Makes all of it durable, but its name.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.write_out()?;
        if let Some(file) = &self.file {
            let cut = file.set_len(self.written);
            cut.map_err(|source| sys::Error::new("cut", source))?;
            file.sync_all().map_err(|source| sys::Error::new("sync", source))?;
            // Only a courtesy: the pages are clean.
            let _ = file::advise(file, 0, 0, CacheAdvice::DontNeed);
        }
        Ok(())
    }

    /// A manifest names it: it stays.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    fn write_out(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.directory.create_new(&data_name(self.number), 0o600)?),
        };
        let mut buffer = mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        while !rest.is_empty() {
            let written = file::write_at(file, rest, self.written)?;
            self.written += written as u64;
            rest = &rest[written..];
        }
        buffer.clear();
        self.buffer = buffer;
        if self.written - self.window >= WINDOW_BYTES {
            // The window before is written by now, or waited for: at most two are under way.
            let before = self.window.saturating_sub(WINDOW_BYTES);
            file::sync_range_start(file, self.window, self.written - self.window)?;
            file::sync_range_wait(file, before, self.window - before)?;
            let _ = file::advise(file, before, self.window - before, CacheAdvice::DontNeed);
            self.window = self.written;
        }
        Ok(())
    }
}

impl Drop for Pack<'_> {
    fn drop(&mut self) {
        if self.file.is_some() && !self.is_kept {
            // The next save removes it if this cannot.
            let _ = self.directory.remove(&data_name(self.number));
        }
    }
}
