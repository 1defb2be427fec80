//! SIEVE (Zhang and others, NSDI 2024): a FIFO with one hand that spares what was requested.
//!
//! 1. A hit sets the slot's mark.
//! 2. To evict, the hand goes from the back to the front, clears marks, and takes the first slot
//!    without one. From the front it starts again at the back.
//! 3. New slots come in at the front. Spared slots stay where they are, unlike in CLOCK.

use std::num::NonZeroU32;

use super::{Eviction, Placement};
use crate::lists::{Links, List};

/// A FIFO whose hand spares requested slots in place.
#[derive(Clone, Debug)]
pub struct Sieve {
    links: Links,
    held: List,
    /// Where the search goes on; from the back if `None`.
    hand: Option<u32>,
    is_marked: Box<[bool]>,
}

impl Sieve {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        Self {
            links: Links::new(slots.get()),
            held: List::EMPTY,
            hand: None,
            is_marked: vec![false; slots.get() as usize].into_boxed_slice(),
        }
    }

    /// Moves the hand to the first slot without a mark, past it, and gives that slot.
    fn sweep(&mut self) -> u32 {
        let back = self.held.back().expect("a cache without a free slot holds one");
        let mut slot = self.hand.unwrap_or(back);
        while std::mem::take(&mut self.is_marked[slot as usize]) {
            slot = self.links.towards_front(slot).unwrap_or(back);
        }
        self.hand = self.links.towards_front(slot);
        slot
    }
}

impl Eviction for Sieve {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.is_marked[slot as usize] = true;
    }

    #[inline]
    fn admit(&mut self, _key: u64) -> Placement {
        if let Some(slot) = self.links.take_free() {
            self.links.push_front(&mut self.held, slot);
            return Placement::Free(slot);
        }
        let slot = self.sweep();
        self.links.move_to_front(&mut self.held, slot);
        Placement::Evicted(slot)
    }

    fn remove(&mut self, slot: u32) {
        if self.hand == Some(slot) {
            self.hand = self.links.towards_front(slot);
        }
        self.links.unlink(&mut self.held, slot);
        self.links.free(slot);
        self.is_marked[slot as usize] = false;
    }
}
