//! The contract of an engine: what decides, for each request to an exported volume, which device
//! is read and written.
//!
//! An engine is a state machine. Inputs go in ([`Input`]: requests, completions, ticks), outputs
//! come out ([`Output`]: operations on devices, answers, events). It does no I/O, reads no clock
//! and starts no thread, so that a simulation and a live export drive the same code. A driver does
//! the operations, in any order and as many at a time as it likes, and reports how each ended.
//!
//! [`Engine`] says what both sides guarantee; its example is a whole engine.

use std::fmt;

/// A device that an engine may operate on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// The volume itself: what is written here is the truth.
    Backing,
    /// The medium of the cache. It may be slow, full, gone or wrong at any time.
    Cache,
    /// A small file on a disk of the host that keeps what was flushed.
    Journal,
}

impl Device {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Backing, Self::Cache, Self::Journal];
}

/// Requests that a driver has open at a time, at most: an engine allocates for so many before the
/// first one, and nothing later. More wait at the driver.
pub const REQUESTS_MAX: usize = 256;

/// Names a request. The driver gives it; it is unused again once the request was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names an operation. The engine gives it; it is unused again once the operation has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// Names a buffer of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferRange {
    /// The buffer.
    pub buffer: BufferId,
    /// Its first byte in the buffer.
    pub start: u32,
    /// Its bytes.
    pub len: u32,
}

impl BufferRange {
    /// The first `len` bytes of a buffer.
    #[must_use]
    pub const fn first(buffer: BufferId, len: u32) -> Self {
        Self { buffer, start: 0, len }
    }

    /// `len` bytes of this range, from its byte `from` on.
    ///
    /// # Panics
    /// If they are not in the range.
    #[must_use]
    pub fn part(self, from: u32, len: u32) -> Self {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len), "a part of its range");
        Self { start: self.start + from, len, ..self }
    }
}

/// The memory that data are in: owned by the driver, which also does the I/O, and made before the
/// first request.
pub trait Buffers {
    /// Takes a buffer of at least `bytes` for the engine; `None` if all of that size are taken.
    fn take(&mut self, bytes: u32) -> Option<BufferId>;

    /// Gives a buffer that was taken back.
    fn give_back(&mut self, buffer: BufferId);

    /// The bytes of a range.
    fn bytes(&self, range: BufferRange) -> &[u8];

    /// The bytes of a range, to be changed.
    fn bytes_mut(&mut self, range: BufferRange) -> &mut [u8];
}

/// What a client asks of the exported volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Fill `data` with the bytes from `offset` on.
    Read {
        /// The first byte of the volume.
        offset: u64,
        /// Where the bytes go.
        data: BufferRange,
    },
    /// Store the bytes of `data` from `offset` on.
    Write {
        /// The first byte of the volume.
        offset: u64,
        /// The bytes.
        data: BufferRange,
    },
    /// Make every write that was completed before durable.
    Flush,
    /// Give up the content of a range: what is read of it until it is written again is not defined.
    Discard {
        /// The first byte of the volume.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Store zeros in a range. A hole that is punched is this, and no [`Request::Discard`].
    WriteZeroes {
        /// The first byte of the volume.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A hint that the range will be read. It may be ignored, and is completed in any case.
    Prefetch {
        /// The first byte of the volume.
        offset: u64,
        /// How many.
        len: u64,
    },
}

/// What a driver is to do with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read from `offset` into `data`.
    Read {
        /// The first byte of the device.
        offset: u64,
        /// Where the bytes go.
        data: BufferRange,
    },
    /// Write `data` at `offset`.
    Write {
        /// The first byte of the device.
        offset: u64,
        /// The bytes.
        data: BufferRange,
    },
    /// Make every write that had completed when this was given out durable.
    Flush,
    /// Give up the content of a range; it may be read as anything.
    Discard {
        /// The first byte of the device.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Store zeros in a range, however that is quickest: all of it is read as zeros afterwards.
    WriteZeroes {
        /// The first byte of the device.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Of the journal alone: see to it that no later attach finds this journal or its key, for
    /// good. One of the two is removed, wherever that still works.
    Revoke,
}

/// An error number of the system, passed on unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorNumber(pub i32);

impl ErrorNumber {
    /// An input or output error.
    pub const EIO: Self = Self(5);
}

impl fmt::Display for ErrorNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

impl std::error::Error for ErrorNumber {}

/// How a request or an operation ended. Success is all bytes; a short transfer is an error.
pub type IoResult = Result<(), ErrorNumber>;

/// What happens to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A client asks for something.
    Request {
        /// Its name.
        id: RequestId,
        /// What is asked.
        request: Request,
    },
    /// An operation has ended.
    Completion {
        /// Its name.
        id: OperationId,
        /// How.
        result: IoResult,
    },
    /// Time has passed: nanoseconds of a clock that never goes back. A driver ticks at least once
    /// a second, also when nothing else happens.
    Tick {
        /// The time now.
        now_ns: u64,
    },
    /// The medium of the cache is there again, or another one is in its place. Operations that are
    /// given out from now on go to what is there now; those of before never do.
    CacheReturned,
    /// The volume is about to be detached: no further request comes. The engine answers with
    /// [`Event::Detached`] when nothing is left to do. If that is not proved, operations of a
    /// cache's medium that does not answer may still be under way.
    Detach,
}

/// What an engine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Do this and report how it ended.
    Operate {
        /// The name to report with.
        id: OperationId,
        /// The device.
        device: Device,
        /// What to do.
        operation: Operation,
    },
    /// A request has ended.
    Complete {
        /// Its name.
        id: RequestId,
        /// How.
        result: IoResult,
    },
    /// Something to be logged or shown.
    Event(Event),
}

