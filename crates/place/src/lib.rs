//! The movers: they bring data from a slow level to a fast one.
//!
//! The idea: a mover has a plan that can be printed before anything is touched, a loop that asks
//! a [`background::Allowance`] after each batch, and a report of what was done, with the counters
//! that prove it. It uses what is free and never takes from others; what is refused is reported.
//! It reads other processes' memory only to make the kernel restore it: no byte of it is
//! interpreted, kept or written.

pub mod background;
pub mod boost;
pub mod cached;
pub mod copy;
mod error;
pub mod fit;
pub mod metadata;
pub mod order;
mod path_text;
pub mod ramdisk;
pub mod ranges;
pub mod read_plan;
pub mod tree;
pub mod workingset;

pub use error::{EntryFailure, Error, ErrorKind, Result};
