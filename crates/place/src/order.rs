//! The order in which files are read: by the position of their parts on the disk, where the file
//! system reports it (FIEMAP), else by inode.
//!
//! The idea: a disk that turns is asked for what is next on it, and flash gets fewer and larger
//! requests. Files are examined in the order of their inodes, which is one sweep as well.

use crate::cached::Access;
use crate::read_plan::{Piece, ReadPlan, WantedFile};
use std::fs::File;
use std::ops::Range;

/// The plan to read `wanted`, by device and physical position; behind those of each device what has
/// no position, by inode. What is a hole needs no disk and makes no piece; a file that is another
/// by now makes none either.
#[must_use]
pub fn by_position(wanted: Vec<WantedFile>, access: &mut Access) -> ReadPlan {
    // Opening a file reads its inode: in the order of the inodes that is one sweep as well.
    let mut order: Vec<u32> = (0..wanted.len() as u32).collect();
    let identity = |file: u32| wanted[file as usize].file.identity;
    order.sort_unstable_by_key(|file| (identity(*file).device, identity(*file).inode));
    let mut pieces = Vec::new();
    for index in order {
        let WantedFile { file, ranges } = &wanted[index as usize];
        let Ok(open) = access.open(&file.path, &file.identity) else {
            continue;
        };
        let end = file.identity.end();
        for range in ranges {
            if sys::interrupt::requested() {
                return ReadPlan::default();
            }
            // A snapshot of another user may name ranges beyond the end.
            let within = range.start..range.end.min(end);
            if !within.is_empty() {
                add_pieces(&mut pieces, index, &open, &within);
            }
        }
    }
    pieces.sort_by_key(|piece| {
        let device = identity(piece.file).device;
        (device, piece.physical.is_none(), piece.physical)
    });
    ReadPlan { files: wanted.into_iter().map(|wanted| wanted.file).collect(), pieces }
}

/// Where the first data of a file are on its disk, in bytes, to read many files in that order.
/// `None` of a file without data and where the file system does not say.
#[must_use]
pub fn first_place(file: &File) -> Option<u64> {
    sys::fiemap::first_place(file).ok().flatten()
}

/// The parts of `range` of the file with the index `file` that are on the disk, ascending, without
/// holes; adjacent ones are joined.
#[must_use]
pub fn pieces_of(file: u32, open: &File, range: &Range<u64>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    add_pieces(&mut pieces, file, open, range);
    pieces
}

/// The pieces of one range of a file; adjacent ones are joined.
fn add_pieces(pieces: &mut Vec<Piece>, file: u32, open: &File, range: &Range<u64>) {
    let Ok(extents) = sys::fiemap::extents(open, range.clone()) else {
        add_data(pieces, file, open, range);
        return;
    };
    for extent in extents {
        // An extent may begin before the range and end behind it.
        let start = extent.offset.max(range.start);
        let end = extent.offset.saturating_add(extent.bytes).min(range.end);
        if start >= end {
            continue;
        }
        let within = start - extent.offset;
        let next = Piece {
            file,
            range: start..end,
            physical: extent.physical.map(|physical| physical + within),
        };
        match pieces.last_mut() {
            Some(last) if continues(last, &next) => last.range.end = end,
            _ => pieces.push(next),
        }
    }
}

/// As [`add_pieces`] of a file whose place is not known: only where it has data, since a file may
/// be as long as its owner says.
fn add_data(pieces: &mut Vec<Piece>, file: u32, open: &File, range: &Range<u64>) {
    let mut from = range.start;
    while from < range.end && !sys::interrupt::requested() {
        let Ok(Some(data)) = sys::file::next_data(open, from) else {
            break;
        };
        let part = data.start.max(range.start)..data.end.min(range.end);
        if !part.is_empty() {
            pieces.push(Piece { file, range: part, physical: None });
        }
        from = data.end.max(from.saturating_add(1));
    }
}

/// Whether `next` goes on where `last` ends, in the file and on the disk.
fn continues(last: &Piece, next: &Piece) -> bool {
    let physical = last.physical.map(|physical| physical + last.bytes());
    (last.file, last.range.end, physical) == (next.file, next.range.start, next.physical)
}
