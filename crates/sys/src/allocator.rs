//! How the C library keeps the memory that a program has freed.
//!
//! Blocks from some size on get a mapping of their own, which grows without a copy and goes back to
//! the kernel at once. But glibc raises that size to the largest block that was freed, to 32 MiB:
//! from the second save on, `ramdisk keep` had 47 MiB in place of 29.

/// From this size on a block has a mapping of its own, whatever was freed before.
const OWN_MAPPING_BYTES: i32 = 1 << 20;

/// Keeps large freed blocks from staying with this process: for one that runs for days. Whether the
/// C library does so; others than glibc have no such setting.
pub fn return_large_blocks() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes two numbers; the C library locks what it changes.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES) == 1 }
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn a_large_block_has_a_mapping_of_its_own_after_a_larger_one_was_freed() {
        assert!(return_large_blocks());
        drop(black_box(vec![1_u8; 20 << 20]));
        let blocks: Vec<Vec<u8>> = (1..5).map(|mib| black_box(vec![1; mib << 20])).collect();
        for block in &blocks {
            // The mapping begins with two words of the C library.
            assert_eq!(block.as_ptr() as usize % 4096, 16, "{} bytes", block.len());
        }
    }
}
