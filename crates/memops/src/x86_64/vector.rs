//! The vector loops, once for every width: a few registers an iteration, the target aligned, the
//! source anywhere.
//!
//! Non-temporal stores bypass the caches, so the target's lines are never fetched; they are weakly
//! ordered, and the `sfence` at the end is part of what is measured. A prefetch may point behind
//! the source: it never faults.
//!
//! Block sizes and the prefetch distance were picked on Zen 5, copying 256 MiB: blocks of 128 bytes
//! were up to 18 % faster than 256 with non-temporal 64-byte stores, and 256 bytes ahead the best
//! of 256, 512, 1,024, 2,048 and 4,096.

/// All loops of one instruction set.
///
/// `move` loads from and stores to any address, `aligned` and `stream` store at a multiple of
/// `bytes`. `block` is what an iteration of copy and write moves: `at` lists its registers' numbers
/// with their offsets, `lines` the offsets to prefetch, one for each of its cache lines. `zero` and
/// `add` are whole instructions on four sums and four loads.
macro_rules! vector_loops {
    (
        bytes: $bytes:literal, register: $register:literal, move: $move:literal, aligned: $aligned:literal,
        stream: $stream:literal, block: $block:literal, at: $at:tt, lines: [$($line:literal),*],
        zero: $zero:tt, add: $add:tt, end: [$($end:literal),*]
    ) => {
        vector_copy!(copy, COPY, $bytes, $block, $register, $at, $move, $aligned, [], [$($end),*]);
        vector_copy!(copy_nt, COPY_NT, $bytes, $block, $register, $at, $move, $stream, [], ["sfence" $(, $end)*]);
        vector_copy!(copy_nt_nta, COPY_NT_PREFETCH, $bytes, $block, $register, $at, $move, $stream,
            [$(concat!("prefetchnta [rsi + ", $line, "]")),*], ["sfence" $(, $end)*]);
        vector_copy!(copy_nt_t0, COPY_NT_PREFETCHT0, $bytes, $block, $register, $at, $move, $stream,
            [$(concat!("prefetcht0 [rsi + ", $line, "]")),*], ["sfence" $(, $end)*]);
        vector_write!(write, WRITE, $bytes, $block, $register, $at, $zero, $aligned, [$($end),*]);
        vector_write!(write_nt, WRITE_NT, $bytes, $block, $register, $at, $zero, $stream, ["sfence" $(, $end)*]);
        vector_read!($bytes, $register, $move, $zero, $add, [$($end),*]);
    };
}

/// One copy loop: all loads of a block, then all its stores.
macro_rules! vector_copy {
    (
        $name:ident, $kernel:ident, $bytes:literal, $block:literal, $register:literal, [$(($index:literal, $offset:literal)),*],
        $load:literal, $store:literal, [$($prefetch:expr),*], [$($end:literal),*]
    ) => {
        /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
        #[unsafe(naked)]
        unsafe extern "C" fn $name(target: *mut u8, source: *const u8, blocks: usize) {
            std::arch::naked_asm!(
                ".p2align 5",
                "2:",
                $($prefetch,)*
                $(concat!($load, " ", $register, $index, ", [rsi + ", $offset, "]"),)*
                $(concat!($store, " [rdi + ", $offset, "], ", $register, $index),)*
                concat!("add rsi, ", $block),
                concat!("add rdi, ", $block),
                "dec rdx",
                "jnz 2b",
                $($end,)*
                "ret",
            )
        }

        pub(crate) const $kernel: crate::kernel::Kernel =
            crate::kernel::Kernel::Copy { run: $name, block_bytes: $block, align_bytes: $bytes };
    };
}

/// One loop that stores zeros, all from register 0.
macro_rules! vector_write {
    (
        $name:ident, $kernel:ident, $bytes:literal, $block:literal, $register:literal, [$(($index:literal, $offset:literal)),*],
        [$zero:literal $(, $others:literal)*], $store:literal, [$($end:literal),*]
    ) => {
        /// Caller guarantees: as [`crate::kernel::WriteBlocks`].
        #[unsafe(naked)]
        unsafe extern "C" fn $name(target: *mut u8, blocks: usize) {
            std::arch::naked_asm!(
                $zero,
                ".p2align 5",
                "2:",
                $(concat!($store, " [rdi + ", $offset, "], ", $register, "0"),)*
                concat!("add rdi, ", $block),
                "dec rsi",
                "jnz 2b",
                $($end,)*
                "ret",
            )
        }

        pub(crate) const $kernel: crate::kernel::Kernel =
            crate::kernel::Kernel::Write { run: $name, block_bytes: $block, align_bytes: $bytes };
    };
}

