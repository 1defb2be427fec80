//! Writes and discards: frames are dropped first, the region is marked if a start could find frames
//! of it, then the disk is written.
//!
//! What was cached of a frame and is written as a whole is cached again from the data of the write,
//! once the disk has it and if nothing else wrote the region meanwhile.

use model::engine::{BufferRange, Device, IoResult, Operation, Output, RequestId};

use crate::attach::{Cache, Io, Pending};
use crate::setup::Written;

/// Frames of a write that may be cached again.
const REFILLS_MAX: u32 = 32;

/// A write, of data or zeros, or a discard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteState {
    id: RequestId,
    offset: u64,
    len: u64,
    written: Written<BufferRange>,
    /// Digests up to this number must be durable first.
    witness: u64,
    touches_witness: bool,
    /// Of the first frames, those of which all that was cached is written.
    refills: u32,
    /// The generation of its region when it was requested. Only a write within one region is
    /// cached again.
    generation: u32,
}

impl Cache {
    pub(crate) fn write(
        &mut self,
        id: RequestId,
        (offset, len): (u64, u64),
        written: Written<BufferRange>,
        io: &mut Io<'_>,
    ) {
        self.counters.writes += 1;
        self.counters.write_bytes += len;
        let mut write = WriteState {
            id,
            offset,
            len,
            written,
            witness: 0,
            touches_witness: false,
            refills: 0,
            generation: 0,
        };
        if len > 0 {
            for region in self.regions_of(offset, len) {
                self.regions.begin_write(region);
            }
            if self.rules.drop_while_away || self.is_on() {
                write.refills = self.drop_frames(offset, len);
            }
            let regions = self.regions_of(offset, len);
            let (generation, writes) = self.regions.generation(*regions.start());
            write.generation = generation;
            if writes > 1 || regions.start() != regions.end() {
                write.refills = 0;
            }
            self.record_witness(&mut write, io);
        }
        let at = self.writes.insert(write);
        if !self.send_if_marked(at, io) {
            self.waiting.push(at);
            // Without a journal the write waits until the next start is cold for sure.
            self.fail_if_stuck(io);
        }
    }

    pub(crate) fn regions_of(&self, offset: u64, len: u64) -> std::ops::RangeInclusive<usize> {
        let region = |at: u64| (at / self.geometry.region_bytes) as usize;
        region(offset)..=region(offset + len - 1)
    }

    /// Drops the frames of which a part of the range is cached; of the first frames, those of which
    /// all that was cached is in the range.
    fn drop_frames(&mut self, offset: u64, len: u64) -> u32 {
        let frame = u64::from(self.geometry.frame_bytes);
        let (first, last) = ((offset / frame) as u32, ((offset + len - 1) / frame) as u32);
        let mut refills = 0;
        if last - first >= self.limits.frames_max {
            self.frames.drop_range(first..=last);
            return 0;
        }
        for key in first..=last {
            let Some(slot) = self.frames.find(key) else { continue };
            let cached = self.geometry.extent_range(key, self.frames.place(slot).extent);
            if cached.end <= offset || cached.start >= offset + len {
                continue;
            }
            self.frames.drop_key(key);
            self.counters.invalidated += 1;
            let is_whole = cached.start >= offset && cached.end <= offset + len;
            if is_whole && key - first < REFILLS_MAX {
                refills |= 1 << (key - first);
            }
            // It was worth a frame: the next miss need not be the second one.
            self.remember(key);
        }
        refills
    }

    fn record_witness(&mut self, write: &mut WriteState, io: &mut Io<'_>) {
        let written = match write.written {
            Written::Data(data) => Written::Data(io.buffers.bytes(data)),
            Written::Zeros => Written::Zeros,
            Written::Anything => Written::Anything,
        };
        for which in 0..self.witnesses.len() {
            if self.witnesses[which].write(write.offset, write.len, written) {
                let digest = self.witnesses[which].digest();
                write.witness = self.journal.want_witness(which, digest);
                write.touches_witness = true;
            }
        }
        self.journal.witness_writes += u32::from(write.touches_witness);
    }

    /// Sends a write if its regions are marked durably or need no mark; whether it was sent.
    fn send_if_marked(&mut self, at: usize, io: &mut Io<'_>) -> bool {
        let Some(write) = self.writes.get(at).copied() else { return true };
        let mut is_marked = self.journal.witness_durable >= write.witness;
        if write.len > 0 {
            for region in self.regions_of(write.offset, write.len) {
                is_marked &= !self.needs_mark(region) || self.regions.want(region);
            }
        }
        if !is_marked && self.rules.mark_before_write && !self.needs_no_marks() {
            return false;
        }
        let WriteState { offset, len, .. } = write;
        let operation = match write.written {
            Written::Data(data) => Operation::Write { offset, data },
            Written::Zeros => Operation::WriteZeroes { offset, len },
            Written::Anything => Operation::Discard { offset, len },
        };
        self.operate(Device::Backing, operation, Pending::BackingWrite { write: at }, io);
        true
    }

    /// Whether a start could find a frame of the region. The index does not say it: a frame that
    /// left it is on the medium still, and in the base.
    fn needs_mark(&self, region: usize) -> bool {
        if self.rules.mark_what_a_start_finds {
            return self.regions.needs_mark(region);
        }
        let frames = (self.geometry.region_bytes / u64::from(self.geometry.frame_bytes)) as u32;
        let first = region as u32 * frames;
        (first..first + frames).any(|key| self.frames.find(key).is_some())
    }

    /// Sends those waiting writes whose regions are marked now.
    pub(crate) fn send_waiting(&mut self, io: &mut Io<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|at| !self.send_if_marked(*at, io));
        self.waiting = waiting;
    }

    pub(crate) fn backing_write_ended(&mut self, at: usize, result: IoResult, io: &mut Io<'_>) {
        if result.is_ok() {
            self.refill(at, io);
        }
        self.write_ended(at, result, io);
    }

    /// Completes a write.
    pub(crate) fn write_ended(&mut self, at: usize, result: IoResult, io: &mut Io<'_>) {
        let Some(write) = self.writes.remove(at) else { return };
        if write.len > 0 {
            for region in self.regions_of(write.offset, write.len) {
                self.regions.end_write(region);
            }
        }
        self.journal.witness_writes -= u32::from(write.touches_witness);
        io.outputs.push(Output::Complete { id: write.id, result });
    }

    /// Caches again the frames of which all that was cached was written.
    fn refill(&mut self, at: usize, io: &mut Io<'_>) {
        let Some(write) = self.writes.get(at).copied() else { return };
        let Written::Data(data) = write.written else { return };
        let frame = u64::from(self.geometry.frame_bytes);
        let first = (write.offset / frame) as u32;
        let written = write.offset..write.offset + write.len;
        for bit in (0..REFILLS_MAX).filter(|bit| write.refills >> bit & 1 == 1) {
            let key = first + bit;
            // It must be the only write to its region since it was requested.
            let region = self.geometry.region(key);
            if self.regions.generation(region) != (write.generation, 1) {
                self.counters.raced += 1;
                continue;
            }
            let Some(extent) = self.geometry.extent_within(key, &written) else { continue };
            let bytes = self.geometry.extent_range(key, extent);
            let (start, len) = (bytes.start - write.offset, bytes.end - bytes.start);
            let part = data.part(start as u32, len as u32);
            self.plain[..len as usize].copy_from_slice(io.buffers.bytes(part));
            self.cache_frame(key, extent, true, io);
        }
    }
}
