//! A flash read cache as a state machine: `model::engine` implemented, for a simulation and for an
//! export alike.
//!
//! - The medium is a log of segments ([`Geometry`]); each frame is compressed, sealed, and bound to
//!   its place on the volume and to the sequence of its segment (`seal`, `format`).
//! - What is fresh is known by an index in memory (`frames`), and after a crash by a journal on a
//!   trusted disk (`journal`): a region of the volume is marked there before it is written.
//! - What is worth a frame is decided by `policy`: second requests, short runs, S3-FIFO on the log.
//!
//! Nothing that the medium does can give a wrong byte or an error: it is then read from the disk.
//! `docs/cache-format.md` draws the bytes and says what is assumed of each device.

#![forbid(unsafe_code)]

mod attach;
mod counters;
mod detach;
mod fill;
mod format;
mod frames;
mod health;
mod journal;
mod log;
mod marks;
mod read;
mod reclaim;
mod recovery;
mod regions;
mod sample;
mod seal;
mod setup;
mod slab;
mod write;

pub use attach::Cache;
pub use counters::Counters;
pub use fill::{Coverage, FillRoom};
pub use format::{BLOCK_BYTES, FRAME_BYTES_MAX, Geometry, SEGMENT_BYTES_MAX};
pub use journal::journal_bytes;
pub use model::engine::{ChangeProof, Witness};
pub use setup::{Cold, Limits, Rules, Setup, Start, newer_version};
