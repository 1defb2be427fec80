//! What a method needs of the CPU, and whether this one has it; asked of CPUID, never of a kernel
//! file.
//!
//! AVX and AVX-512 count as present only when the operating system saves their registers too, as
//! `std` checks.

/// Whether this CPU is an x86-64 with the feature.
#[cfg(target_arch = "x86_64")]
macro_rules! has_feature {
    ($feature:tt) => {
        std::arch::is_x86_feature_detected!($feature)
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! has_feature {
    ($feature:tt) => {
        false
    };
}

/// What a method needs beyond the architecture's base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Runs wherever the crate compiles.
    Nothing,
    /// Any x86-64, SSE2 included.
    X86_64,
    Avx2,
    Avx512f,
    Clzero,
    /// Any aarch64, NEON included.
    Aarch64,
}

impl Need {
    /// Why this machine cannot run a method with this need; `None` when it can.
    pub(crate) fn missing(self) -> Option<&'static str> {
        let (present, reason) = match self {
            Need::Nothing => (true, ""),
            Need::X86_64 => (cfg!(target_arch = "x86_64"), "needs x86-64"),
            Need::Aarch64 => (cfg!(target_arch = "aarch64"), "needs aarch64"),
            Need::Avx2 => (has_feature!("avx2"), "needs avx2"),
            Need::Avx512f => (has_feature!("avx512f"), "needs avx512f"),
            Need::Clzero => (has_clzero(), "needs clzero (AMD Zen)"),
        };
        (!present).then_some(reason)
    }
}

/// Whether `rep movs` and `rep stos` move whole lines (ERMS), as every server CPU since 2013
/// (Intel) and 2020 (AMD).
pub(crate) fn has_fast_strings() -> bool {
    has_feature!("ermsb")
}

/// Leaf 0x8000_0008, EBX bit 0 (AMD64 manual, volume 3, CLZERO). A CPUID under a hypervisor traps
/// and costs microseconds, so it is asked once.
#[cfg(target_arch = "x86_64")]
fn has_clzero() -> bool {
    use std::arch::x86_64::__cpuid;
    static PRESENT: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        // Newer compilers know that CPUID is safe on x86-64, those of `rust-version` do not.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 CPU has the instruction, and leaf 0x8000_0000 says which leaves are
        // defined.
        unsafe {
            __cpuid(0x8000_0000).eax >= 0x8000_0008 && __cpuid(0x8000_0008).ebx & 1 == 1
        }
    });
    *PRESENT
}

#[cfg(not(target_arch = "x86_64"))]
fn has_clzero() -> bool {
    false
}
