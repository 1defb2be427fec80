//! Reads, writes, syncs and discards on several files at a chosen depth, by io_uring.
//!
//! A queue owns one aligned buffer per slot. Safe code reaches a buffer only while its slot is
//! idle, so memory in flight is never visible, and the queue waits for everything in flight before
//! it unmaps the buffers. Files and buffers are registered with the kernel where it permits, which
//! saves work per request. The queue schedules nothing: the caller decides what to submit and when
//! to wait.
//!
//! The contract is that of `model::device::BlockDevice`, with two exceptions: a request may be
//! short before the end of the file, and the caller continues it (`transfer` does); a disk is not
//! discarded (see [`IoOperation::Discard`]).

use crate::clock::now_ns;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{BUFFER_ALIGNMENT, HUGE_PAGE_BYTES, Mapping, Pages};
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

/// The deepest queue: more than any device's own queue that this program measures.
pub const MAX_DEPTH: u32 = 4096;
/// Files in one queue at a time. Picked: a copier holds a source and a target open for each of some
/// files that it works on together; the kernel charges the table to the limit of open files.
pub const MAX_FILES: usize = 64;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOperation {
    /// File to buffer.
    Read,
    /// Buffer to file.
    Write,
    /// Makes what was written before durable (`fdatasync`); the whole file, no buffer.
    Sync,
    /// Frees the range's space, which then reads as zeroes (a hole); no buffer. Regular files only:
    /// on a disk the same call would write zeroes, so the queue refuses it, and
    /// [`crate::device::FileDevice`] does what a disk calls a discard.
    Discard,
}

/// One request: an operation on a range of a file, with a part of the slot's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// The file's index, from [`Queue::add_file`].
    pub file: usize,
    /// What it does.
    pub operation: IoOperation,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Where in the slot's buffer the data begins, in bytes.
    pub start: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl IoRequest {
    /// A read of `bytes` bytes at `offset` into the start of the buffer.
    #[must_use]
    pub fn read(file: usize, offset: u64, bytes: usize) -> Self {
        Self { file, operation: IoOperation::Read, offset, start: 0, bytes }
    }

    /// A write of the first `bytes` bytes of the buffer at `offset`.
    #[must_use]
    pub fn write(file: usize, offset: u64, bytes: usize) -> Self {
        Self { operation: IoOperation::Write, ..Self::read(file, offset, bytes) }
    }

    /// A sync of the file.
    #[must_use]
    pub fn sync(file: usize) -> Self {
        Self { operation: IoOperation::Sync, ..Self::read(file, 0, 0) }
    }

    /// A discard of `range`, which is not empty.
    #[must_use]
    pub fn discard(file: usize, range: Range<u64>) -> Self {
        let bytes = range.end.saturating_sub(range.start);
        Self {
            operation: IoOperation::Discard,
            ..Self::read(file, range.start, usize::try_from(bytes).unwrap_or(usize::MAX))
        }
    }

    /// What is left of it when `done` bytes are transferred.
    #[must_use]
    pub fn after(self, done: usize) -> Self {
        Self {
            offset: self.offset + done as u64,
            start: self.start + done,
            bytes: self.bytes - done,
            ..self
        }
    }
}

