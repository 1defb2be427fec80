//! Asynchronous reads and writes of one file at a chosen depth, by io_uring.
//!
//! The idea: a queue owns as many aligned buffers as its depth, one per slot. A buffer can
//! be reached only while its slot is idle, so memory in flight is never seen by safe code,
//! and the queue waits for everything in flight before it lets the memory go. File and
//! buffers are registered with the kernel where it permits, which saves work per request.
//! It schedules nothing: the caller decides what to submit and when to wait.

use crate::clock::now_ns;
use crate::error::{Error, Kind, Result};
use crate::memory::{BUFFER_ALIGNMENT, HUGE_PAGE_BYTES, Mapping, Pages};
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

/// The deepest queue: more than any device's own queue that this program measures.
pub const MAX_DEPTH: u32 = 4096;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// File to buffer.
    Read,
    /// Buffer to file.
    Write,
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion {
    /// Its slot, idle again.
    pub slot: usize,
    /// Where in the file it was, in bytes.
    pub offset: u64,
    /// Bytes transferred, which may be fewer than asked for, or the device's error.
    pub result: Result<usize>,
    /// When it was queued, on [`crate::clock`].
    pub submitted_ns: u64,
    /// When its end was seen, on [`crate::clock`].
    pub completed_ns: u64,
}

/// A request in flight.
#[derive(Clone, Copy)]
struct Request {
    operation: Operation,
    offset: u64,
    submitted_ns: u64,
}

/// A bounded queue of requests to one file; see the module's text.
pub struct Queue {
    ring: IoUring,
    /// Keeps the file open for as long as requests can be in flight.
    file: File,
    registered_file: bool,
    registered_buffers: bool,
    /// Unmapped by `drop`, and only once nothing is in flight.
    buffers: ManuallyDrop<Mapping>,
    buffer_bytes: usize,
    /// Distance between two buffers: `buffer_bytes` rounded up to the alignment.
    stride: usize,
    /// One per slot; `None` while idle.
    requests: Vec<Option<Request>>,
    idle: Vec<usize>,
    ended: VecDeque<Completion>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue")
            .field("file", &self.file)
            .field("depth", &self.depth())
            .field("in_flight", &self.in_flight())
            .field("buffer_bytes", &self.buffer_bytes)
            .field("registered_file", &self.registered_file)
            .field("registered_buffers", &self.registered_buffers)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// A queue for `file` with `depth` slots of `buffer_bytes` each, aligned to 4,096 bytes.
    ///
    /// # Errors
    /// `Unsupported` where the kernel has no io_uring, `Denied` where it is forbidden (a
    /// container's filter, `kernel.io_uring_disabled`): callers then use plain calls. `Invalid`
    /// for a depth of 0 or above [`MAX_DEPTH`], `NoMemory` if the buffers do not fit.
    pub fn new(file: &File, depth: u32, buffer_bytes: usize) -> Result<Self> {
        const OPERATION: &str = "set up an I/O queue";
        if depth == 0 || depth > MAX_DEPTH {
            return Err(Error::invalid(OPERATION, "the depth must be 1 to 4096"));
        }
        let slots = depth as usize;
        let too_large = || Error::invalid(OPERATION, "the buffers are too large");
        // A request's length is 32 bits wide.
        u32::try_from(buffer_bytes).map_err(|_| too_large())?;
        let stride = buffer_bytes.next_multiple_of(BUFFER_ALIGNMENT);
        let buffers = map_buffers(stride.checked_mul(slots).ok_or_else(too_large)?)?;
        let mut queue = Self {
            ring: set_up_ring(depth).map_err(|source| Error::new(OPERATION, source))?,
            file: file
                .try_clone()
                .map_err(|source| Error::new(OPERATION, source))?,
            registered_file: false,
            registered_buffers: false,
            buffers: ManuallyDrop::new(buffers),
            buffer_bytes,
            stride,
            requests: vec![None; slots],
            idle: (0..slots).rev().collect(),
            ended: VecDeque::with_capacity(slots),
        };
        queue.register();
        Ok(queue)
    }

