//! The log: frames are appended to a segment in memory, and whole segments are written.
//!
//! Two segments are open, one of each queue of S3-FIFO. The last free segment is kept for what
//! moves when another one is reclaimed, so that fills can never block that.

use model::engine::{BufferId, BufferRange, Device, IoResult, Operation};
use policy::eviction::LogQueue;

use crate::attach::{Cache, Io, Pending, Phase, first, queue_index};
use crate::format::{self, BLOCK_BYTES, Entry, Extent, GRANULE_BYTES, SummaryHead};
use crate::frames::{NONE, Place, SlotList};
use crate::seal::{TAG_BYTES, seal_frame};

/// Free segments that fills leave alone.
pub(crate) const RESERVED: usize = 1;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// Nothing.
    Free,
    /// It is being filled.
    Open,
    /// It is being written.
    Writing,
    /// It is on the medium.
    Full,
}

/// A segment as it is known in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) state: SegmentState,
    pub(crate) sequence: u64,
    /// The place of its key among the ciphers.
    pub(crate) cipher: u8,
    pub(crate) queue: LogQueue,
    /// Frames that were put into it.
    pub(crate) count: u16,
    /// Its frames.
    pub(crate) list: SlotList,
    /// Reads of it that are under way.
    pub(crate) readers: u32,
    /// Where it is until it is on the medium.
    pub(crate) buffer: Option<BufferId>,
}

impl Segment {
    pub(crate) const FREE: Self = Self {
        state: SegmentState::Free,
        sequence: 0,
        cipher: 0,
        queue: LogQueue::Small,
        count: 0,
        list: SlotList::EMPTY,
        readers: 0,
        buffer: None,
    };
}

/// A frame that is to be sealed: its payload is in `packed`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    pub(crate) key: u32,
    pub(crate) extent: Extent,
    pub(crate) payload: usize,
    pub(crate) is_compressed: bool,
    pub(crate) hits: u8,
}

/// A segment that is being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSegment {
    pub(crate) segment: u16,
    buffer: BufferId,
    /// Its bytes so far, with the room of the summary.
    used: u32,
}

impl Cache {
    /// Caches the blocks of a frame that are in `plain`; whether they are cached now. They replace
    /// what is cached of the frame, if they have all of that.
    pub(crate) fn cache_frame(
        &mut self,
        key: u32,
        extent: Extent,
        is_known: bool,
        io: &mut Io<'_>,
    ) -> bool {
        if self.phase != Phase::Running || !self.is_on() || !self.journal.is_attached {
            return false;
        }
        // What the disk held at the start may be lost until a flush has succeeded.
        if !self.regions.has_flushed() {
            return false;
        }
        let region = self.geometry.region(key);
        if self.rules.mark_before_keeping && !self.regions.may_keep(region) {
            // Once it is marked, the next miss need not be the second one.
            self.regions.want(region);
            self.remember(key);
            return false;
        }
        let before = self.frames.find(key).map(|slot| (self.frames.place(slot), slot));
        if before.is_some_and(|(at, _)| at.extent == extent || !extent.holds(at.extent)) {
            return false;
        }
        let bytes = self.geometry.extent_range(key, extent);
        let len = (bytes.end - bytes.start) as usize;
        let room = self.packed.len() - TAG_BYTES;
        let plain = &self.plain[..len];
        let compressed = self.codec.compress(plain, &mut self.packed[..room]);
        let payload = compressed.unwrap_or(len);
        if compressed.is_none() {
            self.packed[..payload].copy_from_slice(plain);
        }
        if self.budget < payload as u64 {
            self.counters.refused_budget += 1;
            return false;
        }
        // A frame that grows stays in its queue.
        let is_main = before
            .is_some_and(|(at, _)| self.segments[usize::from(at.segment)].queue == LogQueue::Main);
        let queue = match self.policy.enter(u64::from(key)) {
            LogQueue::Small if is_known || is_main => LogQueue::Main,
            queue => queue,
        };
        let hits = before.map_or(0, |(_, slot)| self.frames.hits(slot));
        let frame = Packed { key, extent, payload, is_compressed: compressed.is_some(), hits };
        let is_cached = self.append(queue, frame, false, io);
        self.counters.refused_full += u64::from(!is_cached);
        is_cached
    }

    /// Seals the payload in `packed` into the open segment of a queue. A frame of that key that is
    /// cached elsewhere is dropped there.
    pub(crate) fn append(
        &mut self,
        queue: LogQueue,
        Packed { key, extent, payload, is_compressed, hits }: Packed,
        is_move: bool,
        io: &mut Io<'_>,
    ) -> bool {
        let stored = (payload + TAG_BYTES) as u32;
        let room = stored.next_multiple_of(GRANULE_BYTES);
        let Some(open) = self.open_for(queue, room, is_move, io) else { return false };
        let number = usize::from(open.segment);
        let ordinal = self.segments[number].count;
        let place = Place {
            segment: open.segment,
            granule: (open.used / GRANULE_BYTES) as u16,
            stored: stored as u16,
            ordinal,
            extent,
            is_compressed,
        };
        let label = self.label(key, place);
        seal_frame(&self.ciphers[0].1, label, &mut self.packed[..stored as usize]);
        let range = BufferRange { buffer: open.buffer, start: open.used, len: stored };
        io.buffers.bytes_mut(range).copy_from_slice(&self.packed[..stored as usize]);
        self.frames.drop_key(key);
        self.regions.keep(self.geometry.region(key));
        let Some(slot) = self.frames.insert(key, place, &mut self.segments[number].list) else {
            return false;
        };
        self.frames.set_hits(slot, hits);
        self.segments[number].count += 1;
        if let Some(open) = &mut self.open[queue_index(queue)] {
            open.used += room;
        }
        true
    }

