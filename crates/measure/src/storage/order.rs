//! The order of random requests: every block once, shuffled, before any block is repeated.
//!
//! Plain random draws repeat blocks early (birthday paradox), and a cache serves the repeat. A
//! Feistel network over the block number is a permutation that needs no table, so a disk of
//! terabytes costs as little as a small file (Black and Rogaway, *Ciphers with Arbitrary Finite
//! Domains*, 2002).

use model::random::mix;

/// Rounds of the network; four shuffle well enough, since this is not a cipher.
const ROUNDS: u64 = 4;

/// A shuffled order of the numbers `0..blocks`.
#[derive(Clone, Copy, Debug)]
pub struct RequestOrder {
    blocks: u64,
    half_bits: u32,
    seed: u64,
}

impl RequestOrder {
    /// The order for `blocks` blocks that `seed` gives; 0 blocks are taken as 1.
    pub fn new(blocks: u64, seed: u64) -> Self {
        let blocks = blocks.max(1);
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        Self { blocks, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The block at `turn`. After all blocks the next pass has another order.
    pub fn at(&self, turn: u64) -> u64 {
        let key = mix(self.seed ^ mix(turn / self.blocks));
        let mut block = turn % self.blocks;
        // The network permutes a power of 4 that is at most 4 times too large;
        // walking on until inside is still a permutation of the inside.
        loop {
            block = self.shuffled(block, key);
            if block < self.blocks {
                return block;
            }
        }
    }

    fn shuffled(&self, block: u64, key: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (block >> self.half_bits, block & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mix(right ^ key.wrapping_add(round)) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_whole_disk_needs_no_table() {
        let order = RequestOrder::new(u64::MAX >> 12, 1);
        assert!((0..1000).all(|turn| order.at(turn) < order.blocks()));
    }

    #[test]
    fn neighbours_in_time_are_not_neighbours_on_the_disk() {
        let order = RequestOrder::new(1 << 20, 4);
        let near =
            (0..10_000).filter(|&turn| order.at(turn).abs_diff(order.at(turn + 1)) < 64).count();
        assert!(near < 20, "{near} of 10,000; 1 is expected");
    }

    proptest! {
        #[test]
        fn every_block_comes_once_in_each_pass(blocks in 1_u64..3000, seed: u64) {
            let order = RequestOrder::new(blocks, seed);
            for pass in 0..2 {
                let mut seen = vec![false; blocks as usize];
                for turn in 0..blocks {
                    let block = order.at(pass * blocks + turn) as usize;
                    prop_assert!(!std::mem::replace(&mut seen[block], true));
                }
            }
        }
    }
}
