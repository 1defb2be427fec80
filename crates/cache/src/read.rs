//! Reads: from the medium if every frame is cached, else from the disk, which may fill.
//!
//! A partial hit is a miss: a disk reads the whole in one go. A miss caches the blocks that it
//! asked for, if their frames are worth it. Where a frame has other blocks in the cache already,
//! the read of the disk is made longer, so that it has these, too, and all that is between. What
//! was read is cached only if no write to its region was under way when the read was sent, or began
//! since.

use std::ops::{Range, RangeInclusive};

use model::engine::{BufferId, BufferRange, Device, IoResult, Operation, Output, RequestId};
use policy::admission::Admission as _;

use crate::attach::{Cache, Io, Pending, Phase};
use crate::format::{BLOCK_BYTES, GRANULE_BYTES};
use crate::frames::Place;
use crate::seal::{self, FrameLabel, TAG_BYTES};

/// The most frames of a read that is cached or served from the cache: 128 KiB, as much as the
/// kernel reads ahead. A larger read is sequential.
pub(crate) const FILL_FRAMES_MAX: usize = 8;

/// What a read fills the cache with.
#[derive(Clone, Copy, Debug)]
struct Fill {
    /// What is read: whole blocks of the volume.
    offset: u64,
    len: u32,
    /// The first frame that has a part of it, and how many have.
    first: u32,
    count: u32,
    /// One bit a frame: whether what is read of it is to be cached.
    admitted: u32,
    /// The generations of the frames' regions when the read was sent.
    generations: [Option<u32>; FILL_FRAMES_MAX],
    /// Where that is read to, if it is more than the request asked for.
    buffer: Option<BufferId>,
}

/// A read or a prefetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadState {
    id: RequestId,
    offset: u64,
    /// `None` for a prefetch.
    data: Option<BufferRange>,
    /// Frames that are being read from the medium.
    pending: u32,
    /// The medium did not give all frames: the disk is read.
    is_failed: bool,
    /// The disk is being read.
    is_on_disk: bool,
    is_answered: bool,
    sent_ns: u64,
    /// It does not begin where the read before ended.
    is_apart: bool,
    fill: Option<Fill>,
}

impl ReadState {
    fn new(id: RequestId, offset: u64, data: Option<BufferRange>, sent_ns: u64) -> Self {
        Self {
            id,
            offset,
            data,
            pending: 0,
            is_failed: false,
            is_on_disk: false,
            is_answered: false,
            sent_ns,
            is_apart: false,
            fill: None,
        }
    }
}

impl Fill {
    fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

impl Cache {
    pub(crate) fn read(&mut self, id: RequestId, offset: u64, data: BufferRange, io: &mut Io<'_>) {
        self.counters.reads += 1;
        self.counters.read_bytes += u64::from(data.len);
        let read = ReadState::new(id, offset, Some(data), self.now_ns);
        let is_apart = offset != self.read_end;
        self.read_end = offset + u64::from(data.len);
        let at = self.reads.insert(ReadState { is_apart, ..read });
        if data.len == 0 {
            return self.answer(at, Ok(()), io);
        }
        let bytes = offset..offset + u64::from(data.len);
        let keys = self.keys_of(&bytes);
        for key in keys.clone() {
            self.runs.request(u64::from(key));
        }
        if self.runs.run_blocks() > self.limits.run_frames_max {
            self.counters.bailed_out += 1;
            return self.read_disk(at, io);
        }
        let count = keys.end() - keys.start() + 1;
        // Before the recovery has ended, what it found may turn out to be of an older journal.
        let is_hit = self.is_on()
            && !matches!(self.phase, Phase::Starting | Phase::Recovering(_))
            && count as usize <= FILL_FRAMES_MAX
            && keys.clone().all(|key| self.holds(key, &bytes));
        if is_hit {
            return self.read_medium(at, keys, io);
        }
        if count as usize <= FILL_FRAMES_MAX {
            self.plan_fill(at, bytes, false);
        }
        self.read_disk(at, io);
    }

