//! Every policy of eviction against a naive model that is written from its paper.
//!
//! The models keep keys in plain vectors, the newest first, and search them. After each request and
//! each removal the policy must hold exactly the keys of its model, so it evicted the same.

#![allow(clippy::unwrap_used, reason = "a model that is wrong must fail the test")]

use std::num::NonZeroU32;

use policy::eviction::{Arc, Eviction, Fifo, Lru, S3Fifo, Sieve, WTinyLfu};
use policy::simulate::SimulatedCache;
use proptest::prelude::*;

/// A cache of keys.
trait Model {
    fn new(slots: usize) -> Self;
    /// Requests a key; whether it hit.
    fn request(&mut self, key: u64) -> bool;
    fn remove(&mut self, key: u64);
    fn holds(&self, key: u64) -> bool;
}

/// Removes a key from a vector; whether it was there.
fn take<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> Option<T> {
    list.iter().position(is).map(|at| list.remove(at))
}

/// FIFO, or LRU if hits move to the front.
struct Queue<const MOVES: bool>(Vec<u64>, usize);

impl<const MOVES: bool> Model for Queue<MOVES> {
    fn new(slots: usize) -> Self {
        Self(Vec::new(), slots)
    }

    fn request(&mut self, key: u64) -> bool {
        let hit = self.holds(key);
        if hit && MOVES {
            take(&mut self.0, |&held| held == key);
        }
        if !hit || MOVES {
            self.0.insert(0, key);
        }
        self.0.truncate(self.1);
        hit
    }

    fn remove(&mut self, key: u64) {
        take(&mut self.0, |&held| held == key);
    }

    fn holds(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
}

/// SIEVE: keys with their marks, and the key at which the hand is.
struct SieveModel {
    held: Vec<(u64, bool)>,
    hand: Option<u64>,
    slots: usize,
}

impl SieveModel {
    fn place(&self, key: u64) -> Option<usize> {
        self.held.iter().position(|held| held.0 == key)
    }

    /// The key that is one nearer to the front.
    fn newer(&self, at: usize) -> Option<u64> {
        at.checked_sub(1).map(|at| self.held[at].0)
    }
}

impl Model for SieveModel {
    fn new(slots: usize) -> Self {
        Self { held: Vec::new(), hand: None, slots }
    }

    fn request(&mut self, key: u64) -> bool {
        if let Some(at) = self.place(key) {
            self.held[at].1 = true;
            return true;
        }
        if self.held.len() == self.slots {
            let last = self.held.len() - 1;
            let mut at = self.hand.and_then(|hand| self.place(hand)).unwrap_or(last);
            while self.held[at].1 {
                self.held[at].1 = false;
                at = if at == 0 { last } else { at - 1 };
            }
            self.hand = self.newer(at);
            self.held.remove(at);
        }
        self.held.insert(0, (key, false));
        false
    }

    fn remove(&mut self, key: u64) {
        if let Some(at) = self.place(key) {
            if self.hand == Some(key) {
                self.hand = self.newer(at);
            }
            self.held.remove(at);
        }
    }

    fn holds(&self, key: u64) -> bool {
        self.place(key).is_some()
    }
}

/// S3-FIFO as algorithm 1 of the paper: keys with their counters.
struct S3Model {
    small: Vec<(u64, u32)>,
    main: Vec<(u64, u32)>,
    ghosts: Vec<u64>,
    slots: usize,
}

impl S3Model {
    fn evict(&mut self) {
        let full = self.slots;
        if self.main.len() <= full - full / 10 {
            while let Some((key, hits)) = self.small.pop() {
                if hits < 2 {
                    self.ghosts.insert(0, key);
                    self.ghosts.truncate(full * 9 / 10);
                    return;
                }
                self.main.insert(0, (key, 0));
            }
        }
        while let Some((key, hits)) = self.main.pop() {
            if hits == 0 {
                return;
            }
            self.main.insert(0, (key, hits - 1));
        }
        unreachable!("both queues of a full cache are empty");
    }
}

impl Model for S3Model {
    fn new(slots: usize) -> Self {
        Self { small: Vec::new(), main: Vec::new(), ghosts: Vec::new(), slots }
    }

