//! W-TinyLFU (Einziger, Friedman and Manes, 2017): a small LRU window before a main cache that only
//! takes what is requested more often than what it would evict.
//!
//! 1. A new key enters the window, 1 % of the slots.
//! 2. The back of a full window challenges the victim of the main cache: the one that was requested
//!    more often by the sketch stays; if equal, the main cache's.
//! 3. The main cache is a segmented LRU: a hit leads from `probation` to `protected`, 80 % of it;
//!    what falls out of `protected` goes back to the front of `probation`.
//!
//! Ties are not drawn by lot, as some implementations do against chosen keys: decisions repeat.

use std::num::NonZeroU32;

use super::sketch::Sketch;
use super::{Eviction, Placement, percent};
use crate::lists::{Links, List};

/// Percent of the slots that the window has, at least one slot.
const WINDOW_PERCENT: u32 = 1;

/// Percent of the main cache's slots that are protected.
const PROTECTED_PERCENT: u64 = 80;

/// Which list holds a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Window,
    Probation,
    Protected,
}

/// A window, a main cache of two segments, and the sketch that decides between them.
#[derive(Clone, Debug)]
pub struct WTinyLfu {
    links: Links,
    window: List,
    probation: List,
    protected: List,
    window_slots: u32,
    protected_slots: u32,
    keys: Box<[u64]>,
    segments: Box<[Segment]>,
    sketch: Sketch,
}

impl WTinyLfu {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        let window_slots = percent(slots, WINDOW_PERCENT).max(1);
        let main_slots = u64::from(slots.get() - window_slots);
        let count = slots.get() as usize;
        Self {
            links: Links::new(slots.get()),
            window: List::EMPTY,
            probation: List::EMPTY,
            protected: List::EMPTY,
            window_slots,
            protected_slots: (main_slots * PROTECTED_PERCENT / 100) as u32,
            keys: vec![0; count].into_boxed_slice(),
            segments: vec![Segment::Window; count].into_boxed_slice(),
            sketch: Sketch::new(slots),
        }
    }

    fn list(&mut self, segment: Segment) -> (&mut Links, &mut List) {
        let list = match segment {
            Segment::Window => &mut self.window,
            Segment::Probation => &mut self.probation,
            Segment::Protected => &mut self.protected,
        };
        (&mut self.links, list)
    }

    fn unlink(&mut self, slot: u32) {
        let (links, list) = self.list(self.segments[slot as usize]);
        links.unlink(list, slot);
    }

    fn enter(&mut self, segment: Segment, slot: u32) {
        self.segments[slot as usize] = segment;
        let (links, list) = self.list(segment);
        links.push_front(list, slot);
    }

    /// Takes out the slot that gives way; the window's back moves to the main cache if it wins.
    fn evict(&mut self) -> u32 {
        let candidate = self.window.back();
        let victim = self.probation.back().or(self.protected.back());
        let loser = match (candidate, victim) {
            (Some(candidate), Some(victim)) => {
                let estimate = |slot: u32| self.sketch.estimate(self.keys[slot as usize]);
                if estimate(candidate) > estimate(victim) { victim } else { candidate }
            }
            (only, other) => only.or(other).expect("a cache without a free slot holds one"),
        };
        self.unlink(loser);
        if let Some(candidate) = candidate.filter(|&candidate| candidate != loser) {
            self.unlink(candidate);
            self.enter(Segment::Probation, candidate);
        }
        loser
    }
}

impl Eviction for WTinyLfu {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.sketch.count(self.keys[slot as usize]);
        if self.segments[slot as usize] != Segment::Probation {
            let (links, list) = self.list(self.segments[slot as usize]);
            links.move_to_front(list, slot);
            return;
        }
        self.unlink(slot);
        self.enter(Segment::Protected, slot);
        if self.protected.len() > self.protected_slots {
            let demoted = self.protected.back().unwrap_or(slot);
            self.unlink(demoted);
            self.enter(Segment::Probation, demoted);
        }
    }

    #[inline]
    fn admit(&mut self, key: u64) -> Placement {
        self.sketch.count(key);
        let placement = match self.links.take_free() {
            Some(slot) => Placement::Free(slot),
            None => Placement::Evicted(self.evict()),
        };
        let slot = placement.slot();
        self.keys[slot as usize] = key;
        self.enter(Segment::Window, slot);
        if self.window.len() > self.window_slots {
            let moved = self.window.back().unwrap_or(slot);
            self.unlink(moved);
            self.enter(Segment::Probation, moved);
        }
        placement
    }

    fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.links.free(slot);
    }
}
