//! Reads the gaps between what a fill wants, where that is quicker than to jump over them: a hard
//! disk reads a megabyte in the time that its head needs for a jump.

use model::device::BlockDevice;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use sys::memory::AlignedBuffer;

/// Bytes of one read of a gap.
const STEP_BYTES: usize = 256 << 10;
/// Reads at places that are far from each other; the median counts.
const JUMPS: usize = 9;
/// What each of them reads.
const JUMP_BYTES: usize = 4096;
/// What is read in order, in steps.
const RUN_STEPS: u64 = 12;
/// A volume that is smaller has no places that are far from each other.
const VOLUME_BYTES_MIN: u64 = 64 << 20;
/// No gap is longer: so long a read holds up others, and the end that was asked for.
const GAP_BYTES_MAX: u64 = 4 << 20;

/// Where a fill reads a volume, and what it does with the gaps.
pub(super) struct GapReader {
    device: Arc<FileDevice>,
    buffer: Option<AlignedBuffer>,
    gap_bytes_max: u64,
    /// Where the last read ended.
    position: u64,
}

impl GapReader {
    /// Measures the device, for which it reads 3 MiB of it. Where that fails nothing is read
    /// through.
    pub(super) fn of(device: Arc<FileDevice>, volume_bytes: u64) -> Self {
        let mut reader = Self { device, buffer: None, gap_bytes_max: 0, position: 0 };
        if volume_bytes < VOLUME_BYTES_MIN {
            return reader;
        }
        reader.buffer = AlignedBuffer::new(STEP_BYTES).ok();
        let cost = reader.jump(volume_bytes).zip(reader.bytes_per_second(volume_bytes));
        // Half of it: a jump over a short gap takes less than one across the volume.
        let bytes = cost.map_or(0, |(jump, rate)| (jump.as_secs_f64() * rate / 2.0) as u64);
        reader.gap_bytes_max = bytes.min(GAP_BYTES_MAX);
        reader
    }

    /// The longest gap that is read.
    pub(super) fn gap_bytes_max(&self) -> u64 {
        self.gap_bytes_max
    }

    /// To be called before a part is read: reads what is between it and the part before, if the gap
    /// is short.
    pub(super) fn reach(&mut self, part: &Range<u64>) {
        let gap = self.position..part.start;
        let len = gap.end.saturating_sub(gap.start);
        if len > 0 && len <= self.gap_bytes_max {
            let mut at = gap.start;
            while at < gap.end {
                let step = (gap.end - at).min(STEP_BYTES as u64);
                if self.read(at, step as usize).is_none() {
                    break;
                }
                at += step;
            }
        }
        self.position = part.end;
    }

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
        let buffer = self.buffer.as_mut()?.get_mut(..len)?;
        (self.device.read_at(buffer, offset).ok()? == len).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use testkit::TempDir;

    fn device(bytes: u64) -> (TempDir, Arc<FileDevice>) {
        let directory = TempDir::new();
        let path = directory.join("volume");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (directory, Arc::new(FileDevice::new(file).unwrap()))
    }

    #[test]
    fn a_gap_that_is_read_is_at_most_what_a_jump_costs() {
        let (_directory, device) = device(VOLUME_BYTES_MIN);
        let reader = GapReader::of(Arc::clone(&device), VOLUME_BYTES_MIN);
        // Whatever the file system takes for it, a read takes some time.
        assert!((1..=GAP_BYTES_MAX).contains(&reader.gap_bytes_max()));
        assert_eq!(GapReader::of(device, VOLUME_BYTES_MIN - 1).gap_bytes_max(), 0);
    }

    #[test]
    fn what_cannot_be_read_is_jumped_over() {
        let (_directory, device) = device(1 << 20);
        // The device is shorter than the volume should be.
        let mut reader = GapReader::of(device, VOLUME_BYTES_MIN);
        assert_eq!(reader.gap_bytes_max(), 0);
        reader.gap_bytes_max = GAP_BYTES_MAX;
        reader.reach(&(0..4096));
        reader.reach(&(3 << 20..4 << 20));
        assert_eq!(reader.position, 4 << 20);
    }
}
