//! The C library's own `memcpy` and `memset`, called as any C program calls them.
//!
//! The library picks its variant for this CPU when the program is loaded; the addresses here are
//! those of the picked variants, so a disassembly shows the code that runs.

use std::ffi::{c_int, c_void};

use crate::kernel::Kernel;

// SAFETY: the signatures are those of the C standard.
unsafe extern "C" {
    fn memcpy(target: *mut c_void, source: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(target: *mut c_void, value: c_int, bytes: usize) -> *mut c_void;
}

/// `memcpy`, a block being one byte.
pub(crate) const COPY: Kernel = Kernel::Copy { run: copy, block_bytes: 1, align_bytes: 1 };
/// `memset` to zero, a block being one byte.
pub(crate) const WRITE: Kernel = Kernel::Write { run: write, block_bytes: 1, align_bytes: 1 };

/// The address of the variant of `memcpy` that the C library picked.
pub(crate) fn memcpy_entry() -> *const u8 {
    memcpy as *const u8
}

/// The address of the variant of `memset` that the C library picked.
pub(crate) fn memset_entry() -> *const u8 {
    memset as *const u8
}

/// Caller guarantees: as [`crate::kernel::CopyBlocks`].
unsafe extern "C" fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the contract of `CopyBlocks` is that of `memcpy`, a block being a byte.
    unsafe { memcpy(target.cast(), source.cast(), bytes) };
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
unsafe extern "C" fn write(target: *mut u8, bytes: usize) {
    // SAFETY: the contract of `WriteBlocks` is that of `memset`, a block being a byte.
    unsafe { memset(target.cast(), 0, bytes) };
}
