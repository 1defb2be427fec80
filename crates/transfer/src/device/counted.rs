//! A device that counts the requests to its inner device, with their bytes, failures and time, by
//! kind of request. The counters can be read while requests are in flight.

use model::device::{Alignment, BlockDevice, DeviceError};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use sys::clock::now_ns;

type Result<T> = std::result::Result<T, DeviceError>;

/// A device that counts; see the module's text. The counters only grow.
#[derive(Debug)]
pub struct Counted<D> {
    inner: D,
    reads: Counter,
    writes: Counter,
    discards: Counter,
    flushes: Counter,
}

/// What a device was asked so far, by kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Discards; their bytes are the lengths of the ranges.
    pub discards: Count,
    /// Flushes, without bytes.
    pub flushes: Count,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests that have ended, failed ones included.
    pub requests: u64,
    /// Of these, those that failed.
    pub failures: u64,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Time inside of all of them together, in nanoseconds; overlapping ones each count.
    pub time_ns: u64,
}

#[derive(Debug, Default)]
struct Counter {
    requests: AtomicU64,
    failures: AtomicU64,
    bytes: AtomicU64,
    time_ns: AtomicU64,
}

impl Counter {
    /// Performs a request, whose bytes `bytes_of` tells from its answer, and counts it.
    fn count<T>(
        &self,
        request: impl FnOnce() -> Result<T>,
        bytes_of: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        let start_ns = now_ns();
        let answer = request();
        let time_ns = now_ns() - start_ns;
        // The sums are independent of each other: no order between them is promised.
        let add = |sum: &AtomicU64, amount| sum.fetch_add(amount, Ordering::Relaxed);
        add(&self.requests, 1);
        add(&self.time_ns, time_ns);
        match &answer {
            Ok(moved) => add(&self.bytes, bytes_of(moved)),
            Err(_) => add(&self.failures, 1),
        };
        answer
    }

    fn read(&self) -> Count {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Count {
            requests: read(&self.requests),
            failures: read(&self.failures),
            bytes: read(&self.bytes),
            time_ns: read(&self.time_ns),
        }
    }
}

impl<D: BlockDevice> Counted<D> {
    /// A device over `inner`, nothing counted yet.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            reads: Counter::default(),
            writes: Counter::default(),
            discards: Counter::default(),
            flushes: Counter::default(),
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts {
            reads: self.reads.read(),
            writes: self.writes.read(),
            discards: self.discards.read(),
            flushes: self.flushes.read(),
        }
    }

    /// The inner device.
    pub fn inner(&self) -> &D {
        &self.inner
    }
}

impl<D: BlockDevice> BlockDevice for Counted<D> {
    fn size_bytes(&self) -> Result<u64> {
        self.inner.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.reads.count(|| self.inner.read_at(buffer, offset), |bytes| *bytes as u64)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize> {
        self.writes.count(|| self.inner.write_at(buffer, offset), |bytes| *bytes as u64)
    }

    fn discard(&self, range: Range<u64>) -> Result<()> {
        let bytes = range.end.saturating_sub(range.start);
        self.discards.count(|| self.inner.discard(range), |()| bytes)
    }

    fn flush(&self) -> Result<()> {
        self.flushes.count(|| self.inner.flush(), |()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{Fault, Faulty, MemoryDevice};

    #[test]
    fn requests_bytes_time_and_failures_are_counted_by_kind() {
        let slow = Fault::Delay(std::time::Duration::from_millis(5));
        let faulty = Faulty::new(MemoryDevice::new(100)).with(0, slow).failing(1);
        let device = Counted::new(faulty);
        assert_eq!(device.read_at(&mut [0; 64], 60).unwrap(), 40);
        device.read_at(&mut [0; 64], 0).unwrap_err();
        assert_eq!(device.write_at(&[1; 10], 0).unwrap(), 10);
        device.discard(0..5).unwrap();
        device.flush().unwrap();
        let counts = device.counts();
        let of = |count: Count| (count.requests, count.failures, count.bytes);
        assert_eq!(of(counts.reads), (2, 1, 40));
        assert!(counts.reads.time_ns >= 5_000_000);
        assert_eq!(of(counts.writes), (1, 0, 10));
        assert_eq!(of(counts.discards), (1, 0, 5));
        assert_eq!(of(counts.flushes), (1, 0, 0));
        assert_eq!(device.inner().inner().contents()[..10], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }
}
