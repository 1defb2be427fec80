//! What is to be read of files: pieces in the order of their disk, and what each file must still
//! be. Pure but for the size of a page.

use crate::{path_text, ranges};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use sys::file_stat::FileStat;

/// Identifies a file and its content: whether it is still the one that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The device's number.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When its inode last changed, ns since the epoch.
    pub changed_ns: i64,
}

impl FileIdentity {
    /// The identity of the file now.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let seconds_ns = metadata.ctime().saturating_mul(1_000_000_000);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed_ns: seconds_ns.saturating_add(metadata.ctime_nsec()),
        }
    }

    /// The identity of the file that `stat` describes.
    #[must_use]
    pub fn of_stat(stat: &FileStat) -> Self {
        let seconds_ns = stat.changed.seconds.saturating_mul(1_000_000_000);
        Self {
            device: stat.device,
            inode: stat.inode,
            bytes: stat.bytes,
            changed_ns: seconds_ns.saturating_add(stat.changed.nanoseconds),
        }
    }

    /// Whether `now` is the same file with the same content. The device's number may differ:
    /// many get theirs in the order in which they are found at boot.
    #[must_use]
    pub fn is_still(&self, now: &Self) -> bool {
        Self { device: 0, ..*self } == Self { device: 0, ..*now }
    }

    /// Where its last page ends.
    #[must_use]
    pub(crate) fn end(&self) -> u64 {
        let page_bytes = sys::process::page_bytes() as u64;
        self.bytes.div_ceil(page_bytes).saturating_mul(page_bytes)
    }
}

/// A part of a file, and where it is on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The index of the file.
    pub file: u32,
    /// The part.
    pub range: Range<u64>,
    /// The byte position on the device; `None` if the file system does not report it.
    pub physical: Option<u64>,
}

impl Piece {
    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether `next` begins on the device where this ends.
    #[must_use]
    pub(crate) fn is_followed_by(&self, next: &Self) -> bool {
        let end = self.physical.map(|physical| physical + self.bytes());
        end.is_some() && end == next.physical
    }
}

/// A file by its path, with what it must still be: how a file is named to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Its path.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// What it was.
    pub identity: FileIdentity,
}

/// A file and the ranges that are wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// The file.
    pub file: NamedFile,
    /// The ranges.
    pub ranges: Vec<Range<u64>>,
}

impl WantedFile {
    /// The ranges of the file at `path`, as long as that is `identity`.
    #[must_use]
    pub fn new(path: PathBuf, identity: FileIdentity, ranges: Vec<Range<u64>>) -> Self {
        Self { file: NamedFile { path, identity }, ranges }
    }
}

/// Pieces of files, in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPlan {
    /// The files.
    pub files: Vec<NamedFile>,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
}

impl ReadPlan {
    /// How many bytes all pieces have.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        ranges::sum(self.pieces.iter().map(Piece::bytes))
    }

    /// `pieces` with the files that they name, and no others.
    #[must_use]
    pub(crate) fn of_pieces(&self, pieces: &[Piece]) -> Self {
        let mut part = Self::default();
        let mut places = HashMap::new();
        for piece in pieces {
            let Some(named) = self.files.get(piece.file as usize) else {
                continue;
            };
            let file = *places.entry(piece.file).or_insert_with(|| {
                part.files.push(named.clone());
                part.files.len() as u32 - 1
            });
            part.pieces.push(Piece { file, ..piece.clone() });
        }
        part
    }

    /// The first `room` bytes of it; borrowed if that is all.
    #[must_use]
    pub(crate) fn limited_to(&self, room: Option<u64>) -> Cow<'_, Self> {
        let Some(mut left) = room.filter(|room| *room < self.bytes()) else {
            return Cow::Borrowed(self);
        };
        let mut pieces = Vec::new();
        for piece in &self.pieces {
            if left == 0 {
                break;
            }
            let end = piece.range.end.min(piece.range.start + left);
            let range = piece.range.start..end;
            left -= end - range.start;
            pieces.push(Piece { range, ..piece.clone() });
        }
        let files = self.files.clone();
        Cow::Owned(Self { files, pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(ranges: &[Range<u64>]) -> ReadPlan {
        let piece = |range: &Range<u64>| Piece { file: 0, range: range.clone(), physical: None };
        ReadPlan { files: Vec::new(), pieces: ranges.iter().map(piece).collect() }
    }

    #[test]
    fn a_group_gets_what_it_has_room_for_from_the_first_piece_on() {
        let all = plan(&[0..8, 20..24, 40..50]);
        for room in [None, Some(22), Some(100)] {
            assert!(matches!(all.limited_to(room), Cow::Borrowed(same) if *same == all));
        }
        let first = |room| all.limited_to(Some(room)).into_owned();
        assert_eq!(first(21), plan(&[0..8, 20..24, 40..49]));
        assert_eq!(first(12), plan(&[0..8, 20..24]));
        assert_eq!(first(9), plan(&[0..8, 20..21]));
        assert_eq!(first(0), plan(&[]));
    }
}
