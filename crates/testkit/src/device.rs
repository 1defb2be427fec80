//! Devices for tests: one in memory, and a wrapper that fails, cuts or delays chosen
//! operations of any device.
//!
//! Operations are counted from 0 across reads, writes and flushes, so that a test can
//! walk a fault through every place of a procedure.

use model::device::{BlockDevice, DeviceError};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The error number that Linux gives for a failed device.
const EIO: i32 = 5;

/// A device of fixed size in memory, zeroed at first.
#[derive(Debug)]
pub struct MemoryDevice {
    bytes: Mutex<Vec<u8>>,
}

impl MemoryDevice {
    /// A device of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: Mutex::new(vec![0; bytes]),
        }
    }

    /// All that it holds.
    #[must_use]
    pub fn contents(&self) -> Vec<u8> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        // A test that panicked elsewhere leaves plain bytes, never half a state.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of `[offset, offset + wanted)` that lies before `end`.
fn within(end: usize, offset: u64, wanted: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(end);
    start..start.saturating_add(wanted).min(end)
}

impl BlockDevice for MemoryDevice {
    fn len_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.lock().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        let bytes = self.lock();
        let source = &bytes[within(bytes.len(), offset, buffer.len())];
        buffer[..source.len()].copy_from_slice(source);
        Ok(source.len())
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        let mut bytes = self.lock();
        let range = within(bytes.len(), offset, buffer.len());
        let count = range.len();
        bytes[range].copy_from_slice(&buffer[..count]);
        Ok(count)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// What happens to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error number and does nothing.
    Fail(i32),
    /// Only so many bytes are moved; a flush is not affected.
    Short(usize),
    /// It is done after a while.
    Delay(Duration),
}

/// A device that misbehaves at chosen operations and is its inner device otherwise.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    faults: BTreeMap<u64, Fault>,
    operations: AtomicU64,
}

impl<D: BlockDevice> Faulty<D> {
    /// Without faults yet.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            faults: BTreeMap::new(),
            operations: AtomicU64::new(0),
        }
    }

    /// Lets the operation with this number, counted from 0, have a fault.
    #[must_use]
    pub fn with(mut self, operation: u64, fault: Fault) -> Self {
        self.faults.insert(operation, fault);
        self
    }

    /// Lets the operation with this number fail as a broken disk does.
    #[must_use]
    pub fn failing(self, operation: u64) -> Self {
        self.with(operation, Fault::Fail(EIO))
    }

    /// How many operations there have been.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// The inner device.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Counts an operation; how many of its bytes are to be moved.
    fn meet(
        &self,
        operation: &'static str,
        offset: Option<u64>,
        bytes: usize,
    ) -> Result<usize, DeviceError> {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        match self.faults.get(&number) {
            None => Ok(bytes),
            Some(Fault::Fail(error)) => {
                let source = io::Error::from_raw_os_error(*error);
                Err(DeviceError {
                    operation,
                    offset,
                    source,
                })
            }
            Some(Fault::Short(limit)) => Ok(bytes.min(*limit)),
            Some(Fault::Delay(time)) => {
                std::thread::sleep(*time);
                Ok(bytes)
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for Faulty<D> {
    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.inner.len_bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        let bytes = self.meet("read", Some(offset), buffer.len())?;
        self.inner.read_at(&mut buffer[..bytes], offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        let bytes = self.meet("write", Some(offset), buffer.len())?;
        self.inner.write_at(&buffer[..bytes], offset)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.meet("flush", None, 0)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_where_it_ends() {
        let device = MemoryDevice::new(10);
        assert_eq!(device.write_at(b"abcdef", 7).unwrap(), 3);
        let mut buffer = [9u8; 5];
        assert_eq!(device.read_at(&mut buffer, 6).unwrap(), 4);
        assert_eq!(
            &buffer, b"\0abc\x09",
            "the rest of the buffer is left alone"
        );
        assert_eq!(device.read_at(&mut buffer, u64::MAX).unwrap(), 0);
        assert_eq!(device.contents().len(), 10);
    }

    #[test]
    fn faults_come_where_they_are_planned() {
        let device = Faulty::new(MemoryDevice::new(100))
            .failing(1)
            .with(2, Fault::Short(3))
            .with(3, Fault::Fail(28));
        assert_eq!(device.write_at(&[1; 8], 0).unwrap(), 8);
        let error = device.read_at(&mut [0; 8], 16).unwrap_err();
        assert_eq!(
            (error.source.raw_os_error(), error.offset),
            (Some(EIO), Some(16))
        );
        assert_eq!(device.read_at(&mut [0; 8], 0).unwrap(), 3);
        assert_eq!(device.flush().unwrap_err().source.raw_os_error(), Some(28));
        assert_eq!(device.read_at(&mut [0; 8], 0).unwrap(), 8);
        assert_eq!(device.operations(), 5);
    }

    #[test]
    fn a_failed_write_changes_nothing() {
        let device = Faulty::new(MemoryDevice::new(8)).failing(0);
        device.write_at(&[1; 8], 0).unwrap_err();
        assert_eq!(device.inner().contents(), [0; 8]);
    }
}
