//! Reading and zeroing by 64-bit words: the loops that need no vector unit, four words
//! an iteration. On other architectures volatile accesses keep them as written.

use crate::kernel::Kernel;

/// Adds up four words an iteration, each into its own sum, so that the additions do not wait for
/// one another.
pub(crate) const READ: Kernel = Kernel::Read { run: read, block_bytes: 32 };
/// Stores four zero words an iteration.
pub(crate) const WRITE: Kernel = Kernel::Write { run: write, block_bytes: 32, align_bytes: 8 };

/// Caller guarantees: as [`crate::kernel::ReadBlocks`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn read(sums: *mut u64, source: *const u8, blocks: usize) {
    std::arch::naked_asm!(
        "xor eax, eax",
        "xor ecx, ecx",
        "xor r8d, r8d",
        "xor r9d, r9d",
        ".p2align 4",
        "2:",
        "add rax, qword ptr [rsi]",
        "add rcx, qword ptr [rsi + 8]",
        "add r8, qword ptr [rsi + 16]",
        "add r9, qword ptr [rsi + 24]",
        "add rsi, 32",
        "dec rdx",
        "jnz 2b",
        "mov qword ptr [rdi], rax",
        "mov qword ptr [rdi + 8], rcx",
        "mov qword ptr [rdi + 16], r8",
        "mov qword ptr [rdi + 24], r9",
        "ret",
    )
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn write(target: *mut u8, blocks: usize) {
    std::arch::naked_asm!(
        "xor eax, eax",
        ".p2align 4",
        "2:",
        "mov qword ptr [rdi], rax",
        "mov qword ptr [rdi + 8], rax",
        "mov qword ptr [rdi + 16], rax",
        "mov qword ptr [rdi + 24], rax",
        "add rdi, 32",
        "dec rsi",
        "jnz 2b",
        "ret",
    )
}

/// Caller guarantees: as [`crate::kernel::ReadBlocks`].
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn read(sums: *mut u64, source: *const u8, blocks: usize) {
    let mut partial = [0u64; 4];
    for block in 0..blocks {
        for (word, sum) in partial.iter_mut().enumerate() {
            // SAFETY: the caller of a `ReadBlocks` vouches for the source. Volatile, so that no
            // vector unit is used.
            let bytes =
                unsafe { source.add(block * 32 + word * 8).cast::<[u8; 8]>().read_volatile() };
            *sum = sum.wrapping_add(u64::from_le_bytes(bytes));
        }
    }
    // SAFETY: the caller of a `ReadBlocks` gives room for `PARTIAL_SUMS` words, of which these are
    // four.
    unsafe { std::ptr::copy_nonoverlapping(partial.as_ptr(), sums, partial.len()) };
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn write(target: *mut u8, blocks: usize) {
    for word in 0..blocks * 4 {
        // SAFETY: the caller of a `WriteBlocks` vouches for the target and its alignment of 8.
        unsafe { target.cast::<u64>().add(word).write_volatile(0) };
    }
}
