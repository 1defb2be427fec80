//! The contract of a block device: anything that is read and written by offset, such as a file, a
//! whole disk, a block of memory, or a device that wraps another to count, slow or fail requests.
//!
//! Only the contract is here; implementations are where the system calls are.

use std::fmt;
use std::io;
use std::ops::Range;

/// Reads, writes, discards and flushes by offset.
///
/// Synchronous devices and queues of requests keep the same contract.
///
/// The caller guarantees:
/// - offsets, lengths and buffer addresses are multiples of [`BlockDevice::alignment`], except the
///   last length before the end of the device.
///
/// An implementation must:
/// - transfer all bytes, or fewer only where the device ends; it continues a short transfer itself;
/// - leave the rest of a read buffer unchanged;
/// - report a failure as an error with its offset, never as a short count;
/// - keep no order between requests in flight at the same time; a flush covers the writes that had
///   completed when it was started, no others.
pub trait BlockDevice {
    /// The device's size in bytes.
    fn size_bytes(&self) -> Result<u64, DeviceError>;

    /// What requests must be aligned to.
    fn alignment(&self) -> Alignment;

    /// Reads at `offset` bytes; 0 at or after the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError>;

    /// Writes at `offset` bytes.
    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError>;

    /// Gives up the content of a range; what a read of it returns is undefined until it is written.
    /// `Unsupported` (the source's kind) if the device cannot.
    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError>;

    /// Returns when everything written is on stable storage.
    fn flush(&self) -> Result<(), DeviceError>;
}

/// A reference to a device is a device.
impl<D: BlockDevice + ?Sized> BlockDevice for std::sync::Arc<D> {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        (**self).size_bytes()
    }

    fn alignment(&self) -> Alignment {
        (**self).alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        (**self).read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        (**self).write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        (**self).discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        (**self).flush()
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for &D {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        (**self).size_bytes()
    }

    fn alignment(&self) -> Alignment {
        (**self).alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        (**self).read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        (**self).write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        (**self).discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        (**self).flush()
    }
}

/// What requests to a device must be aligned to, in bytes; 1 where anything goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Offsets and lengths of reads.
    pub read: u32,
    /// Offsets and lengths of writes and discards.
    pub write: u32,
    /// Buffer addresses.
    pub memory: u32,
}

impl Alignment {
    /// Any offset, length and buffer.
    pub const NONE: Self = Self::all(1);

    /// The same for reads, writes and buffers.
    pub const fn all(bytes: u32) -> Self {
        Self { read: bytes, write: bytes, memory: bytes }
    }
}

/// Why a device could not do what it was asked.
#[derive(Debug)]
pub struct DeviceError {
    /// What was tried: `read`, `write`, `discard`, `flush`, `measure the size of`.
    pub operation: &'static str,
    /// Where, in bytes, if at one place.
    pub offset: Option<u64>,
    /// The cause.
    pub source: io::Error,
}

impl DeviceError {
    /// A failure of `operation` at `offset`.
    pub fn new(operation: &'static str, offset: Option<u64>, source: io::Error) -> Self {
        Self { operation, offset, source }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "cannot {} at byte {offset}", self.operation),
            None => write!(f, "cannot {}", self.operation),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
