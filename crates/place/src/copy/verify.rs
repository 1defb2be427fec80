//! `--verify`: the checksums that were taken while the source was read are compared with what the
//! device gives back, past the cache, before the copy gets its name.
//!
//! Each MiB has one number: the sum of the CRC-32C of its blocks of 4 KiB, each begun with the
//! block's place. Blocks of zeroes add nothing, so that a hole and written zeroes are the same, and
//! the order in which pieces are read does not matter.

use super::CopyShared;
use super::large::BUFFER_BYTES;
use super::staging::Staging;
use super::yielding::PIECE_BYTES;
use crate::tree::{TreeEntry, TreeWalk, WalkEvent, WalkLimits};
use crate::{Error, ErrorKind, Result};
use std::fs::File;
use sys::file::{self, CacheAdvice};
use sys::file_stat::{FileStat, InodeKind};
use sys::memory::AlignedBuffer;

/// What is summed at once.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// Adds a piece that begins at `offset` bytes, a multiple of [`BLOCK_BYTES`].
pub(super) fn add(checksums: &mut Vec<u32>, data: &[u8], offset: u64) {
    let mut at = offset;
    for block in data.chunks(BLOCK_BYTES as usize) {
        let index = (at / BUFFER_BYTES as u64) as usize;
        if checksums.len() <= index {
            checksums.resize(index + 1, 0);
        }
        if block.iter().any(|byte| *byte != 0) {
            let place = (at % BUFFER_BYTES as u64) as u32;
            let sum = crc32c::crc32c_append(place, block);
            checksums[index] = checksums[index].wrapping_add(sum);
        }
        at += block.len() as u64;
    }
}

/// Reads all files of the copy back.
///
/// # Errors
/// Where the copy cannot be walked. A file that differs is named in the report and left out.
pub(super) fn read_back(shared: &CopyShared<'_>, staging: &Staging) -> Result<()> {
    let mut buffer = AlignedBuffer::new(BUFFER_BYTES)?;
    let mut walk = TreeWalk::below(staging.tree().reopen()?, WalkLimits::default())?;
    while let Some(event) = walk.next() {
        if shared.is_stopped() {
            return Ok(());
        }
        let WalkEvent::Entry(entry) = event else { continue };
        if entry.stat.kind != InodeKind::File {
            continue;
        }
        let Some(expected) = shared.outcome.take_checksums(entry.stat.inode) else { continue };
        let checked = entry
            .directory
            .open_regular(entry.name)
            .and_then(|file| is_equal(shared, &file, entry.stat, &expected, &mut buffer));
        match checked {
            // After a stop not all of it was read.
            Ok(_) if shared.is_stopped() => return Ok(()),
            Ok(None) => shared.outcome.verified(entry.stat.bytes),
            Ok(Some(at)) => {
                let why = format!("what the device gives back differs from byte {at} on");
                give_up(shared, staging, &entry, &why)?;
            }
            Err(error) => {
                let why = format!("cannot read it back: {}", sys::plain_reason(&error.source));
                give_up(shared, staging, &entry, &why)?;
            }
        }
    }
    let left = shared.outcome.checksums_left();
    if left > 0 {
        let why = format!("{left} files are not in the copy any more");
        return Err(Error::new(ErrorKind::Failed, "verify the copy", why));
    }
    Ok(())
}

/// Leaves a file out, under all of its names.
fn give_up(
    shared: &CopyShared<'_>,
    staging: &Staging,
    entry: &TreeEntry<'_>,
    why: &str,
) -> Result<()> {
    shared.outcome.failed_at(staging.final_path(&entry.path()), why);
    if entry.stat.links > 1 {
        shared.outcome.break_inode(entry.stat.inode);
    }
    Ok(entry.directory.remove(entry.name)?)
}

/// The MiB of the first difference, as its first byte.
fn is_equal(
    shared: &CopyShared<'_>,
    file: &File,
    stat: &FileStat,
    expected: &[u32],
    buffer: &mut [u8],
) -> sys::Result<Option<u64>> {
    // Past the cache, or at least not from it.
    if file::set_direct(file, true).is_err() {
        file::sync_data(file)?;
        file::advise(file, 0, 0, CacheAdvice::DontNeed)?;
    }
    let mut found = Vec::new();
    let mut offset = 0;
    while offset < stat.bytes && !shared.is_stopped() {
        // Holes are zeroes, which add nothing.
        match file::next_data(file, offset)? {
            None => break,
            Some(data) => {
                offset = offset.max(data.start / BUFFER_BYTES as u64 * BUFFER_BYTES as u64);
            }
        }
        let step = shared.yielding.step();
        let is_small = shared.yielding.is_one_at_a_time();
        let most = if is_small { PIECE_BYTES } else { buffer.len() };
        let got = file::read_at(file, &mut buffer[..most], offset)?;
        drop(step);
        if got == 0 {
            return Ok(Some(offset));
        }
        // A direct read ends at the end of the file, which may have grown meanwhile.
        let wanted = (stat.bytes - offset).min(got as u64) as usize;
        add(&mut found, &buffer[..wanted], offset);
        offset += wanted as u64;
    }
    let length = found.len().max(expected.len());
    let of = |sums: &[u32], at: usize| sums.get(at).copied().unwrap_or(0);
    let differs = (0..length).find(|at| of(&found, *at) != of(expected, *at));
    Ok(differs.map(|at| at as u64 * BUFFER_BYTES as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_holes_do_not_matter_and_places_do() {
        let block = |byte: u8| vec![byte; BLOCK_BYTES as usize];
        let sums = |pieces: &[(Vec<u8>, u64)]| {
            let mut sums = Vec::new();
            for (data, offset) in pieces {
                add(&mut sums, data, *offset);
            }
            sums.resize(2, 0);
            sums
        };
        let mib = BUFFER_BYTES as u64;
        let one = sums(&[(block(1), 0), (block(2), 8192), (block(3), mib)]);
        assert_eq!(one, sums(&[(block(3), mib), (block(2), 8192), (block(1), 0)]));
        assert_eq!(
            one,
            sums(&[(block(1), 0), (block(0), 4096), (block(2), 8192), (block(3), mib)])
        );
        assert_ne!(one, sums(&[(block(1), 4096), (block(2), 8192), (block(3), mib)]));
        assert_ne!(one, sums(&[(block(1), 0), (block(2), 8192), (vec![3; 4095], mib)]));
    }
}
