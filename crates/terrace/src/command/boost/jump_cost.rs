//! What a jump over a disk costs, in bytes that it reads in the same time: a hard disk reads a
//! megabyte in the time that its head needs for a jump.

use model::device::BlockDevice;
use std::time::{Duration, Instant};
use sys::memory::AlignedBuffer;

/// Bytes of one read in order.
const STEP_BYTES: usize = 256 << 10;
/// Reads at places that are far from each other; the median counts.
const JUMPS: usize = 9;
/// What each of them reads.
const JUMP_BYTES: usize = 4096;
/// What is read in order, in steps.
const RUN_STEPS: u64 = 12;
/// A volume that is smaller has no places that are far from each other.
const VOLUME_BYTES_MIN: u64 = 64 << 20;
/// No jump costs more.
const JUMP_COST_MAX: u64 = 4 << 20;

/// The longest gap that a disk passes sooner than it jumps over it, measured by reading 3 MiB of
/// it; 0 where that fails.
pub(super) fn gap_bytes_max(device: &dyn BlockDevice, volume_bytes: u64) -> u64 {
    let measured = || {
        let mut reader = Reader { device, buffer: AlignedBuffer::new(STEP_BYTES).ok()? };
        let jump = reader.jump(volume_bytes)?;
        let rate = reader.bytes_per_second(volume_bytes)?;
        // Half of it: a jump over a short gap takes less than one across the volume.
        Some((jump.as_secs_f64() * rate / 2.0) as u64)
    };
    if volume_bytes < VOLUME_BYTES_MIN { 0 } else { measured().unwrap_or(0).min(JUMP_COST_MAX) }
}

struct Reader<'d> {
    device: &'d dyn BlockDevice,
    buffer: AlignedBuffer,
}

impl Reader<'_> {
    /// How long a read takes that is far from the last one.
    fn jump(&mut self, volume_bytes: u64) -> Option<Duration> {
        let mut times = Vec::with_capacity(JUMPS);
        let area = volume_bytes / JUMPS as u64;
        for number in 0..JUMPS as u64 {
            // Every second area, twice around, and another place in each.
            let place = number * 2 % JUMPS as u64 * area + number * (area / JUMPS as u64);
            let started = Instant::now();
            self.read(place / JUMP_BYTES as u64 * JUMP_BYTES as u64, JUMP_BYTES)?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        times.get(JUMPS / 2).copied()
    }

    fn bytes_per_second(&mut self, volume_bytes: u64) -> Option<f64> {
        let step = STEP_BYTES as u64;
        let start = volume_bytes / 2 / step * step;
        // The head is there then.
        self.read(start, STEP_BYTES)?;
        let started = Instant::now();
        for number in 1..=RUN_STEPS {
            self.read(start + number * step, STEP_BYTES)?;
        }
        let seconds = started.elapsed().as_secs_f64().max(1e-9);
        Some((RUN_STEPS * step) as f64 / seconds)
    }

    /// `None` if so much cannot be read there.
    fn read(&mut self, offset: u64, len: usize) -> Option<()> {
        let buffer = self.buffer.get_mut(..len)?;
        (self.device.read_at(buffer, offset).ok()? == len).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use sys::device::FileDevice;
    use testkit::TempDir;

    fn cost(bytes: u64, volume_bytes: u64) -> u64 {
        let directory = TempDir::new();
        let path = directory.join("volume");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let device = FileDevice::new(File::open(&path).unwrap()).unwrap();
        gap_bytes_max(&device, volume_bytes)
    }

    #[test]
    fn a_jump_costs_something_where_all_can_be_read() {
        // Whatever the file system takes for it, a read takes some time.
        assert!((1..=JUMP_COST_MAX).contains(&cost(VOLUME_BYTES_MIN, VOLUME_BYTES_MIN)));
        assert_eq!(cost(VOLUME_BYTES_MIN, VOLUME_BYTES_MIN - 1), 0);
        // The device is shorter than the volume should be.
        assert_eq!(cost(1 << 20, VOLUME_BYTES_MIN), 0);
    }
}
