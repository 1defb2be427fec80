//! The loops of aarch64.

pub(crate) mod neon;