    pub(crate) fn prefetch(&mut self, id: RequestId, offset: u64, len: u64, io: &mut Io<'_>) {
        let at = self.reads.insert(ReadState::new(id, offset, None, self.now_ns));
        if len > 0 {
            let first = *self.keys_of(&(offset..offset + 1)).start();
            let last = first.saturating_add(FILL_FRAMES_MAX as u32 - 1);
            let end = self.geometry.frame_range(last.min(self.geometry.frames() - 1)).end;
            self.plan_fill(at, offset..end.min(offset + len), true);
        }
        match self.reads.get(at).and_then(|read| read.fill) {
            Some(_) => self.read_disk(at, io),
            None => self.answer(at, Ok(()), io),
        }
    }

    /// The frames that have any of these bytes, of which there is one at least.
    fn keys_of(&self, bytes: &Range<u64>) -> RangeInclusive<u32> {
        let frame = u64::from(self.geometry.frame_bytes);
        (bytes.start / frame) as u32..=((bytes.end - 1) / frame) as u32
    }

    /// Whether the cache has all of these bytes that belong to a frame.
    pub(crate) fn holds(&self, key: u32, bytes: &Range<u64>) -> bool {
        let cached = self.frames.find(key).map(|slot| self.frames.place(slot).extent);
        let wanted = self.geometry.extent_of(key, bytes);
        cached.zip(wanted).is_some_and(|(cached, wanted)| cached.holds(wanted))
    }

    /// Lets the next miss of a frame count as its second.
    pub(crate) fn remember(&mut self, key: u32) {
        self.second.push(u64::from(key));
    }

    /// Decides what of a read is to be cached.
    fn plan_fill(&mut self, at: usize, bytes: Range<u64>, is_prefetch: bool) {
        let keys = self.keys_of(&bytes);
        let (first, last) = (*keys.start(), *keys.end());
        if self.phase != Phase::Running || !self.is_on() {
            return;
        }
        let is_spacious = self.is_spacious();
        let mut admitted = 0;
        let mut read_range = bytes.clone();
        for key in keys {
            let Some(wanted) = self.geometry.extent_of(key, &bytes) else { continue };
            let cached = self.frames.find(key).map(|slot| self.frames.place(slot).extent);
            if cached.is_some_and(|cached| cached.holds(wanted)) {
                continue;
            }
            // A frame that is cached in part has proved itself.
            let is_worth_it = cached.is_some() || is_prefetch;
            if is_worth_it || self.second.take(u64::from(key)) || is_spacious {
                admitted |= 1 << (key - first);
                let extent = cached.map_or(wanted, |cached| cached.hull(wanted));
                let whole = self.geometry.extent_range(key, extent);
                read_range = read_range.start.min(whole.start)..read_range.end.max(whole.end);
            } else {
                self.second.push(u64::from(key));
                self.counters.refused_first += 1;
            }
        }
        let Some(read) = self.reads.get(at).copied().filter(|_| admitted != 0) else { return };
        let read_range = self.whole_blocks(read_range);
        let mut generations = [None; FILL_FRAMES_MAX];
        for (key, generation) in (first..=last).zip(&mut generations) {
            let region = self.geometry.region(key);
            *generation = if self.rules.drop_raced_fills {
                self.regions.stable_generation(region)
            } else {
                Some(0)
            };
        }
        let is_whole = read.data.is_some() && read_range == bytes;
        let buffer = if is_whole { None } else { self.io_buffers.pop() };
        if !is_whole && buffer.is_none() {
            return;
        }
        if let Some(read) = self.reads.get_mut(at) {
            let (offset, len) = (read_range.start, (read_range.end - read_range.start) as u32);
            let count = last - first + 1;
            read.fill = Some(Fill { offset, len, first, count, admitted, generations, buffer });
        }
    }

    /// The blocks that have these bytes.
    fn whole_blocks(&self, bytes: Range<u64>) -> Range<u64> {
        let block = u64::from(BLOCK_BYTES);
        let end = bytes.end.next_multiple_of(block).min(self.geometry.volume_bytes);
        bytes.start / block * block..end
    }

