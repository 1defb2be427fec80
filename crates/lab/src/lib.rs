//! Published experiments, repeated on this machine beside their figures.
//!
//! An experiment is data (`experiments/*.json`, read by [`description`]). Its driver is one module:
//! options become a plan that is checked before anything is touched, the plan is carried out, the
//! outcome is returned. The drivers are made of the probes, the movers and the recorder; this crate
//! prints nothing, and the program renders what it returns.

pub mod description;
mod error;
pub mod file_copy;
mod held_directory;
mod host;
pub mod memory_copy;
pub mod output_directory;
pub mod process;
pub mod ramdisk_puzzle;
pub mod recovery;
pub mod working_set;

pub use error::{Error, ErrorKind, Result};
pub use host::{Host, Programs};
