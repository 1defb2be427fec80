//! What this machine is: its levels, devices, limits and counters, read from /proc and
//! /sys under a given [`Root`].
//!
//! The idea: every reader is a pure parser behind a thin file access, and the root can be
//! a fake tree, so each kind of machine can be tested on any other. What a file does not
//! tell is `None`, never 0. Nothing here writes, measures or judges.

mod arm_parts;
pub mod block;
pub mod block_use;
pub mod caches;
pub mod cgroup;
pub mod cpu;
pub mod damon;
pub mod demand;
pub mod denials;
pub mod diskstats;
pub mod kernel;
pub mod maps;
pub mod memory;
pub mod mounts;
pub mod others;
pub mod pagemap;
mod parse;
pub mod pressure;
pub mod process_io;
pub mod process_memory;
pub mod reach;
mod root;
pub mod schedstat;
pub mod smaps;
pub mod stat;
pub mod swap;
pub mod usb;
pub mod vmstat;
pub mod zram;

pub use root::{ProcFile, Root};
pub use sys::{Error, ErrorKind, Result};
