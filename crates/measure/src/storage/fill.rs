//! The bytes that are written: incompressible, never two equal blocks, checkable.
//!
//! Devices and file systems that compress, deduplicate or drop zeroes would make any other content
//! a measurement of something else. Each 4 KiB block is `[place, pattern, words...]`: its place in
//! the file mixed with the seed, the number of the pattern it was filled from, and the output of
//! SplitMix64 (Steele, Lea, Flood 2014) in counter mode, which has no serial dependency and so
//! outruns any device. A buffer is filled once and only re-stamped for each write: two stores for
//! each 4 KiB.

use model::random::{INCREMENT, mix};

/// The unit of content: what file systems deduplicate by.
pub const BLOCK_BYTES: usize = 4096;

const WORD_BYTES: usize = 8;
/// Words before the random part: place and pattern.
const STAMP_WORDS: usize = 2;

/// Fills `buffer` with patterns number `first_pattern` and up, one for each 4 KiB,
/// stamped as if it lay at the start of the file.
pub fn fill(buffer: &mut [u8], seed: u64, first_pattern: u64) {
    for (pattern, block) in (first_pattern..).zip(buffer.chunks_mut(BLOCK_BYTES)) {
        let start = mix(seed ^ mix(pattern));
        for (index, word) in (0_u64..).zip(block.chunks_mut(WORD_BYTES)) {
            let value = match index {
                0 => mix(seed),
                1 => pattern,
                _ => mix(start.wrapping_add(index.wrapping_mul(INCREMENT))),
            };
            // The last word of a buffer of odd length is cut.
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
}

/// Gives the blocks of a filled `buffer` the places that they will have when it is
/// written at byte `offset`, a multiple of 4 KiB.
pub fn stamp(buffer: &mut [u8], seed: u64, offset: u64) {
    let first = offset / BLOCK_BYTES as u64;
    for (place, block) in (first..).zip(buffer.chunks_mut(BLOCK_BYTES)) {
        if let Some(word) = block.first_chunk_mut::<WORD_BYTES>() {
            *word = mix(seed ^ place).to_le_bytes();
        }
    }
}

/// Whether `buffer`, read at byte `offset`, holds what was written there.
pub fn holds(buffer: &[u8], seed: u64, offset: u64) -> bool {
    let first = offset / BLOCK_BYTES as u64;
    (first..).zip(buffer.chunks(BLOCK_BYTES)).all(|(place, block)| block_holds(block, seed, place))
}

fn block_holds(block: &[u8], seed: u64, place: u64) -> bool {
    let mut words = block
        .chunks_exact(WORD_BYTES)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let (Some(at), Some(pattern)) = (words.next(), words.next()) else {
        return false;
    };
    let start = mix(seed ^ mix(pattern));
    at == mix(seed ^ place)
        && (STAMP_WORDS as u64..)
            .zip(words)
            .all(|(index, word)| word == mix(start.wrapping_add(index.wrapping_mul(INCREMENT))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn filled(seed: u64) -> Vec<u8> {
        let mut buffer = vec![0; 64 * BLOCK_BYTES];
        fill(&mut buffer, seed, 7);
        buffer
    }

    #[test]
    fn what_was_written_is_recognised_and_nothing_else() {
        let mut buffer = filled(1);
        stamp(&mut buffer, 1, 10 * 4096);
        assert!(holds(&buffer, 1, 10 * 4096));
        assert!(!holds(&buffer, 1, 11 * 4096), "another place");
        assert!(!holds(&buffer, 2, 10 * 4096), "another run");
        buffer[5 * 4096 + 4000] ^= 1;
        assert!(!holds(&buffer, 1, 10 * 4096), "one bit");
        assert!(!holds(&vec![0; 4096], 1, 0), "a hole");
    }

    #[test]
    fn one_buffer_written_twice_has_no_two_equal_blocks() {
        let mut seen = HashSet::new();
        for offset in [0, 64 * 4096] {
            let mut buffer = filled(3);
            stamp(&mut buffer, 3, offset);
            for block in buffer.chunks(BLOCK_BYTES) {
                assert!(seen.insert(block.to_vec()));
            }
        }
        assert_eq!(seen.len(), 128);
    }

    /// Each byte value comes about equally often, and the entropy of the bytes is
    /// that of noise: nothing is left for a compressor that has no key.
    #[test]
    fn bytes_look_like_noise() {
        let buffer = filled(9);
        let mut counts = [0_f64; 256];
        for byte in &buffer {
            counts[*byte as usize] += 1.0;
        }
        let total = buffer.len() as f64;
        let entropy: f64 = counts.iter().map(|c| -(c / total) * (c / total).log2()).sum();
        assert!(entropy > 7.99, "{entropy} bits a byte");
    }

    #[test]
    fn odd_lengths_are_filled_to_the_end() {
        let mut buffer = vec![0; 4096 + 13];
        fill(&mut buffer, 5, 0);
        assert!(buffer[4096..].iter().any(|b| *b != 0));
        stamp(&mut buffer, 5, 0);
        assert!(holds(&buffer[..4096], 5, 0));
    }
}
