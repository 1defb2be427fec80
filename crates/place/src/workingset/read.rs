//! Reading pieces of files into the page cache, as fast as their disk gives them and no
//! further ahead than can be taken back.
//!
//! 1. The kernel is asked to read ahead in steps, as large as it takes them for the device; nothing
//!    is copied.
//! 2. A batch of steps takes about 50 ms: as many bytes as took so long last time.
//! 3. While one batch is on its way the next is asked for, so that the disk never waits.
//! 4. A batch has come when the last byte of each of its steps can be read. Then it is counted
//!    what of it is in memory, and the caller may end it all.

use crate::background::batch;
use crate::cached::{self, Access};
use crate::read_plan::{NamedFile, Piece, ReadPlan};
use machine::Root;
use model::Control;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::Instant;
use sys::file::CacheAdvice;
use sys::readahead::STEP_BYTES;

/// The first batch: little enough for the slowest disk (8 random reads).
const FIRST_BATCH_BYTES: u64 = 8 * STEP_BYTES;
/// More is no faster on any disk and would only be memory in flight.
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// A disk is at its full speed, and holds the next batch up by no more.
const MAX_STEP_BYTES: u64 = 1 << 20;
/// How many pieces a batch has at most: pieces may be of one page.
const MAX_BATCH_STEPS: usize = 4096;
/// Files held open at once; below the 1,024 that a process may have by default.
const MAX_OPEN_FILES: usize = 256;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounts {
    /// Bytes asked for.
    pub bytes: u64,
    /// Of these, bytes that were in the page cache afterwards; those that the kernel does not
    /// tell of are taken for present.
    pub present_bytes: u64,
    /// Files that were left out: another by now, gone, or not readable.
    pub changed_files: u64,
}

impl ReadCounts {
    /// Adds what another reading did.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.present_bytes += other.present_bytes;
        self.changed_files += other.changed_files;
    }
}

/// Reads the pieces of `work` in their order. After each batch `progress` gets what was done
/// so far and may stop it; batches on their way still arrive.
pub fn pieces(work: &ReadPlan, progress: &mut dyn FnMut(&ReadCounts) -> Control) -> ReadCounts {
    let mut reader = PieceReader {
        work,
        access: Access::new(&Root::system()),
        next: 0,
        reached: 0,
        open: HashMap::new(),
        left_out: HashSet::new(),
        steps: HashMap::new(),
        done: ReadCounts::default(),
    };
    let mut batch_bytes = FIRST_BATCH_BYTES;
    let mut before = reader.ask(batch_bytes);
    while !before.is_empty() {
        let start = Instant::now();
        let next = reader.ask(batch_bytes);
        let bytes = reader.settle(&before);
        batch_bytes = batch::next_size(bytes, start.elapsed(), STEP_BYTES..=MAX_BATCH_BYTES);
        before = next;
        if progress(&reader.done).is_stop() {
            break;
        }
    }
    reader.done
}

/// A file that is still what it was.
#[derive(Clone)]
struct OpenFile {
    file: Rc<File>,
    /// What one call brings of it.
    step_bytes: u64,
}

struct PieceReader<'a> {
    work: &'a ReadPlan,
    access: Access,
    /// The piece that comes next, and how much of it was asked for.
    next: usize,
    reached: u64,
    open: HashMap<u32, OpenFile>,
    left_out: HashSet<u32>,
    /// By number of device.
    steps: HashMap<u64, u64>,
    done: ReadCounts,
}

