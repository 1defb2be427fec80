//! The vector loops of aarch64: four 16-byte registers an iteration, paired loads and stores.
//!
//! `ldnp` and `stnp` hint that the data is not used again; whether a core then skips the fetch of
//! the target's lines is its own choice.

use crate::kernel::Kernel;

macro_rules! neon_copy {
    ($name:ident, $kernel:ident, load: $load:literal, store: $store:literal, prefetch: [$($prefetch:literal),*]) => {
        /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
        #[unsafe(naked)]
        unsafe extern "C" fn $name(target: *mut u8, source: *const u8, blocks: usize) {
            std::arch::naked_asm!(
                ".p2align 5",
                "2:",
                $($prefetch,)*
                concat!($load, " q0, q1, [x1]"),
                concat!($load, " q2, q3, [x1, #32]"),
                concat!($store, " q0, q1, [x0]"),
                concat!($store, " q2, q3, [x0, #32]"),
                "add x1, x1, #64",
                "add x0, x0, #64",
                "subs x2, x2, #1",
                "b.ne 2b",
                "ret",
            )
        }

        pub(crate) const $kernel: Kernel = Kernel::Copy { run: $name, block_bytes: 64, align_bytes: 16 };
    };
}

neon_copy!(copy, COPY, load: "ldp", store: "stp", prefetch: []);
neon_copy!(copy_nt, COPY_NT, load: "ldnp", store: "stnp", prefetch: []);
neon_copy!(copy_prefetch, COPY_PREFETCH, load: "ldp", store: "stp", prefetch: ["prfm pldl1strm, [x1, #256]"]);

/// Adds up 64-bit lanes into four sums.
pub(crate) const READ: Kernel = Kernel::Read { run: read, block_bytes: 64 };
/// Stores zeros.
pub(crate) const WRITE: Kernel = Kernel::Write { run: write, block_bytes: 64, align_bytes: 16 };

/// Caller guarantees: as [`crate::kernel::ReadBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn read(sums: *mut u64, source: *const u8, blocks: usize) {
    std::arch::naked_asm!(
        "movi v0.2d, #0",
        "movi v1.2d, #0",
        "movi v2.2d, #0",
        "movi v3.2d, #0",
        ".p2align 5",
        "2:",
        "ldp q4, q5, [x1]",
        "ldp q6, q7, [x1, #32]",
        "add v0.2d, v0.2d, v4.2d",
        "add v1.2d, v1.2d, v5.2d",
        "add v2.2d, v2.2d, v6.2d",
        "add v3.2d, v3.2d, v7.2d",
        "add x1, x1, #64",
        "subs x2, x2, #1",
        "b.ne 2b",
        "stp q0, q1, [x0]",
        "stp q2, q3, [x0, #32]",
        "ret",
    )
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn write(target: *mut u8, blocks: usize) {
    std::arch::naked_asm!(
        "movi v0.2d, #0",
        ".p2align 5",
        "2:",
        "stp q0, q0, [x0]",
        "stp q0, q0, [x0, #32]",
        "add x0, x0, #64",
        "subs x1, x1, #1",
        "b.ne 2b",
        "ret",
    )
}
