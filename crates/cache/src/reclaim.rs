//! Reclaiming the oldest segment of a queue: what is worth it moves to the main queue, the rest is
//! evicted.
//!
//! One frame at a time is read from the medium, opened and sealed anew; nothing is decompressed. A
//! frame that was written meanwhile is dropped already, and one that cannot be read is.
//!
//! A move is a write: the budget of the day pays for it, and without budget the frame is evicted.
//! While nothing becomes free, each segment that was filled by moves asks for one hit more, so that
//! after three of them everything goes.

use model::engine::{BufferRange, IoResult};
use policy::eviction::LogQueue;

use crate::attach::{Cache, Io, Pending, Phase, queue_index};
use crate::frames::{NONE, Place};
use crate::log::{Packed, Segment, SegmentState};

/// Free segments below which one is reclaimed.
const FREE_MIN: usize = 2;

/// The segment that is being reclaimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reclaim {
    segment: u16,
    /// The slot that is next.
    slot: u32,
    /// The frame that is being read, with the hits that it keeps.
    moved: Option<(u32, u32, u8)>,
}

impl Cache {
    /// Goes on with the segment that is being reclaimed, or begins with one if few are free.
    pub(crate) fn drive_reclaim(&mut self, io: &mut Io<'_>) {
        if self.phase != Phase::Running || !self.is_on() {
            return;
        }
        if self.reclaim.is_none() {
            self.begin_reclaim();
        }
        while let Some(reclaim) = self.reclaim.filter(|reclaim| reclaim.moved.is_none()) {
            if reclaim.slot == NONE {
                if self.segments[usize::from(reclaim.segment)].readers > 0 {
                    return;
                }
                self.end_reclaim(reclaim.segment);
                return;
            }
            if !self.reclaim_slot(reclaim, io) {
                return;
            }
        }
    }

    fn begin_reclaim(&mut self) {
        let is_short =
            self.free.len() < FREE_MIN || self.frames.free_slots() < self.geometry.entries_max();
        let [small, main] = [&self.queues[0], &self.queues[1]].map(|queue| queue.len() as u32);
        if !is_short {
            self.moved_bytes = 0;
        }
        if !is_short || small + main == 0 {
            return;
        }
        let queue = self.policy.reclaims(small, main);
        if let Some(segment) = self.queues[queue_index(queue)].pop_front() {
            let slot = self.segments[usize::from(segment)].list.first;
            self.reclaim = Some(Reclaim { segment, slot, moved: None });
        }
    }

    /// Moves or evicts the frame in a slot; false if it must be waited for.
    fn reclaim_slot(&mut self, reclaim: Reclaim, io: &mut Io<'_>) -> bool {
        let slot = reclaim.slot;
        let next = Reclaim { slot: self.frames.next(slot), ..reclaim };
        self.reclaim = Some(next);
        let Some(key) = self.frames.key(slot) else { return true };
        let place = self.frames.place(slot);
        let queue = self.segments[usize::from(reclaim.segment)].queue;
        let hits = self.frames.hits(slot);
        let is_paid = self.budget >= u64::from(place.stored) && self.gains_enough(hits);
        let kept = self.policy.keeps(queue, u64::from(key), hits).filter(|_| is_paid);
        let Some(hits) = kept else {
            self.frames.drop_key(key);
            self.counters.evicted += 1;
            return true;
        };
        let buffer = if self.has_buffer_for(place.stored) { self.io_buffers.pop() } else { None };
        let Some(buffer) = buffer else {
            // One comes back with what is under way.
            self.reclaim = Some(reclaim);
            return false;
        };
        self.reclaim = Some(Reclaim { moved: Some((slot, key, hits)), ..next });
        self.read_stored(place, buffer, |sealed| Pending::ReclaimRead { sealed }, io);
        false
    }

    /// Whether a frame with so many hits is worth a move, after what was moved for nothing so far.
    fn gains_enough(&self, hits: u8) -> bool {
        u64::from(hits) > self.moved_bytes / u64::from(self.geometry.segment_bytes)
    }

    pub(crate) fn reclaim_read_ended(
        &mut self,
        sealed: BufferRange,
        result: IoResult,
        io: &mut Io<'_>,
    ) {
        let moved = self.reclaim.as_mut().and_then(|reclaim| reclaim.moved.take());
        if let Some((slot, key, hits)) = moved.filter(|(slot, key, _)| {
            // It may have been written meanwhile.
            self.frames.find(*key) == Some(*slot)
        }) {
            let is_moved = result.is_ok() && self.move_frame(slot, key, hits, sealed, io);
            if !is_moved && self.frames.find(key) == Some(slot) {
                self.frames.drop_key(key);
                self.counters.evicted += 1;
            }
            self.counters.moved += u64::from(is_moved);
        }
        self.io_buffers.push(sealed.buffer);
        if result.is_err() {
            self.medium_failed(io);
        }
    }

    fn move_frame(
        &mut self,
        slot: u32,
        key: u32,
        hits: u8,
        sealed: BufferRange,
        io: &mut Io<'_>,
    ) -> bool {
        let place = self.frames.place(slot);
        let stored = usize::from(place.stored);
        self.packed[..stored].copy_from_slice(io.buffers.bytes(sealed));
        let Some(payload) = self.unseal_packed(slot, key, stored) else {
            self.counters.medium_wrong += 1;
            self.medium_failed(io);
            return false;
        };
        let Place { extent, is_compressed, .. } = place;
        let frame = Packed { key, extent, payload, is_compressed, hits };
        let is_moved = self.append(LogQueue::Main, frame, true, io);
        self.moved_bytes += if is_moved { u64::from(place.stored) } else { 0 };
        is_moved
    }

    fn end_reclaim(&mut self, segment: u16) {
        self.counters.reclaimed += 1;
        let known = &mut self.segments[usize::from(segment)];
        debug_assert_eq!(known.state, SegmentState::Full);
        self.frames.free_list(&mut known.list);
        *known = Segment::FREE;
        self.free.push_back(segment);
        self.reclaim = None;
    }
}