    /// The open segment of a queue with room for so many bytes, made if need be.
    fn open_for(
        &mut self,
        queue: LogQueue,
        room: u32,
        is_move: bool,
        io: &mut Io<'_>,
    ) -> Option<OpenSegment> {
        let at = queue_index(queue);
        if let Some(open) = self.open[at] {
            if self.has_room(open, room) && self.frames.free_slots() > 0 {
                return Some(open);
            }
            self.close(queue, io);
        }
        let reserved = if is_move { 0 } else { RESERVED };
        if self.free.len() <= reserved || self.frames.free_slots() == 0 {
            return None;
        }
        let buffer = self.segment_buffers.pop()?;
        let segment = self.free.pop_front()?;
        self.segments[usize::from(segment)] = Segment {
            state: SegmentState::Open,
            sequence: self.next_sequence,
            queue,
            buffer: Some(buffer),
            ..Segment::FREE
        };
        self.next_sequence += 1;
        let open = OpenSegment { segment, buffer, used: self.geometry.summary_bytes() };
        self.open[at] = Some(open);
        self.open[at]
    }

    pub(crate) fn has_room(&self, open: OpenSegment, room: u32) -> bool {
        let count = u32::from(self.segments[usize::from(open.segment)].count);
        open.used + room <= self.geometry.segment_bytes && count < self.geometry.entries_max()
    }

    /// Whether a frame of so many stored bytes finds memory in a segment of the main queue. If not,
    /// segments are being written, and their buffers come back.
    pub(crate) fn has_buffer_for(&self, stored: u16) -> bool {
        let room = u32::from(stored).next_multiple_of(GRANULE_BYTES);
        let open = self.open[queue_index(LogQueue::Main)];
        !self.segment_buffers.is_empty() || open.is_some_and(|open| self.has_room(open, room))
    }

    /// Writes the open segment of a queue to the medium.
    pub(crate) fn close(&mut self, queue: LogQueue, io: &mut Io<'_>) {
        let Some(open) = self.open[queue_index(queue)].take() else { return };
        let number = usize::from(open.segment);
        if !self.is_on() {
            self.lose_segment(open.segment, open.buffer);
            return;
        }
        let segment = self.segments[number];
        let head = SummaryHead {
            sequence: segment.sequence,
            salt: self.ciphers[0].0,
            count: segment.count,
            is_main: queue == LogQueue::Main,
        };
        let frames = &self.frames;
        let mut slot = segment.list.first;
        let entries = std::iter::from_fn(|| {
            let at = (slot != NONE).then_some(slot)?;
            slot = frames.next(at);
            let Place { extent, stored, is_compressed, .. } = frames.place(at);
            // What was dropped meanwhile keeps its place, without its name.
            let key = frames.key(at).unwrap_or(NONE);
            Some(Entry { key, extent, stored, is_compressed })
        });
        let summary = first(open.buffer, self.geometry.summary_bytes());
        let bytes = io.buffers.bytes_mut(summary);
        format::write_summary(bytes, u32::from(open.segment), head, entries, &self.ciphers[0].1);
        let used = open.used.next_multiple_of(BLOCK_BYTES).min(self.geometry.segment_bytes);
        let rest = BufferRange { buffer: open.buffer, start: open.used, len: used - open.used };
        io.buffers.bytes_mut(rest).fill(0);
        self.segments[number].state = SegmentState::Writing;
        self.counters.medium_bytes += u64::from(used);
        self.budget = self.budget.saturating_sub(u64::from(used));
        let offset = self.geometry.segment_start(u32::from(open.segment));
        let pending = Pending::SegmentWrite { segment: open.segment, buffer: open.buffer };
        let operation = Operation::Write { offset, data: first(open.buffer, used) };
        self.operate(Device::Cache, operation, pending, io);
    }

    pub(crate) fn segment_write_ended(
        &mut self,
        segment: u16,
        buffer: BufferId,
        result: IoResult,
        io: &mut Io<'_>,
    ) {
        if result.is_err() {
            self.lose_segment(segment, buffer);
            return self.medium_failed(io);
        }
        let known = &mut self.segments[usize::from(segment)];
        known.state = SegmentState::Full;
        known.buffer = None;
        self.queues[queue_index(known.queue)].push_back(segment);
        self.segment_buffers.push(buffer);
        self.flush_medium(io);
    }

    /// Drops what is in a segment that never got to the medium.
    fn lose_segment(&mut self, segment: u16, buffer: BufferId) {
        self.frames.free_list(&mut self.segments[usize::from(segment)].list);
        self.segments[usize::from(segment)] = Segment::FREE;
        self.free.push_back(segment);
        self.segment_buffers.push(buffer);
    }
}
