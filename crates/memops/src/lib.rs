//! The memory loops: copy, read and fill memory by every method worth comparing, and chase pointers
//! through it.
//!
//! Each loop is written once and in assembly where a compiler could recognise, vectorise or remove
//! it; [`methods`] lists them by name, with what each costs on the memory bus and whether this CPU
//! can run it. [`Chase`] measures latency instead of bandwidth, and [`Method::disassemble`] shows
//! the code as it is in memory.
//!
//! This crate makes no system call, reads no clock and prints nothing: the caller decides on
//! buffers and time.
//!
//! `unsafe` compiles here and in `sys` only: loops over raw memory cannot be expressed otherwise.
#![allow(unsafe_code)]

mod chase;
mod compiled;
mod cpu;
mod disassemble;
mod element;
mod kernel;
mod libc;
mod method;
mod registry;
mod word;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod tests;

pub use chase::Chase;
pub use disassemble::{DisassembleError, Instruction};
pub use element::{Width, copy_strided};
pub use method::{Family, Method, Operation, Traffic};
pub use registry::{find, methods};
