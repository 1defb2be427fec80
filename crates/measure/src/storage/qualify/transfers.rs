//! The own file written in sequence and read back, both past the page cache, in steps whose rates
//! are exact.
//!
//! A step grows until it takes 100 ms, so that the series neither counts single requests nor misses
//! a knee. One request of 1 MiB is in flight while writing: file systems that write zeros up to a
//! request behind the end (FAT) would write twice otherwise. While reading it is four, and each
//! step leaves all that it read in the buffers, where every block is compared off the clock.

use super::candidate::Candidate;
use super::knee;
use crate::storage::failed;
use crate::storage::served::{Direction, ServedWatch};
use crate::storage::stream::{Stream, TransferMode};
use crate::{Budget, Error, Result};
use model::Bytes;
use model::Estimate;
use model::bytes::MIB;
use model::qualification::{
    CapacityCheck, CapacityOutcome, TransferFigures, TransferRate, WriteBurst,
};

const BLOCK: u64 = MIB;
const READ_DEPTH: u32 = 4;
/// A step grows until it takes so long.
const STEP_NS: u64 = 100_000_000;
const LARGEST_STEP: u64 = 64 * MIB;

/// The nameless file.
#[derive(Debug)]
pub(super) struct OwnFile<'c, 'r> {
    candidate: &'c Candidate<'r>,
    size: Bytes,
    written: u64,
    seed: u64,
}

/// What writing gave.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) figures: TransferFigures,
    pub(super) burst: Option<WriteBurst>,
    pub(super) sustained: Option<Estimate>,
    /// What ended it early; the rest says what was written until then.
    pub(super) failure: Option<Error>,
}

/// What reading back gave.
#[derive(Debug)]
pub(super) struct ReadBack {
    pub(super) figures: TransferFigures,
    /// What ended it early; the rest says what was read until then.
    pub(super) failure: Option<Error>,
    held: u64,
    first_wrong: Option<u64>,
    is_past_caches: bool,
}

impl<'c, 'r> OwnFile<'c, 'r> {
    /// The empty file of `candidate`, to become `size` bytes long.
    pub(super) fn new(candidate: &'c Candidate<'r>, size: Bytes) -> Result<Self> {
        candidate.target.require_own()?;
        Ok(Self { candidate, size, written: 0, seed: candidate.target.draw_seed()? })
    }

    /// The seed of the content.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Writes until all is written, a write fails, the budget ends or `check` says that the disk is
    /// refused; it is asked before each part that may be written, and answers how far that goes.
    pub(super) fn write(
        &mut self,
        budget: &Budget,
        check: &mut dyn FnMut(u64) -> Result<Option<u64>>,
    ) -> Result<Written> {
        let candidate = self.candidate;
        let path = candidate.target.path();
        let file = candidate.target.direct()?;
        candidate.target.check_direct(&file, Bytes(BLOCK), true)?;
        let mut stream = Stream::new(&file, TransferMode::Direct, BLOCK, 1, self.seed)?;
        let watch = ServedWatch::start(candidate.root, &candidate.target);
        let mut steps = Steps::default();
        let written = self.write_parts(&mut stream, &mut steps, budget, check);
        let sync_start_ns = sys::clock::now_ns();
        let synced = sys::file::sync_data(candidate.target.file());
        steps.add_time(sys::clock::now_ns() - sync_start_ns);
        let failure = written.and(synced.map_err(|e| failed("sync", path, e))).err();
        let figures = steps.figures(self.written, &watch, Direction::Write);
        let cut = knee::find(&figures.series);
        let burst = cut.and_then(|cut| {
            let bytes = figures.series[cut].from_bytes;
            Some(WriteBurst { bytes, bytes_per_s: knee::estimate(&figures.series[..cut])? })
        });
        let sustained = knee::estimate(knee::lasting(&figures.series, cut));
        Ok(Written { bytes: self.written, figures, burst, sustained, failure })
    }

    fn write_parts(
        &mut self,
        stream: &mut Stream,
        steps: &mut Steps,
        budget: &Budget,
        check: &mut dyn FnMut(u64) -> Result<Option<u64>>,
    ) -> Result<()> {
        let path = self.candidate.target.path();
        while self.written < self.size.0 && !budget.over() {
            let Some(until) = check(self.written)? else { break };
            let end = until.min(self.size.0);
            while self.written < end && !budget.over() {
                let range = self.written..(self.written + steps.next_bytes()).min(end);
                let moved = stream.write(range, budget).checked().map_err(|e| e.at(path))?;
                steps.add(self.written, moved.bytes, moved.wall_ns);
                self.written = moved.whole_until;
            }
        }
        Ok(())
    }

