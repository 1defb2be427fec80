//! The recording file: a header, then chunks, each with kind, length, time range, zstd
//! payload and CRC-32C. docs/recording.md draws it byte by byte.
//!
//! [`Writer`] appends, [`read`] goes through once and takes every whole chunk before the
//! first bad one, [`Outline`] only what a part of the time needs, [`Follower`] what is appended. [`Ring`] keeps the last hours in a directory of such files, and
//! [`Output`] is whichever of these a user asked for. What the values mean is no business
//! of this module.

mod chunk;
mod columns;
mod follow;
mod output;
mod part;
mod reader;
mod ring;
mod varint;
mod writer;

pub use chunk::{MAGIC, MAX_RAW_BYTES, VERSION_MAJOR, VERSION_MINOR, reseal};
pub use follow::Follower;
pub use output::{Output, check};
pub use part::Outline;
pub(crate) use reader::bytes_of_values;
pub use reader::{MAX_BYTES, MAX_CHANGES, open, open_one_of, read};
pub use ring::{MIN_KEEP_BYTES, Ring, SEGMENTS, read_ring};
pub use writer::Writer;
