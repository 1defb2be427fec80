//! FIFO: what came first goes first, whether it was requested again or not. The baseline: a hit
//! costs nothing.

use std::num::NonZeroU32;

use super::{Eviction, Placement};
use crate::lists::{Links, List};

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo {
    links: Links,
    held: List,
}

impl Fifo {
    /// An empty cache of `slots` slots.
    pub fn new(slots: NonZeroU32) -> Self {
        Self { links: Links::new(slots.get()), held: List::EMPTY }
    }
}

impl Eviction for Fifo {
    fn slots(&self) -> u32 {
        self.links.slots()
    }

    #[inline]
    fn hit(&mut self, _slot: u32) {}

    #[inline]
    fn admit(&mut self, _key: u64) -> Placement {
        super::lru::replace_back(&mut self.links, &mut self.held)
    }

    fn remove(&mut self, slot: u32) {
        self.links.unlink(&mut self.held, slot);
        self.links.free(slot);
    }
}