    /// Reads what was written and compares every block, until a read fails or the budget ends.
    pub(super) fn read_back(&mut self, budget: &Budget) -> Result<ReadBack> {
        let candidate = self.candidate;
        let path = candidate.target.path();
        // A file that was written in part through the cache is dropped from it.
        let left = candidate.target.evict().map_err(|e| failed("evict", path, e))?;
        let file = candidate.target.direct()?;
        let mut stream = Stream::new(&file, TransferMode::Direct, BLOCK, READ_DEPTH, self.seed)?;
        let step_bytes = BLOCK * stream.depth() as u64;
        let watch = ServedWatch::start(candidate.root, &candidate.target);
        let mut steps = Steps::default();
        let (mut at, mut held, mut first_wrong, mut failure) = (0, 0, None, None);
        while at < self.written && !budget.over() {
            let end = (at + step_bytes).min(self.written);
            let moved = match stream.read(at..end, budget).checked() {
                Ok(moved) => moved,
                Err(error) => {
                    failure = Some(error.at(path));
                    break;
                }
            };
            steps.add(at, moved.bytes, moved.wall_ns);
            let compared = stream.compare();
            held += compared.held;
            first_wrong = first_wrong.or(compared.first_wrong);
            if moved.whole_until <= at {
                break;
            }
            at = moved.whole_until;
        }
        let figures = steps.figures(at, &watch, Direction::Read);
        let is_past_caches =
            figures.served_by == model::probe::SERVED_BY_DEVICE && left.unwrap_or(0) == 0;
        Ok(ReadBack { figures, failure, held, first_wrong, is_past_caches })
    }
}

impl ReadBack {
    /// Adds to `check` what was proved or refused.
    pub(super) fn judge(&self, check: &mut CapacityCheck) {
        check.proved_bytes = self.held;
        match self.first_wrong {
            Some(at) => {
                let wrong = Bytes(self.figures.bytes - self.held);
                check.outcome = CapacityOutcome::Refused;
                check.reason = Some(format!(
                    "{wrong} of {} are not what was written there, the first at {} of the file",
                    Bytes(self.figures.bytes),
                    Bytes(at)
                ));
            }
            None if self.held == 0 => check.reason = Some("nothing was read back".to_owned()),
            None if !self.is_past_caches => {
                check.proved_bytes = 0;
                check.reason = Some("what was read back came from a cache of this machine".into());
            }
            None => {
                check.outcome = CapacityOutcome::Proved;
                check.reason = None;
            }
        }
    }
}

/// Reads a device of `bytes` bytes from its start until the budget ends.
pub(super) fn read_device(
    candidate: &Candidate<'_>,
    bytes: u64,
    budget: &Budget,
) -> Result<TransferFigures> {
    let path = candidate.target.path();
    let file = candidate.target.direct()?;
    let mut stream = Stream::new(&file, TransferMode::Direct, BLOCK, READ_DEPTH, 0)?;
    let watch = ServedWatch::start(candidate.root, &candidate.target);
    let mut steps = Steps::default();
    let mut at = 0;
    while at < bytes && !budget.over() {
        let end = (at + steps.next_bytes().max(BLOCK * u64::from(READ_DEPTH))).min(bytes);
        let moved = stream.read(at..end, budget).checked().map_err(|e| e.at(path))?;
        steps.add(at, moved.bytes, moved.wall_ns);
        if moved.whole_until <= at {
            break;
        }
        at = moved.whole_until;
    }
    Ok(steps.figures(at, &watch, Direction::Read))
}

/// The steps of a transfer: their sizes, and the series of their rates.
#[derive(Debug, Default)]
struct Steps {
    bytes: u64,
    series: Vec<TransferRate>,
    /// A stretch that is not yet [`STEP_NS`] long: its start, its bytes, its time.
    open: (u64, u64, u64),
}

impl Steps {
    /// How many bytes the next step should have.
    fn next_bytes(&self) -> u64 {
        self.bytes.max(BLOCK)
    }

