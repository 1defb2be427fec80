//! AMD's `clzero`: zeroes the cache line that `rax` points into without fetching it.
//!
//! It is ordered like a non-temporal store (AMD64 manual, volume 3), hence the `sfence`. Every CPU
//! that has it has lines of 64 bytes. There is no copy by it: clearing a line and then storing to
//! it ran at 0.3 GB/s on Zen 5.

use crate::kernel::Kernel;

pub(crate) const WRITE: Kernel = Kernel::Write { run: write, block_bytes: 256, align_bytes: 64 };

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn write(target: *mut u8, blocks: usize) {
    std::arch::naked_asm!(
        "mov rax, rdi",
        ".p2align 5",
        "2:",
        "clzero",
        "add rax, 64",
        "clzero",
        "add rax, 64",
        "clzero",
        "add rax, 64",
        "clzero",
        "add rax, 64",
        "dec rsi",
        "jnz 2b",
        "sfence",
        "ret",
    )
}
