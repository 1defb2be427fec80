//! Writes blocks of a data file in a thread of its own, so that the one that reads and hashes goes
//! on meanwhile.
//!
//! Blocks go past the page cache where the file system can: the copy into it is what limits a save
//! otherwise. Elsewhere they are written behind in windows, so that no heap of unwritten pages
//! waits for the sync at the end.

use std::fs::File;
use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use sys::file::{self, CacheAdvice};
use sys::memory::AlignedBuffer;
use sys::{Error, ErrorKind, Result};

/// Bytes of a full block.
pub(super) const BLOCK_BYTES: usize = 512 << 10;
/// Direct writes begin at a multiple of this and are as long as one.
pub(super) const ALIGNMENT: u64 = 4096;
/// Blocks that wait or are written, at most.
const MOST_UNDER_WAY: usize = 2;
/// So much is handed to the device at a time if it was cached.
const WINDOW_BYTES: u64 = 8 << 20;

/// A thread that writes.
#[derive(Debug)]
pub(super) struct BlockWriter {
    /// Absent once it ends.
    blocks: Option<Sender<Block>>,
    written: Receiver<Result<AlignedBuffer>>,
    under_way: usize,
    thread: Option<JoinHandle<()>>,
}

/// Bytes at their place in the file.
#[derive(Debug)]
struct Block {
    content: AlignedBuffer,
    bytes: usize,
    offset: u64,
}

impl BlockWriter {
    /// Starts the thread, which writes to `file`.
    pub(super) fn start(file: File) -> Result<Self> {
        let (blocks, received) = channel();
        let (sender, written) = channel();
        let work = move || {
            let mut file = WindowedFile::new(file);
            for Block { content, bytes, offset } in received {
                let done = file.write(&content[..bytes], offset).map(|()| content);
                let is_failed = done.is_err();
                // Without a receiver the save has ended.
                if sender.send(done).is_err() || is_failed {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name("save".to_owned()).spawn(work);
        let thread = started.map_err(|source| Error::new("start a thread", source))?;
        Ok(Self { blocks: Some(blocks), written, under_way: 0, thread: Some(thread) })
    }

    /// Hands over the first `bytes` bytes of a block, and puts an empty one in its place. Waits
    /// while too many are under way. An error may be of a block before.
    pub(super) fn write(
        &mut self,
        block: &mut AlignedBuffer,
        bytes: usize,
        offset: u64,
    ) -> Result<()> {
        let empty = if self.under_way < MOST_UNDER_WAY { empty_block() } else { self.take() }?;
        let content = mem::replace(block, empty);
        let sent = self.blocks.as_ref().map(|blocks| blocks.send(Block { content, bytes, offset }));
        if sent.is_none_or(|sent| sent.is_err()) {
            return Err(self.failure());
        }
        self.under_way += 1;
        Ok(())
    }

    /// Waits until all blocks are handed to the kernel.
    pub(super) fn finish(&mut self) -> Result<()> {
        while self.under_way > 0 {
            self.take()?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<AlignedBuffer> {
        let block = self.written.recv().map_err(|_| ended_early())??;
        self.under_way -= 1;
        Ok(block)
    }

    /// Why the thread has ended.
    fn failure(&mut self) -> Error {
        let failed = self.written.try_iter().find_map(Result::err);
        failed.unwrap_or_else(ended_early)
    }
}

impl Drop for BlockWriter {
    fn drop(&mut self) {
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was printed.
            let _ = thread.join();
        }
    }
}

/// A block to fill.
pub(super) fn empty_block() -> Result<AlignedBuffer> {
    AlignedBuffer::new(BLOCK_BYTES)
}

fn ended_early() -> Error {
    Error::new("write", io::Error::other("the thread that writes ended early"))
}

/// A file that is written from its beginning to its end.
#[derive(Debug)]
struct WindowedFile {
    file: File,
    /// Whether the file system has direct writes that are.
    may_be_direct: bool,
    is_direct: bool,
    /// Where the window begins whose writing was not started.
    window: u64,
}

impl WindowedFile {
    fn new(file: File) -> Self {
        let may_be_direct = file::file_system(&file).is_ok_and(|system| system.has_direct_writes());
        Self { file, may_be_direct, is_direct: false, window: 0 }
    }

    fn write(&mut self, content: &[u8], offset: u64) -> Result<()> {
        let is_aligned = |bytes: u64| bytes.is_multiple_of(ALIGNMENT);
        let is_whole = is_aligned(offset) && is_aligned(content.len() as u64);
        self.set_direct(self.may_be_direct && is_whole)?;
        let mut done = 0;
        while done < content.len() {
            match file::write_at(&self.file, &content[done..], offset + done as u64) {
                // A server of FUSE may answer so.
                Ok(0) => return Err(Error::new("write", io::ErrorKind::WriteZero.into())),
                Ok(written) => done += written,
                // It wants another alignment, or what is left of the block is none.
                Err(error) if self.is_direct && error.kind == ErrorKind::Invalid => {
                    self.set_direct(false)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.write_behind(offset + content.len() as u64)
    }

    fn set_direct(&mut self, on: bool) -> Result<()> {
        if on != self.is_direct {
            match file::set_direct(&self.file, on) {
                Ok(()) => self.is_direct = on,
                // Then it is cached.
                Err(error) if on && error.kind == ErrorKind::Unsupported => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Starts the writing of what was cached up to `end`, and lets it leave the cache.
    fn write_behind(&mut self, end: u64) -> Result<()> {
        self.window = self.window.min(end);
        if end - self.window >= WINDOW_BYTES {
            // The window before is written by now, or waited for: at most two are under way.
            let before = self.window.saturating_sub(WINDOW_BYTES);
            file::sync_range_start(&self.file, self.window, end - self.window)?;
            // Of no bytes both would be of the whole file.
            if before < self.window {
                let bytes = self.window - before;
                file::sync_range_wait(&self.file, before, bytes)?;
                // Only a courtesy: the pages are clean.
                let _ = file::advise(&self.file, before, bytes, CacheAdvice::DontNeed);
            }
            self.window = end;
        }
        Ok(())
    }
}
