//! The hit ratio of an LRU cache of any size, from one pass in fixed memory: SHARDS.
//!
//! A key is followed if its hash is below a limit (Waldspurger and others, FAST 2015). Its stack
//! distance, the number of other keys since its last request, is found among the followed keys and
//! scaled up. When there are too many, the one with the highest hash goes and its hash is the new
//! limit. Requests beyond those that the sample stands for are counted at distance 0 (the paper's
//! SHARDS-adj), without which few very popular keys would move the whole curve.
//!
//! With room for all keys the distances are exact.

use std::collections::BinaryHeap;

use model::Bytes;
use model::random::mix;

use crate::distances::Distances;
use crate::index::Index;
use crate::rank::RankList;

/// A sample of keys and their stack distances. 80 to 104 bytes a sample, and 36 KB.
#[derive(Clone, Debug)]
pub struct Shards {
    /// Keys whose hash is below are followed.
    limit: u64,
    index: Index,
    ranks: RankList,
    /// The followed keys, the highest hash first, each with its slot.
    highest: BinaryHeap<(u64, u32)>,
    keys: Box<[u64]>,
    distances: Distances,
    requests: u64,
    /// The requests that the sample stands for.
    sampled: f64,
}

impl Shards {
    /// The samples of [`Shards::default`]: below 2 MiB of state, and an error below 0.01.
    pub const SAMPLES: u32 = 1 << 14;

    /// Follows at most `samples` keys, at least one.
    pub fn new(samples: u32) -> Self {
        let samples = samples.max(1);
        Self {
            limit: u64::MAX,
            index: Index::new(samples),
            ranks: RankList::new(samples),
            highest: BinaryHeap::with_capacity(samples as usize),
            keys: vec![0; samples as usize].into_boxed_slice(),
            distances: Distances::default(),
            requests: 0,
            sampled: 0.0,
        }
    }

    /// Counts a request of `key`.
    #[inline]
    pub fn request(&mut self, key: u64) {
        self.requests += 1;
        // The index takes the low bits of the same hash, the limit looks at the high ones.
        let hash = mix(key);
        if hash < self.limit {
            self.sample(key, hash);
        }
    }

    fn sample(&mut self, key: u64, hash: u64) {
        let stands_for = 1.0 / self.rate();
        if let Some(slot) = self.index.get(key) {
            let distance = self.ranks.newer_than(slot) as f64 * stands_for;
            self.distances.add(distance.round() as u64, stands_for);
            self.ranks.remove(slot);
            self.ranks.push_newest(slot, 1);
        } else if let Some(slot) = self.slot_for(hash) {
            self.index.insert(key, slot);
            self.keys[slot as usize] = key;
            self.highest.push((hash, slot));
            self.ranks.push_newest(slot, 1);
        }
        self.sampled += stands_for;
    }

    /// A slot for a new key; `None` if its hash is the highest of all and there is no slot left.
    fn slot_for(&mut self, hash: u64) -> Option<u32> {
        if self.highest.len() < self.keys.len() {
            return Some(self.highest.len() as u32);
        }
        let &(highest, slot) = self.highest.peek()?;
        self.limit = highest.max(hash);
        if hash > highest {
            return None;
        }
        self.highest.pop();
        self.index.remove(self.keys[slot as usize]);
        self.ranks.remove(slot);
        Some(slot)
    }

    /// All requests, sampled or not.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The memory of the sample and the histogram, which never grows.
    pub fn bytes(&self) -> Bytes {
        let heap = self.highest.capacity() * size_of::<(u64, u32)>();
        let own = (heap + size_of_val(&*self.keys)) as u64 + self.ranks.bytes();
        Bytes(own + self.index.bytes().0 + self.distances.bytes().0)
    }

    /// The share of keys that is followed now, 0 to 1.
    pub fn rate(&self) -> f64 {
        self.limit as f64 / 2.0_f64.powi(64)
    }

    /// The hit ratio of an LRU cache of `slots` blocks, 0 to 1; `None` without requests.
    pub fn hit_ratio(&self, slots: u64) -> Option<f64> {
        if self.requests == 0 {
            return None;
        }
        let missing = if slots == 0 { 0.0 } else { self.requests as f64 - self.sampled };
        let hits = self.distances.below(slots) + missing;
        Some((hits / self.requests as f64).clamp(0.0, 1.0))
    }
}

impl Default for Shards {
    fn default() -> Self {
        Self::new(Self::SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Random, ZipfKeys};

    use super::*;

    #[test]
    fn distances_by_hand() {
        let mut shards = Shards::new(10);
        assert_eq!(shards.hit_ratio(5), None);
        // Distances: 1 of key 2, then 2 and 0 of key 1.
        for key in [1, 2, 3, 2, 1, 1] {
            shards.request(key);
        }
        let ratios = [0, 1, 2, 3, 4].map(|slots| shards.hit_ratio(slots).unwrap() * 6.0);
        assert_eq!(ratios.map(f64::round), [0.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(shards.rate(), 1.0);
    }

    #[test]
    fn a_bounded_sample_tells_the_curve() {
        let mut keys = ZipfKeys::new(20_000, 0.9, 3);
        let (mut exact, mut sampled) = (Shards::new(40_000), Shards::new(1000));
        let mut random = Random(9);
        for _ in 0..300_000 {
            let key = keys.next_key() ^ random.below(2) << 40;
            exact.request(key);
            sampled.request(key);
        }
        assert!(sampled.rate() < 0.1 && sampled.highest.len() == 1000);
        assert_eq!(sampled.requests(), 300_000);
        let sizes = (1..=40).map(|step| step * 1000);
        let error =
            |slots| (sampled.hit_ratio(slots).unwrap() - exact.hit_ratio(slots).unwrap()).abs();
        let mean = sizes.map(error).sum::<f64>() / 40.0;
        assert!(mean < 0.03, "{mean}");
    }

    #[test]
    fn one_sample_is_enough_not_to_fail() {
        let mut shards = Shards::new(0);
        (0..1000).for_each(|key| shards.request(key));
        assert!(shards.rate() < 0.1);
        assert_eq!(shards.requests(), 1000);
        assert!(Shards::default().bytes() < Bytes(2 << 20));
    }
}
