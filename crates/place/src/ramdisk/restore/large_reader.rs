//! Reads the content of large files past the page cache, several parts at a time: the disk is not
//! idle while a part is compared and written, and nothing is copied out of a cache in which it is
//! not needed again.
//!
//! A part that cannot be read so is left to [`super::pieces::PieceReader`], which finds out what of
//! it is damaged.

use crate::ramdisk::manifest::StoredPiece;
use crate::ramdisk::store::{Store, data_name};
use std::ops::Range;
use sys::Result;
use sys::file;
use sys::uring::{IoRequest, Queue};

/// Content from this size on is large: below, the set-up of two parts is not worth it.
pub(super) const LARGE_BYTES: u64 = 2 << 20;
/// Parts under way, so that a disk has some to do while one is written. Picked.
const DEPTH: usize = 4;
/// Bytes of a part, in whole pieces.
const PART_BYTES: u64 = 1 << 20;
/// Direct reads begin and end at a multiple of this.
const ALIGNMENT: u64 = 4096;

/// What takes the pieces over, each with its bytes if they were read; false ends the reading.
pub(super) type TakePiece<'t> = dyn FnMut(&StoredPiece, Option<&[u8]>) -> Result<bool> + 't;

/// Pieces that follow each other in a data file, and the bytes that hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadPart {
    pieces: Range<usize>,
    data: u64,
    /// Of whole units of the disk.
    bytes: Range<u64>,
}

/// Reads parts of data files.
#[derive(Debug)]
pub(super) struct LargeReader<'s> {
    store: &'s Store,
    queue: Queue,
    /// The number of the data file in the queue, and its index there.
    open: Option<(u64, usize)>,
    /// Whether the kernel refused the queue as a whole: then no part is read by it any more.
    is_broken: bool,
}

/// A [`LargeReader`] that is made when it is first asked for.
#[derive(Debug)]
pub(super) struct LazyReader<'s> {
    store: &'s Store,
    /// Absent inside where the kernel or a filter allows no such queue.
    made: Option<Option<LargeReader<'s>>>,
}

impl<'s> LazyReader<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Self { store, made: None }
    }

    /// The reader; `None` where there can be none, or no more.
    pub(super) fn reader(&mut self) -> Option<&mut LargeReader<'s>> {
        if self.made.as_ref().is_some_and(|made| made.as_ref().is_some_and(|it| it.is_broken)) {
            self.made = Some(None);
        }
        let store = self.store;
        let make = || {
            let queue = Queue::new(DEPTH as u32, (PART_BYTES + 2 * ALIGNMENT) as usize).ok()?;
            Some(LargeReader { store, queue, open: None, is_broken: false })
        };
        self.made.get_or_insert_with(make).as_mut()
    }
}

