//! Reading a part of a ring: only the segments around the time that was asked for, and of those
//! only what the time needs.
//!
//! 1. The headers of all chunks are walked over. They say when each segment's samples begin and
//!    end; facts, spans and the outcome are read, because times of day need every setting of the
//!    clock.
//! 2. Segments that overlap the time are read as an [`Outline`], or whole if that is refused, and
//!    joined as a reading of all joins them. Each names its own processes and files, so no earlier
//!    one is needed for a name.
//!
//! What is skipped is not checked: its damage is not reported.

use super::chunk::ChunkKind;
use super::joined::{JoinedRecording, PART_SHARE, gap, offset_ns, own_cpu_ns, read_segment};
use super::part::Outline;
use super::reader::{self, Budget, Limits, Reading};
use super::segments::{Segment, is_ring_written, open_directory, segments};
use model::recording::{Facts, Recording, RecordingOutcome, Span, Tick};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use sys::directory::Directory;

/// A ring of which a part is still to be read.
#[derive(Debug)]
pub struct RingOutline {
    directory: Directory,
    /// Those with samples, oldest first.
    places: Vec<SegmentPlace>,
    /// Facts, spans, the last sample's time and the outcome.
    recording: Recording,
    /// Whether a segment was met: the first one says when the ring begins, also without samples.
    is_begun: bool,
    budget: Budget,
}

/// When the samples of a segment were taken, in nanoseconds since the ring's start.
#[derive(Debug)]
struct SegmentPlace {
    name: OsString,
    /// What the segment's own times count from.
    offset_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

/// What the headers of a segment say, and the small things in it. Times count from its own start.
struct WalkedSegment {
    facts: Facts,
    spans: Vec<Span>,
    outcome: Option<RecordingOutcome>,
    /// Times of the first and the last sample.
    samples: Option<(u64, u64)>,
}

impl RingOutline {
    /// Walks over the ring in the directory at `path`; `None` for anything that needs
    /// [`super::open()`], which says what is wrong with it.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        let directory = open_directory(path).ok()?;
        let is_growing = is_ring_written(&directory);
        let names = segments(&directory).ok()?;
        let mut outline = Self {
            directory,
            places: Vec::new(),
            is_begun: false,
            recording: Recording::default(),
            budget: Budget::new(Limits::default().bytes),
        };
        for Segment { name, .. } in names {
            let walked = walk(outline.directory.open_regular(&name).ok()?)?;
            outline.add(name, walked);
        }
        outline.recording.is_growing = is_growing && outline.recording.outcome.is_none();
        (!outline.places.is_empty()).then_some(outline)
    }

    /// Facts of the newest segment, all spans, the time of the last sample, and the outcome; times
    /// count from the first segment's start.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The recording with its samples from the last one at or before `from_ns`, or an earlier one,
    /// to the first one at or after `to_ns`, or a later one. `None` if nothing of it can be read.
    #[must_use]
    pub fn part(self, from_ns: u64, to_ns: u64) -> Option<Recording> {
        let Limits { bytes, .. } = Limits::default();
        let part_limits = Limits { bytes: bytes / PART_SHARE, ..Limits::default() };
        let mut joined = JoinedRecording::new(bytes - part_limits.bytes);
        let mut damage = Vec::new();
        for place in &self.places[wanted(&self.places, from_ns, to_ns)] {
            let SegmentPlace { name, offset_ns, .. } = place;
            let from_ns = from_ns.saturating_sub(*offset_ns);
            let to_ns = to_ns.saturating_sub(*offset_ns);
            let alone = self.segment(name, part_limits).and_then(|it| it.part(from_ns, to_ns));
            let part = alone
                .or_else(|| read_segment(&self.directory, name, None, part_limits, &mut damage));
            if let Some(mut part) = part {
                joined.add_and_thin(&mut part, Some(*offset_ns));
            }
        }
        if joined.recording.ticks.is_empty() {
            return None;
        }
        damage.extend(self.budget.left_out());
        let mut part = joined.finish(damage);
        let Recording { facts, spans, outcome, is_growing, .. } = self.recording;
        part.is_growing = is_growing;
        part.facts.started_unix_ns = facts.started_unix_ns;
        part.spans = spans;
        let own_cpu_ns = own_cpu_ns(&part);
        part.outcome =
            outcome.map(|outcome| RecordingOutcome { own_cpu_ns, own_setup_ns: 0, ..outcome });
        Some(part)
    }

