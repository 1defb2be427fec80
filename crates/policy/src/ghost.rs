//! What left memory and is still out, in the order in which it left.
//!
//! The distance of a page that returns is the number of pages that left after it and are still out:
//! so much more memory, and the page itself, would have kept it. The histogram of these distances
//! answers how many returns any larger memory would have saved, without trying.
//!
//! Memory is bounded. When all slots are taken, only every second page is followed from then on,
//! chosen by a hash of its key so that a page that is followed stays followed; each return then
//! counts twice, and distances are doubled. Pages beyond the horizon are forgotten: no memory
//! that is asked about would have kept them.

use model::random::mix;

use crate::distances::Distances;
use crate::index::Index;
use crate::lists::{Links, List};
use crate::rank::RankList;

/// Slots of a ghost that follows few pages still tell a curve; less would be noise.
const SLOTS_MIN: u32 = 16;

/// The pages that are out.
#[derive(Clone, Debug)]
pub struct Ghost {
    index: Index,
    links: Links,
    held: List,
    ranks: RankList,
    keys: Box<[u64]>,
    /// One page of 2^`halvings` is followed.
    halvings: u32,
    /// Pages beyond this many are forgotten.
    horizon_pages: u64,
    distances: Distances,
}

/// A page, or a folio of several, that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageReturn {
    /// Pages that left after it and are still out, estimated where sampled.
    pub distance_pages: u64,
    /// The pages that returned, and those that it stands for where sampled.
    pub pages: u64,
}

impl Ghost {
    /// Nothing is out yet; follows at most `slots` keys (at least 16), 72 to 96 bytes each, as far
    /// back as `horizon_pages`.
    pub fn new(slots: u32, horizon_pages: u64) -> Self {
        let slots = slots.max(SLOTS_MIN);
        Self {
            index: Index::new(slots),
            links: Links::new(slots),
            held: List::EMPTY,
            ranks: RankList::new(slots),
            keys: vec![0; slots as usize].into_boxed_slice(),
            halvings: 0,
            horizon_pages,
            distances: Distances::default(),
        }
    }

    /// A folio of `pages` pages was evicted. A removal (truncated, unlinked) is no eviction: it is
    /// [`Ghost::forget`].
    pub fn leave(&mut self, key: u64, pages: u32) {
        if !self.is_followed(key) {
            return;
        }
        self.forget(key);
        while !self.links.has_free() {
            self.halve();
        }
        if !self.is_followed(key) {
            return;
        }
        let Some(slot) = self.links.take_free() else {
            return;
        };
        self.index.insert(key, slot);
        self.links.push_front(&mut self.held, slot);
        self.keys[slot as usize] = key;
        self.ranks.push_newest(slot, pages);
        self.drop_beyond_horizon();
    }

    /// What has `key` came into memory: counts and gives its return, if it was followed.
    pub fn enter(&mut self, key: u64) -> Option<PageReturn> {
        let slot = self.index.get(key)?;
        let returned = PageReturn {
            distance_pages: self.ranks.newer_than(slot) << self.halvings,
            pages: u64::from(self.ranks.weight(slot)) << self.halvings,
        };
        self.release(slot);
        self.distances.add(returned.distance_pages, returned.pages as f64);
        Some(returned)
    }

    /// What has `key` is gone for good: its file was deleted, its swap slot was freed.
    pub fn forget(&mut self, key: u64) -> bool {
        let slot = self.index.get(key);
        slot.is_some_and(|slot| {
            self.release(slot);
            true
        })
    }

    /// The pages that are out, estimated where sampled; at most the horizon.
    pub fn pages_out(&self) -> u64 {
        self.ranks.total() << self.halvings
    }

    /// The share of pages that is followed, 0 to 1. Below 1 counts are estimates.
    pub fn rate(&self) -> f64 {
        0.5_f64.powi(self.halvings as i32)
    }

    /// The returns of pages by distance; [`Distances::below`] of `n` is what `n` more pages save.
    pub fn distances(&self) -> &Distances {
        &self.distances
    }

    /// Whether the highest bits of the key's hash are those of the followed share.
    fn is_followed(&self, key: u64) -> bool {
        mix(key).leading_zeros() >= self.halvings
    }

    /// Follows half as many pages.
    fn halve(&mut self) {
        self.halvings += 1;
        let mut next = self.held.back();
        while let Some(slot) = next {
            next = self.links.towards_front(slot);
            if !self.is_followed(self.keys[slot as usize]) {
                self.release(slot);
            }
        }
    }

    fn drop_beyond_horizon(&mut self) {
        while let Some(oldest) = self.ranks.oldest() {
            if self.ranks.newer_than(oldest) << self.halvings < self.horizon_pages {
                return;
            }
            self.release(oldest);
        }
    }

