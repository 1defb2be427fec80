//! The string instructions: one instruction is the whole loop, and microcode chooses how lines
//! move.
//!
//! The System V ABI guarantees a clear direction flag, so all of them run upwards.

use std::arch::naked_asm;

use crate::kernel::Kernel;

pub(crate) const MOVSB: Kernel = Kernel::Copy { run: movsb, block_bytes: 1, align_bytes: 1 };
pub(crate) const MOVSQ: Kernel = Kernel::Copy { run: movsq, block_bytes: 8, align_bytes: 1 };
pub(crate) const STOSB: Kernel = Kernel::Write { run: stosb, block_bytes: 1, align_bytes: 1 };
pub(crate) const STOSQ: Kernel = Kernel::Write { run: stosq, block_bytes: 8, align_bytes: 1 };

/// Caller guarantees: as [`crate::kernel::CopyBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn movsb(target: *mut u8, source: *const u8, bytes: usize) {
    naked_asm!("mov rcx, rdx", "rep movsb", "ret")
}

/// Caller guarantees: as [`crate::kernel::CopyBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn movsq(target: *mut u8, source: *const u8, words: usize) {
    naked_asm!("mov rcx, rdx", "rep movsq", "ret")
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn stosb(target: *mut u8, bytes: usize) {
    naked_asm!("mov rcx, rsi", "xor eax, eax", "rep stosb", "ret")
}

/// Caller guarantees: as [`crate::kernel::WriteBlocks`].
#[unsafe(naked)]
unsafe extern "C" fn stosq(target: *mut u8, words: usize) {
    naked_asm!("mov rcx, rsi", "xor eax, eax", "rep stosq", "ret")
}
