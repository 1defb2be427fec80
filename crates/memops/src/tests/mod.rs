//! The tests of all methods:
//! an oracle, and properties that every method must instantiate.

#[cfg(target_arch = "x86_64")]
mod disassembly;
mod naive;
mod prop;
mod registry;
