//! Keys as skewed as those that caches see: the n-th most popular is requested 1 / n^skew as often
//! as the first.

use model::random::mix;

use crate::Random;

/// An endless sequence of keys that repeats from its seed.
#[derive(Debug)]
pub struct ZipfKeys {
    /// The share of requests of the keys up to each one, 0 to 1.
    upto: Vec<f64>,
    random: Random,
}

impl ZipfKeys {
    /// Requests of `keys` different keys (at least one) with a skew of 0 (all alike) or more.
    #[must_use]
    pub fn new(keys: usize, skew: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let mut upto: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        upto.iter_mut().for_each(|share| *share /= sum);
        Self { upto, random: Random(seed) }
    }

    /// The next key. Popular keys are not neighbours: any numbers of 64 bits.
    pub fn next_key(&mut self) -> u64 {
        let drawn = self.random.next_u64() as f64 / 2.0_f64.powi(64);
        let rank = self.upto.partition_point(|&share| share < drawn).min(self.upto.len() - 1);
        mix(rank as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_requested_as_often_as_the_law_says() {
        let mut keys = ZipfKeys::new(100, 1.0, 1);
        let count = (0..100_000).filter(|_| keys.next_key() == mix(0)).count();
        // One over the sum of 1 / n up to 100: 19.28 %.
        assert!((18_700..19_900).contains(&count), "{count}");
    }
}
