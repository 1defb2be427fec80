//! LRU: what was not requested for the longest time goes first. A hit moves its slot in a list;
//! one scan of the size of the cache evicts all of it.

use std::num::NonZeroU32;

use super::{Eviction, Placement};
use crate::lists::{Links, List};

/// Least recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    held: List,
}

impl Lru {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        Self { links: Links::new(slots.get()), held: List::EMPTY }
    }
}

impl Eviction for Lru {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.links.move_to_front(&mut self.held, slot);
    }

    #[inline]
    fn admit(&mut self, _key: u64) -> Placement {
        replace_back(&mut self.links, &mut self.held)
    }

    fn remove(&mut self, slot: u32) {
        self.links.unlink(&mut self.held, slot);
        self.links.free(slot);
    }
}

/// Puts a free slot at the front of `held`, or the one at its back if none is free.
#[inline]
pub(super) fn replace_back(links: &mut Links, held: &mut List) -> Placement {
    if let Some(slot) = links.take_free() {
        links.push_front(held, slot);
        return Placement::Free(slot);
    }
    let slot = held.back().expect("a cache of at least one slot without a free one holds one");
    links.move_to_front(held, slot);
    Placement::Evicted(slot)
}
