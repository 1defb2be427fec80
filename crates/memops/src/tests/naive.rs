//! The oracle:
//! what each operation means, in the plainest code, sharing nothing with the loops.

/// Copies element by element through a plan of indices: each column of `stride` columns, top to
/// bottom.
pub(super) fn strided_order(elements: usize, stride: usize) -> Vec<usize> {
    let columns = stride.max(1);
    (0..columns.min(elements)).flat_map(|column| (column..elements).step_by(columns)).collect()
}

/// The wrapping sum of little-endian words, byte by byte.
pub(super) fn sum(source: &[u8]) -> u64 {
    let mut sum = 0u64;
    for (index, byte) in source.iter().enumerate() {
        sum = sum.wrapping_add(u64::from(*byte) << (8 * (index % 8)));
    }
    sum
}

/// Bytes in which no short period hides a displaced block; `salt` makes two patterns differ
/// everywhere.
pub(super) fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|index| ((index * 167 + index / 251 * 31) as u8) ^ salt).collect()
}