    fn request(&mut self, key: u64) -> bool {
        let mut held = self.small.iter_mut().chain(&mut self.main);
        if let Some((_, hits)) = held.find(|held| held.0 == key) {
            *hits = (*hits + 1).min(3);
            return true;
        }
        let was_ghost = take(&mut self.ghosts, |&ghost| ghost == key).is_some();
        if self.small.len() + self.main.len() == self.slots {
            self.evict();
        }
        let queue = if was_ghost { &mut self.main } else { &mut self.small };
        queue.insert(0, (key, 0));
        false
    }

    fn remove(&mut self, key: u64) {
        take(&mut self.small, |held| held.0 == key);
        take(&mut self.main, |held| held.0 == key);
    }

    fn holds(&self, key: u64) -> bool {
        self.small.iter().chain(&self.main).any(|held| held.0 == key)
    }
}

/// ARC as figure 4 of the paper.
struct ArcModel {
    t1: Vec<u64>,
    t2: Vec<u64>,
    b1: Vec<u64>,
    b2: Vec<u64>,
    p: f64,
    c: usize,
}

impl ArcModel {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        let over = t1 > self.p || (t1 == self.p && in_b2);
        if (!self.t1.is_empty() && over) || self.t2.is_empty() {
            self.b1.insert(0, self.t1.pop().unwrap());
        } else {
            self.b2.insert(0, self.t2.pop().unwrap());
        }
    }

    fn is_full(&self) -> bool {
        self.t1.len() + self.t2.len() == self.c
    }

    /// Case IV: the key is in none of the lists.
    fn make_room(&mut self) {
        let once = self.t1.len() + self.b1.len();
        if once >= self.c {
            if self.b1.pop().is_none() {
                self.t1.pop();
                return;
            }
        } else if once + self.t2.len() + self.b2.len() >= 2 * self.c {
            self.b2.pop();
        }
        self.replace(false);
    }
}

impl Model for ArcModel {
    fn new(slots: usize) -> Self {
        let list = Vec::new;
        Self { t1: list(), t2: list(), b1: list(), b2: list(), p: 0.0, c: slots }
    }

    fn request(&mut self, key: u64) -> bool {
        let is = |held: &u64| *held == key;
        if take(&mut self.t1, is).or_else(|| take(&mut self.t2, is)).is_some() {
            self.t2.insert(0, key);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        let in_b1 = take(&mut self.b1, is).is_some();
        let in_b2 = take(&mut self.b2, is).is_some();
        if in_b1 {
            self.p = (self.p + (b2 / b1).max(1.0)).min(self.c as f64);
        } else if in_b2 {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
        }
        if self.is_full() && (in_b1 || in_b2) {
            self.replace(in_b2);
        } else if self.is_full() {
            self.make_room();
        }
        let list = if in_b1 || in_b2 { &mut self.t2 } else { &mut self.t1 };
        list.insert(0, key);
        false
    }

    fn remove(&mut self, key: u64) {
        take(&mut self.t1, |&held| held == key);
        take(&mut self.t2, |&held| held == key);
    }

    fn holds(&self, key: u64) -> bool {
        self.t1.contains(&key) || self.t2.contains(&key)
    }
}

/// W-TinyLFU with exact counts by key in place of the sketch: with few keys they are the same.
struct TinyModel {
    window: Vec<u64>,
    probation: Vec<u64>,
    protected: Vec<u64>,
    counts: std::collections::BTreeMap<u64, u32>,
    counted: usize,
    slots: usize,
}

impl TinyModel {
    fn count(&mut self, key: u64) {
        let count = self.counts.entry(key).or_default();
        *count = (*count + 1).min(15);
        self.counted += 1;
        if self.counted >= 10 * self.slots {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counted /= 2;
        }
    }

    fn window_slots(&self) -> usize {
        (self.slots / 100).max(1)
    }

    fn contest(&mut self) {
        let count = |key: &u64| self.counts.get(key).copied().unwrap_or(0);
        let segment =
            if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
        let wins = match (self.window.last(), segment.last()) {
            (Some(candidate), Some(victim)) => count(candidate) > count(victim),
            _ => false,
        };
        if wins {
            segment.pop();
            let candidate = self.window.pop().unwrap();
            self.probation.insert(0, candidate);
        } else {
            self.window.pop();
        }
    }
}

impl Model for TinyModel {
    fn new(slots: usize) -> Self {
        let list = Vec::new;
        let (counts, counted) = (std::collections::BTreeMap::new(), 0);
        Self { window: list(), probation: list(), protected: list(), counts, counted, slots }
    }