    /// The number of slots.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.requests.len()
    }

    /// Requests queued or in flight, whose end has not been returned by [`Queue::complete`].
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.depth() - self.idle.len()
    }

    /// Whether the kernel holds the buffers pinned, which saves it work per request; refused
    /// beyond RLIMIT_MEMLOCK.
    #[must_use]
    pub fn has_registered_buffers(&self) -> bool {
        self.registered_buffers
    }

    /// The buffer of an idle slot; `None` while it is in flight or if it does not exist. After a
    /// read has ended it holds the data.
    #[must_use]
    pub fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        if self.requests.get(slot)?.is_some() {
            return None;
        }
        let start = slot * self.stride;
        // SAFETY: the slot exists, so the range is inside `buffers`; it is idle, so the kernel
        // does not touch it; buffers of different slots do not overlap; `&mut self` makes this
        // the only reference and keeps `submit` away while it lives.
        Some(unsafe {
            std::slice::from_raw_parts_mut(
                self.buffers.pointer().as_ptr().add(start),
                self.buffer_bytes,
            )
        })
    }

    /// A slot that is idle, the most recently used first (its buffer is in the CPU's cache).
    #[must_use]
    pub fn idle_slot(&self) -> Option<usize> {
        self.idle.last().copied()
    }

    /// Queues a request of `bytes` bytes at `offset` with the buffer of `slot`; it starts with
    /// the next [`Queue::enter`].
    ///
    /// # Errors
    /// `Invalid` if the slot is not idle or the buffer is smaller than `bytes`.
    pub fn submit(
        &mut self,
        slot: usize,
        operation: Operation,
        offset: u64,
        bytes: usize,
    ) -> Result<()> {
        const OPERATION: &str = "queue a request";
        // From the end: `idle_slot` hands out the last one.
        let place = self.idle.iter().rposition(|idle| *idle == slot);
        let place = place.ok_or_else(|| Error::invalid(OPERATION, "the slot is not idle"))?;
        if bytes > self.buffer_bytes {
            return Err(Error::invalid(
                OPERATION,
                "the request is larger than its buffer",
            ));
        }
        let entry = self.entry(slot, operation, offset, bytes as u32);
        // SAFETY: the entry names this queue's own file and buffer. Both outlive the request:
        // `Drop` waits for the end of all requests, or leaks them.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There are as many entries as slots, so a free slot means a free entry.
        pushed.map_err(|_| Error::invalid(OPERATION, "the submission queue is full"))?;
        self.requests[slot] = Some(Request {
            operation,
            offset,
            submitted_ns: now_ns(),
        });
        self.idle.swap_remove(place);
        Ok(())
    }

    /// Hands queued requests to the kernel and waits until at least `wait_for` have ended (never
    /// more than there are).
    ///
    /// # Errors
    /// The kernel's word on the queue as a whole; a request's own failure is in its completion.
    pub fn enter(&mut self, wait_for: usize) -> Result<()> {
        let waiting = self.in_flight() - self.ended.len();
        let wanted = wait_for.saturating_sub(self.ended.len()).min(waiting);
        loop {
            match self.ring.submitter().submit_and_wait(wanted) {
                Ok(_) => break,
                // What was handed over or has ended before the signal is not lost.
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(source) => return Err(Error::new("wait for I/O", source)),
            }
        }
        self.reap();
        Ok(())
    }

    /// The next ended request, in the order seen; `None` if there is none yet. Never waits.
    pub fn complete(&mut self) -> Option<Completion> {
        if self.ended.is_empty() {
            self.reap();
        }
        let completion = self.ended.pop_front()?;
        self.requests[completion.slot] = None;
        self.idle.push(completion.slot);
        Some(completion)
    }

    /// Takes over what the kernel reports as ended, all stamped with one reading of the clock.
    fn reap(&mut self) {
        let mut entries = self.ring.completion();
        if entries.is_empty() {
            return;
        }
        let completed_ns = now_ns();
        for entry in &mut entries {
            let slot = entry.user_data() as usize;
            // The kernel returns the number that `entry` stored: a slot that is in flight.
            let Some(Some(request)) = self.requests.get(slot) else {
                continue;
            };
            let result = usize::try_from(entry.result()).map_err(|_| {
                let operation = match request.operation {
                    Operation::Read => "read",
                    Operation::Write => "write",
                };
                Error::new(operation, io::Error::from_raw_os_error(-entry.result()))
            });
            let (offset, submitted_ns) = (request.offset, request.submitted_ns);
            self.ended.push_back(Completion {
                slot,
                offset,
                result,
                submitted_ns,
                completed_ns,
            });
        }
    }

    fn entry(&self, slot: usize, operation: Operation, offset: u64, bytes: u32) -> squeue::Entry {
        // SAFETY: the slot exists, so the address is inside `buffers`.
        let buffer = unsafe { self.buffers.pointer().as_ptr().add(slot * self.stride) };
        // The depth is at most 4,096, so a slot fits.
        let index = slot as u16;
        let file = if self.registered_file {
            0
        } else {
            self.file.as_raw_fd()
        };
        let file_flag = if self.registered_file {
            squeue::Flags::FIXED_FILE
        } else {
            squeue::Flags::empty()
        };
        let file = types::Fd(file);
        let entry = match (operation, self.registered_buffers) {
            (Operation::Read, true) => opcode::ReadFixed::new(file, buffer, bytes, index)
                .offset(offset)
                .build(),
            (Operation::Read, false) => opcode::Read::new(file, buffer, bytes)
                .offset(offset)
                .build(),
            (Operation::Write, true) => opcode::WriteFixed::new(file, buffer, bytes, index)
                .offset(offset)
                .build(),
            (Operation::Write, false) => opcode::Write::new(file, buffer, bytes)
                .offset(offset)
                .build(),
        };
        entry.flags(file_flag).user_data(slot as u64)
    }

    /// Registers file and buffers as far as the kernel lets us; without, all works, dearer.
    fn register(&mut self) {
        let submitter = self.ring.submitter();
        self.registered_file = submitter.register_files(&[self.file.as_raw_fd()]).is_ok();
        let parts: Vec<libc::iovec> = (0..self.requests.len())
            .map(|slot| libc::iovec {
                iov_base: self
                    .buffers
                    .pointer()
                    .as_ptr()
                    .wrapping_add(slot * self.stride)
                    .cast(),
                iov_len: self.buffer_bytes,
            })
            .collect();
        // SAFETY: every part lies in `buffers`, which lives until the ring is closed (see `Drop`).
        self.registered_buffers = unsafe { submitter.register_buffers(&parts) }.is_ok();
    }
}