/// What a person may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The cache was recovered.
    Recovered {
        /// Frames that may be served.
        frames: u64,
        /// Frames on the medium that may not: they are old, or cannot be proved fresh.
        dropped: u64,
    },
    /// The cache serves nothing until its medium returns.
    CacheOff {
        /// Why.
        why: CacheOff,
    },
    /// The cache serves again.
    CacheOn,
    /// A frame that should have been fresh differs from the volume: it was written elsewhere.
    /// Nothing of the medium is used.
    VolumeChanged {
        /// The first byte of the frame.
        offset: u64,
    },
    /// The medium was written by an attach that the journal does not know: the journal is older
    /// than it was. Nothing of the medium is used.
    JournalRolledBack,
    /// The volume may be closed.
    Detached {
        /// Whether the cache is proved fresh, and so is warm at the next attach.
        is_proved: bool,
    },
}

/// Why a cache stopped serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOff {
    /// Its medium failed or stalled several times within a minute.
    Errors,
    /// The medium is not that of this cache, or its content was replaced. It is not written.
    AnotherMedium,
    /// The journal cannot be written, so that nothing cached could be proved fresh later.
    Journal,
}

/// A state machine between clients and devices.
///
/// The driver guarantees:
/// - the first input is a tick;
/// - at most [`REQUESTS_MAX`] requests are open: given to the engine and not completed;
/// - offsets and lengths of requests are within the volume and multiples of its block; it cuts what
///   reaches past the end, and turns a write that must be durable at once into a write and a flush;
/// - each operation is done at most once and reported exactly once, in any order; an operation that
///   was given out may take effect at any time until it is reported, also if it fails;
/// - the buffer of a request stays as it is until the request is completed, and the buffer of an
///   operation until the operation is; meanwhile it alone touches a buffer that an operation reads
///   into, while one that is written from may be read by both;
/// - two writes that overlap are not requested at the same time;
/// - where a medium that grows was never written, a read gives zeros and no error;
/// - a clock that goes forward, and no input from within another.
///
/// An implementation must:
/// - complete each request exactly once, also if it fails;
/// - change no buffer that an operation in flight names, and read none that one reads into;
/// - return, for a read, bytes that the volume held at some moment between the request and its
///   completion;
/// - complete a write only after the backing device completed it, and a flush only after the
///   backing device flushed every write completed before it;
/// - pass errors of the backing device on unchanged, and keep those of other devices to itself;
/// - write to a cache's medium only if it is the one that it wrote before, or the one that the
///   driver allowed it to format;
/// - use bounded memory, allocated before its first request, as long as no more than
///   [`REQUESTS_MAX`] are open.
///
/// The simplest engine passes everything on:
///
/// ```
/// use model::engine::{Buffers, Device, Engine, Event, Input, Operation, OperationId};
/// use model::engine::{Output, Request, RequestId};
///
/// struct PassThrough;
///
/// impl Engine for PassThrough {
///     fn handle(&mut self, input: Input, _: &mut dyn Buffers, outputs: &mut Vec<Output>) {
///         outputs.push(match input {
///             Input::Request { id, request } => {
///                 let operation = match request {
///                     Request::Read { offset, data } => Operation::Read { offset, data },
///                     Request::Write { offset, data } => Operation::Write { offset, data },
///                     Request::Flush => Operation::Flush,
///                     Request::Discard { offset, len } => Operation::Discard { offset, len },
///                     Request::WriteZeroes { offset, len } => {
///                         Operation::WriteZeroes { offset, len }
///                     }
///                     Request::Prefetch { .. } => {
///                         return outputs.push(Output::Complete { id, result: Ok(()) });
///                     }
///                 };
///                 Output::Operate { id: OperationId(id.0), device: Device::Backing, operation }
///             }
///             Input::Completion { id, result } => {
///                 Output::Complete { id: RequestId(id.0), result }
///             }
///             Input::Detach => Output::Event(Event::Detached { is_proved: true }),
///             Input::Tick { .. } | Input::CacheReturned => return,
///         });
///     }
/// }
/// ```
pub trait Engine {
    /// Takes an input and adds what is to be done to `outputs`, in an order that the driver keeps
    /// when it starts operations.
    fn handle(&mut self, input: Input, buffers: &mut dyn Buffers, outputs: &mut Vec<Output>);
}

/// A range of the volume that identifies its content, such as a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its first byte.
    pub offset: u64,
    /// What it holds now.
    pub bytes: Vec<u8>,
}

/// When the witnesses of a volume show that it was written elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeProof {
    /// Always: whatever is made durable elsewhere changes one of them. They are followed, and the
    /// cache stays warm after a crash too.
    Always,
    /// Only if they were read after the last write: the cache stays warm after a proved detach
    /// alone.
    AfterDetach,
    /// Never: each start is cold.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_within_its_range() {
        let whole = BufferRange { buffer: BufferId(3), start: 512, len: 1024 };
        let part = whole.part(256, 768);
        assert_eq!((part.buffer, part.start, part.len), (BufferId(3), 768, 768));
        assert!(std::panic::catch_unwind(|| whole.part(257, 768)).is_err());
        assert!(std::panic::catch_unwind(|| whole.part(u32::MAX, 2)).is_err());
    }
}