impl IoOperation {
    /// The verb, as errors name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Discard => "discard",
        }
    }

    /// Whether it moves data of its slot's buffer.
    #[must_use]
    pub fn uses_buffer(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion {
    /// Its slot, idle again.
    pub slot: usize,
    /// The request.
    pub request: IoRequest,
    /// Bytes transferred, which may be fewer than asked for (0 of a sync or discard), or the
    /// device's error.
    pub result: Result<usize>,
    /// When it was queued, on [`crate::clock`].
    pub submitted_ns: u64,
    /// When its end was seen, on [`crate::clock`].
    pub completed_ns: u64,
}

/// A request in flight.
#[derive(Clone, Copy)]
struct InFlight {
    request: IoRequest,
    submitted_ns: u64,
}

/// A file that requests can name, kept open for as long as they can be in flight.
struct OpenFile {
    file: File,
    is_disk: bool,
    /// Whether the kernel's table has it at the same index.
    is_registered: bool,
}

/// A bounded queue of requests; see the module's text.
pub struct Queue {
    ring: IoUring,
    files: Vec<Option<OpenFile>>,
    /// Whether the kernel has a table of [`MAX_FILES`] files.
    has_table: bool,
    registered_buffers: bool,
    /// Unmapped by `drop`, and only once nothing is in flight.
    buffers: ManuallyDrop<Mapping>,
    buffer_bytes: usize,
    /// Distance between two buffers: `buffer_bytes` rounded up to the alignment.
    stride: usize,
    /// One per slot; `None` while idle.
    requests: Vec<Option<InFlight>>,
    idle: Vec<usize>,
    ended: VecDeque<Completion>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue")
            .field("files", &self.files.iter().flatten().count())
            .field("depth", &self.depth())
            .field("in_flight", &self.in_flight())
            .field("buffer_bytes", &self.buffer_bytes)
            .field("registered_buffers", &self.registered_buffers)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// A queue without files, of `depth` slots with `buffer_bytes` each, aligned to 4,096 bytes.
    ///
    /// # Errors
    /// `Unsupported` where the kernel has no io_uring, `Denied` where it is forbidden (a
    /// container's filter, `kernel.io_uring_disabled`): callers then use plain calls. `Invalid`
    /// for a depth of 0 or above [`MAX_DEPTH`], `NoMemory` if the buffers do not fit.
    pub fn new(depth: u32, buffer_bytes: usize) -> Result<Self> {
        let mut queue = Self::unregistered(depth, buffer_bytes)?;
        queue.register();
        Ok(queue)
    }

    /// As [`Queue::new`], but without registering anything: the kernel gives a file up with the
    /// queue or its process. A registered one it gives up somewhat later, and until then its file
    /// system cannot be unmounted.
    ///
    /// # Errors
    /// As [`Queue::new`].
    pub fn unregistered(depth: u32, buffer_bytes: usize) -> Result<Self> {
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
        Ok(Self {
            ring: set_up_ring(depth).map_err(|source| Error::new(OPERATION, source))?,
            files: Vec::new(),
            has_table: false,
            registered_buffers: false,
            buffers: ManuallyDrop::new(buffers),
            buffer_bytes,
            stride,
            requests: vec![None; slots],
            idle: (0..slots).rev().collect(),
            ended: VecDeque::with_capacity(slots),
        })
    }

    /// Adds a file, of which the queue keeps its own handle; the index that requests name it by.
    /// Its data goes through the page cache or past it as the file was opened.
    ///
    /// # Errors
    /// `Invalid` beyond [`MAX_FILES`]; `Other` without a free descriptor.
    pub fn add_file(&mut self, file: &File) -> Result<usize> {
        const OPERATION: &str = "add a file to an I/O queue";
        let file = file.try_clone().map_err(|source| Error::new(OPERATION, source))?;
        let metadata = file.metadata().map_err(|source| Error::new(OPERATION, source))?;
        let free = self.files.iter().position(Option::is_none);
        let index = free.unwrap_or(self.files.len());
        if index >= MAX_FILES {
            return Err(Error::invalid(OPERATION, "the queue has 64 files"));
        }
        let is_registered = self.has_table && self.update_table(index, file.as_raw_fd());
        let open =
            Some(OpenFile { file, is_disk: metadata.file_type().is_block_device(), is_registered });
        match self.files.get_mut(index) {
            Some(place) => *place = open,
            None => self.files.push(open),
        }
        Ok(index)
    }

    /// Closes the queue's handle of a file; its index is used again for another one.
    ///
    /// # Errors
    /// `Invalid` while a request on it is in flight, or if there is no such file.
    pub fn release_file(&mut self, index: usize) -> Result<()> {
        const OPERATION: &str = "remove a file from an I/O queue";
        let uses = |held: &Option<InFlight>| held.is_some_and(|held| held.request.file == index);
        if self.requests.iter().any(uses) {
            return Err(Error::invalid(OPERATION, "a request on it is in flight"));
        }
        let open = self
            .files
            .get_mut(index)
            .and_then(Option::take)
            .ok_or_else(|| Error::invalid(OPERATION, "the queue has no such file"))?;
        if open.is_registered {
            // Not refused; if it were, the next file in this place would be used unregistered.
            self.update_table(index, -1);
        }
        Ok(())
    }

    /// Puts a descriptor, or -1 for none, into the kernel's table; whether it did.
    fn update_table(&self, index: usize, descriptor: RawFd) -> bool {
        // The index is below `MAX_FILES`, so it fits.
        let updated = self.ring.submitter().register_files_update(index as u32, &[descriptor]);
        updated.is_ok()
    }

    /// The number of slots.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.requests.len()
    }

    /// The size of each slot's buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
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

    /// Queues a request with the buffer of `slot`; it starts with the next [`Queue::enter`].
    ///
    /// # Errors
    /// `Invalid` if the slot is not idle, the file unknown or the buffer too small, and for a
    /// discard of a disk.
    pub fn submit(&mut self, slot: usize, request: IoRequest) -> Result<()> {
        const OPERATION: &str = "queue a request";
        // From the end: `idle_slot` hands out the last one.
        let place = self
            .idle
            .iter()
            .rposition(|idle| *idle == slot)
            .ok_or_else(|| Error::invalid(OPERATION, "the slot is not idle"))?;
        let end = request.start.checked_add(request.bytes);
        if request.operation.uses_buffer() && end.is_none_or(|end| end > self.buffer_bytes) {
            return Err(Error::invalid(OPERATION, "the request is larger than its buffer"));
        }
        let open = self
            .files
            .get(request.file)
            .and_then(Option::as_ref)
            .ok_or_else(|| Error::invalid(OPERATION, "the queue has no such file"))?;
        if open.is_disk && request.operation == IoOperation::Discard {
            return Err(Error::invalid(OPERATION, "the queue discards no disk"));
        }
        let entry = self.entry(open, slot, &request);
        // SAFETY: the entry names this queue's own file and buffer. The buffer outlives the
        // request because `Drop` waits for the end of all requests, or leaks it; the file because
        // `release_file` refuses while the request is in flight.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There are as many entries as slots, so a free slot means a free entry.
        pushed.map_err(|_| Error::invalid(OPERATION, "the submission queue is full"))?;
        self.requests[slot] = Some(InFlight { request, submitted_ns: now_ns() });
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

    /// As [`Queue::enter`], but waits for a time at most. What has not ended then goes on.
    ///
    /// # Errors
    /// As [`Queue::enter`]; `Invalid` before Linux 5.11, with nothing handed over.
    pub fn enter_within(&mut self, wait_for: usize, limit: Duration) -> Result<()> {
        let waiting = self.in_flight() - self.ended.len();
        let wanted = wait_for.saturating_sub(self.ended.len()).min(waiting);
        let limit = types::Timespec::from(limit);
        let arguments = types::SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(wanted, &arguments) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {}
            Err(source) => return Err(Error::new("wait for I/O", source)),
        }
        self.reap();
        Ok(())
    }

    /// The next ended request, in the order seen; `None` if no other has ended. Never waits.
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
            let Some(&Some(InFlight { request, submitted_ns })) = self.requests.get(slot) else {
                continue;
            };
            let result = usize::try_from(entry.result()).map_err(|_| {
                let source = io::Error::from_raw_os_error(-entry.result());
                Error::new(request.operation.name(), source)
            });
            self.ended.push_back(Completion { slot, request, result, submitted_ns, completed_ns });
        }
    }

    /// The kernel's form of a request on `open` that was checked.
    fn entry(&self, open: &OpenFile, slot: usize, request: &IoRequest) -> squeue::Entry {
        let (file, flags) = if open.is_registered {
            // The index is below `MAX_FILES`, so it fits.
            (request.file as i32, squeue::Flags::FIXED_FILE)
        } else {
            (open.file.as_raw_fd(), squeue::Flags::empty())
        };
        let file = types::Fd(file);
        let offset = request.offset;
        let entry = match request.operation {
            IoOperation::Read | IoOperation::Write => self.transfer_entry(file, slot, request),
            IoOperation::Sync => {
                opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()
            }
            IoOperation::Discard => opcode::Fallocate::new(file, request.bytes as u64)
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
        };
        entry.flags(flags).user_data(slot as u64)
    }

    fn transfer_entry(&self, file: types::Fd, slot: usize, request: &IoRequest) -> squeue::Entry {
        // SAFETY: the slot exists and the request fits its buffer (`submit` checked both), so the
        // address is inside `buffers`.
        let data = unsafe {
            let buffers = self.buffers.pointer().as_ptr();
            buffers.add(slot * self.stride + request.start)
        };
        // The depth is at most 4,096 and a buffer below 4 GiB, so both fit.
        let (index, bytes) = (slot as u16, request.bytes as u32);
        let offset = request.offset;
        let is_read = request.operation == IoOperation::Read;
        match (is_read, self.registered_buffers) {
            (true, true) => opcode::ReadFixed::new(file, data, bytes, index).offset(offset).build(),
            (true, false) => opcode::Read::new(file, data, bytes).offset(offset).build(),
            (false, true) => {
                opcode::WriteFixed::new(file, data, bytes, index).offset(offset).build()
            }
            (false, false) => opcode::Write::new(file, data, bytes).offset(offset).build(),
        }
    }

    /// Registers buffers and an empty table of files as far as the kernel permits (sparse tables
    /// since 5.5). Without them everything works at a higher price.
    fn register(&mut self) {
        let submitter = self.ring.submitter();
        self.has_table = submitter.register_files(&[-1; MAX_FILES]).is_ok();
        let parts: Vec<libc::iovec> = (0..self.requests.len())
            .map(|slot| libc::iovec {
                iov_base: self.buffers.pointer().as_ptr().wrapping_add(slot * self.stride).cast(),
                iov_len: self.buffer_bytes,
            })
            .collect();
        // SAFETY: every part is inside `buffers`, which lives until the ring is closed (see
        // `Drop`).
        self.registered_buffers = unsafe { submitter.register_buffers(&parts) }.is_ok();
    }
}

impl Drop for Queue {
    /// Waits for everything that was queued.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            while self.complete().is_some() {}
            if self.in_flight() > 0 && self.enter(1).is_err() {
                // The kernel may still write to the buffers, so they stay mapped.
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
            Err(error) if error.kind == ErrorKind::Unsupported => {}
            other => return other,
        }
    }
    Mapping::anonymous(bytes, Pages::Base)
}

/// A ring without forced interruptions of the submitting thread where the kernel can (5.19).
fn set_up_ring(depth: u32) -> io::Result<IoUring> {
    match IoUring::builder().dontfork().setup_coop_taskrun().build(depth) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().build(depth)
        }
        other => other,
    }
}
