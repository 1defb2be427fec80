//! Numbers that look random and repeat from their seed.
//!
//! SplitMix64 (Steele, Lea, Flood 2014): passes the usual tests, one addition and two
//! multiplications a number. Nothing here is secret.

/// The generator; the seed is its whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }

    /// A number below `bound`, which must not be 0. The bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills a buffer with bytes that do not compress.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    /// Puts the values into a random order.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The step of the generator's state: 2^64 over the golden ratio.
pub const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer: an invertible function that changes about half of the bits of its result for each
/// bit of `value`.
#[inline]
pub fn mix(value: u64) -> u64 {
    let half = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (half ^ (half >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_repeats() {
        let draw = |seed| {
            let mut random = Random(seed);
            let mut buffer = [0u8; 13];
            random.fill(&mut buffer);
            (buffer, random.below(10))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        // The first number for seed 0, as published with the algorithm.
        assert_eq!(Random(0).next_u64(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn bounds_hold_and_a_shuffle_loses_nothing() {
        let mut random = Random(7);
        assert!((0..1000).all(|_| random.below(3) < 3));
        let mut all: Vec<u32> = (0..1000).collect();
        random.shuffle(&mut all);
        assert_ne!(all[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }
}
