//! The loops of x86-64: string instructions, three vector widths, and AMD's cache-line zeroing.
//!
//! `vector` holds the vector loops once, for each width; `control_flow` disassembles them.

pub(crate) mod vector;

pub(crate) mod clzero;
pub(crate) mod control_flow;
pub(crate) mod string;