    fn request(&mut self, key: u64) -> bool {
        self.count(key);
        for list in [&mut self.window, &mut self.protected] {
            if take(list, |&held| held == key).is_some() {
                list.insert(0, key);
                return true;
            }
        }
        if take(&mut self.probation, |&held| held == key).is_some() {
            self.protected.insert(0, key);
            if self.protected.len() > (self.slots - self.window_slots()) * 80 / 100 {
                let demoted = self.protected.pop().unwrap();
                self.probation.insert(0, demoted);
            }
            return true;
        }
        if self.window.len() + self.probation.len() + self.protected.len() == self.slots {
            self.contest();
        }
        self.window.insert(0, key);
        if self.window.len() > self.window_slots() {
            let moved = self.window.pop().unwrap();
            self.probation.insert(0, moved);
        }
        false
    }

    fn remove(&mut self, key: u64) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            take(list, |&held| held == key);
        }
    }

    fn holds(&self, key: u64) -> bool {
        [&self.window, &self.probation, &self.protected].iter().any(|list| list.contains(&key))
    }
}

/// Runs `steps` (a key, and whether it is removed) through a policy and its model.
fn compare<M: Model, E: Eviction>(
    slots: u32,
    keys: u64,
    steps: &[(u64, bool)],
    eviction: impl Fn(NonZeroU32) -> E,
) -> Result<(), TestCaseError> {
    let mut cache = SimulatedCache::new(eviction(NonZeroU32::new(slots).unwrap()));
    let mut model = M::new(slots as usize);
    for (at, &(key, is_removal)) in steps.iter().enumerate() {
        let key = key % keys;
        if is_removal {
            prop_assert_eq!(cache.remove(key), model.holds(key), "step {}", at);
            model.remove(key);
        } else {
            prop_assert_eq!(cache.request(key), model.request(key), "step {}: key {}", at, key);
        }
        for key in 0..keys {
            prop_assert_eq!(cache.holds(key), model.holds(key), "step {}: key {}", at, key);
        }
    }
    Ok(())
}

/// Requests with now and then a removal; keys near 0 are more popular.
fn steps(removals: f64) -> impl Strategy<Value = Vec<(u64, bool)>> {
    let key = (0_u64..60, 0_u64..60).prop_map(|(a, b)| a.min(b));
    prop::collection::vec((key, prop::bool::weighted(removals)), 1..500)
}

/// Each policy against its model: small caches without and with removals.
macro_rules! oracle {
    ($name:ident, $eviction:ty, $model:ty) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(96))]
            #[test]
            fn $name(
                (slots, keys) in (1_u32..25, 2_u64..60),
                requests in steps(0.0),
                with_removals in steps(0.05),
            ) {
                compare::<$model, _>(slots, keys, &requests, <$eviction>::new)?;
                compare::<$model, _>(slots, keys, &with_removals, <$eviction>::new)?;
            }
        }
    };
}

oracle!(fifo, Fifo, Queue<false>);
oracle!(lru, Lru, Queue<true>);
oracle!(sieve, Sieve, SieveModel);
oracle!(s3_fifo, S3Fifo, S3Model);
oracle!(arc, Arc, ArcModel);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    // The sketch of 40 slots has 256 counters a row: each of these 60 keys has one of its four for
    // itself, so that its estimate is exact.
    #[test]
    fn w_tiny_lfu(requests in steps(0.0), with_removals in steps(0.05)) {
        compare::<TinyModel, _>(40, 60, &requests, WTinyLfu::new)?;
        compare::<TinyModel, _>(40, 60, &with_removals, WTinyLfu::new)?;
    }
}

#[test]
fn a_cache_of_one_slot_holds_the_last_key() {
    fn last<E: Eviction>(eviction: impl Fn(NonZeroU32) -> E) {
        let mut cache = SimulatedCache::new(eviction(NonZeroU32::MIN));
        let hits = [1, 1, 2, 2, 1].map(|key| cache.request(key));
        assert_eq!(hits, [false, true, false, true, false]);
        assert!(cache.holds(1) && !cache.holds(2));
    }
    last(Fifo::new);
    last(Lru::new);
    last(Sieve::new);
    last(S3Fifo::new);
    last(Arc::new);
    last(WTinyLfu::new);
}