    /// Whether a frame need not be read twice: it takes the place of nothing, and half of the
    /// budget of the day is left for those that are.
    fn is_spacious(&self) -> bool {
        let segments = u64::from(self.geometry.segments);
        let used = segments.saturating_sub(self.free.len() as u64);
        used * 100 < segments * u64::from(self.limits.first_reads_percent)
            && self.budget > self.limits.budget_bytes_per_day / 2
    }

    /// Reads the disk: what the fill wants, or what was asked.
    fn read_disk(&mut self, at: usize, io: &mut Io<'_>) {
        let Some(read) = self.reads.get(at).copied() else { return };
        let own = read.fill.and_then(|fill| fill.buffer.map(|buffer| (fill, buffer)));
        let operation = match (own, read.data) {
            (Some((fill, buffer)), _) => {
                Operation::Read { offset: fill.offset, data: BufferRange::first(buffer, fill.len) }
            }
            (None, Some(data)) => Operation::Read { offset: read.offset, data },
            (None, None) => return self.answer(at, Ok(()), io),
        };
        if let Some(read) = self.reads.get_mut(at) {
            read.is_on_disk = true;
        }
        self.operate(Device::Backing, operation, Pending::BackingRead { read: at }, io);
    }

    pub(crate) fn backing_read_ended(&mut self, at: usize, result: IoResult, io: &mut Io<'_>) {
        let Some(read) = self.reads.get_mut(at) else { return };
        read.is_on_disk = false;
        let fill = read.fill.take();
        let read = *read;
        let Some(fill) = fill else { return self.answer(at, result, io) };
        let (start, len) = (fill.offset, fill.len);
        let source = match (fill.buffer, read.data) {
            (Some(buffer), _) => Some(BufferRange::first(buffer, len)),
            (None, data) => data,
        };
        if let (Ok(()), Some(source)) = (result, source) {
            self.scratch[..len as usize].copy_from_slice(io.buffers.bytes(source));
            if let Some(data) = read.data.filter(|_| fill.buffer.is_some()) {
                let from = (read.offset - start) as usize;
                let wanted = &self.scratch[from..from + data.len as usize];
                io.buffers.bytes_mut(data).copy_from_slice(wanted);
            }
            self.fill(&fill, read.data.is_none(), io);
        }
        self.io_buffers.extend(fill.buffer);
        if result.is_err() && fill.buffer.is_some() && read.data.is_some() {
            // The error may be in what was not asked for.
            return self.read_disk(at, io);
        }
        let result = if read.data.is_none() { Ok(()) } else { result };
        self.answer(at, result, io);
    }

    /// Caches what is in `scratch`.
    fn fill(&mut self, fill: &Fill, is_prefetch: bool, io: &mut Io<'_>) {
        for number in (0..fill.count).filter(|number| fill.admitted >> number & 1 == 1) {
            let key = fill.first + number;
            let region = self.geometry.region(key);
            let sent = fill.generations[number as usize];
            let is_raced = sent.is_none() || self.regions.stable_generation(region) != sent;
            if is_raced && self.rules.drop_raced_fills {
                self.counters.raced += 1;
                continue;
            }
            let Some(extent) = self.geometry.extent_of(key, &fill.bytes()) else { continue };
            let bytes = self.geometry.extent_range(key, extent);
            let len = (bytes.end - bytes.start) as usize;
            let from = (bytes.start - fill.offset) as usize;
            self.plain[..len].copy_from_slice(&self.scratch[from..from + len]);
            let before = self.cached_bytes();
            // What is brought ahead is known to be wanted: it need not prove itself first, and does
            // not evict what was brought before it.
            if self.cache_frame(key, extent, is_prefetch, io) {
                self.count_fill(key, self.cached_bytes().saturating_sub(before), is_prefetch);
            }
        }
    }

    /// Counts a frame that was cached and added so many bytes.
    fn count_fill(&mut self, key: u32, added_bytes: u64, is_prefetch: bool) {
        let stored = self.frames.find(key).map_or(0, |slot| self.frames.place(slot).stored);
        let counters = &mut self.counters;
        if is_prefetch {
            counters.prefetched += 1;
            counters.brought_bytes += added_bytes;
            counters.prefetched_bytes += u64::from(stored);
        } else {
            counters.filled += 1;
            counters.filled_bytes += added_bytes;
        }
    }