    fn release(&mut self, slot: u32) {
        self.index.remove(self.keys[slot as usize]);
        self.ranks.remove(slot);
        self.links.unlink(&mut self.held, slot);
        self.links.free(slot);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use testkit::Random;

    use super::*;

    const FAR: u64 = 1 << 40;

    fn distance(ghost: &mut Ghost, key: u64) -> Option<u64> {
        ghost.enter(key).map(|returned| returned.distance_pages)
    }

    #[test]
    fn a_distance_counts_what_left_later_and_is_still_out() {
        let mut ghost = Ghost::new(100, FAR);
        [1, 2, 3, 4].into_iter().for_each(|key| ghost.leave(key, 1));
        assert_eq!(distance(&mut ghost, 2), Some(2), "3 and 4");
        assert_eq!(distance(&mut ghost, 2), None, "it is in memory");
        assert_eq!(distance(&mut ghost, 1), Some(2), "2 is no longer out");
        assert!(ghost.forget(4) && !ghost.forget(4));
        assert_eq!(distance(&mut ghost, 3), Some(0), "4 was deleted");
        assert_eq!((ghost.pages_out(), ghost.rate()), (0, 1.0));
        assert_eq!([0, 1, 2, 3].map(|limit| ghost.distances().below(limit)), [0.0, 1.0, 1.0, 3.0]);
    }

    #[test]
    fn a_folio_counts_for_its_pages() {
        let mut ghost = Ghost::new(100, FAR);
        ghost.leave(1, 1);
        ghost.leave(2, 512);
        assert_eq!(ghost.enter(1), Some(PageReturn { distance_pages: 512, pages: 1 }));
        ghost.leave(3, 4);
        assert_eq!(ghost.enter(2), Some(PageReturn { distance_pages: 4, pages: 512 }));
    }

    #[test]
    fn what_leaves_again_is_the_newest() {
        let mut ghost = Ghost::new(100, FAR);
        [1, 2, 1].into_iter().for_each(|key| ghost.leave(key, 1));
        assert_eq!((distance(&mut ghost, 1), distance(&mut ghost, 2)), (Some(0), Some(0)));
    }

    #[test]
    fn deleting_predicts_nothing() {
        let mut ghost = Ghost::new(100, FAR);
        for key in 0..50 {
            assert!(!ghost.forget(key), "removed from memory, never evicted");
        }
        (0..50).for_each(|key| assert_eq!(ghost.enter(key), None));
        assert_eq!(ghost.distances().total(), 0.0);
    }

    #[test]
    fn beyond_the_horizon_is_forgotten() {
        let mut ghost = Ghost::new(100, 3);
        [1, 2, 3, 4].into_iter().for_each(|key| ghost.leave(key, 1));
        assert_eq!((distance(&mut ghost, 1), distance(&mut ghost, 2)), (None, Some(2)));
    }

    #[test]
    fn a_full_ghost_samples_and_still_tells_the_curve() {
        let (mut exact, mut sampled) = (Ghost::new(1 << 16, FAR), Ghost::new(1 << 10, FAR));
        let mut random = Random(1);
        for _ in 0..400_000 {
            let (left, entered) = (random.below(1 << 15), random.below(1 << 15));
            for ghost in [&mut exact, &mut sampled] {
                ghost.enter(entered);
                ghost.leave(left, 1);
            }
        }
        assert_eq!(exact.rate(), 1.0);
        assert!(sampled.rate() < 0.1, "{}", sampled.rate());
        let total = exact.distances().total();
        for limit in [1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15] {
            let [true_share, share] =
                [&exact, &sampled].map(|ghost| ghost.distances().below(limit) / total);
            assert!((share - true_share).abs() < 0.05, "{limit}: {share} for {true_share}");
        }
    }

    proptest! {
        #[test]
        fn it_is_a_list(steps in prop::collection::vec((0_u64..30, 0_u8..3, 1_u32..9), 1..300)) {
            let mut ghost = Ghost::new(30, FAR);
            let mut out: Vec<(u64, u32)> = Vec::new();
            for (key, step, pages) in steps {
                let at = out.iter().position(|held| held.0 == key);
                match step {
                    0 => {
                        let expected = at.map(|at| PageReturn {
                            distance_pages: out[at + 1..].iter().map(|held| u64::from(held.1)).sum(),
                            pages: u64::from(out[at].1),
                        });
                        prop_assert_eq!(ghost.enter(key), expected);
                    }
                    1 => prop_assert_eq!(ghost.forget(key), at.is_some()),
                    _ => ghost.leave(key, pages),
                }
                at.map(|at| out.remove(at));
                if step > 1 {
                    out.push((key, pages));
                }
                let pages: u64 = out.iter().map(|held| u64::from(held.1)).sum();
                prop_assert_eq!(ghost.pages_out(), pages);
            }
        }
    }
}
