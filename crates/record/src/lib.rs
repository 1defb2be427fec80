//! The recorder: counters, delays and events of a command or of the machine on one
//! timeline, kept in an append-only file that opens when cut at any byte.
//!
//! Data flows one way: [`collect`] reads the kernel's files, [`trace`] reduces its events,
//! [`tasks`] asks for its delay accounting; [`capture`] takes samples of them at a steady
//! rate and hands them to a [`RecordSink`]; [`file::open`] gives back the
//! [`model::recording::Recording`] that `explain` reads. Nothing here judges or prints, and
//! nothing is changed on the machine but what the crate `undo` puts back.

mod accesses;
pub mod capture;
pub mod collect;
mod device_number;
mod error;
pub mod export;
pub mod file;
pub mod import;
mod known_identities;
mod process_tree;
pub mod redact;
mod registry;
pub mod run_directory;
mod sink;
pub mod tasks;
pub mod trace;
mod work;

pub use accesses::{
    AccessBatch, AccessCounts, AccessShifts, DeviceRequest, PageEvent, PageEventKind, RequestKind,
};
pub use error::{Error, ErrorKind, Result};
pub use registry::{ABSENT, Registry, Row};
pub use sink::RecordSink;
pub use work::WorkSpec;

/// How events of the kernel are followed, best first: by programs in the kernel (eBPF), or by rings
/// of samples (perf). Which of them works is the running kernel's and the user's matter.
pub const RECORDERS: [&str; 2] = ["eBPF", "perf"];