impl Drop for Queue {
    /// Waits for everything that was queued.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            while self.complete().is_some() {}
            if self.in_flight() > 0 && self.enter(1).is_err() {
                // The kernel may still write to the buffers: they stay mapped for ever.
                return;
            }
        }
        // SAFETY: nothing is in flight, and `self` is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.buffers) };
    }
}

/// Buffers of this size in all are worth a huge page: a quarter of one.
const HUGE_FROM_BYTES: usize = HUGE_PAGE_BYTES / 4;

/// Memory for `bytes` of buffers, on huge pages where they are granted.
///
/// A request of 1 MiB from 4 KiB pages is some 256 segments for the device; from a
/// huge page it is one. Measured on a virtio disk, 1 MiB requests 8 deep: reads 2.4
/// to 3.9 GB/s instead of 1.0 to 2.1, at a quarter of the processor time.
fn map_buffers(bytes: usize) -> Result<Mapping> {
    if bytes >= HUGE_FROM_BYTES {
        let whole = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        match Mapping::anonymous(whole, Pages::Transparent) {
            Err(error) if error.kind == Kind::Unsupported => {}
            other => return other,
        }
    }
    Mapping::anonymous(bytes, Pages::Base)
}

/// A ring without forced interruptions of the submitting thread where the kernel can (5.19).
fn set_up_ring(depth: u32) -> io::Result<IoUring> {
    match IoUring::builder()
        .dontfork()
        .setup_coop_taskrun()
        .build(depth)
    {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().build(depth)
        }
        other => other,
    }
}
