//! What a copy counts of itself while it runs: the series `copy.*` of a recording.
//!
//! Shared between the copier, which changes it, its progress line and a recorder. What every
//! engine counts begins at 0; all else is absent until the copier sets it, so that an engine that
//! cannot know a value shows none.

use crate::gauge::{Gauge, GaugeName, GaugeSet};
use crate::recording::SeriesKind::{self, Counter, Gauge as Level};

/// The gauges of one copy.
#[derive(Debug)]
pub struct CopyGauges {
    /// Bytes that reads of the source gave.
    pub read_bytes: Gauge,
    /// Bytes of completed writes to the target, durable or not.
    pub written_bytes: Gauge,
    /// Bytes of files that are safe on the target's disk.
    pub durable_bytes: Gauge,
    /// Bytes that count as durable though nothing was written for them: holes, further names, files
    /// that were there. Not recorded: for what is under way on the line of progress.
    pub unmoved_bytes: Gauge,
    /// What the copy wrote that is not on the target's disk yet, as far as that is known.
    pub dirty_bytes: Gauge,
    /// Bytes of reads that the source has not answered.
    pub reads_in_flight_bytes: Gauge,
    /// Bytes of writes that the target has not answered.
    pub writes_in_flight_bytes: Gauge,
    /// Reads in flight.
    pub read_depth: Gauge,
    /// Writes in flight.
    pub write_depth: Gauge,
    /// Most reads that may be in flight.
    pub read_depth_limit: Gauge,
    /// Most writes that may be in flight.
    pub write_depth_limit: Gauge,
    /// Time in which no read could start because writes held all buffers.
    pub readers_waited_ns: Gauge,
    /// Time in which no write could start because nothing was read.
    pub writers_waited_ns: Gauge,
    /// Time that the copy waited for its allowance: `--limit-rate` or background work.
    pub held_back_ns: Gauge,
    /// Processor time of the copying threads.
    pub cpu_ns: Gauge,
    /// Files that are complete on the target.
    pub files_done: Gauge,
    /// Files to copy, once all are found.
    pub files_total: Gauge,
    /// Bytes to copy, once all files are found.
    pub bytes_total: Gauge,
    /// The rate of `--limit-rate`, bytes a second.
    pub rate_limit: Gauge,
    /// The engine in use, by [`CopyEngine::number`].
    pub engine: Gauge,
}

/// How bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEngine {
    /// Extents are shared; no bytes move.
    Reflink,
    /// Direct requests in a ring.
    Uring,
    /// Through the cache, and dropped from it by the kernel.
    Uncached,
    /// Through the cache, written back one window behind.
    Paced,
    /// Plain reads and writes by workers, for small files.
    Plain,
    /// Through the cache, written back when the kernel likes.
    Cached,
    /// One thread reads, one writes, with one buffer between.
    TwoThread,
}

impl CopyEngine {
    /// All engines by their numbers, from 1.
    pub const ALL: [Self; 7] = [
        Self::Reflink,
        Self::Uring,
        Self::Uncached,
        Self::Paced,
        Self::Plain,
        Self::Cached,
        Self::TwoThread,
    ];

    /// The value of `copy.engine`.
    #[must_use]
    pub fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The engine of this number.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.number() == number)
    }

    /// As `--engine` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reflink => "reflink",
            Self::Uring => "uring",
            Self::Uncached => "uncached",
            Self::Paced => "paced",
            Self::Plain => "plain",
            Self::Cached => "cached",
            Self::TwoThread => "two-thread",
        }
    }
}

impl Default for CopyGauges {
    fn default() -> Self {
        Self {
            read_bytes: Gauge::zero(),
            written_bytes: Gauge::zero(),
            durable_bytes: Gauge::zero(),
            unmoved_bytes: Gauge::zero(),
            dirty_bytes: Gauge::absent(),
            reads_in_flight_bytes: Gauge::absent(),
            writes_in_flight_bytes: Gauge::absent(),
            read_depth: Gauge::absent(),
            write_depth: Gauge::absent(),
            read_depth_limit: Gauge::absent(),
            write_depth_limit: Gauge::absent(),
            readers_waited_ns: Gauge::absent(),
            writers_waited_ns: Gauge::absent(),
            held_back_ns: Gauge::absent(),
            cpu_ns: Gauge::absent(),
            files_done: Gauge::zero(),
            files_total: Gauge::absent(),
            bytes_total: Gauge::absent(),
            rate_limit: Gauge::absent(),
            engine: Gauge::absent(),
        }
    }
}

impl CopyGauges {
    /// In the order of [`NAMES`].
    fn all(&self) -> [&Gauge; NAMES.len()] {
        [
            &self.read_bytes,
            &self.written_bytes,
            &self.durable_bytes,
            &self.dirty_bytes,
            &self.reads_in_flight_bytes,
            &self.writes_in_flight_bytes,
            &self.read_depth,
            &self.write_depth,
            &self.read_depth_limit,
            &self.write_depth_limit,
            &self.readers_waited_ns,
            &self.writers_waited_ns,
            &self.held_back_ns,
            &self.cpu_ns,
            &self.files_done,
            &self.files_total,
            &self.bytes_total,
            &self.rate_limit,
            &self.engine,
        ]
    }
}

impl GaugeSet for CopyGauges {
    fn names(&self) -> &[GaugeName] {
        &NAMES
    }

    fn value(&self, place: usize) -> Option<u64> {
        self.all().get(place).and_then(|gauge| gauge.get())
    }
}

const fn named(name: &'static str, unit: &'static str, kind: SeriesKind) -> GaugeName {
    GaugeName { name, unit, kind }
}

/// What each gauge is called in a recording.
const NAMES: [GaugeName; 19] = [
    named("copy.read_bytes", "bytes", Counter),
    named("copy.written_bytes", "bytes", Counter),
    named("copy.durable_bytes", "bytes", Counter),
    named("copy.dirty_bytes", "bytes", Level),
    named("copy.reads_in_flight_bytes", "bytes", Level),
    named("copy.writes_in_flight_bytes", "bytes", Level),
    named("copy.read_depth", "count", Level),
    named("copy.write_depth", "count", Level),
    named("copy.read_depth_limit", "count", Level),
    named("copy.write_depth_limit", "count", Level),
    named("copy.readers_waited_ns", "ns", Counter),
    named("copy.writers_waited_ns", "ns", Counter),
    named("copy.held_back_ns", "ns", Counter),
    named("copy.cpu_ns", "ns", Counter),
    named("copy.files_done", "count", Counter),
    named("copy.files_total", "count", Level),
    named("copy.bytes_total", "bytes", Level),
    named("copy.rate_limit", "bytes_per_s", Level),
    named("copy.engine", "count", Level),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_in_one_order() {
        let gauges = CopyGauges::default();
        gauges.engine.set(CopyEngine::Paced.number());
        gauges.dirty_bytes.set(5);
        let of = |name: &str| {
            let place = gauges.names().iter().position(|row| row.name == name).unwrap();
            gauges.value(place)
        };
        assert_eq!(of("copy.read_bytes"), Some(0));
        assert_eq!(of("copy.dirty_bytes"), Some(5));
        assert_eq!(of("copy.held_back_ns"), None);
        assert_eq!(of("copy.engine"), Some(4));
        assert_eq!(gauges.value(NAMES.len()), None);
    }

    #[test]
    fn engines_are_found_by_their_numbers() {
        for engine in CopyEngine::ALL {
            assert_eq!(CopyEngine::of_number(engine.number()), Some(engine));
        }
        assert_eq!((CopyEngine::of_number(0), CopyEngine::of_number(8)), (None, None));
    }
}
