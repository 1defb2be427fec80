//! A device as a volume whose requests need no alignment in memory: each goes through a buffer that
//! was made before. It is what is served where an engine cannot be.
//!
//! Writes that overlap are done one after the other: a kernel that sends a write again, since the
//! first one took long, must not find the first one done after what it wrote later.

use crate::driver::DriverDevice;
use crate::volume::{INVALID, Volume, VolumeResult, number_of, whole};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use sys::memory::AlignedBuffer;

/// Requests that are done at once.
const BUFFERS: usize = 16;
/// The bytes of one step of a request.
const BUFFER_BYTES: usize = 256 << 10;

/// The whole device, past the page cache.
pub struct DirectVolume {
    device: Arc<dyn DriverDevice>,
    bytes: u64,
    block_bytes: u64,
    state: Mutex<DirectState>,
    /// A buffer is free, or a change has ended.
    room: Condvar,
}

struct DirectState {
    buffers: Vec<AlignedBuffer>,
    /// What is being changed.
    changing: Vec<Range<u64>>,
}

impl std::fmt::Debug for DirectVolume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectVolume").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl DirectVolume {
    /// `device` as a volume of `bytes` bytes, in whole blocks of `block_bytes`.
    ///
    /// # Errors
    /// Without memory for the buffers.
    pub fn new(device: Arc<dyn DriverDevice>, bytes: u64, block_bytes: u32) -> sys::Result<Self> {
        let made = (0..BUFFERS).map(|_| AlignedBuffer::new(BUFFER_BYTES));
        let buffers = made.collect::<sys::Result<Vec<_>>>()?;
        let state = DirectState { buffers, changing: Vec::with_capacity(BUFFERS) };
        let block_bytes = u64::from(block_bytes.max(1));
        let bytes = bytes / block_bytes * block_bytes;
        Ok(Self { device, bytes, block_bytes, state: Mutex::new(state), room: Condvar::new() })
    }

    fn check(&self, offset: u64, len: u64) -> VolumeResult {
        let is_whole =
            offset.is_multiple_of(self.block_bytes) && len.is_multiple_of(self.block_bytes);
        let is_inside = crate::volume::is_within(self.bytes, offset, len);
        if is_whole && is_inside { Ok(()) } else { Err(INVALID) }
    }

    fn lock(&self) -> MutexGuard<'_, DirectState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` with a buffer.
    fn with_buffer(&self, work: impl FnOnce(&mut AlignedBuffer) -> VolumeResult) -> VolumeResult {
        let mut state = self.lock();
        let buffer = loop {
            match state.buffers.pop() {
                Some(buffer) => break buffer,
                None => state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        let mut held = HeldBuffer { volume: self, buffer: Some(buffer) };
        held.buffer.as_mut().map_or(Err(INVALID), work)
    }

    /// Does `work`, which changes a range, while nothing else changes a part of it.
    fn change(&self, range: Range<u64>, work: impl FnOnce() -> VolumeResult) -> VolumeResult {
        let meets = |state: &mut DirectState| {
            state.changing.iter().any(|of| of.start < range.end && range.start < of.end)
        };
        let waited = self.room.wait_while(self.lock(), meets);
        waited.unwrap_or_else(PoisonError::into_inner).changing.push(range.clone());
        let _changing = ChangingRange { volume: self, range };
        work()
    }
}

/// A buffer that is given back, also after a panic of the device.
struct HeldBuffer<'v> {
    volume: &'v DirectVolume,
    buffer: Option<AlignedBuffer>,
}

impl Drop for HeldBuffer<'_> {
    fn drop(&mut self) {
        let mut state = self.volume.lock();
        state.buffers.extend(self.buffer.take());
        self.volume.room.notify_all();
    }
}

/// A range that is being changed.
struct ChangingRange<'v> {
    volume: &'v DirectVolume,
    range: Range<u64>,
}

impl Drop for ChangingRange<'_> {
    fn drop(&mut self) {
        let mut state = self.volume.lock();
        if let Some(at) = state.changing.iter().position(|of| *of == self.range) {
            state.changing.swap_remove(at);
        }
        self.volume.room.notify_all();
    }
}

