//! The order in which the walk sends files to the threads that move data: at once, or, from a disk
//! with a head, a batch at a time in the order of the places of their data.

use super::{CopyShared, FileJob, LARGE_FROM_BYTES, Queues};
use crate::order;
use std::cell::RefCell;
use std::sync::atomic::Ordering;

/// Files of a batch: each is two names and some numbers in memory.
const MOST_FILES: usize = 16384;

/// A file with the place of its first data, in bytes on its disk.
type PlacedFile = (Option<u64>, FileJob);

/// Sends files.
pub(super) struct FileSender<'a> {
    queues: &'a Queues,
    /// What waits, with its place; `None` where files are sent at once.
    batch: Option<RefCell<Vec<PlacedFile>>>,
}

impl<'a> FileSender<'a> {
    pub(super) fn new(shared: &CopyShared<'_>, queues: &'a Queues) -> Self {
        Self { queues, batch: shared.disks.source_rotates.then(RefCell::default) }
    }

    /// Sends a file, or keeps it until its batch is full.
    pub(super) fn add(&self, job: FileJob) {
        let Some(batch) = &self.batch else { return self.send_one(job) };
        // What cannot be opened is named by the thread that copies it.
        let opened = job.pair.source.open_found(&job.name, &job.stat).ok();
        let place = opened.and_then(|file| order::first_place(&file));
        let mut batch = batch.borrow_mut();
        batch.push((place, job));
        let is_full = batch.len() >= MOST_FILES;
        drop(batch);
        if is_full {
            self.send();
        }
    }

    /// Sends what waits, if it holds so many directories open that others wait for them.
    pub(super) fn send_if_many_held(&self, shared: &CopyShared<'_>) {
        if shared.open_directories.load(Ordering::Relaxed) >= shared.most_held {
            self.send();
        }
    }

    /// Sends what waits.
    pub(super) fn send(&self) {
        let Some(batch) = &self.batch else { return };
        let mut jobs = batch.take();
        // What has no place is first: its data is in its inode, which was just read.
        jobs.sort_by_key(|(place, _)| *place);
        for (_, job) in jobs {
            self.send_one(job);
        }
    }

    fn send_one(&self, job: FileJob) {
        let is_large = job.stat.bytes >= LARGE_FROM_BYTES;
        let queue = if is_large { &self.queues.large } else { &self.queues.small };
        // Without a receiver its thread has failed, and says so.
        let _ = queue.send(job);
    }
}