    /// Completes a read once; forgets it when nothing is under way any more.
    fn answer(&mut self, at: usize, result: IoResult, io: &mut Io<'_>) {
        let Some(read) = self.reads.get_mut(at) else { return };
        if !read.is_answered {
            read.is_answered = true;
            io.outputs.push(Output::Complete { id: read.id, result });
        }
        if read.pending == 0 && !read.is_on_disk {
            self.reads.remove(at);
        }
    }

    /// Reads all frames from the medium, or from the segments that are still in memory.
    fn read_medium(&mut self, at: usize, keys: RangeInclusive<u32>, io: &mut Io<'_>) {
        for key in keys {
            let Some(slot) = self.frames.find(key) else {
                return self.miss_after_all(at, io);
            };
            self.frames.set_hits(slot, self.frames.hits(slot) + 1);
            let place = self.frames.place(slot);
            let segment = &self.segments[usize::from(place.segment)];
            let sequence = segment.sequence;
            if let Some(memory) = segment.buffer {
                let start = u32::from(place.granule) * GRANULE_BYTES;
                let range = BufferRange { buffer: memory, start, len: u32::from(place.stored) };
                if !self.serve_frame(at, slot, key, range, io) {
                    return self.miss_after_all(at, io);
                }
                continue;
            }
            let Some(buffer) = self.io_buffers.pop() else {
                return self.miss_after_all(at, io);
            };
            let pending = |sealed| Pending::HitRead { read: at, slot, key, sequence, sealed };
            self.segments[usize::from(place.segment)].readers += 1;
            if let Some(read) = self.reads.get_mut(at) {
                read.pending += 1;
            }
            self.read_stored(place, buffer, pending, io);
        }
        self.answer_if_whole(at, io);
    }

    fn answer_if_whole(&mut self, at: usize, io: &mut Io<'_>) {
        let Some(read) = self.reads.get(at).copied() else { return };
        if read.pending > 0 {
            return;
        }
        if !read.is_failed && !read.is_answered {
            self.counters.hits += 1;
            self.counters.hit_seeks += u64::from(read.is_apart);
            self.counters.hit_bytes += read.data.map_or(0, |data| u64::from(data.len));
        }
        if !read.is_failed || read.is_answered {
            self.answer(at, Ok(()), io);
        }
    }

    /// The disk is read instead, once.
    fn miss_after_all(&mut self, at: usize, io: &mut Io<'_>) {
        let Some(read) = self.reads.get_mut(at) else { return };
        if !std::mem::replace(&mut read.is_failed, true) {
            self.read_disk(at, io);
        }
    }

    pub(crate) fn hit_read_ended(&mut self, pending: Pending, result: IoResult, io: &mut Io<'_>) {
        let Pending::HitRead { read: at, slot, key, sequence, sealed } = pending else {
            return;
        };
        let segment = usize::from(self.frames.place(slot).segment);
        self.segments[segment].readers = self.segments[segment].readers.saturating_sub(1);
        let mut is_failed = true;
        if let Some(read) = self.reads.get_mut(at) {
            read.pending -= 1;
            is_failed = read.is_failed;
        }
        if result.is_err() {
            self.medium_failed(io);
            self.miss_after_all(at, io);
        } else if !is_failed {
            let is_same = self.segments[segment].sequence == sequence;
            if !is_same || !self.serve_frame(at, slot, key, sealed, io) {
                self.miss_after_all(at, io);
            }
        }
        self.io_buffers.push(sealed.buffer);
        self.answer_if_whole(at, io);
    }