impl PieceReader<'_> {
    /// Asks the kernel for the next steps, `bytes` bytes together, and gives what to wait for.
    fn ask(&mut self, bytes: u64) -> Vec<(Rc<File>, Range<u64>)> {
        let mut asked = Vec::new();
        let mut left = bytes;
        while left > 0 && asked.len() < MAX_BATCH_STEPS {
            let Some(piece) = self.work.pieces.get(self.next) else {
                break;
            };
            let Some(open) = self.file(piece.file) else {
                (self.next, self.reached) = (self.next + 1, 0);
                continue;
            };
            let range = step_of(piece, self.reached, open.step_bytes.min(left));
            let length = range.end - range.start;
            // What is refused here is found missing when it is counted.
            let _ = sys::readahead::readahead(&open.file, range.start, length);
            left = left.saturating_sub(length);
            self.reached += length;
            if range.end >= piece.range.end {
                (self.next, self.reached) = (self.next + 1, 0);
            }
            asked.push((open.file, range));
        }
        asked
    }

    /// Waits for what was asked for and counts it; how many bytes it was.
    fn settle(&mut self, asked: &[(Rc<File>, Range<u64>)]) -> u64 {
        let mut bytes = 0;
        for (file, range) in asked {
            // The end of the file may lie within its last page; a file that was cut gives none.
            let last_page = range.end.saturating_sub(1) / PAGE_BYTES * PAGE_BYTES;
            let _ = sys::file::read_at(file, &mut [0], last_page.max(range.start));
            let length = range.end - range.start;
            self.done.present_bytes += cached::bytes_of(file, range).unwrap_or(length).min(length);
            bytes += length;
        }
        self.done.bytes += bytes;
        bytes
    }

    /// The file with this index, if it is still what it was.
    fn file(&mut self, index: u32) -> Option<OpenFile> {
        if let Some(open) = self.open.get(&index) {
            return Some(open.clone());
        }
        if self.left_out.contains(&index) {
            return None;
        }
        let named = self.work.files.get(index as usize);
        let open = |named: &NamedFile| self.access.open(&named.path, &named.identity).ok();
        let Some(file) = named.and_then(open) else {
            self.left_out.insert(index);
            self.done.changed_files += 1;
            return None;
        };
        if self.open.len() >= MAX_OPEN_FILES {
            self.open.clear();
        }
        // Waiting for a page that did not come must not read others around it.
        let _ = sys::file::advise(&file, 0, 0, CacheAdvice::Random);
        let device = file.metadata().map_or(0, |metadata| metadata.dev());
        let open = OpenFile {
            file: Rc::new(file),
            step_bytes: *self.steps.entry(device).or_insert_with(|| step_bytes(device)),
        };
        self.open.insert(index, open.clone());
        Some(open)
    }
}

/// What one call brings from the device with this number.
fn step_bytes(device: u64) -> u64 {
    let (major, minor) = sys::block::device_numbers(device);
    let limit = machine::block::read_ahead_limit(&Root::system(), major, minor);
    limit.unwrap_or(STEP_BYTES).clamp(STEP_BYTES, MAX_STEP_BYTES)
}

/// The next part of `piece`, of which `reached` bytes were asked for, of at most `most` bytes in
/// whole steps of the smallest size.
fn step_of(piece: &Piece, reached: u64, most: u64) -> Range<u64> {
    let start = piece.range.start.saturating_add(reached);
    let end = start.saturating_add(most.next_multiple_of(STEP_BYTES));
    // What a stranger wrote may end before it begins.
    start..piece.range.end.min(end).max(start)
}

/// The smallest page; the first byte of the last one is read.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_asked_for_in_steps() {
        let piece = Piece { file: 3, range: 4096..4096 + 3 * STEP_BYTES + 1, physical: None };
        let step = |reached, most| step_of(&piece, reached, most);
        assert_eq!(step(0, STEP_BYTES), 4096..4096 + STEP_BYTES);
        assert_eq!(step(0, 1), 4096..4096 + STEP_BYTES, "no less");
        let behind = 4096 + STEP_BYTES..4096 + 3 * STEP_BYTES;
        assert_eq!(step(STEP_BYTES, STEP_BYTES + 1), behind);
        let last = 4096 + 3 * STEP_BYTES;
        assert_eq!(step(3 * STEP_BYTES, MAX_STEP_BYTES), last..last + 1, "to the last byte");
    }
}
