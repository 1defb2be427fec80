//! The content of a file as pieces: those that the store has stay, the others are appended to the
//! data file.
//!
//! A piece is at most [`BLOCK_BYTES`] and within one block of the file. One whose bytes have the
//! hash that they had is kept, whatever the file's times say. So an appended file costs its tail,
//! and a database its changed blocks.

use super::manifest::StoredPiece;
use super::pack::Pack;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use sys::file;
use xxhash_rust::xxh3::xxh3_64;

/// Pieces end where a block of the file ends.
pub(super) const BLOCK_BYTES: u64 = 256 << 10;
/// A block of more pieces is written as one: a log that grows by lines would have a piece a save.
const MOST_PIECES_OF_A_BLOCK: u32 = 8;

/// Why a file's content was not saved.
#[derive(Debug)]
pub(super) enum ContentError {
    /// It cannot be read.
    Read(sys::Error),
    /// The data file cannot be written.
    Store(sys::Error),
}

/// What the store has of a file's content.
#[derive(Clone, Copy)]
pub(super) struct KnownContent<'k> {
    /// The pieces that were saved.
    pub(super) pieces: &'k [StoredPiece],
    /// Data files of which no piece stays.
    pub(super) unwanted: &'k BTreeSet<u64>,
}

/// Finds the pieces of a file of `bytes` bytes. Those of `known` in unwanted data files are written
/// anew. `goes_on` is asked after each piece, with its bytes. `None` if the file became shorter
/// meanwhile, or `goes_on` says no.
pub(super) fn pieces_of(
    file: &File,
    bytes: u64,
    known: KnownContent<'_>,
    pack: &mut Pack<'_>,
    buffer: &mut Vec<u8>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Vec<StoredPiece>>, ContentError> {
    buffer.resize(BLOCK_BYTES as usize, 0);
    let mut usable = usable(known, bytes).into_iter().peekable();
    let mut pieces = Vec::new();
    let mut at = 0;
    let next_data = |at| file::next_data(file, at).map_err(ContentError::Read);
    while let Some(data) = next_data(at)?.filter(|data| data.start < bytes) {
        let end = data.end.min(bytes);
        at = data.start;
        while at < end {
            while usable.next_if(|piece| piece.at < at).is_some() {}
            let next = usable.peek().copied();
            let known = next.filter(|piece| piece.at == at && piece.end() <= end);
            let block_end = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
            let next_start = next.filter(|piece| piece.at > at).map_or(end, |piece| piece.at);
            let stop = known.map_or(end.min(block_end).min(next_start), |piece| piece.end());
            let part = &mut buffer[..(stop - at) as usize];
            if !read_whole(file, part, at).map_err(ContentError::Read)? {
                return Ok(None);
            }
            let hash = xxh3_64(part);
            pieces.push(match known.filter(|piece| piece.hash == hash) {
                Some(piece) => *piece,
                None => {
                    let offset = pack.append(part).map_err(ContentError::Store)?;
                    StoredPiece { at, bytes: part.len() as u32, data: pack.number(), offset, hash }
                }
            });
            if !goes_on(stop - at) {
                return Ok(None);
            }
            at = stop;
        }
        at = data.end;
    }
    Ok(Some(pieces))
}

/// The pieces that may stay: within the file and one block, and not too many of a block.
fn usable(known: KnownContent<'_>, bytes: u64) -> Vec<&StoredPiece> {
    let KnownContent { pieces: old, unwanted } = known;
    let block = |piece: &StoredPiece| piece.at / BLOCK_BYTES;
    let mut of_block: HashMap<u64, u32> = HashMap::new();
    for piece in old {
        *of_block.entry(block(piece)).or_default() += 1;
    }
    let is_usable = |piece: &&StoredPiece| {
        u64::from(piece.bytes) <= BLOCK_BYTES
            && piece.end() <= bytes
            && !unwanted.contains(&piece.data)
            && of_block.get(&block(piece)).is_none_or(|count| *count <= MOST_PIECES_OF_A_BLOCK)
    };
    old.iter().filter(is_usable).collect()
}

/// Fills `buffer`; whether the file has as much.
pub(super) fn read_whole(file: &File, buffer: &mut [u8], at: u64) -> sys::Result<bool> {
    let mut done = 0;
    while done < buffer.len() {
        match file::read_at(file, &mut buffer[done..], at + done as u64)? {
            0 => return Ok(false),
            read => done += read,
        }
    }
    Ok(true)
}
