//! The probes: they measure, and return results; they never print.
//!
//! Every probe runs under a [`Budget`], interleaves its variants, brackets each
//! trial with the thread's own run-queue delay, faults and the machine's steal,
//! and throws disturbed trials away, counting them.

pub mod budget;
pub mod calibrate;
pub mod compute;
pub mod disturbance;
pub mod error;
pub mod faults;
mod helper;
pub mod memory;
pub mod pressure;
pub mod ramdisk;
pub mod runs;
pub mod storage;
pub mod team;
pub mod trial;

pub use budget::Budget;
pub use error::{Error, ErrorKind, Result};
