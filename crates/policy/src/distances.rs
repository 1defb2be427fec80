//! How far apart two uses of the same thing were: a histogram from which a curve is read.
//!
//! A distance is a number of pages or blocks: what a cache would have had to hold beyond the thing
//! itself. Below 128 each has a bucket of its own; above there are 128 buckets an octave, so that a
//! size is known within 0.8 %. 36 KB, whatever the distances.

use model::Bytes;

/// Buckets of an octave, and distances that have their own.
const BUCKETS_IN_OCTAVE: u64 = 128;

const OCTAVE_BITS: u32 = BUCKETS_IN_OCTAVE.ilog2();

/// Longer distances are counted as this one: 2^41 pages of 4 KiB are more than any machine has.
const DISTANCE_MAX: u64 = (1 << 41) - 1;

const BUCKETS: usize = bucket(DISTANCE_MAX) + 1;

/// The bucket of a distance.
const fn bucket(distance: u64) -> usize {
    if distance < BUCKETS_IN_OCTAVE {
        return distance as usize;
    }
    let octave = distance.ilog2() - OCTAVE_BITS;
    (octave as u64 * BUCKETS_IN_OCTAVE + (distance >> octave)) as usize
}

/// The lowest distance of a bucket.
fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * BUCKETS_IN_OCTAVE {
        return bucket;
    }
    let octave = bucket / BUCKETS_IN_OCTAVE - 1;
    (bucket % BUCKETS_IN_OCTAVE + BUCKETS_IN_OCTAVE) << octave
}

/// Counts by distance; fractions, because what is sampled counts for several.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    counts: Box<[f64]>,
    total: f64,
}

impl Default for Distances {
    fn default() -> Self {
        Self { counts: vec![0.0; BUCKETS].into_boxed_slice(), total: 0.0 }
    }
}

impl Distances {
    /// Counts `count` uses at `distance`.
    pub fn add(&mut self, distance: u64, count: f64) {
        self.counts[bucket(distance.min(DISTANCE_MAX))] += count;
        self.total += count;
    }

    /// The memory of its buckets.
    pub fn bytes(&self) -> Bytes {
        Bytes(size_of_val(&*self.counts) as u64)
    }

    /// All that was counted.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// What was counted at distances below `limit`: the hits of an LRU cache of `limit` blocks.
    /// Within a bucket the counts are taken as even.
    pub fn below(&self, limit: u64) -> f64 {
        if limit > DISTANCE_MAX {
            return self.total;
        }
        let last = bucket(limit);
        let whole: f64 = self.counts[..last].iter().sum();
        let (from, to) = (lowest(last), lowest(last + 1));
        whole + self.counts[last] * (limit - from) as f64 / (to - from) as f64
    }

    /// The counts that are not zero, each with the lowest distance of its bucket, ascending.
    /// [`Distances::add`] makes the same histogram of them.
    pub fn counts(&self) -> impl Iterator<Item = (u64, f64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count != 0.0);
        counted.map(|(bucket, count)| (lowest(bucket), *count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for at in 0..BUCKETS {
            assert_eq!(bucket(lowest(at)), at);
            assert!(at == 0 || bucket(lowest(at) - 1) == at - 1);
        }
        assert_eq!((bucket(127), bucket(128), bucket(255), bucket(256)), (127, 128, 255, 256));
        assert_eq!((bucket(257), bucket(258)), (256, 257));
    }

    #[test]
    fn short_distances_are_exact_and_long_ones_shared_out() {
        let mut distances = Distances::default();
        distances.add(0, 1.0);
        distances.add(9, 2.0);
        distances.add(1024, 8.0);
        distances.add(u64::MAX, 1.0);
        let below = [0, 1, 9, 10, 1024, 1028, 1032, u64::MAX].map(|limit| distances.below(limit));
        assert_eq!(below, [0.0, 1.0, 1.0, 3.0, 3.0, 7.0, 11.0, 12.0]);
        let mut again = Distances::default();
        distances.counts().for_each(|(distance, count)| again.add(distance, count));
        assert_eq!(again, distances);
    }

    proptest! {
        #[test]
        fn a_bucket_is_narrower_than_a_hundredth(distance in 0_u64..=DISTANCE_MAX) {
            let at = bucket(distance);
            let (from, to) = (lowest(at), lowest(at + 1));
            prop_assert!((from..to).contains(&distance));
            prop_assert!(to - from <= 1 + distance / 100);
        }
    }
}
