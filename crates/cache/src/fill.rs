//! What a driver that fills the cache ahead asks: whether a frame would be cached now, how much a
//! fill may bring, and what of a range is cached. Nothing here changes what is cached.

use crate::attach::{Cache, Phase, queue_index};
use crate::log::RESERVED;
use crate::seal::TAG_BYTES;
use policy::eviction::LogQueue;

/// Whether a frame that is read ahead now would be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillRoom {
    /// It would.
    Ready,
    /// Not yet: the cache begins, or waits for its medium to take what it has.
    Busy,
    /// The budget of the day is used up.
    BudgetUsed,
    /// The medium is not used.
    Off,
}

/// What of a range of the volume is cached, in bytes of the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// In the cache.
    pub cached_bytes: u64,
    /// Not there, but the next read caches it: it, or another block of its frame, was read lately.
    pub read_once_bytes: u64,
}

impl Cache {
    /// Whether a frame that is read ahead now would be cached.
    #[must_use]
    pub fn fill_room(&self) -> FillRoom {
        match self.phase {
            Phase::Detaching(_) | Phase::Detached => return FillRoom::Off,
            Phase::Starting | Phase::Recovering(_) => return FillRoom::Busy,
            Phase::Running if !self.is_on() => return FillRoom::Off,
            Phase::Running => {}
        }
        if self.budget < u64::from(self.geometry.frame_bytes) {
            return FillRoom::BudgetUsed;
        }
        let is_begun = self.journal.is_attached && self.regions.has_flushed();
        if is_begun && !self.io_buffers.is_empty() && self.has_segment_for_a_frame() {
            FillRoom::Ready
        } else {
            FillRoom::Busy
        }
    }

    /// Whether the main queue has a segment that takes one more frame, or may begin one.
    fn has_segment_for_a_frame(&self) -> bool {
        let stored = self.geometry.frame_bytes + TAG_BYTES as u32;
        let is_open = self.open[queue_index(LogQueue::Main)].is_some_and(|open| {
            self.has_room(open, stored.next_multiple_of(crate::format::GRANULE_BYTES))
        });
        let may_begin = !self.segment_buffers.is_empty() && self.free.len() > RESERVED;
        self.frames.free_slots() > 0 && (is_open || may_begin)
    }

    /// Bytes of the medium that a fill may take in all. More would evict what it brought first.
    #[must_use]
    pub fn fill_bytes_max(&self) -> u64 {
        let segment = self.geometry.segment_bytes - self.geometry.summary_bytes();
        // A tenth is for what is read for the first time. Two segments are open, and two are free.
        let segments = (self.geometry.segments * 9 / 10).saturating_sub(4).max(1);
        u64::from(segment) * u64::from(segments)
    }

    /// Frames that a fill may bring in all, however well they compress.
    #[must_use]
    pub fn fill_frames_max(&self) -> u64 {
        // Segments are reclaimed when there are slots for less than one.
        let spare = 2 * self.geometry.entries_max();
        u64::from((self.limits.frames_max / 10 * 9).saturating_sub(spare).max(1))
    }

    /// Bytes that may be written to the medium now.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.budget
    }

    /// Leaves no more than this of the budget of the day: a process before used the rest.
    pub fn limit_budget(&mut self, left_bytes: u64) {
        self.budget = self.budget.min(left_bytes);
    }

    /// The budget of a day.
    #[must_use]
    pub fn budget_bytes_per_day(&self) -> u64 {
        self.limits.budget_bytes_per_day
    }

    /// Bytes of a frame: what is cached together.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        self.geometry.frame_bytes
    }

    /// What of `len` bytes from `offset` on is cached; what is behind the end of the volume is not.
    #[must_use]
    pub fn coverage(&self, offset: u64, len: u64) -> Coverage {
        let frame = u64::from(self.geometry.frame_bytes);
        let end = offset.saturating_add(len).min(self.geometry.volume_bytes);
        let mut coverage = Coverage::default();
        let mut at = offset;
        while at < end {
            // A volume has fewer frames than there are keys.
            let key = (at / frame) as u32;
            let next = self.geometry.frame_range(key).end.min(end);
            if let Some(slot) = self.frames.find(key) {
                let held = self.geometry.extent_range(key, self.frames.place(slot).extent);
                let cached = next.min(held.end).saturating_sub(at.max(held.start));
                coverage.cached_bytes += cached;
                coverage.read_once_bytes += next - at - cached;
            } else if self.second.has(u64::from(key)) {
                coverage.read_once_bytes += next - at;
            }
            at = next;
        }
        coverage
    }
}
