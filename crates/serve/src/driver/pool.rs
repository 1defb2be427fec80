//! The threads of one device: operations are done in the order in which they were given out, as
//! many at a time as there are threads.
//!
//! Reads that follow each other, in this order and on the device, are one request to it, and so are
//! writes. A long request of a caller, which is cut into pieces for the engine, is then whole again
//! and reaches a disk in order.
//!
//! A pool has its device for good. When another device takes its place, the pool is closed: what it
//! was given before it still does, on its own device, and then its threads end.

use super::caller_read::FileReader;
use super::device::{DriverDevice, ended, read};
use crate::volume::whole;
use model::engine::{ErrorNumber, IoResult, OperationId};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::{Discriminant, discriminant};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use sys::buffer_pool::{ExclusivePart, SharedPart};

/// Callers that read the medium at the same time; more leave it to the pool's threads.
const READERS: usize = 8;
/// Operations that wait without another allocation.
const WAITING: usize = 1024;
/// Operations that are one request to the device, at most.
pub(super) const MERGED_MAX: usize = 8;
/// The bytes of such a request, at most: what a kernel sends to a disk at once.
const MERGED_BYTES_MAX: u64 = 1 << 20;

/// An operation with the memory that it reads or fills.
#[derive(Debug)]
pub(super) struct QueuedOperation {
    pub(super) id: OperationId,
    pub(super) work: DeviceOperation,
}

/// What is done with the device.
#[derive(Debug)]
pub(super) enum DeviceOperation {
    Read {
        offset: u64,
        part: ExclusivePart,
    },
    /// A read that a caller has begun.
    Begun {
        reader: FileReader,
        part: ExclusivePart,
    },
    Write {
        offset: u64,
        part: SharedPart,
    },
    Flush,
    Discard(Range<u64>),
    WriteZeroes(Range<u64>),
    Revoke,
}

impl DeviceOperation {
    /// What is read or written of the device.
    fn range(&self) -> Option<Range<u64>> {
        let (offset, len) = match self {
            Self::Read { offset, part } => (*offset, part.bytes_len()),
            Self::Write { offset, part } => (*offset, part.bytes().len()),
            _ => return None,
        };
        Some(offset..offset + len as u64)
    }
}

/// Operations that do the same with what follows on the device: one request to it.
#[derive(Debug)]
pub(super) struct OperationGroup {
    kind: Discriminant<DeviceOperation>,
    range: Option<Range<u64>>,
    count: usize,
}

impl OperationGroup {
    /// A group of one.
    pub(super) fn of(work: &DeviceOperation) -> Self {
        Self { kind: discriminant(work), range: work.range(), count: 1 }
    }

    /// Adds an operation, if it belongs to the group and there is room.
    pub(super) fn takes(&mut self, work: &DeviceOperation) -> bool {
        let Some((range, added)) = self.range.as_mut().zip(work.range()) else { return false };
        let follows = range.end == added.start && self.kind == discriminant(work);
        let takes =
            follows && self.count < MERGED_MAX && added.end - range.start <= MERGED_BYTES_MAX;
        if takes {
            range.end = added.end;
            self.count += 1;
        }
        takes
    }
}

/// A device and what waits for it.
pub(super) struct Pool {
    device: Arc<dyn DriverDevice>,
    queue: Mutex<JobQueue>,
    wake: Condvar,
    /// For reads of callers, where the device is a file.
    readers: Mutex<Vec<FileReader>>,
}

struct JobQueue {
    jobs: VecDeque<QueuedOperation>,
    is_closed: bool,
}

impl Pool {
    /// Callers read `file` themselves, which has the bytes of the device.
    pub(super) fn new(device: Arc<dyn DriverDevice>, file: Option<&File>) -> Arc<Self> {
        let queue = JobQueue { jobs: VecDeque::with_capacity(WAITING), is_closed: false };
        let reader = |_| file.and_then(FileReader::new);
        let readers = Mutex::new((0..READERS).map_while(reader).collect());
        Arc::new(Self { device, queue: Mutex::new(queue), wake: Condvar::new(), readers })
    }