impl Volume for DirectVolume {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        self.check(offset, buffer.len() as u64)?;
        self.with_buffer(|room| {
            let mut at = offset;
            for piece in buffer.chunks_mut(BUFFER_BYTES) {
                let part = &mut room[..piece.len()];
                whole(self.device.read_at(part, at), piece.len())?;
                piece.copy_from_slice(part);
                at += piece.len() as u64;
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        self.check(offset, data.len() as u64)?;
        self.change(offset..offset + data.len() as u64, || {
            self.with_buffer(|room| {
                let mut at = offset;
                for piece in data.chunks(BUFFER_BYTES) {
                    let part = &mut room[..piece.len()];
                    part.copy_from_slice(piece);
                    whole(self.device.write_at(part, at), piece.len())?;
                    at += piece.len() as u64;
                }
                Ok(())
            })
        })
    }

    fn flush(&self) -> VolumeResult {
        self.device.flush().map_err(|error| number_of(&error))
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        self.check(offset, len)?;
        let range = offset..offset + len;
        self.change(range.clone(), || {
            self.device.write_zeroes(range).map_err(|error| number_of(&error))
        })
    }

    fn discard(&self, offset: u64, len: u64) -> VolumeResult {
        self.check(offset, len)?;
        let range = offset..offset + len;
        self.change(range.clone(), || self.device.discard(range).map_err(|error| number_of(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::{Alignment, BlockDevice, DeviceError};
    use std::sync::atomic::{AtomicBool, Ordering};
    use testkit::MemoryDevice;

    const BYTES: u64 = 2 << 20;

    /// A device that sees each buffer, and can hold a write up.
    struct Watched {
        memory: MemoryDevice,
        is_held: AtomicBool,
    }

    impl BlockDevice for Watched {
        fn size_bytes(&self) -> Result<u64, DeviceError> {
            self.memory.size_bytes()
        }

        fn alignment(&self) -> Alignment {
            self.memory.alignment()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
            assert!(buffer.as_ptr().addr().is_multiple_of(4096));
            self.memory.read_at(buffer, offset)
        }

        fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
            assert!(buffer.as_ptr().addr().is_multiple_of(4096));
            while buffer[0] == 1 && self.is_held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            self.memory.write_at(buffer, offset)
        }

        fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
            self.memory.discard(range)
        }

        fn flush(&self) -> Result<(), DeviceError> {
            self.memory.flush()
        }
    }

    impl DriverDevice for Watched {}

    fn volume(is_held: bool) -> (Arc<Watched>, DirectVolume) {
        let memory = MemoryDevice::new(BYTES as usize);
        let device = Arc::new(Watched { memory, is_held: AtomicBool::new(is_held) });
        let shared: Arc<dyn DriverDevice> = Arc::<Watched>::clone(&device);
        (device, DirectVolume::new(shared, BYTES + 100, 512).unwrap())
    }

    #[test]
    fn memory_of_callers_need_not_be_aligned_and_requests_may_be_long() {
        let (_, volume) = volume(false);
        assert_eq!(volume.bytes(), BYTES);
        let mut written: Vec<u8> = (0..=BYTES as usize - 1024).map(|at| (at / 512) as u8).collect();
        volume.write(512, &written[1..]).unwrap();
        volume.write_zeroes(1024, 512).unwrap();
        written[1 + 512..1 + 1024].fill(0);
        let mut read = vec![9; written.len()];
        volume.read(512, &mut read[1..]).unwrap();
        assert!(read[1..] == written[1..]);
        volume.flush().unwrap();
        for (offset, len) in [(1, 512), (0, 511), (BYTES, 512), (u64::MAX - 511, 512)] {
            assert_eq!(volume.write(offset, &vec![0; len]), Err(INVALID), "{offset} {len}");
            assert_eq!(volume.read(offset, &mut vec![0; len]), Err(INVALID), "{offset} {len}");
            assert_eq!(volume.write_zeroes(offset, len as u64), Err(INVALID), "{offset} {len}");
        }
    }

    #[test]
    fn a_write_waits_for_one_that_it_overlaps() {
        let (device, volume) = volume(true);
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| volume.write(0, &[1; 1024]).unwrap());
            while volume.lock().changing.is_empty() {
                std::thread::yield_now();
            }
            let later = scope.spawn(|| volume.write(512, &[2; 1024]).unwrap());
            // Beside it there is no waiting.
            volume.write(4096, &[3; 512]).unwrap();
            assert!(!later.is_finished());
            device.is_held.store(false, Ordering::SeqCst);
            slow.join().unwrap();
            later.join().unwrap();
        });
        let mut read = [0; 1536];
        volume.read(0, &mut read).unwrap();
        assert_eq!((read[0], read[511], read[512], read[1535]), (1, 1, 2, 2));
    }
}
