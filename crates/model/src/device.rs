//! The contract of everything that is addressed by offset: a file, a whole
//! disk, a block of memory, and the devices that wrap a device to count, delay
//! or fail.
//!
//! Only the contract is here; implementations live where the system calls do.

use std::fmt;

/// Something addressed by offset that reads and writes.
///
/// The caller guarantees: offsets and lengths fit the device's alignment where
/// it has one. An implementation must: return the bytes moved, which is less
/// than asked only at the end of the device; leave the rest of the buffer
/// alone; report a failure as an error, never as a short count.
pub trait BlockDevice {
    /// The device's size in bytes.
    fn len_bytes(&self) -> Result<u64, DeviceError>;

    /// Reads at `offset` bytes; 0 at or after the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError>;

    /// Writes at `offset` bytes.
    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError>;

    /// Returns when everything written is on stable storage.
    fn flush(&self) -> Result<(), DeviceError>;
}

/// Why a device could not do what it was asked.
#[derive(Debug)]
pub struct DeviceError {
    /// What was tried: `read`, `write`, `flush`, `measure the size of`.
    pub operation: &'static str,
    /// Where, in bytes, if at one place.
    pub offset: Option<u64>,
    /// The cause.
    pub source: std::io::Error,
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
