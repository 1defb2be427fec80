//! The contract of what performs requests, which the ring, the threads and the plain calls share,
//! and what the engines on [`BlockDevice`] have in common.

use model::device::BlockDevice;
use sys::clock::now_ns;
use sys::uring::{IoOperation, IoRequest, Queue};

/// A bounded number of slots, each with a buffer, and the requests in flight on them.
///
/// Devices are named by an index, as the engine was given them.
///
/// The caller guarantees:
/// - offsets, lengths and parts of buffers fit the alignment of the device;
/// - a discard on a ring names a regular file: the ring refuses disks (see
///   [`IoOperation::Discard`]), the other engines discard them.
///
/// An implementation must:
/// - own the buffer of a slot while its request is in flight, also when it is dropped: it waits for
///   the end of what it has started, and leaves no thread behind;
/// - report each submitted request exactly once, in any order; a request may be short (the caller
///   continues it), and ends with 0 bytes only at the end of the device;
/// - report a failed request in its completion, and an `Err` of its own methods only for wrong use
///   or if the engine as a whole is broken.
pub trait Engine {
    /// The number of slots.
    fn depth(&self) -> usize;

    /// The size of each buffer.
    fn buffer_bytes(&self) -> usize;

    /// Requests whose completion has not been returned.
    fn in_flight(&self) -> usize;

    /// A slot without a request, if there is one.
    fn idle_slot(&self) -> Option<usize>;

    /// The buffer of an idle slot; `None` while it is in flight.
    fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]>;

    /// Gives a request to an idle slot.
    ///
    /// # Errors
    /// `Invalid` for a slot, device or part of a buffer that does not exist or is in use.
    fn submit(&mut self, slot: usize, request: IoRequest) -> sys::Result<()>;

    /// Starts what was submitted, and waits until at least one request has ended.
    ///
    /// # Errors
    /// The engine is broken, and the state of its requests unknown.
    fn wait(&mut self) -> sys::Result<()>;

    /// The next request that has ended; its slot is idle again. Never waits.
    fn complete(&mut self) -> Option<Completion>;
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion {
    /// Its slot.
    pub slot: usize,
    /// The request.
    pub request: IoRequest,
    /// Bytes transferred, or the device's error.
    pub result: sys::Result<usize>,
    /// When its end was seen, on [`sys::clock`].
    pub completed_ns: u64,
}

impl Engine for Queue {
    fn depth(&self) -> usize {
        Queue::depth(self)
    }

    fn buffer_bytes(&self) -> usize {
        Queue::buffer_bytes(self)
    }

    fn in_flight(&self) -> usize {
        Queue::in_flight(self)
    }

    fn idle_slot(&self) -> Option<usize> {
        Queue::idle_slot(self)
    }

    fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        Queue::buffer_mut(self, slot)
    }

    fn submit(&mut self, slot: usize, request: IoRequest) -> sys::Result<()> {
        Queue::submit(self, slot, request)
    }

    fn wait(&mut self) -> sys::Result<()> {
        self.enter(1)
    }

    fn complete(&mut self) -> Option<Completion> {
        let ended = Queue::complete(self)?;
        Some(Completion {
            slot: ended.slot,
            request: ended.request,
            result: ended.result,
            completed_ns: ended.completed_ns,
        })
    }
}

/// Performs a request, which fits the engine, on a device.
pub(crate) fn perform<D: BlockDevice>(
    slot: usize,
    request: IoRequest,
    device: &D,
    buffer: &mut [u8],
) -> Completion {
    let offset = request.offset;
    let data = if request.operation.uses_buffer() {
        &mut buffer[request.start..][..request.bytes]
    } else {
        &mut []
    };
    let answer = match request.operation {
        IoOperation::Read => device.read_at(data, offset),
        IoOperation::Write => device.write_at(data, offset),
        IoOperation::Sync => device.flush().map(|()| 0),
        IoOperation::Discard => {
            let end = offset.saturating_add(request.bytes as u64);
            device.discard(offset..end).map(|()| 0)
        }
    };
    Completion { slot, request, result: answer.map_err(sys::Error::from), completed_ns: now_ns() }
}

/// Refuses a request that does not fit the engine.
pub(crate) fn check(request: &IoRequest, devices: usize, buffer_bytes: usize) -> sys::Result<()> {
    let end = request.start.checked_add(request.bytes);
    if request.operation.uses_buffer() && end.is_none_or(|end| end > buffer_bytes) {
        return Err(refused("the request is larger than its buffer"));
    }
    if request.file >= devices {
        return Err(refused("the engine has no such device"));
    }
    Ok(())
}

/// A request that makes no sense.
pub(crate) fn refused(reason: &'static str) -> sys::Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, reason);
    sys::Error::new("queue a request", source)
}
