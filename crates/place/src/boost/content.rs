//! What a volume holds, as far as that shows whether it was written elsewhere: the ranges that each
//! kind of content changes when it is written, and when they can be relied on.
//!
//! Each kind has a file here, which says why its ranges show a change. A partition table is as good
//! as the weakest of its partitions. What is not known, or known twice, proves nothing, and a cache
//! of it is cold at each start: `docs/cache-format.md` has the table.

mod btrfs;
mod ext;
mod members;
mod partitions;
mod xfs;

use std::ops::Range;

use model::device::{BlockDevice, DeviceError};
use model::engine::{ChangeProof, Witness};
use sys::memory::AlignedBuffer;

/// What a volume holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The kinds that were found, such as `ext4`, in the order of their places, or `unknown`.
    pub kinds: Vec<&'static str>,
    /// The ranges to compare.
    pub witnesses: Vec<Witness>,
    /// When they show a change.
    pub proof: ChangeProof,
}

impl Content {
    /// What proves nothing.
    pub(super) fn unknown() -> Self {
        Self { kinds: vec!["unknown"], witnesses: Vec::new(), proof: ChangeProof::Never }
    }

    fn of(kind: &'static str, witnesses: Vec<Witness>, proof: ChangeProof) -> Self {
        Self { kinds: vec![kind], witnesses, proof }
    }
}

/// Reads what is known of a volume. It must be opened past the page cache (`O_DIRECT`): pages of a
/// partition can be older than what was written to its disk.
///
/// # Errors
/// Where it cannot be read.
pub fn read(device: &dyn BlockDevice) -> Result<Content, DeviceError> {
    let volume = Area { device, range: 0..device.size_bytes()? };
    let mut found: Vec<Content> = file_systems(&volume)?;
    found.extend(partitions::read(&volume)?);
    Ok(only(found))
}

/// The file systems and the members of other devices that an area looks like.
fn file_systems(area: &Area<'_>) -> Result<Vec<Content>, DeviceError> {
    let found = [ext::read(area)?, btrfs::read(area)?, xfs::read(area)?];
    Ok(found.into_iter().flatten().chain(members::read(area)?).collect())
}

/// What it is, if it is one thing alone: the remains of another one may be the true one. More than
/// one are named, and prove nothing.
fn only(mut found: Vec<Content>) -> Content {
    match found.len() {
        0 => Content::unknown(),
        1 => found.remove(0),
        _ => {
            let kinds = found.into_iter().flat_map(|content| content.kinds).collect();
            Content { kinds, ..Content::unknown() }
        }
    }
}

/// A volume, or a partition of one.
struct Area<'d> {
    device: &'d dyn BlockDevice,
    range: Range<u64>,
}

impl Area<'_> {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Some bytes of it; `None` if they are not within it.
    fn read(&self, offset: u64, len: u64) -> Result<Option<Vec<u8>>, DeviceError> {
        /// The most that is read at a time; a superblock that asks for more is not one.
        const BYTES_MAX: u64 = 1 << 20;
        /// What no device wants more of.
        const ALIGNMENT: u64 = 4096;
        if len > BYTES_MAX || offset.checked_add(len).is_none_or(|end| end > self.bytes()) {
            return Ok(None);
        }
        let from = self.range.start + offset;
        let first = from / ALIGNMENT * ALIGNMENT;
        let upto = (from + len).next_multiple_of(ALIGNMENT);
        let mut buffer = AlignedBuffer::new((upto - first) as usize).map_err(|error| {
            DeviceError::new("read", Some(from), std::io::Error::other(error.to_string()))
        })?;
        let read = self.device.read_at(&mut buffer, first)? as u64;
        let place = (from - first) as usize..(from - first + len) as usize;
        Ok((read >= from - first + len).then(|| buffer[place].to_vec()))
    }

    /// A range to compare, as it is now.
    fn witness(&self, offset: u64, len: u64) -> Result<Option<Witness>, DeviceError> {
        let bytes = self.read(offset, len)?;
        Ok(bytes.map(|bytes| Witness { offset: self.range.start + offset, bytes }))
    }
}

/// A number of `BYTES` bytes, the lowest byte first; 0 behind the end.
fn little<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..at + BYTES).unwrap_or_default();
    number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The same, the highest byte first.
fn big<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..at + BYTES).unwrap_or_default();
    number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