impl LargeReader<'_> {
    /// Hands each piece to `take`, with its bytes if they were read, in their order. Ends early
    /// where `take` says false or fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub(super) fn read(&mut self, pieces: &[StoredPiece], take: &mut TakePiece<'_>) -> Result<()> {
        let result = self.read_parts(pieces, take);
        // Also after an error: the buffers are needed again.
        while self.queue.in_flight() > 0 && !self.is_broken {
            self.enter(1);
            while self.queue.complete().is_some() {}
        }
        result
    }

    /// Hands over what is to be read, and waits for the end of so many.
    fn enter(&mut self, wait_for: usize) {
        self.is_broken |= self.queue.enter(wait_for).is_err();
    }

    fn read_parts(&mut self, pieces: &[StoredPiece], take: &mut TakePiece<'_>) -> Result<()> {
        let parts = parts_of(pieces);
        // Bytes that were read into each slot; absent while that is under way.
        let mut read: Vec<Option<usize>> = vec![None; DEPTH];
        let mut begun = 0;
        for (at, part) in parts.iter().enumerate() {
            while let Some(next) = parts.get(begun).filter(|_| begun < at + DEPTH) {
                let is_begun = self.begin(next, begun % DEPTH);
                read[begun % DEPTH] = if is_begun { None } else { Some(0) };
                begun += 1;
            }
            self.enter(0);
            while read[at % DEPTH].is_none() && !self.is_broken {
                while let Some(ended) = self.queue.complete() {
                    read[ended.slot] = Some(ended.result.unwrap_or(0));
                }
                if read[at % DEPTH].is_none() {
                    self.enter(1);
                }
            }
            let bytes = read[at % DEPTH].unwrap_or(0);
            // One that is still under way has no bytes either.
            let buffer = self.queue.buffer_mut(at % DEPTH);
            let content = buffer.as_deref().and_then(|buffer| buffer.get(..bytes)).unwrap_or(&[]);
            for piece in &pieces[part.pieces.clone()] {
                let start = (piece.offset - part.bytes.start) as usize;
                if !take(piece, content.get(start..start + piece.bytes as usize))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Starts to read a part; false if its data file cannot be read so.
    fn begin(&mut self, part: &ReadPart, slot: usize) -> bool {
        let bytes = (part.bytes.end - part.bytes.start) as usize;
        // No piece that is written is so long.
        let may_be = !self.is_broken && bytes <= self.queue.buffer_bytes();
        let Some(file) = may_be.then(|| self.file(part.data)).flatten() else { return false };
        self.queue.submit(slot, IoRequest::read(file, part.bytes.start, bytes)).is_ok()
    }

    /// The index of a data file in the queue; `None` if it cannot be read past the cache.
    fn file(&mut self, number: u64) -> Option<usize> {
        if let Some((open, index)) = self.open {
            if open == number {
                return Some(index);
            }
            // Refused while parts of it are still under way.
            self.queue.release_file(index).ok()?;
            self.open = None;
        }
        let opened = self.store.directory().open_regular(&data_name(number)).ok()?;
        if !file::file_system(&opened).is_ok_and(|system| system.has_direct_writes()) {
            return None;
        }
        file::set_direct(&opened, true).ok()?;
        let index = self.queue.add_file(&opened).ok()?;
        self.open = Some((number, index));
        Some(index)
    }
}

/// The parts of pieces, in their order.
fn parts_of(pieces: &[StoredPiece]) -> Vec<ReadPart> {
    let mut parts: Vec<ReadPart> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        // Not checked yet: a damaged manifest may say anything.
        let end = piece.offset.saturating_add(piece.bytes.into());
        let whole_end = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        if let Some(last) = parts.last_mut() {
            let before = &pieces[last.pieces.end - 1];
            let before_end = before.offset.saturating_add(before.bytes.into());
            let follows = before.data == piece.data && before_end == piece.offset;
            if follows && end - last.bytes.start <= PART_BYTES {
                last.pieces.end = index + 1;
                last.bytes.end = whole_end;
                continue;
            }
        }
        let start = piece.offset - piece.offset % ALIGNMENT;
        let bytes = start..whole_end;
        parts.push(ReadPart { pieces: index..index + 1, data: piece.data, bytes });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn piece(at: u64, bytes: u32, data: u64, offset: u64) -> StoredPiece {
        StoredPiece { at, bytes, data, offset, hash: 0 }
    }

    #[test]
    fn parts_hold_whole_pieces_and_whole_units_of_the_disk() {
        assert!(parts_of(&[]).is_empty());
        let block = 256 << 10;
        let pieces: Vec<StoredPiece> =
            (0..6).map(|at| piece(at * block, block as u32, 1, 100 + at * block)).collect();
        let parts = parts_of(&pieces);
        let ranges: Vec<Range<usize>> = parts.iter().map(|part| part.pieces.clone()).collect();
        // The fourth ends 100 bytes behind 1 MiB.
        assert_eq!(ranges, [0..3, 3..6]);
        for part in &parts {
            let (first, last) = (&pieces[part.pieces.start], &pieces[part.pieces.end - 1]);
            assert!(part.bytes.start <= first.offset && last.offset + block <= part.bytes.end);
            assert!(part.bytes.start % ALIGNMENT == 0 && part.bytes.end % ALIGNMENT == 0);
            assert!(part.bytes.end - part.bytes.start <= PART_BYTES + 2 * ALIGNMENT);
        }
        let apart = [piece(0, 10, 1, 0), piece(10, 10, 1, 20), piece(20, 10, 2, 30)];
        assert_eq!(parts_of(&apart).len(), 3, "a gap, and another data file");
        let impossible = [piece(0, u32::MAX, 1, u64::MAX - 1), piece(9, 9, 1, u64::MAX)];
        assert_eq!(parts_of(&impossible)[0].bytes.end, u64::MAX);
    }

    /// Pieces of two data files in turn, of which one is damaged in a place and one has no more
    /// bytes than needed; what could not be read is said, and the reader goes on to be used.
    #[test]
    fn each_piece_comes_once_in_order_with_its_bytes_or_without() {
        let directory = testkit::TempDir::new();
        let store = Store::open_or_create(&directory.join("store"), false).unwrap();
        let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7 / 3) as u8).collect();
        for number in [1, 2] {
            std::fs::write(directory.join("store").join(data_name(number)), &content).unwrap();
        }
        let mut pieces = Vec::new();
        let mut offset = 0;
        while offset < content.len() {
            let end = (offset + 200_001).min(content.len());
            let hash = xxh3_64(&content[offset..end]);
            let data = 1 + (offset / 1_500_000 % 2) as u64;
            let (bytes, offset_now) = ((end - offset) as u32, offset as u64);
            pieces.push(StoredPiece { at: offset_now, bytes, data, offset: offset_now, hash });
            offset = end;
        }
        let system = file::file_system(store.directory().file()).unwrap();
        let is_direct = system.has_direct_writes();
        let missing = StoredPiece { data: 9, ..pieces[0] };
        let mut lazy = LazyReader::new(&store);
        let Some(reader) = lazy.reader() else { return testkit::skip("io_uring") };
        for _ in 0..2 {
            let mut met = Vec::new();
            let mut take = |piece: &StoredPiece, bytes: Option<&[u8]>| {
                assert!(bytes.is_none_or(|bytes| xxh3_64(bytes) == piece.hash), "{piece:?}");
                met.push((*piece, bytes.is_some()));
                Ok(true)
            };
            reader.read(&pieces, &mut take).unwrap();
            reader.read(&[missing], &mut take).unwrap();
            let expected: Vec<StoredPiece> = pieces.iter().copied().chain([missing]).collect();
            let order: Vec<StoredPiece> = met.iter().map(|(piece, _)| *piece).collect();
            assert_eq!(order, expected);
            // A tmpfs of a kernel before 6.6 refuses it.
            assert!(met[0].1 == is_direct || system.name == Some("tmpfs"));
            assert!(!met.last().unwrap().1);
            // Interrupted amid parts that are under way.
            let mut taken = 0;
            let mut stop = |_: &StoredPiece, _: Option<&[u8]>| {
                taken += 1;
                Ok(taken < 3)
            };
            reader.read(&pieces, &mut stop).unwrap();
            assert_eq!(taken, 3);
        }
    }
}
