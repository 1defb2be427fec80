//! Every direct system call of the workspace, one file per kernel interface.
//!
//! The idea: a thin, safe face over what the standard library does not offer. Each call
//! returns a matchable [`Error`] that names the operation and the path. With `memops` this
//! is the only crate where `unsafe` compiles. It takes no decisions, prints nothing and
//! never changes a system setting.
#![allow(unsafe_code)]

pub mod affinity;
pub mod allocator;
pub mod attributes;
pub mod background;
pub mod block;
pub mod bpf;
pub mod buffer_pool;
pub mod cachestat;
pub mod clock;
pub mod descriptors;
pub mod device;
pub mod directory;
mod error;
mod failure;
pub mod fibmap;
pub mod fiemap;
pub mod file;
pub mod file_stat;
pub mod fuse_device;
pub mod helper;
pub mod interrupt;
pub mod kernel_messages;
pub mod libc_facts;
pub mod local_time;
pub mod lock;
pub mod loop_device;
pub mod memory;
pub mod mount;
pub mod nbd;
pub mod pagemap;
pub mod parent;
pub mod perf;
pub mod pidfd;
pub mod pipe;
pub mod poll;
pub mod process;
pub mod process_memory;
pub mod program_counter;
pub mod random;
pub mod readahead;
pub mod record_lock;
mod region;
pub mod scheduling;
pub mod shared_memory;
pub mod signals;
pub mod spawn;
pub mod subvolume;
pub mod swap_area;
pub mod taskstats;
pub mod timed_stat;
pub mod tracefs;
pub mod unix_diag;
pub mod uring;
pub mod usage;
pub mod wait;

pub use error::{Error, ErrorKind, Result, plain_reason};
pub use failure::{Failure, FailureKind};