    fn add(&mut self, from_bytes: u64, bytes: u64, wall_ns: u64) {
        if wall_ns < STEP_NS && bytes >= self.next_bytes() {
            self.bytes = (self.next_bytes() * 2).min(LARGEST_STEP);
        } else if wall_ns > 4 * STEP_NS {
            self.bytes = (self.next_bytes() / 2).max(BLOCK);
        }
        if self.open.1 == 0 {
            self.open.0 = from_bytes;
        }
        self.open.1 += bytes;
        self.open.2 += wall_ns;
        if self.open.2 >= STEP_NS {
            self.close();
        }
    }

    /// Time that belongs to what was moved last.
    fn add_time(&mut self, ns: u64) {
        if self.open.1 == 0
            && let Some(last) = self.series.pop()
        {
            let bytes = last.bytes_per_s * last.wall_ns as f64 / 1e9;
            self.open = (last.from_bytes, bytes.round() as u64, last.wall_ns);
        }
        self.open.2 += ns;
    }

    fn close(&mut self) {
        let (from_bytes, bytes, wall_ns) = std::mem::take(&mut self.open);
        if bytes > 0 && wall_ns > 0 {
            let bytes_per_s = bytes as f64 * 1e9 / wall_ns as f64;
            self.series.push(TransferRate { from_bytes, wall_ns, bytes_per_s });
        }
    }

    fn figures(
        mut self,
        bytes: u64,
        watch: &ServedWatch<'_>,
        direction: Direction,
    ) -> TransferFigures {
        self.close();
        let served = watch.finish(direction, bytes);
        let wall_ns: u64 = self.series.iter().map(|at| at.wall_ns).sum();
        TransferFigures {
            bytes,
            wall_s: wall_ns as f64 / 1e9,
            bytes_per_s: knee::estimate(&self.series),
            series: self.series,
            served_by: served.by.answered().to_owned(),
            served_reason: served.reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_grows_with_the_speed_and_short_ones_are_one_stretch() {
        let mut steps = Steps::default();
        let mut at = 0;
        for _ in 0..6 {
            let bytes = steps.next_bytes();
            steps.add(at, bytes, 20_000_000);
            at += bytes;
        }
        assert_eq!(steps.next_bytes(), 64 * MIB);
        assert_eq!(steps.series.len(), 1);
        assert_eq!(steps.series[0].wall_ns, 100_000_000);
        // 1 + 2 + 4 + 8 + 16 MiB in 100 ms.
        assert!((steps.series[0].bytes_per_s / (310.0 * MIB as f64) - 1.0).abs() < 1e-9);
        steps.add(at, 64 * MIB, 900_000_000);
        assert_eq!(steps.next_bytes(), 32 * MIB);
        assert_eq!(steps.series[1].from_bytes, 31 * MIB, "the open stretch and this step");
    }

    /// A fake that fails beyond what it holds is refused by what was wrong before.
    #[test]
    fn what_was_read_until_a_failure_is_judged() {
        let read = |held, first_wrong| ReadBack {
            figures: TransferFigures {
                bytes: 8 * MIB,
                wall_s: 1.0,
                bytes_per_s: None,
                series: Vec::new(),
                served_by: model::probe::SERVED_BY_DEVICE.to_owned(),
                served_reason: String::new(),
            },
            failure: Some(Error::new(crate::ErrorKind::Failed, "read", "an I/O error")),
            held,
            first_wrong,
            is_past_caches: true,
        };
        let judged = |read: ReadBack| {
            let mut check = CapacityCheck::not_tried(None, "nothing was read back");
            read.judge(&mut check);
            (check.outcome, check.proved_bytes)
        };
        assert_eq!(judged(read(4 * MIB, Some(4 * MIB))), (CapacityOutcome::Refused, 4 * MIB));
        assert_eq!(judged(read(8 * MIB, None)), (CapacityOutcome::Proved, 8 * MIB));
        assert_eq!(judged(read(0, None)), (CapacityOutcome::NotTried, 0));
    }

    #[test]
    fn the_last_sync_belongs_to_what_was_written_last() {
        let mut steps = Steps::default();
        steps.add(0, MIB, 200_000_000);
        steps.add_time(200_000_000);
        steps.close();
        assert_eq!(steps.series.len(), 1);
        assert_eq!(steps.series[0].wall_ns, 400_000_000);
    }
}
