//! The disk of a cache, which a fill can have for itself for moments: reads of all others wait for
//! the end of the moment, at most for its length, and then come before the next one.
//!
//! A disk with a head that takes a read of a program between two of a fill jumps twice for it. A
//! moment is over when its time is, also if the read of the fill hangs.

use model::device::{Alignment, BlockDevice, DeviceError};
use serve::driver::DriverDevice;
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::device::FileDevice;

thread_local! {
    /// Whether this thread is one of a fill.
    static FILLS: Cell<bool> = const { Cell::new(false) };
}

/// The disk.
#[derive(Debug)]
pub(super) struct SharedDisk {
    device: Arc<FileDevice>,
    moment: Mutex<Moment>,
    ended: Condvar,
}

/// The moment that is under way, or was the last.
#[derive(Debug, Default)]
struct Moment {
    number: u64,
    end: Option<Instant>,
}

/// A moment; over when it is dropped.
#[derive(Debug)]
pub(super) struct ReservedDisk<'d>(&'d SharedDisk);

impl Drop for ReservedDisk<'_> {
    fn drop(&mut self) {
        self.0.lock().end = None;
        self.0.ended.notify_all();
    }
}

impl SharedDisk {
    pub(super) fn new(device: Arc<FileDevice>) -> Self {
        Self { device, moment: Mutex::default(), ended: Condvar::new() }
    }

    /// Begins a moment for threads that are within [`as_fill`].
    pub(super) fn reserve(&self, time: Duration) -> ReservedDisk<'_> {
        let mut moment = self.lock();
        moment.number += 1;
        moment.end = Some(Instant::now() + time);
        ReservedDisk(self)
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.moment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of the moment that is under way, but not of one that follows.
    fn wait(&self) {
        if FILLS.get() {
            return;
        }
        let mut moment = self.lock();
        let (number, end) = (moment.number, moment.end);
        while let Some(left) = end.and_then(|end| end.checked_duration_since(Instant::now()))
            && (moment.number, moment.end) == (number, end)
        {
            let waited = self.ended.wait_timeout(moment, left);
            moment = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What this thread reads meanwhile is of a fill.
pub(super) fn as_fill<T>(work: impl FnOnce() -> T) -> T {
    FILLS.set(true);
    let done = work();
    FILLS.set(false);
    done
}

impl BlockDevice for SharedDisk {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        self.device.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        self.wait();
        self.device.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        self.device.write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.device.discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }
}

impl DriverDevice for SharedDisk {
    fn write_zeroes(&self, range: Range<u64>) -> Result<(), DeviceError> {
        DriverDevice::write_zeroes(self.device.as_ref(), range)
    }

    fn read_vectored_at(
        &self,
        parts: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, DeviceError> {
        self.wait();
        self.device.read_vectored_at(parts, offset)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, DeviceError> {
        self.device.write_vectored_at(parts, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use testkit::TempDir;

    const LONG: Duration = Duration::from_secs(60);

    fn disk(directory: &TempDir) -> SharedDisk {
        let path = directory.join("disk");
        std::fs::write(&path, [7; 8192]).unwrap();
        let file = std::fs::File::open(path).unwrap();
        SharedDisk::new(Arc::new(FileDevice::new(file).unwrap()))
    }

    fn read(disk: &SharedDisk) {
        assert_eq!(disk.read_at(&mut [0; 16], 0).unwrap(), 16);
    }

    #[test]
    fn others_read_after_the_moment_and_before_the_next_one() {
        let directory = TempDir::new();
        let disk = disk(&directory);
        let reads = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let moment = disk.reserve(LONG);
            as_fill(|| read(&disk));
            let reader = scope.spawn(|| {
                read(&disk);
                reads.fetch_add(1, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(reads.load(Ordering::SeqCst), 0, "it waits");
            drop(moment);
            // The next one begins before the reader runs, and does not hold it up.
            let next = disk.reserve(LONG);
            reader.join().unwrap();
            drop(next);
        });
        read(&disk);
    }

    #[test]
    fn a_moment_whose_fill_hangs_ends_by_itself() {
        let directory = TempDir::new();
        let disk = disk(&directory);
        let moment = disk.reserve(Duration::from_millis(20));
        let began = Instant::now();
        read(&disk);
        assert!(began.elapsed() >= Duration::from_millis(20));
        assert!(began.elapsed() < LONG);
        drop(moment);
    }
}
