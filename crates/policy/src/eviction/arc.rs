//! ARC (Megiddo and Modha, FAST 2003): two LRU lists whose sizes follow the ghosts of both.
//!
//! 1. `recent` (T1) has what was requested once, `frequent` (T2) what was requested again.
//! 2. What leaves them becomes a ghost in B1 or B2. A ghost of B1 that is requested raises the
//!    target size of `recent`, one of B2 lowers it; the key enters `frequent`.
//! 3. `recent` gives way while it is larger than its target, else `frequent`.
//! 4. `recent` and B1 have at most as many keys as there are slots, all four lists twice as many.

use std::num::NonZeroU32;

use super::ghosts::Ghosts;
use super::{Eviction, Placement};
use crate::lists::{Links, List};

/// The ghosts of `recent`.
const B1: usize = 0;
/// The ghosts of `frequent`.
const B2: usize = 1;

/// An adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Arc {
    links: Links,
    recent: List,
    frequent: List,
    /// Slots that `recent` should have; p in the paper.
    target: f64,
    keys: Box<[u64]>,
    is_frequent: Box<[bool]>,
    ghosts: Ghosts<2>,
}

impl Arc {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        let count = slots.get() as usize;
        Self {
            links: Links::new(slots.get()),
            recent: List::EMPTY,
            frequent: List::EMPTY,
            target: 0.0,
            keys: vec![0; count].into_boxed_slice(),
            is_frequent: vec![false; count].into_boxed_slice(),
            ghosts: Ghosts::new(slots.get()),
        }
    }

    /// Moves the target towards the list whose ghost was requested, and removes the ghost.
    fn adapt(&mut self, key: u64) -> Option<usize> {
        let list = self.ghosts.find(key)?;
        let (b1, b2) = (f64::from(self.ghosts.len(B1)), f64::from(self.ghosts.len(B2)));
        self.target = if list == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.slots()))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
        self.ghosts.take(key)
    }

    /// Takes the slot that gives way to a key that had a ghost in `ghost`, or had none.
    fn evict(&mut self, ghost: Option<usize>) -> u32 {
        if ghost.is_some() {
            return self.replace(ghost);
        }
        let slots = u64::from(self.slots());
        let once = u64::from(self.recent.len()) + u64::from(self.ghosts.len(B1));
        let again = u64::from(self.frequent.len()) + u64::from(self.ghosts.len(B2));
        if once >= slots {
            if !self.ghosts.drop_oldest(B1) {
                return self.take_back(false);
            }
        } else if once + again >= 2 * slots {
            self.ghosts.drop_oldest(B2);
        }
        self.replace(None)
    }

    /// Takes the back of one list and leaves its key as a ghost.
    fn replace(&mut self, ghost: Option<usize>) -> u32 {
        let recent = f64::from(self.recent.len());
        let over = recent > self.target || (recent == self.target && ghost == Some(B2));
        let from_recent = (!self.recent.is_empty() && over) || self.frequent.is_empty();
        let slot = self.take_back(!from_recent);
        self.ghosts.push(if from_recent { B1 } else { B2 }, self.keys[slot as usize]);
        slot
    }

    fn take_back(&mut self, of_frequent: bool) -> u32 {
        let list = if of_frequent { &mut self.frequent } else { &mut self.recent };
        let slot = list.back().expect("the caller chose a list that holds a slot");
        self.links.unlink(list, slot);
        slot
    }
}

impl Eviction for Arc {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        if self.is_frequent[slot as usize] {
            self.links.move_to_front(&mut self.frequent, slot);
        } else {
            self.links.unlink(&mut self.recent, slot);
            self.is_frequent[slot as usize] = true;
            self.links.push_front(&mut self.frequent, slot);
        }
    }

    #[inline]
    fn admit(&mut self, key: u64) -> Placement {
        let ghost = self.adapt(key);
        let placement = match self.links.take_free() {
            Some(slot) => Placement::Free(slot),
            None => Placement::Evicted(self.evict(ghost)),
        };
        let slot = placement.slot();
        self.keys[slot as usize] = key;
        self.is_frequent[slot as usize] = ghost.is_some();
        let list = if ghost.is_some() { &mut self.frequent } else { &mut self.recent };
        self.links.push_front(list, slot);
        placement
    }

    fn remove(&mut self, slot: u32) {
        let is_frequent = self.is_frequent[slot as usize];
        let list = if is_frequent { &mut self.frequent } else { &mut self.recent };
        self.links.unlink(list, slot);
        self.links.free(slot);
    }
}
