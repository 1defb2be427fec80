//! The loops of aarch64, all with NEON registers, which every such processor has.
//! Pairs of registers are loaded and stored; the non-temporal forms are hints there.

pub(crate) mod neon;
