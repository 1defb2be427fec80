//! How often keys were requested lately, estimated in 8 to 16 bytes a slot: a count-min sketch.
//!
//! Four counters of 4 bits a key, in four words; the estimate is the smallest. Only the smallest
//! counters are raised ("minimal increment"), which keeps those of rare keys small. When as many
//! requests were counted as [`SAMPLE_PER_SLOT`] says, all counters are halved, so that old
//! popularity fades (Einziger, Friedman and Manes, 2017).

use std::num::NonZeroU32;

use model::random::{INCREMENT, mix};

/// Requests that are counted for each slot before the counters are halved. The paper's reference
/// implementation has the same.
const SAMPLE_PER_SLOT: u64 = 10;

const COUNTER_MAX: u64 = 15;

/// All but the highest bit of each counter.
const HALVED: u64 = 0x7777_7777_7777_7777;

/// Estimated counts of requests by key, 0 to 15.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    /// 16 counters a word.
    words: Box<[u64]>,
    mask: u64,
    counted: u64,
    sample: u64,
}

impl Sketch {
    /// A sketch for a cache of `slots` slots.
    pub(crate) fn new(slots: NonZeroU32) -> Self {
        let words = (slots.get() as usize).next_power_of_two();
        Self {
            words: vec![0; words].into_boxed_slice(),
            mask: words as u64 - 1,
            counted: 0,
            sample: u64::from(slots.get()) * SAMPLE_PER_SLOT,
        }
    }

    /// The word and the shift of each of the four counters of `key`.
    #[inline]
    fn places(&self, key: u64) -> [(usize, u32); 4] {
        let mut hash = mix(key ^ INCREMENT);
        let group = (hash as u32 & 3) * 4;
        std::array::from_fn(|row| {
            hash = hash.rotate_left(16).wrapping_mul(INCREMENT);
            (((hash >> 32) & self.mask) as usize, (group + row as u32) * 4)
        })
    }

    #[inline]
    fn counter(&self, (word, shift): (usize, u32)) -> u64 {
        (self.words[word] >> shift) & COUNTER_MAX
    }

    /// The estimated count of `key`; never less than the true one since the last halving, up to 15.
    #[inline]
    pub(crate) fn estimate(&self, key: u64) -> u64 {
        self.places(key).map(|place| self.counter(place)).into_iter().fold(COUNTER_MAX, u64::min)
    }

    /// Counts a request of `key`.
    #[inline]
    pub(crate) fn count(&mut self, key: u64) {
        let places = self.places(key);
        let least = places.map(|place| self.counter(place)).into_iter().fold(COUNTER_MAX, u64::min);
        if least < COUNTER_MAX {
            for place in places {
                if self.counter(place) == least {
                    self.words[place.0] += 1 << place.1;
                }
            }
        }
        self.counted += 1;
        if self.counted >= self.sample {
            self.halve();
        }
    }

    fn halve(&mut self) {
        for word in &mut self.words {
            *word = (*word >> 1) & HALVED;
        }
        self.counted /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(slots: u32) -> Sketch {
        Sketch::new(NonZeroU32::new(slots).unwrap())
    }

    #[test]
    fn counts_are_never_too_small_and_seldom_too_large() {
        let mut sketch = sketch(1000);
        for key in 0..1000_u64 {
            (0..key % 5).for_each(|_| sketch.count(key));
        }
        let errors: Vec<u64> =
            (0..1000).map(|key| sketch.estimate(key).checked_sub(key % 5).unwrap()).collect();
        let wrong = errors.iter().filter(|&&error| error > 0).count();
        assert!(wrong < 20, "{wrong} of 1000 estimates are too large");
    }

    #[test]
    fn counters_stop_at_fifteen_and_fade() {
        let mut sketch = sketch(10);
        (0..50).for_each(|_| sketch.count(7));
        assert_eq!(sketch.estimate(7), 15);
        (0..49).for_each(|_| sketch.count(7));
        assert_eq!(sketch.estimate(7), 15);
        sketch.count(7);
        assert_eq!(sketch.estimate(7), 7, "halved at 100 requests for 10 slots");
        assert_eq!(sketch.counted, 50);
    }
}
