//! Requests in, hits and misses out: a cache without content, and many of them in one pass.
//!
//! [`SimulatedCache`] is a policy of eviction, one of admission, and the index that a live cache
//! would have. [`Sweep`] runs any policies at any sizes over the same requests, which are read and
//! held once.

use std::num::NonZeroU32;

use crate::admission::{Admission, Always};
use crate::eviction::{
    Arc, Eviction, EvictionPolicy, Fifo, Lru, Placement, S3Fifo, Sieve, WTinyLfu,
};
use crate::index::Index;

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// All requests.
    pub requests: u64,
    /// Those that found their key.
    pub hits: u64,
    /// Misses that were cached; each is a write to the cache.
    pub admitted: u64,
}

impl HitCounts {
    /// Requests that did not find their key.
    pub fn misses(&self) -> u64 {
        self.requests - self.hits
    }

    /// Hits by requests, 0 to 1; `None` without requests.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.hits as f64 / self.requests as f64)
    }
}

/// A cache that holds keys and no content.
#[derive(Clone, Debug)]
pub struct SimulatedCache<E, A = Always> {
    eviction: E,
    admission: A,
    index: Index,
    /// The key in each slot.
    keys: Box<[u64]>,
    counts: HitCounts,
}

impl<E: Eviction> SimulatedCache<E> {
    /// An empty cache that admits everything.
    pub fn new(eviction: E) -> Self {
        Self::with_admission(eviction, Always)
    }
}

impl<E: Eviction, A: Admission> SimulatedCache<E, A> {
    /// An empty cache with as many slots as `eviction` has.
    pub fn with_admission(eviction: E, admission: A) -> Self {
        let slots = eviction.slots();
        let keys = vec![0; slots as usize].into_boxed_slice();
        let counts = HitCounts::default();
        Self { eviction, admission, index: Index::new(slots), keys, counts }
    }

    /// Requests `key`; whether it hit. A miss is cached if it is admitted.
    #[inline]
    pub fn request(&mut self, key: u64) -> bool {
        self.counts.requests += 1;
        self.admission.request(key);
        if let Some(slot) = self.index.get(key) {
            self.eviction.hit(slot);
            self.counts.hits += 1;
            return true;
        }
        if self.admission.admits(key) {
            self.counts.admitted += 1;
            let placement = self.eviction.admit(key);
            let slot = placement.slot();
            if let Placement::Evicted(_) = placement {
                self.index.remove(self.keys[slot as usize]);
            }
            self.index.insert(key, slot);
            self.keys[slot as usize] = key;
        }
        false
    }

    /// Removes `key`, as when it is overwritten on the disk; whether it was cached.
    pub fn remove(&mut self, key: u64) -> bool {
        let slot = self.index.remove(key);
        slot.is_some_and(|slot| {
            self.eviction.remove(slot);
            true
        })
    }

    /// Whether `key` is cached; not a request.
    pub fn holds(&self, key: u64) -> bool {
        self.index.get(key).is_some()
    }

    /// What became of the requests so far.
    pub fn counts(&self) -> HitCounts {
        self.counts
    }
}

/// A simulated cache of any policy.
trait Simulated {
    fn requests(&mut self, keys: &[u64]);
    fn counts(&self) -> HitCounts;
}

impl<E: Eviction, A: Admission> Simulated for SimulatedCache<E, A> {
    fn requests(&mut self, keys: &[u64]) {
        for &key in keys {
            self.request(key);
        }
    }

    fn counts(&self) -> HitCounts {
        self.counts
    }
}

fn simulated(policy: EvictionPolicy, slots: NonZeroU32) -> Box<dyn Simulated> {
    match policy {
        EvictionPolicy::Fifo => Box::new(SimulatedCache::new(Fifo::new(slots))),
        EvictionPolicy::Lru => Box::new(SimulatedCache::new(Lru::new(slots))),
        EvictionPolicy::Sieve => Box::new(SimulatedCache::new(Sieve::new(slots))),
        EvictionPolicy::S3Fifo => Box::new(SimulatedCache::new(S3Fifo::new(slots))),
        EvictionPolicy::Arc => Box::new(SimulatedCache::new(Arc::new(slots))),
        EvictionPolicy::WTinyLfu => Box::new(SimulatedCache::new(WTinyLfu::new(slots))),
    }
}

/// One cache of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPoint {
    /// How it evicts.
    pub policy: EvictionPolicy,
    /// Its slots.
    pub slots: NonZeroU32,
    /// What became of the requests.
    pub counts: HitCounts,
}

/// Caches of several policies and sizes that see the same requests.
pub struct Sweep {
    caches: Vec<(EvictionPolicy, NonZeroU32, Box<dyn Simulated>)>,
}

impl Sweep {
    /// Empty caches, of each policy one of each size.
    pub fn new(policies: &[EvictionPolicy], sizes: &[NonZeroU32]) -> Self {
        let pairs =
            policies.iter().flat_map(|&policy| sizes.iter().map(move |&slots| (policy, slots)));
        Self {
            caches: pairs
                .map(|(policy, slots)| (policy, slots, simulated(policy, slots)))
                .collect(),
        }
    }

    /// Requests `keys`, in their order, of every cache. A few thousand at a time are fastest: they
    /// stay in the processor's caches while each cache reads them.
    pub fn requests(&mut self, keys: &[u64]) {
        for (_, _, cache) in &mut self.caches {
            cache.requests(keys);
        }
    }

    /// What became of the requests so far, by policy and then size as they were given.
    pub fn points(&self) -> Vec<SweepPoint> {
        let point = |(policy, slots, cache): &(_, _, Box<dyn Simulated>)| SweepPoint {
            policy: *policy,
            slots: *slots,
            counts: cache.counts(),
        };
        self.caches.iter().map(point).collect()
    }
}

impl std::fmt::Debug for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.points()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::SecondRequest;

    fn slots(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn a_sweep_is_each_cache_alone() {
        let keys: Vec<u64> = (0..2000_u64).map(|at| at * at % 97).collect();
        let mut sweep = Sweep::new(&EvictionPolicy::ALL, &[slots(10), slots(50)]);
        keys.chunks(300).for_each(|part| sweep.requests(part));
        let points = sweep.points();
        assert_eq!(points.len(), 12);
        let mut alone = SimulatedCache::new(Lru::new(slots(50)));
        keys.iter().for_each(|&key| assert_eq!(alone.holds(key), alone.request(key)));
        let lru = points.iter().find(|at| at.policy == EvictionPolicy::Lru && at.slots.get() == 50);
        assert_eq!(lru.unwrap().counts, alone.counts());
        assert!(points.iter().all(|at| at.counts.misses() == at.counts.admitted));
    }

    #[test]
    fn admission_spares_writes() {
        let mut cache = SimulatedCache::with_admission(Lru::new(slots(2)), SecondRequest::new(10));
        let hits = [1, 2, 3, 1, 1, 2, 1].map(|key| cache.request(key));
        assert_eq!(hits, [false, false, false, false, true, false, true]);
        let counts = HitCounts { requests: 7, hits: 2, admitted: 2 };
        assert_eq!((cache.counts(), cache.counts().misses()), (counts, 5));
        assert!(cache.remove(1) && !cache.remove(1) && !cache.holds(1));
        assert_eq!(HitCounts::default().hit_ratio(), None);
        assert_eq!(HitCounts { requests: 4, hits: 1, admitted: 0 }.hit_ratio(), Some(0.25));
    }
}