    /// Opens a frame and copies what the read wants of it; false if it is not that frame.
    fn serve_frame(
        &mut self,
        at: usize,
        slot: u32,
        key: u32,
        sealed: BufferRange,
        io: &mut Io<'_>,
    ) -> bool {
        let Some(read) = self.reads.get(at).copied() else { return false };
        let Some(data) = read.data else { return false };
        let held = self.geometry.extent_range(key, self.frames.place(slot).extent);
        let frame = self.geometry.frame_range(key);
        let wanted_end = frame.end.min(read.offset + u64::from(data.len));
        let wanted = frame.start.max(read.offset)..wanted_end;
        if wanted.start < held.start || held.end < wanted.end {
            return false;
        }
        self.packed[..sealed.len as usize].copy_from_slice(io.buffers.bytes(sealed));
        if !self.open_packed(slot, key, sealed.len as usize) {
            self.counters.medium_wrong += 1;
            if self.frames.find(key) == Some(slot) {
                self.frames.drop_key(key);
                self.remember(key);
            }
            self.medium_failed(io);
            return false;
        }
        let (from, len) = ((wanted.start - held.start) as usize, wanted.end - wanted.start);
        let part = data.part((wanted.start - read.offset) as u32, len as u32);
        io.buffers.bytes_mut(part).copy_from_slice(&self.plain[from..from + len as usize]);
        true
    }

    /// Opens what is in `packed` and restores it to `plain`.
    pub(crate) fn open_packed(&mut self, slot: u32, key: u32, stored: usize) -> bool {
        let place = self.frames.place(slot);
        let label = self.label(key, place);
        let cipher = &self.ciphers[self.cipher_number(place)].1;
        let Some(packed) = seal::open_frame(cipher, label, &mut self.packed[..stored]) else {
            return false;
        };
        let plain = &mut self.plain[..label.len as usize];
        if label.is_compressed {
            return self.codec.restore(packed, plain);
        }
        let is_whole = packed.len() == plain.len();
        if is_whole {
            plain.copy_from_slice(packed);
        }
        is_whole
    }

    /// Opens what is in `packed`, without restoring; the bytes without the tag.
    pub(crate) fn unseal_packed(&mut self, slot: u32, key: u32, stored: usize) -> Option<usize> {
        let place = self.frames.place(slot);
        let label = self.label(key, place);
        let cipher = &self.ciphers[self.cipher_number(place)].1;
        seal::open_frame(cipher, label, &mut self.packed[..stored])?;
        Some(stored - TAG_BYTES)
    }

    fn cipher_number(&self, place: Place) -> usize {
        usize::from(self.segments[usize::from(place.segment)].cipher)
    }

    /// What is authenticated with a frame that is at this place.
    pub(crate) fn label(&self, key: u32, place: Place) -> FrameLabel {
        let Place { segment, ordinal, extent, is_compressed, .. } = place;
        let sequence = self.segments[usize::from(segment)].sequence;
        let bytes = self.geometry.extent_range(key, extent);
        let len = (bytes.end - bytes.start) as u32;
        FrameLabel { key, first: extent.first, len, is_compressed, sequence, ordinal }
    }

    /// Reads what of the medium holds a frame into a buffer; `pending` gets where it is there.
    pub(crate) fn read_stored(
        &mut self,
        place: Place,
        buffer: BufferId,
        pending: impl FnOnce(BufferRange) -> Pending,
        io: &mut Io<'_>,
    ) {
        let unit = self.medium_read_bytes;
        let (start, len) = (u32::from(place.granule) * GRANULE_BYTES, u32::from(place.stored));
        let from = start / unit * unit;
        let offset = self.geometry.segment_start(u32::from(place.segment)) + u64::from(from);
        let data = BufferRange::first(buffer, (start + len).next_multiple_of(unit) - from);
        let sealed = BufferRange { buffer, start: start - from, len };
        self.operate(Device::Cache, Operation::Read { offset, data }, pending(sealed), io);
    }

    /// Reads that wait for the medium for too long go to the disk.
    pub(crate) fn time_out_reads(&mut self, io: &mut Io<'_>) {
        for at in 0..self.reads.numbers_end() {
            let is_late = self.reads.get(at).is_some_and(|read| {
                let waited = self.now_ns.saturating_sub(read.sent_ns);
                read.pending > 0 && !read.is_failed && waited > self.limits.medium_timeout_ns
            });
            if is_late {
                self.medium_failed(io);
                self.miss_after_all(at, io);
            }
        }
    }
}
