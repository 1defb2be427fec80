//! Ranges to move, and how they are cut into pieces of one buffer. Pure: no device is known here.
//! Offsets and lengths are bytes.

use std::ops::Range;

/// A range of the source and where it goes on the target. For a read or a write of one device both
/// offsets are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins on the source, in bytes.
    pub source: u64,
    /// Where it begins on the target, in bytes.
    pub target: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

impl Extent {
    /// A range at the same place of source and target.
    #[must_use]
    pub fn at(range: Range<u64>) -> Self {
        Self {
            source: range.start,
            target: range.start,
            bytes: range.end.saturating_sub(range.start),
        }
    }
}

/// A part of an extent that fits a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) extent: Extent,
    /// Bytes of all extents before it.
    pub(crate) position: u64,
}

/// Cuts extents into pieces. A piece ends at a multiple of the buffer's size on the source, so that
/// only the first and the last piece of an extent are shorter than a buffer.
pub(crate) struct Pieces<I> {
    extents: I,
    rest: Option<Extent>,
    buffer_bytes: u64,
    position: u64,
}

impl<I: Iterator<Item = Extent>> Pieces<I> {
    pub(crate) fn new(extents: I, buffer_bytes: u64) -> Self {
        Self { extents, rest: None, buffer_bytes: buffer_bytes.max(1), position: 0 }
    }
}

impl<I: Iterator<Item = Extent>> Iterator for Pieces<I> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let extent = match self.rest.take() {
            Some(rest) => rest,
            None => self.extents.find(|extent| extent.bytes > 0)?,
        };
        let to_boundary = self.buffer_bytes - extent.source % self.buffer_bytes;
        let bytes = extent.bytes.min(to_boundary);
        self.rest = (bytes < extent.bytes).then(|| Extent {
            source: extent.source + bytes,
            target: extent.target + bytes,
            bytes: extent.bytes - bytes,
        });
        let position = self.position;
        self.position += bytes;
        Some(Piece { extent: Extent { bytes, ..extent }, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_multiples_of_the_buffer() {
        let extents = [Extent::at(10..35), Extent::at(7..7), Extent::at(100..104)];
        let pieces = Pieces::new(extents.into_iter(), 10);
        let cut: Vec<(u64, u64, u64)> =
            pieces.map(|piece| (piece.position, piece.extent.source, piece.extent.bytes)).collect();
        assert_eq!(cut, [(0, 10, 10), (10, 20, 10), (20, 30, 5), (25, 100, 4)]);
        let unaligned = Extent { source: 15, target: 3, bytes: 10 };
        let targets: Vec<(u64, u64)> = Pieces::new([unaligned].into_iter(), 10)
            .map(|piece| (piece.extent.target, piece.extent.bytes))
            .collect();
        assert_eq!(targets, [(3, 5), (8, 5)]);
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_empty() {
        let backwards = Range { start: 9, end: 3 };
        assert_eq!(Pieces::new([Extent::at(backwards)].into_iter(), 10).count(), 0);
    }
}
