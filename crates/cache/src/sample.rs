//! The end of a recovery: some of the frames that were found are compared with the disk.
//!
//! A write to the volume elsewhere that spares its superblocks cannot be seen by them. If it was
//! large, a few frames show it: a frame that the journal lists as fresh and that differs from the
//! disk makes all cold. A small write is not found; `docs/cache-format.md` says so.

use model::engine::{BufferId, BufferRange, Device, Event, IoResult, Operation};
use model::random::mix;

use crate::attach::{Cache, Io, Pending, Phase, first, report};
use crate::format::u64_at;
use crate::seal::Salt;

/// A frame that is compared.
#[derive(Clone, Copy, Debug)]
struct Sample {
    key: u32,
    slot: u32,
    /// What the disk holds.
    disk: BufferId,
    /// What the medium holds.
    sealed: BufferId,
}

/// The comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    /// Draws the frames.
    seed: u64,
    left: u32,
    current: Option<Sample>,
    /// Where a frame differs from the disk.
    pub(crate) differs: Option<u64>,
}

impl Samples {
    pub(crate) fn new(count: u32, salt: &Salt) -> Self {
        Self { seed: u64_at(salt, 0), left: count, current: None, differs: None }
    }
}

impl Cache {
    /// Compares the next frame; true when all were compared.
    pub(crate) fn drive_samples(&mut self, io: &mut Io<'_>) -> bool {
        if self.samples.current.is_some() {
            return false;
        }
        let is_known = self.later_attach.is_some() || self.samples.differs.is_some();
        let number = mix(self.samples.seed.wrapping_add(u64::from(self.samples.left)));
        let found = self.frames.any_from(number);
        let Some((slot, key)) = found.filter(|_| self.samples.left > 0 && !is_known) else {
            return true;
        };
        if self.io_buffers.len() < 2 {
            // They come back with what is under way.
            return false;
        }
        let (Some(disk), Some(sealed)) = (self.io_buffers.pop(), self.io_buffers.pop()) else {
            return false;
        };
        self.samples.left -= 1;
        self.samples.current = Some(Sample { key, slot, disk, sealed });
        let bytes = self.geometry.extent_range(key, self.frames.place(slot).extent);
        let (offset, data) = (bytes.start, first(disk, (bytes.end - bytes.start) as u32));
        self.operate(Device::Backing, Operation::Read { offset, data }, Pending::SampleDisk, io);
        false
    }

    pub(crate) fn sample_disk_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        let Some(sample) = self.samples.current else { return };
        let is_open = matches!(self.phase, Phase::Recovering(_)) && self.is_on();
        if result.is_err() || !is_open || self.frames.find(sample.key) != Some(sample.slot) {
            return self.end_sample();
        }
        let place = self.frames.place(sample.slot);
        self.read_stored(place, sample.sealed, |sealed| Pending::SampleMedium { sealed }, io);
    }

    pub(crate) fn sample_medium_ended(
        &mut self,
        sealed: BufferRange,
        result: IoResult,
        io: &mut Io<'_>,
    ) {
        let Some(sample) = self.samples.current else { return };
        let Sample { key, slot, disk, .. } = sample;
        self.end_sample();
        if result.is_err() {
            return self.medium_failed(io);
        }
        // A write drops its frames before it is sent: what is still cached was not written.
        if self.frames.find(key) != Some(slot) {
            return;
        }
        let place = self.frames.place(slot);
        let stored = usize::from(place.stored);
        self.packed[..stored].copy_from_slice(io.buffers.bytes(sealed));
        if !self.open_packed(slot, key, stored) {
            self.counters.medium_wrong += 1;
            self.frames.drop_key(key);
            return self.medium_failed(io);
        }
        let bytes = self.geometry.extent_range(key, place.extent);
        let (offset, len) = (bytes.start, (bytes.end - bytes.start) as u32);
        if io.buffers.bytes(first(disk, len)) != &self.plain[..len as usize] {
            self.samples.differs = Some(offset);
            report(Event::VolumeChanged { offset }, io);
        }
    }

    fn end_sample(&mut self) {
        if let Some(Sample { disk, sealed, .. }) = self.samples.current.take() {
            self.io_buffers.extend([disk, sealed]);
        }
    }
}
