//! Reading pieces of files into the page cache, as fast as their disk gives them and no
//! further ahead than can be taken back.
//!
//! 1. The kernel is asked to read ahead in steps; nothing is copied.
//! 2. A batch of steps takes about 50 ms: as many bytes as took so long last time.
//! 3. While one batch is on its way the next is asked for, so that the disk never waits.
//! 4. A batch has come when the last byte of each of its steps can be read. Then it is counted
//!    what of it is in memory, and the caller may end it all.

use super::charge::Work;
use super::files::Piece;
use super::{cached, pace};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;
use sys::file::Advice;
use sys::readahead::STEP_BYTES;

/// The first batch: little enough for the slowest disk (8 random reads).
const FIRST_BATCH_BYTES: u64 = 8 * STEP_BYTES;
/// More is no faster on any disk and would only be memory in flight.
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// How many pieces a batch has at most: pieces may be of one page.
const MAX_BATCH_STEPS: usize = 4096;
/// Files held open at once; below the 1,024 that a process may have by default.
const MAX_OPEN_FILES: usize = 256;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Bytes asked for.
    pub bytes: u64,
    /// Of these, bytes that were in the page cache afterwards; those that the kernel does not
    /// tell of are taken for present.
    pub present_bytes: u64,
    /// Files that were left out: another by now, gone, or not readable.
    pub changed_files: u64,
}

impl Read {
    /// Adds what another reading did.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.present_bytes += other.present_bytes;
        self.changed_files += other.changed_files;
    }
}

/// Reads the pieces of `work` in their order. After each batch `ends` is told what was done so
/// far and answers whether to stop; batches on their way still arrive.
pub fn pieces(work: &Work, ends: &mut dyn FnMut(&Read) -> bool) -> Read {
    let mut reader = Reader {
        work,
        open: HashMap::new(),
        left_out: HashSet::new(),
        done: Read::default(),
    };
    let mut steps = work.pieces.iter().flat_map(steps_of);
    let mut batch_bytes = FIRST_BATCH_BYTES;
    let mut before = reader.ask(&mut steps, batch_bytes);
    while !before.is_empty() {
        let start = Instant::now();
        let next = reader.ask(&mut steps, batch_bytes);
        let bytes = reader.settle(&before);
        batch_bytes = pace::next(bytes, start.elapsed(), STEP_BYTES..=MAX_BATCH_BYTES);
        before = next;
        if ends(&reader.done) {
            break;
        }
    }
    reader.done
}

/// A part of a piece that one call asks for.
struct Step {
    file: u32,
    range: Range<u64>,
}

fn steps_of(piece: &Piece) -> impl Iterator<Item = Step> {
    let (file, end) = (piece.file, piece.range.end);
    let starts = piece.range.clone().step_by(STEP_BYTES as usize);
    starts.map(move |start| Step {
        file,
        range: start..end.min(start + STEP_BYTES),
    })
}

struct Reader<'a> {
    work: &'a Work,
    open: HashMap<u32, Rc<File>>,
    left_out: HashSet<u32>,
    done: Read,
}

impl Reader<'_> {
    /// Asks the kernel for the next steps, `bytes` bytes together, and gives what to wait for.
    fn ask(
        &mut self,
        steps: &mut dyn Iterator<Item = Step>,
        bytes: u64,
    ) -> Vec<(Rc<File>, Range<u64>)> {
        let mut asked = Vec::new();
        let mut left = bytes;
        while left > 0 && asked.len() < MAX_BATCH_STEPS {
            let Some(step) = steps.next() else { break };
            let Some(file) = self.file(step.file) else {
                continue;
            };
            let length = step.range.end - step.range.start;
            // What is refused here is found missing when it is counted.
            let _ = sys::readahead::readahead(&file, step.range.start, length);
            left = left.saturating_sub(length);
            asked.push((file, step.range));
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
    fn file(&mut self, index: u32) -> Option<Rc<File>> {
        if let Some(file) = self.open.get(&index) {
            return Some(Rc::clone(file));
        }
        if self.left_out.contains(&index) {
            return None;
        }
        let named = self.work.files.get(index as usize);
        let Some(file) = named.and_then(|named| named.identity.open(&named.path)) else {
            self.left_out.insert(index);
            self.done.changed_files += 1;
            return None;
        };
        if self.open.len() >= MAX_OPEN_FILES {
            self.open.clear();
        }
        // Waiting for a page that did not come must not read others around it.
        let _ = sys::file::advise(&file, 0, 0, Advice::Random);
        let file = Rc::new(file);
        self.open.insert(index, Rc::clone(&file));
        Some(file)
    }
}

/// The smallest page; the first byte of the last one is read.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_asked_for_in_steps() {
        let piece = Piece {
            file: 3,
            range: 4096..4096 + 2 * STEP_BYTES + 1,
            physical: None,
        };
        let steps: Vec<_> = steps_of(&piece).map(|step| step.range).collect();
        let middle = 4096 + STEP_BYTES;
        let behind = middle + STEP_BYTES;
        assert_eq!(
            steps,
            [4096..middle, middle..behind, behind..behind + 1],
            "to the last byte"
        );
    }
}
