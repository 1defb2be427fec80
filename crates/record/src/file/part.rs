//! Reading a part of a long recording: everything but its samples and rows of processes first, then
//! those of the time that was asked for.
//!
//! The positions of the chunks come from their headers: walking over those of a day's recording
//! takes some milliseconds. What is used is checked as always; what is skipped is not. This works
//! only for a recording that was ended (or a segment of a ring) and is whole as far as it was read.
//! Any other is read in one pass, which reports what is wrong with it.

use super::chunk::{ChunkKind, Chunks};
use super::reader::{self, Limits, Reading};
use model::recording::Recording;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// A real recording has fewer places to begin at and chunks of rows: this is three months at 10 Hz,
/// and 24 MiB here.
const MAX_PLACES: usize = 1 << 20;

/// A recording whose samples are still to be read.
#[derive(Debug)]
pub struct Outline<R> {
    chunks: Chunks<R>,
    reading: Reading,
    /// Where the chunks begin.
    start: u64,
    /// Rows that reading may begin with: since when, and where.
    rows: Vec<(u64, u64)>,
    /// Chunks of what processes used: their time range, and where.
    growths: Vec<(u64, u64, u64)>,
}

impl Outline<File> {
    /// Everything but the samples of the file at `path`; `None` for a file that needs
    /// [`super::open`].
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        Self::read(sys::file::open_input(path).ok()?)
    }
}

impl<R: Read + Seek> Outline<R> {
    /// As [`Outline::open`], for what is open already.
    #[must_use]
    pub fn read(source: R) -> Option<Self> {
        let outline = Self::of_segment(source, Limits::default())?;
        outline.recording().outcome.is_some().then_some(outline)
    }

    /// As [`Outline::read`], within `limits`, for a segment of a ring: only the last one has an
    /// outcome.
    pub(super) fn of_segment(source: R, limits: Limits) -> Option<Self> {
        let chunks = reader::start(source).ok()?;
        let mut outline = Self {
            start: chunks.offset,
            chunks,
            reading: Reading::new(limits),
            rows: Vec::new(),
            growths: Vec::new(),
        };
        outline.walk().ok()??;
        Some(outline)
    }

    /// Facts, series without values, spans, tasks, processes and files without rows, and the
    /// outcome.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.reading.recording
    }

    /// The recording with its samples from the last one at or before `from_ns`, or an earlier
    /// one, to the first one at or after `to_ns`, or a later one. `None` where what has to be
    /// read for it is damaged.
    #[must_use]
    pub fn part(mut self, from_ns: u64, to_ns: u64) -> Option<Recording> {
        let earlier = self.rows.partition_point(|(at_ns, _)| *at_ns <= from_ns);
        let row = earlier.checked_sub(1).map(|last| self.rows[last]);
        self.chunks.go_to(row.map_or(self.start, |(_, offset)| offset)).ok()?;
        let is_wanted = |kind| matches!(kind, ChunkKind::Samples | ChunkKind::Row);
        while self.last_ns().is_none_or(|last_ns| last_ns < to_ns) {
            let Some((header, raw)) = self.chunks.next_wanted(is_wanted).ok()? else {
                break;
            };
            if is_wanted(header.kind) {
                self.reading.take(&header, raw).ok()?;
            }
        }
        let first = self.reading.recording.ticks.first();
        let begins = first.is_some_and(|tick| row.is_none_or(|(at_ns, _)| at_ns == tick.at_ns));
        if !begins {
            return None;
        }
        self.read_growths(from_ns, to_ns)?;
        Some(self.reading.finish())
    }

    /// Reads the rows of processes and files that overlap the samples around the time asked for.
    fn read_growths(&mut self, from_ns: u64, to_ns: u64) -> Option<()> {
        let ticks = &self.reading.recording.ticks;
        let before = ticks.iter().rev().map(|tick| tick.at_ns).find(|at_ns| *at_ns <= from_ns);
        let after = ticks.iter().map(|tick| tick.at_ns).find(|at_ns| *at_ns >= to_ns);
        let (first_ns, last_ns) = (before.unwrap_or(0), after.unwrap_or(u64::MAX));
        self.reading.set_rows_within(first_ns, last_ns);
        for (from_ns, to_ns, offset) in std::mem::take(&mut self.growths) {
            if from_ns <= last_ns && to_ns >= first_ns {
                self.chunks.go_to(offset).ok()?;
                let (header, raw) = self.chunks.next().ok()??;
                self.reading.take(&header, raw).ok()?;
            }
        }
        Some(())
    }

    /// Goes over all chunks and takes all but samples and rows of processes; `None` for a recording
    /// whose rows are out of order or too many.
    fn walk(&mut self) -> Result<Option<()>, String> {
        let is_timed =
            |kind| matches!(kind, ChunkKind::Samples | ChunkKind::Row | ChunkKind::Growths);
        let is_wanted = |kind| !is_timed(kind) && kind != ChunkKind::Accesses;
        loop {
            let offset = self.chunks.offset;
            let places = self.rows.len() + self.growths.len();
            let Some((header, raw)) = self.chunks.next_wanted(is_wanted)? else {
                break;
            };
            match header.kind {
                kind if is_timed(kind) && places >= MAX_PLACES => return Ok(None),
                ChunkKind::Row => self.rows.push((header.first_ns, offset)),
                ChunkKind::Growths => {
                    self.growths.push((header.first_ns, header.last_ns, offset));
                }
                kind if is_wanted(kind) => self.reading.take(&header, raw)?,
                _ => {}
            }
        }
        Ok(self.rows.is_sorted().then_some(()))
    }

    fn last_ns(&self) -> Option<u64> {
        let ticks = &self.reading.recording.ticks;
        ticks.last().map(|tick| tick.at_ns)
    }
}
