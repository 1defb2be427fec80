//! The threads of one device: operations are done in the order in which they were given out, as
//! many at a time as there are threads.
//!
//! A pool has its device for good. When another device takes its place, the pool is closed: what it
//! was given before it still does, on its own device, and then its threads end.

use super::caller_read::FileReader;
use super::device::{DriverDevice, ended, read};
use crate::volume::whole;
use model::engine::{ErrorNumber, IoResult, OperationId};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use sys::buffer_pool::{ExclusivePart, SharedPart};

/// Callers that read the medium at the same time; more leave it to the pool's threads.
const READERS: usize = 8;
/// Operations that wait without another allocation.
const WAITING: usize = 1024;

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

    /// Adds an operation.
    pub(super) fn add(&self, job: QueuedOperation) {
        self.queue().jobs.push_back(job);
        self.wake.notify_one();
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

    /// The next operation; `None` when the pool is closed and has none.
    pub(super) fn next(&self) -> Option<QueuedOperation> {
        let waits = |queue: &mut JobQueue| queue.jobs.is_empty() && !queue.is_closed;
        let waited = self.wake.wait_while(self.queue(), waits);
        waited.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    /// Does an operation; a panic of the device is an error of it alone. A medium that `grows` has
    /// zeros behind its end.
    pub(super) fn perform(&self, work: &mut DeviceOperation, grows: bool) -> IoResult {
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
