//! Devices for tests: one in memory, and a wrapper that fails, cuts or delays requests of any
//! device, either chosen ones or those that a seed picks.
//!
//! Requests are counted from 0 across reads, writes, discards and flushes, so that a test can try a
//! fault at every step of a procedure.

use crate::Random;
use model::device::{Alignment, BlockDevice, DeviceError};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The error number that Linux gives for a failed device.
const EIO: i32 = 5;

/// A device of fixed size in memory, zeroed at first. A discard zeroes its range.
#[derive(Debug)]
pub struct MemoryDevice {
    bytes: Mutex<Vec<u8>>,
}

impl MemoryDevice {
    /// A device of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { bytes: Mutex::new(vec![0; bytes]) }
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
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.lock().len() as u64)
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
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

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        let mut bytes = self.lock();
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let range = within(bytes.len(), range.start, length);
        bytes[range].fill(0);
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error number and does nothing.
    Fail(i32),
    /// At most this many bytes are moved; flushes and discards are not affected.
    Short(usize),
    /// It is done after this time.
    Delay(Duration),
}

/// A device that misbehaves at chosen requests and is its inner device otherwise.
///
/// With faults from a seed, the same seed gives the same faults: a failing seed is a reproduction.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    faults: BTreeMap<u64, Fault>,
    seeded: Option<Seeded>,
    requests: AtomicU64,
}

/// Faults drawn from a seed.
#[derive(Clone, Copy, Debug)]
struct Seeded {
    seed: u64,
    /// One request in this many has a fault.
    one_in: u64,
}

impl<D: BlockDevice> Faulty<D> {
    /// A device without faults yet.
    pub fn new(inner: D) -> Self {
        Self { inner, faults: BTreeMap::new(), seeded: None, requests: AtomicU64::new(0) }
    }

    /// Gives the request with this number, counted from 0, a fault.
    #[must_use]
    pub fn with(mut self, request: u64, fault: Fault) -> Self {
        self.faults.insert(request, fault);
        self
    }

    /// Makes the request with this number fail as a broken disk does.
    #[must_use]
    pub fn failing(self, request: u64) -> Self {
        self.with(request, Fault::Fail(EIO))
    }

    /// Gives one request in `one_in` a failure or a cut, drawn from `seed` and the request's
    /// number.
    #[must_use]
    pub fn seeded(mut self, seed: u64, one_in: u64) -> Self {
        self.seeded = Some(Seeded { seed, one_in });
        self
    }

    /// How many requests there have been.
    pub fn operations(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The inner device.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Counts a request; returns how many of its bytes are to be moved.
    fn count_request(
        &self,
        operation: &'static str,
        offset: Option<u64>,
        bytes: usize,
    ) -> Result<usize, DeviceError> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let drawn = || self.seeded.and_then(|seeded| seeded.fault(number, bytes));
        match self.faults.get(&number).cloned().or_else(drawn) {
            None => Ok(bytes),
            Some(Fault::Fail(error)) => {
                let source = io::Error::from_raw_os_error(error);
                Err(DeviceError::new(operation, offset, source))
            }
            Some(Fault::Short(limit)) => Ok(bytes.min(limit)),
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                Ok(bytes)
            }
        }
    }
}

impl Seeded {
    fn fault(self, request: u64, bytes: usize) -> Option<Fault> {
        let mut random = Random(self.seed ^ request.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if random.below(self.one_in.max(1)) > 0 {
            return None;
        }
        Some(match random.below(2) {
            0 => Fault::Fail(EIO),
            // One byte at least: none would mean the end of the device.
            _ => Fault::Short(1 + random.below(bytes.max(1) as u64) as usize),
        })
    }
}

impl<D: BlockDevice> BlockDevice for Faulty<D> {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        self.inner.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        let bytes = self.count_request("read", Some(offset), buffer.len())?;
        self.inner.read_at(&mut buffer[..bytes], offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        let bytes = self.count_request("write", Some(offset), buffer.len())?;
        self.inner.write_at(&buffer[..bytes], offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.count_request("discard", Some(range.start), 0)?;
        self.inner.discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.count_request("flush", None, 0)?;
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
        assert_eq!(&buffer, b"\0abc\x09", "the rest of the buffer is left alone");
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
        assert_eq!((error.source.raw_os_error(), error.offset), (Some(EIO), Some(16)));
        assert_eq!(device.read_at(&mut [0; 8], 0).unwrap(), 3);
        assert_eq!(device.flush().unwrap_err().source.raw_os_error(), Some(28));
        assert_eq!(device.read_at(&mut [0; 8], 0).unwrap(), 8);
        assert_eq!(device.operations(), 5);
    }

    #[test]
    fn a_seed_gives_the_same_faults_again() {
        let run = |seed| {
            let device = Faulty::new(MemoryDevice::new(100)).seeded(seed, 3);
            let answers = (0..100).map(|_| device.read_at(&mut [0; 100], 0).ok());
            answers.collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let count =
            |wanted: fn(&Option<usize>) -> bool| run(7).iter().filter(|a| wanted(a)).count();
        let whole = count(|answer| *answer == Some(100));
        let (failed, short) = (count(Option::is_none), 100 - whole);
        assert!((40..90).contains(&whole) && failed > 5 && short > failed);
    }

    #[test]
    fn a_failed_write_changes_nothing() {
        let device = Faulty::new(MemoryDevice::new(8)).failing(0);
        device.write_at(&[1; 8], 0).unwrap_err();
        assert_eq!(device.inner().contents(), [0; 8]);
    }
}
