//! One recording file that is still being written, read as far as it is whole.
//!
//! Each call reads only what was appended since the last one. A chunk that is not whole yet is read
//! later; one that is wrong ends the following, as it ends a reading. The reader holds a shared
//! lock on the file. The recorder sees by it that rows are waited for, and writes them within a
//! second.

use super::chunk::Chunks;
use super::reader::{self, Limits, Reading};
use super::writer::Writer;
use crate::{Error, Result};
use model::recording::Recording;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};
use sys::lock::{LockMode, release, try_take};

/// The most time that rows stay in memory while the recording is followed.
const FOLLOWED_HOLD_NS: u64 = 1_000_000_000;

/// The time between two looks at the length of a file.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Writes the rows that are still in memory, if a follower of this file waits for them.
pub(super) fn flush_if_followed(writer: &mut Writer<File>) -> Result<()> {
    if writer.held_ns() >= FOLLOWED_HOLD_NS && is_followed(writer.sink()) {
        return writer.flush();
    }
    Ok(())
}

/// Has the recorder of `file` write its rows as for a follower, and waits until it did, at most for
/// `limit`.
pub(super) fn wait_for_rows(file: &File, limit: Duration) {
    let length = || file.metadata().map_or(0, |about| about.len());
    let (before, started) = (length(), Instant::now());
    let mut is_locked = false;
    while started.elapsed() < limit && length() == before {
        // The recorder may ask for the lock at this very moment.
        is_locked = is_locked || try_take(file, LockMode::Shared).unwrap_or(true);
        std::thread::sleep(LOOK_EVERY);
    }
    // Ends with the file, too.
    let _ = release(file);
}

/// Whether a [`Tail`] has this file open, too.
fn is_followed(file: &File) -> bool {
    match try_take(file, LockMode::Exclusive) {
        Ok(is_alone) => {
            // The lock only answers the question. A file that could be locked can be released.
            let _ = release(file);
            !is_alone
        }
        // On a file system without locks rows come when a chunk is full.
        Err(_) => false,
    }
}

/// A file that may grow.
#[derive(Debug)]
pub(super) struct Tail {
    /// For its length and the lock; the chunks read it by a duplicate of this descriptor.
    file: File,
    /// Whether the recorder can see that it is followed, or never will.
    is_locked: bool,
    chunks: Chunks<BufReader<File>>,
    reading: Reading,
}

impl Tail {
    /// Follows a regular file, and reads nothing but its header. What is read of it takes at most
    /// `bytes` of memory; `path` names it in errors.
    pub(super) fn new(file: File, path: &Path, bytes: usize) -> Result<Self> {
        let reader = file.try_clone().map_err(|error| Error::io("open", path, error))?;
        let chunks = reader::start(BufReader::new(reader)).map_err(|error| error.at(path))?;
        Ok(Self {
            file,
            is_locked: false,
            chunks,
            reading: Reading::new(Limits { bytes, may_thin: false, ..Limits::default() }),
        })
    }

    /// Reads what was appended; whether there was anything.
    pub(super) fn advance(&mut self) -> bool {
        // The recorder may ask for the lock at this very moment: then the next call gets it.
        self.is_locked = self.is_locked || try_take(&self.file, LockMode::Shared).unwrap_or(true);
        let before = self.chunks.offset;
        while !self.is_over() {
            let offset = self.chunks.offset;
            let length = self.file.metadata().map_or(0, |about| about.len());
            let taken = match self.chunks.next_whole(length) {
                Ok(None) => break,
                Ok(Some((header, raw))) => self.reading.take(&header, raw),
                Err(why) => Err(why),
            };
            if let Err(why) = taken {
                self.reading.damaged(offset, &why);
                return true;
            }
        }
        self.chunks.offset > before
    }

    /// What was read so far; spans in the order in which they came.
    pub(super) fn recording(&self) -> &Recording {
        &self.reading.recording
    }

    /// As [`Tail::recording`], for one that takes rows out of it.
    pub(super) fn recording_mut(&mut self) -> &mut Recording {
        &mut self.reading.recording
    }

    /// Whether nothing more will be read: the recorder wrote its last words, or the file is
    /// damaged.
    pub(super) fn is_over(&self) -> bool {
        let recording = self.recording();
        recording.outcome.is_some() || !recording.damage.is_empty()
    }
}
