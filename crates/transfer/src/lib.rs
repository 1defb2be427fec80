//! Moves bytes: ranges of a device are read, written, or copied to another, several at a time.
//!
//! 1. An [`Engine`] performs requests with buffers that it owns: [`sys::uring::Queue`], threads
//!    ([`Workers`]) or [`Calls`]. [`FileEngine`] is the best one for files that is permitted here.
//! 2. [`run()`] cuts extents into pieces of one buffer, keeps every slot busy, and continues short
//!    transfers. Of a copy, the same buffer is read into and written from.
//! 3. An [`Observer`] gets each piece with its data, each failure with its offset, and can stop the
//!    run. `()` observes nothing, [`ReportProgress`] reports to a `model::progress` sink.
//! 4. [`files_copy`] copies many files over one ring, several at a time, each synced in the ring.
//!
//! [`device`] has devices that wrap a device. Nothing here opens files, chooses ranges, or makes
//! anything durable: the caller does.

mod calls;
pub mod device;
mod engine;
mod extent;
mod files;
pub mod files_copy;
mod observer;
mod run;
mod workers;

pub use calls::Calls;
pub use engine::{Completion, Engine};
pub use extent::Extent;
pub use files::FileEngine;
pub use observer::{Failure, MovedPiece, Observer, ReportProgress};
pub use run::{Route, Summary, run};
pub use sys::uring::{IoOperation, IoRequest};
pub use workers::Workers;