/// One loop that adds up 64-bit lanes: into four sums, for a single one would wait for itself.
macro_rules! vector_read {
    (
        $bytes:literal, $register:literal, $move:literal,
        [$($zero:literal),*], [$($add:literal),*], [$($end:literal),*]
    ) => {
        /// Caller guarantees: as [`crate::kernel::ReadBlocks`].
        #[unsafe(naked)]
        unsafe extern "C" fn read(sums: *mut u64, source: *const u8, blocks: usize) {
            std::arch::naked_asm!(
                $($zero,)*
                ".p2align 5",
                "2:",
                concat!($move, " ", $register, "4, [rsi]"),
                concat!($move, " ", $register, "5, [rsi + 1*", $bytes, "]"),
                concat!($move, " ", $register, "6, [rsi + 2*", $bytes, "]"),
                concat!($move, " ", $register, "7, [rsi + 3*", $bytes, "]"),
                $($add,)*
                concat!("add rsi, 4*", $bytes),
                "dec rdx",
                "jnz 2b",
                concat!($move, " [rdi], ", $register, "0"),
                concat!($move, " [rdi + 1*", $bytes, "], ", $register, "1"),
                concat!($move, " [rdi + 2*", $bytes, "], ", $register, "2"),
                concat!($move, " [rdi + 3*", $bytes, "], ", $register, "3"),
                $($end,)*
                "ret",
            )
        }

        pub(crate) const READ: crate::kernel::Kernel =
            crate::kernel::Kernel::Read { run: read, block_bytes: 4 * $bytes };
    };
}

/// The loops with 16-byte registers, which every x86-64 has.
pub(crate) mod sse2 {
    vector_loops! {
        bytes: 16, register: "xmm", move: "movdqu", aligned: "movdqa", stream: "movntdq", block: 64,
        at: [("0", "0"), ("1", "16"), ("2", "32"), ("3", "48")], lines: ["256"],
        zero: ["pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3"],
        add: ["paddq xmm0, xmm4", "paddq xmm1, xmm5", "paddq xmm2, xmm6", "paddq xmm3, xmm7"],
        end: []
    }
}

/// The loops with 32-byte registers. `vzeroupper`, for code with SSE2 is slow while upper halves
/// are in use.
pub(crate) mod avx2 {
    vector_loops! {
        bytes: 32, register: "ymm", move: "vmovdqu", aligned: "vmovdqa", stream: "vmovntdq", block: 128,
        at: [("0", "0"), ("1", "32"), ("2", "64"), ("3", "96")], lines: ["256", "320"],
        zero: ["vpxor ymm0, ymm0, ymm0", "vpxor ymm1, ymm1, ymm1", "vpxor ymm2, ymm2, ymm2", "vpxor ymm3, ymm3, ymm3"],
        add: ["vpaddq ymm0, ymm0, ymm4", "vpaddq ymm1, ymm1, ymm5", "vpaddq ymm2, ymm2, ymm6", "vpaddq ymm3, ymm3, ymm7"],
        end: ["vzeroupper"]
    }
}

/// The loops with 64-byte registers, one cache line each; `vzeroupper` as with AVX2.
pub(crate) mod avx512 {
    vector_loops! {
        bytes: 64, register: "zmm", move: "vmovdqu64", aligned: "vmovdqa64", stream: "vmovntdq",
        block: 128,
        at: [("0", "0"), ("1", "64")], lines: ["256", "320"],
        zero: [
            "vpxorq zmm0, zmm0, zmm0", "vpxorq zmm1, zmm1, zmm1", "vpxorq zmm2, zmm2, zmm2", "vpxorq zmm3, zmm3, zmm3"
        ],
        add: [
            "vpaddq zmm0, zmm0, zmm4", "vpaddq zmm1, zmm1, zmm5", "vpaddq zmm2, zmm2, zmm6", "vpaddq zmm3, zmm3, zmm7"
        ],
        end: ["vzeroupper"]
    }
}