    /// Adds an operation; gives it back if the pool is closed, and its threads may have ended.
    pub(super) fn add_late(&self, job: QueuedOperation) -> Result<(), QueuedOperation> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(job);
        }
        queue.jobs.push_back(job);
        self.wake.notify_one();
        Ok(())
    }

    /// Adds operations together, so that those which follow each other are found so.
    pub(super) fn add(&self, jobs: impl Iterator<Item = QueuedOperation>) {
        let mut queue = self.queue();
        let mut group: Option<OperationGroup> = None;
        for job in jobs {
            // One thread takes all of a group.
            if !group.as_mut().is_some_and(|group| group.takes(&job.work)) {
                group = Some(OperationGroup::of(&job.work));
                self.wake.notify_one();
            }
            queue.jobs.push_back(job);
        }
    }

    /// Begins a read for a caller, who is to end it; `None` if a thread of the pool must do it.
    pub(super) fn begin_read(&self, offset: u64, bytes: usize) -> Option<FileReader> {
        let mut reader = self.readers().pop()?;
        if reader.begin(offset, bytes) {
            return Some(reader);
        }
        self.readers().push(reader);
        None
    }

    /// Takes a reader back, whose read has ended.
    pub(super) fn end_read(&self, reader: FileReader) {
        if reader.is_idle() {
            self.readers().push(reader);
        }
    }

    /// Lets the threads end when nothing is left to do.
    pub(super) fn close(&self) {
        self.queue().is_closed = true;
        self.wake.notify_all();
    }

    /// Waits for operations and takes the next one, with those that follow it; false when the pool
    /// is closed and has none.
    pub(super) fn take_next(&self, taken: &mut Vec<QueuedOperation>) -> bool {
        let waits = |queue: &mut JobQueue| queue.jobs.is_empty() && !queue.is_closed;
        let waited = self.wake.wait_while(self.queue(), waits);
        let jobs = &mut waited.unwrap_or_else(PoisonError::into_inner).jobs;
        let Some(first) = jobs.pop_front() else { return false };
        let mut group = OperationGroup::of(&first.work);
        taken.push(first);
        while jobs.front().is_some_and(|next| group.takes(&next.work)) {
            taken.extend(jobs.pop_front());
        }
        true
    }

    /// Does a group of operations; how each ended.
    pub(super) fn perform_group(
        &self,
        group: &mut [QueuedOperation],
        grows: bool,
    ) -> [IoResult; MERGED_MAX] {
        let mut results = [Ok(()); MERGED_MAX];
        if group.len() == 1 || !self.perform_together(group) {
            for (job, result) in group.iter_mut().zip(&mut results) {
                *result = self.perform(&mut job.work, grows);
            }
        }
        results
    }

    /// Does operations that follow each other as one; false if that did not do them all, and each
    /// must be done alone.
    fn perform_together(&self, jobs: &mut [QueuedOperation]) -> bool {
        let Some(range) = jobs.first().and_then(|first| first.work.range()) else { return false };
        let Some(end) = jobs.last().and_then(|last| last.work.range()) else { return false };
        let wanted = (end.end - range.start) as usize;
        let count = jobs.len();
        let is_read = matches!(jobs[0].work, DeviceOperation::Read { .. });
        let device = self.device.as_ref();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut works = jobs.iter_mut().map(|job| &mut job.work);
            if is_read {
                let mut parts: [_; MERGED_MAX] = std::array::from_fn(|_| match works.next() {
                    Some(DeviceOperation::Read { part, .. }) => IoSliceMut::new(part.bytes_mut()),
                    _ => IoSliceMut::new(&mut []),
                });
                whole(device.read_vectored_at(&mut parts[..count], range.start), wanted)
            } else {
                let parts: [_; MERGED_MAX] = std::array::from_fn(|_| match works.next() {
                    Some(DeviceOperation::Write { part, .. }) => IoSlice::new(part.bytes()),
                    _ => IoSlice::new(&[]),
                });
                whole(device.write_vectored_at(&parts[..count], range.start), wanted)
            }
        }));
        done.is_ok_and(|done| done.is_ok())
    }

    /// Does an operation; a panic of the device is an error of it alone. A medium that `grows` has
    /// zeros behind its end.
    fn perform(&self, work: &mut DeviceOperation, grows: bool) -> IoResult {
        let device = self.device.as_ref();
        let done = catch_unwind(AssertUnwindSafe(|| match work {
            DeviceOperation::Read { offset, part } => {
                read(device, *offset, part.bytes_mut(), grows)
            }
            DeviceOperation::Begun { reader, part } => {
                reader.end(part.bytes_mut(), true).unwrap_or(Err(ErrorNumber::EIO))
            }
            DeviceOperation::Write { offset, part } => {
                whole(device.write_at(part.bytes(), *offset), part.bytes().len())
            }
            DeviceOperation::Flush => ended(device.flush()),
            DeviceOperation::Discard(range) => ended(device.discard(range.clone())),
            DeviceOperation::WriteZeroes(range) => ended(device.write_zeroes(range.clone())),
            DeviceOperation::Revoke => ended(device.revoke()),
        }));
        done.unwrap_or(Err(ErrorNumber::EIO))
    }

    fn readers(&self) -> MutexGuard<'_, Vec<FileReader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, JobQueue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
