//! The shape of a memory loop, and the driver that makes a loop over whole blocks into an operation
//! on any slice.
//!
//! A loop moves whole blocks and may demand an aligned target; what is left over at either end,
//! always less than a block and an alignment, is moved by the plain code here. So every loop stays
//! short enough to read in a disassembly.

use std::ptr;

/// Most `u64` partial sums that a read loop may leave: four vectors of 512 bits.
pub(crate) const PARTIAL_SUMS: usize = 32;

/// Copies `blocks` blocks from the second to the first address.
///
/// Caller guarantees: at least one block; both areas valid for all blocks and not overlapping; the
/// target aligned as the loop's `align_bytes` says; the CPU has what the method needs.
/// Implementation must: write exactly those blocks, and leave every store globally ordered
/// (`sfence` after non-temporal ones).
pub(crate) type CopyBlocks = unsafe extern "C" fn(*mut u8, *const u8, usize);

/// Adds up `blocks` blocks as `u64` words into [`PARTIAL_SUMS`] partial sums at the first address.
///
/// Caller guarantees: at least one block; the source valid for all blocks; the CPU has what the
/// method needs. Implementation must: load every byte, and store at most `PARTIAL_SUMS` words,
/// whose wrapping sum is the total.
pub(crate) type ReadBlocks = unsafe extern "C" fn(*mut u64, *const u8, usize);

/// Sets `blocks` blocks to zero. The caller guarantees and the implementation must as for
/// [`CopyBlocks`].
pub(crate) type WriteBlocks = unsafe extern "C" fn(*mut u8, usize);

/// One memory loop with what it demands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernel {
    Copy { run: CopyBlocks, block_bytes: usize, align_bytes: usize },
    Read { run: ReadBlocks, block_bytes: usize },
    Write { run: WriteBlocks, block_bytes: usize, align_bytes: usize },
}

impl Kernel {
    /// The address of the loop's first instruction.
    pub(crate) fn entry(self) -> *const u8 {
        match self {
            Kernel::Copy { run, .. } => run as *const u8,
            Kernel::Read { run, .. } => run as *const u8,
            Kernel::Write { run, .. } => run as *const u8,
        }
    }
}

/// Splits `bytes` from `address` on into an unaligned head, whole blocks (counted), and a tail.
fn split(
    address: *const u8,
    bytes: usize,
    block_bytes: usize,
    align_bytes: usize,
) -> (usize, usize) {
    let misaligned = address.addr() % align_bytes;
    let head = if misaligned == 0 { 0 } else { align_bytes - misaligned }.min(bytes);
    (head, (bytes - head) / block_bytes)
}

/// Copies `source` to `target` by `run`.
///
/// # Safety
/// The CPU must be able to execute the loop, and the two sizes must be the loop's own.
///
/// # Panics
/// If the lengths differ.
pub(crate) unsafe fn copy(
    run: CopyBlocks,
    block_bytes: usize,
    align_bytes: usize,
    target: &mut [u8],
    source: &[u8],
) {
    assert_eq!(target.len(), source.len(), "a copy needs a target as long as its source");
    let (head, blocks) = split(target.as_ptr(), target.len(), block_bytes, align_bytes);
    let tail = head + blocks * block_bytes;
    let (to, from) = (target.as_mut_ptr(), source.as_ptr());
    // SAFETY: `head <= tail <= len`, so every range lies in both slices, which cannot overlap as
    // one is `&mut`. The target is aligned behind `head` by `split`, and our caller vouches for the
    // CPU and the sizes.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        if blocks > 0 {
            run(to.add(head), from.add(head), blocks);
        }
        ptr::copy_nonoverlapping(from.add(tail), to.add(tail), target.len() - tail);
    }
}

/// Adds up `source` by `run`: see [`sum_words`] for what the sum is.
///
/// # Safety
/// The CPU must be able to execute the loop, and the block size must be the loop's own (a multiple
/// of 8).
pub(crate) unsafe fn read(run: ReadBlocks, block_bytes: usize, source: &[u8]) -> u64 {
    let blocks = source.len() / block_bytes;
    let mut sums = [0u64; PARTIAL_SUMS];
    if blocks > 0 {
        // SAFETY: all blocks lie in `source`, `sums` holds what a loop may store, our caller
        // vouches for the rest.
        unsafe { run(sums.as_mut_ptr(), source.as_ptr(), blocks) };
    }
    let tail = sum_words(&source[blocks * block_bytes..]);
    sums.iter().fold(tail, |total, sum| total.wrapping_add(*sum))
}

/// Sets every byte of `target` to zero by `run`.
///
/// # Safety
/// The CPU must be able to execute the loop, and the two sizes must be the loop's own.
pub(crate) unsafe fn write(
    run: WriteBlocks,
    block_bytes: usize,
    align_bytes: usize,
    target: &mut [u8],
) {
    let (head, blocks) = split(target.as_ptr(), target.len(), block_bytes, align_bytes);
    let (unaligned, rest) = target.split_at_mut(head);
    let (body, tail) = rest.split_at_mut(blocks * block_bytes);
    zero_rest(unaligned);
    if blocks > 0 {
        // SAFETY: `body` is exactly these blocks, aligned by `split`; our caller vouches for CPU
        // and sizes.
        unsafe { run(body.as_mut_ptr(), blocks) };
    }
    zero_rest(tail);
}

/// Zeroes a head or a tail, and calls nothing for an empty one: glibc's AVX-512 `memset` of no
/// bytes is a masked store, which took 140 ns here when the page behind the buffer was not present
/// (Zen 5, glibc 2.36).
fn zero_rest(rest: &mut [u8]) {
    if !rest.is_empty() {
        rest.fill(0);
    }
}

/// The wrapping sum of the little-endian `u64` words of `source`, a last partial word extended with
/// zero bytes.
fn sum_words(source: &[u8]) -> u64 {
    source.chunks(8).fold(0u64, |sum, chunk| {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.wrapping_add(u64::from_le_bytes(word))
    })
}
