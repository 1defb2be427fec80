//! What is most worth bringing back, in order: the list that restore, replay and fill read.
//!
//! Each use of a key adds its weight, and what was added loses half of its worth in each half-life.
//! Scores are kept as the logarithm of their worth at time 0 (forward decay; Cormode and others,
//! 2009), so that time changes no order and nothing is recomputed. Memory is bounded: when all
//! slots are taken, a new key replaces the one worth least if it is worth more itself.

use crate::index::Index;

/// Keys by what their uses are worth now; 40 to 64 bytes each.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// A heap, the key worth least first.
    heap: Vec<Scored>,
    /// The place of each key in the heap.
    index: Index,
    capacity: u32,
    half_life_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Scored {
    key: u64,
    /// The binary logarithm of the worth at time 0.
    log2_worth: f64,
}

/// A key and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedKey {
    /// The key.
    pub key: u64,
    /// The weights of its uses, each halved for every half-life since.
    pub worth: f64,
}

impl Ranking {
    /// An empty list of at most `capacity` keys, whose uses lose half of their worth in
    /// `half_life_s` seconds (more than 0).
    pub fn new(capacity: u32, half_life_s: f64) -> Self {
        Self {
            heap: Vec::with_capacity(capacity as usize),
            index: Index::new(capacity),
            capacity,
            half_life_s,
        }
    }

    /// Counts a use of `key` at `at_s`, in seconds of any clock that all calls share. `weight` is
    /// what bringing it back is worth, for example the seconds that a miss waits; a use that weighs
    /// nothing is none.
    pub fn used(&mut self, key: u64, at_s: f64, weight: f64) {
        let added = weight.log2() + at_s / self.half_life_s;
        if !added.is_finite() {
            return;
        }
        if let Some(at) = self.index.get(key) {
            let at = at as usize;
            self.heap[at].log2_worth = log2_sum(self.heap[at].log2_worth, added);
            self.sink(at);
            return;
        }
        let scored = Scored { key, log2_worth: added };
        if self.heap.len() < self.capacity as usize {
            self.heap.push(scored);
            self.index.insert(key, self.heap.len() as u32 - 1);
            self.rise(self.heap.len() - 1);
        } else if self.heap.first().is_some_and(|least| least.log2_worth < added) {
            self.index.remove(self.heap[0].key);
            self.heap[0] = scored;
            self.index.insert(key, 0);
            self.sink(0);
        }
    }

    /// Removes `key`: its file was deleted, its process ended.
    pub fn forget(&mut self, key: u64) -> bool {
        let Some(at) = self.index.remove(key) else {
            return false;
        };
        let at = at as usize;
        self.heap.swap_remove(at);
        if at < self.heap.len() {
            self.index.insert(self.heap[at].key, at as u32);
            self.rise(at);
            self.sink(at);
        }
        true
    }

    /// All keys, what is worth most at `now_s` first; equals by key.
    pub fn ranked(&self, now_s: f64) -> Vec<RankedKey> {
        let mut sorted = self.heap.clone();
        sorted
            .sort_unstable_by(|a, b| b.log2_worth.total_cmp(&a.log2_worth).then(a.key.cmp(&b.key)));
        let worth = |log2: f64| (log2 - now_s / self.half_life_s).exp2();
        let ranked = |at: Scored| RankedKey { key: at.key, worth: worth(at.log2_worth) };
        sorted.into_iter().map(ranked).collect()
    }

    /// Moves an entry up until its parent is worth no more.
    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].log2_worth <= self.heap[at].log2_worth {
                return;
            }
            self.swap(parent, at);
            at = parent;
        }
    }

    /// Moves an entry down until no child is worth less.
    fn sink(&mut self, mut at: usize) {
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let worth = |at: usize| self.heap[at].log2_worth;
            let least = children.min_by(|&a, &b| worth(a).total_cmp(&worth(b)));
            match least {
                Some(child) if worth(child) < worth(at) => {
                    self.swap(child, at);
                    at = child;
                }
                _ => return,
            }
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.index.insert(self.heap[a].key, a as u32);
        self.index.insert(self.heap[b].key, b as u32);
    }
}

/// The logarithm of the sum of two numbers of which the logarithms are given.
fn log2_sum(a: f64, b: f64) -> f64 {
    let (large, small) = (a.max(b), a.min(b));
    large + (small - large).exp2().ln_1p() * std::f64::consts::LOG2_E
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn keys(ranking: &Ranking) -> Vec<u64> {
        ranking.ranked(0.0).into_iter().map(|ranked| ranked.key).collect()
    }

    #[test]
    fn worth_halves_in_a_half_life() {
        let mut ranking = Ranking::new(10, 3600.0);
        ranking.used(1, 0.0, 3.0);
        ranking.used(2, 3600.0, 1.0);
        ranking.used(2, 7200.0, 0.5);
        let ranked = ranking.ranked(7200.0);
        assert_eq!((ranked[0].key, ranked[1].key), (2, 1));
        assert!((ranked[0].worth - 1.0).abs() < 1e-9 && (ranked[1].worth - 0.75).abs() < 1e-9);
    }

    #[test]
    fn a_full_list_drops_what_is_worth_least() {
        let mut ranking = Ranking::new(2, 10.0);
        ranking.used(1, 0.0, 4.0);
        ranking.used(2, 0.0, 2.0);
        ranking.used(3, 0.0, 1.0);
        assert_eq!(keys(&ranking), [1, 2]);
        ranking.used(3, 30.0, 1.0);
        assert_eq!(keys(&ranking), [3, 1]);
        assert!(ranking.forget(3) && !ranking.forget(3));
        assert_eq!(keys(&ranking), [1]);
    }

    #[test]
    fn a_year_and_numbers_that_are_none_change_nothing() {
        let mut ranking = Ranking::new(4, 60.0);
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            ranking.used(9, 0.0, weight);
        }
        ranking.used(9, f64::NAN, 1.0);
        assert!(keys(&ranking).is_empty());
        ranking.used(1, 0.0, 1.0);
        ranking.used(2, 3.2e7, 1.0);
        ranking.used(1, 3.2e7, 1.5);
        assert_eq!(keys(&ranking), [1, 2]);
        let mut none = Ranking::new(0, 60.0);
        none.used(1, 0.0, 1.0);
        assert!(keys(&none).is_empty());
    }

    proptest! {
        #[test]
        fn with_room_for_all_it_is_a_sum(
            uses in prop::collection::vec((0_u64..12, 0_u32..100, 1_u32..9, any::<bool>()), 1..150),
        ) {
            let mut ranking = Ranking::new(12, 10.0);
            let mut sums = BTreeMap::<u64, f64>::new();
            for (key, at, weight, is_use) in uses {
                if is_use {
                    ranking.used(key, f64::from(at), f64::from(weight));
                    *sums.entry(key).or_default() += f64::from(weight) * (f64::from(at) / 10.0).exp2();
                } else {
                    prop_assert_eq!(ranking.forget(key), sums.remove(&key).is_some());
                }
            }
            let ranked = ranking.ranked(0.0);
            prop_assert!(ranked.windows(2).all(|pair| pair[0].worth >= pair[1].worth));
            prop_assert_eq!(ranked.len(), sums.len());
            for RankedKey { key, worth } in ranked {
                prop_assert!((worth / sums[&key] - 1.0).abs() < 1e-9);
            }
        }
    }
}