    fn segment(&self, name: &OsStr, limits: Limits) -> Option<Outline<File>> {
        Outline::of_segment(self.directory.open_regular(name).ok()?, limits)
    }

    /// Finds the next segment's place, and keeps its spans.
    fn add(&mut self, name: OsString, walked: WalkedSegment) {
        let WalkedSegment { facts, spans, outcome, samples } = walked;
        let whole = &mut self.recording;
        let last = whole.ticks.last().copied();
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let started_unix_ns =
            if is_first { facts.started_unix_ns } else { whole.facts.started_unix_ns };
        let last_tick = last.unwrap_or_default();
        let first = samples.map(|(first_ns, _)| Tick { due_ns: first_ns, at_ns: first_ns });
        let after_ns = facts.started_unix_ns.saturating_sub(started_unix_ns);
        let offset_ns = offset_ns(after_ns, first, last_tick);
        let moved = |ns: u64| ns.saturating_add(offset_ns);
        if let Some((first_ns, last_ns)) = samples {
            let (first_ns, last_ns) = (moved(first_ns), moved(last_ns));
            if !is_first {
                whole.spans.extend(gap(last_tick.at_ns, first_ns));
            }
            whole.ticks = vec![Tick { due_ns: last_ns, at_ns: last_ns }];
            self.places.push(SegmentPlace { name, offset_ns, first_ns, last_ns });
        }
        for span in spans {
            if self.budget.has_room_for::<Span>(span.text.as_bytes(), "spans") {
                let (start_ns, end_ns) = (moved(span.start_ns), moved(span.end_ns));
                whole.spans.push(Span { start_ns, end_ns, ..span });
            }
        }
        whole.facts = Facts { started_unix_ns, ..facts };
        whole.outcome = outcome
            .map(|outcome| RecordingOutcome { ended_ns: moved(outcome.ended_ns), ..outcome });
    }
}

/// The segments that hold the time from the last sample at or before `from_ns` to the first one at
/// or after `to_ns`.
fn wanted(places: &[SegmentPlace], from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let begun = places.partition_point(|place| place.first_ns <= from_ns);
    let first = begun.saturating_sub(1);
    let ended = places.partition_point(|place| place.last_ns < to_ns);
    first..(ended + 1).min(places.len()).max(first + 1)
}

/// Goes over the headers of a segment as far as it is whole; `None` for any other file.
fn walk(file: File) -> Option<WalkedSegment> {
    let is_wanted = |kind| matches!(kind, ChunkKind::Facts | ChunkKind::Spans | ChunkKind::Outcome);
    let length = file.metadata().ok()?.len();
    let mut chunks = reader::start(file).ok()?;
    let limits = Limits { bytes: Limits::default().bytes / PART_SHARE, ..Limits::default() };
    let mut reading = Reading::new(limits);
    let mut samples: Option<(u64, u64)> = None;
    // What follows the first chunk that is wrong is not read by any reader.
    while let Ok(Some((header, raw))) = chunks.next_wanted(is_wanted) {
        if is_wanted(header.kind) {
            if reading.take(&header, raw).is_err() {
                break;
            }
        } else if header.kind == ChunkKind::Samples && chunks.offset <= length {
            let first_ns = samples.map_or(header.first_ns, |(first_ns, _)| first_ns);
            samples = Some((first_ns, header.last_ns.max(first_ns)));
        }
    }
    let Recording { facts, spans, outcome, .. } = reading.finish();
    Some(WalkedSegment { facts, spans, outcome, samples })
}
