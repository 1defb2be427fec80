//! A device that keeps its inner device below a rate of bytes and of requests.
//!
//! Each request reserves the time that it may take at the limits, behind the requests before it,
//! and waits for the start of its reservation. Time without requests is not saved up, so there is
//! no burst after a pause.

use model::device::{Alignment, BlockDevice, DeviceError};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sys::clock::now_ns;

type Result<T> = std::result::Result<T, DeviceError>;

/// Rates that are not exceeded; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a second, of reads and writes together.
    pub bytes_per_s: Option<NonZeroU64>,
    /// Reads, writes and discards a second together.
    pub requests_per_s: Option<NonZeroU64>,
}

/// A device that is slowed down; see the module's text. Flushes are not limited.
#[derive(Debug)]
pub struct Throttled<D> {
    inner: D,
    limits: Limits,
    /// When the last reservation ends, on [`sys::clock`].
    reserved_until_ns: AtomicU64,
}

impl Limits {
    /// How long a request of `bytes` bytes takes at the limits.
    fn time_ns(&self, bytes: u64) -> u64 {
        let at = |amount: u64, per_s: Option<NonZeroU64>| {
            per_s.map_or(0, |per_s| {
                let ns = u128::from(amount) * 1_000_000_000 / u128::from(per_s.get());
                u64::try_from(ns).unwrap_or(u64::MAX)
            })
        };
        at(bytes, self.bytes_per_s).max(at(1, self.requests_per_s))
    }
}

impl<D: BlockDevice> Throttled<D> {
    /// A device over `inner` that keeps `limits`.
    pub fn new(inner: D, limits: Limits) -> Self {
        Self { inner, limits, reserved_until_ns: AtomicU64::new(0) }
    }

    /// The inner device.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Reserves the time of a request and waits until it begins.
    fn wait(&self, bytes: u64) {
        let (now_ns, time_ns) = (now_ns(), self.limits.time_ns(bytes));
        let behind = |until_ns: u64| until_ns.max(now_ns).saturating_add(time_ns);
        let reserve = |until_ns| Some(behind(until_ns));
        // The closure always answers, so both arms hold the value before.
        let before_ns = self
            .reserved_until_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve)
            .unwrap_or_else(|until_ns| until_ns);
        let wait_ns = before_ns.saturating_sub(now_ns);
        if wait_ns > 0 {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
    }
}

impl<D: BlockDevice> BlockDevice for Throttled<D> {
    fn size_bytes(&self) -> Result<u64> {
        self.inner.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.wait(buffer.len() as u64);
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize> {
        self.wait(buffer.len() as u64);
        self.inner.write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<()> {
        self.wait(0);
        self.inner.discard(range)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use testkit::MemoryDevice;

    fn throttled(bytes_per_s: u64, requests_per_s: u64) -> Throttled<MemoryDevice> {
        let limits = Limits {
            bytes_per_s: NonZeroU64::new(bytes_per_s),
            requests_per_s: NonZeroU64::new(requests_per_s),
        };
        Throttled::new(MemoryDevice::new(1 << 16), limits)
    }

    /// The time that ten requests of 1,000 bytes take, from several threads.
    fn ten_requests(device: &Throttled<MemoryDevice>) -> Duration {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    device.read_at(&mut [0; 1000], 0).unwrap();
                    device.write_at(&[1; 1000], 0).unwrap();
                });
            }
        });
        start.elapsed()
    }

    #[test]
    fn neither_rate_is_exceeded() {
        // The first starts at once, the nine others 10 ms apart.
        for device in [throttled(100_000, 0), throttled(0, 100), throttled(100_000, 100)] {
            assert!(ten_requests(&device) >= Duration::from_millis(90));
        }
        assert_eq!(throttled(0, 0).limits.time_ns(u64::MAX), 0);
    }

    #[test]
    fn a_pause_is_not_saved_up() {
        let device = throttled(0, 100);
        device.flush().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(ten_requests(&device) >= Duration::from_millis(90));
    }
}
