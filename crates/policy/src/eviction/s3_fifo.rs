//! S3-FIFO (Yang and others, SOSP 2023): a small FIFO filters what a main FIFO keeps.
//!
//! 1. A new key enters the small queue; one whose ghost is found enters the main queue.
//! 2. A hit counts, up to three.
//! 3. If the main queue has at most 90 % of the slots, the back of the small queue goes: to the
//!    main queue if it was hit twice or more, else out, and its key becomes a ghost.
//! 4. Else the back of the main queue goes: to its front if it was hit, with one hit less, else out
//!    without a ghost.
//!
//! There are as many ghosts as slots in the main queue. The figures are those of the paper.

use std::num::NonZeroU32;

use super::ghosts::Ghosts;
use super::{Eviction, Placement, percent};
use crate::lists::{Links, List};

/// Percent of the slots that the small queue has when the cache is full.
const SMALL_PERCENT: u32 = 10;

/// Hits that lead from the small queue to the main queue.
const PROMOTING_HITS: u8 = 2;

/// Hits beyond this many are not counted: two bits.
const HITS_MAX: u8 = 3;

/// Two FIFO queues and the ghosts of the small one.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    /// The most slots of the main queue while the small queue holds one.
    main_slots: u32,
    keys: Box<[u64]>,
    hits: Box<[u8]>,
    is_main: Box<[bool]>,
    ghosts: Ghosts<1>,
}

impl S3Fifo {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        let main_slots = slots.get() - percent(slots, SMALL_PERCENT);
        let count = slots.get() as usize;
        Self {
            links: Links::new(slots.get()),
            small: List::EMPTY,
            main: List::EMPTY,
            main_slots,
            keys: vec![0; count].into_boxed_slice(),
            hits: vec![0; count].into_boxed_slice(),
            is_main: vec![false; count].into_boxed_slice(),
            ghosts: Ghosts::new(percent(slots, 100 - SMALL_PERCENT)),
        }
    }

    /// Takes the slot that gives way out of its queue.
    fn evict(&mut self) -> u32 {
        loop {
            let from_main = self.main.len() > self.main_slots || self.small.is_empty();
            let evicted = if from_main { self.evict_main() } else { self.evict_small() };
            if let Some(slot) = evicted {
                return slot;
            }
        }
    }

    /// Moves the back of the small queue to the main queue or out.
    fn evict_small(&mut self) -> Option<u32> {
        while let Some(slot) = self.small.back() {
            self.links.unlink(&mut self.small, slot);
            if self.hits[slot as usize] < PROMOTING_HITS {
                self.ghosts.push(0, self.keys[slot as usize]);
                return Some(slot);
            }
            self.enter_main(slot, 0);
        }
        None
    }

    /// Moves the back of the main queue to its front or out.
    fn evict_main(&mut self) -> Option<u32> {
        while let Some(slot) = self.main.back() {
            self.links.unlink(&mut self.main, slot);
            let hits = self.hits[slot as usize];
            if hits == 0 {
                return Some(slot);
            }
            self.enter_main(slot, hits - 1);
        }
        None
    }

    #[inline]
    fn enter_main(&mut self, slot: u32, hits: u8) {
        self.hits[slot as usize] = hits;
        self.is_main[slot as usize] = true;
        self.links.push_front(&mut self.main, slot);
    }
}

impl Eviction for S3Fifo {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        let hits = &mut self.hits[slot as usize];
        *hits = (*hits + 1).min(HITS_MAX);
    }

    #[inline]
    fn admit(&mut self, key: u64) -> Placement {
        let was_ghost = self.ghosts.take(key).is_some();
        let placement = match self.links.take_free() {
            Some(slot) => Placement::Free(slot),
            None => Placement::Evicted(self.evict()),
        };
        let slot = placement.slot();
        self.keys[slot as usize] = key;
        if was_ghost {
            self.enter_main(slot, 0);
        } else {
            self.hits[slot as usize] = 0;
            self.is_main[slot as usize] = false;
            self.links.push_front(&mut self.small, slot);
        }
        placement
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_main[slot as usize] { &mut self.main } else { &mut self.small };
        self.links.unlink(list, slot);
        self.links.free(slot);
    }
}
