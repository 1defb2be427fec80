//! The loops of x86-64: string instructions, three vector widths, and AMD's cache-line zeroing.
//!
//! `vector` holds the vector loops once; `sse2`, `avx2` and `avx512` instantiate them.
//! `control_flow` disassembles them.

#[macro_use]
mod vector;

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod clzero;
pub(crate) mod control_flow;
pub(crate) mod sse2;
pub(crate) mod string;
