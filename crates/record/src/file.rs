//! The recording file: a header, then chunks, each with kind, length, time range, zstd payload and
//! CRC-32C. docs/recording.md draws it byte by byte.
//!
//! - [`Writer`] appends chunks; [`read`] goes through once and takes every whole chunk before the
//!   first bad one; [`RecordingOutline`] reads only what a part of the time needs.
//! - A recording is made by a [`RecordSink`](crate::RecordSink): `Writer<MemoryFile>` in memory,
//!   [`FileSink`] in a file, [`Ring`] in a directory of files that keeps the last hours.
//! - [`AccessReader`] reads single accesses, which are many, apart from all else.
//! - [`open`] and [`Follower`] take a path, and find out which of them it is.
//!
//! What the values mean is not known here.

mod accesses;
mod chunk;
mod columns;
mod file_sink;
mod follower;
mod growths;
mod identities;
mod joined;
mod open;
mod part;
mod pending_who;
mod read_back;
mod reader;
mod ring;
mod ring_outline;
mod segments;
mod tail;
mod varint;
mod writer;

pub use accesses::AccessReader;
pub use chunk::{MAGIC, MAX_RAW_BYTES, VERSION_MAJOR, VERSION_MINOR, reseal};
pub use file_sink::{FileSink, KeptBytes, MemoryFile, check};
pub use follower::Follower;
pub use joined::read_ring;
pub use open::{RecordingOutline, open, open_one_of, request_rows};
pub use part::Outline;
pub use reader::{MAX_BYTES, MAX_CHANGES, read};
pub(crate) use reader::{bytes_of_values, bytes_of_who};
pub use ring::{MIN_KEEP_BYTES, Ring, SEGMENTS};
pub use ring_outline::RingOutline;
pub(crate) use varint::put as put_varint;
pub use writer::Writer;
