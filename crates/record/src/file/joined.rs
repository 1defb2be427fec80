//! Reading a ring: segments put together to one recording, the last one as far as it is written.
//!
//! Series are joined by their names, times count from the first segment's start. What a
//! segment does not have is absent while it lasts. [`JoinedWho`] joins processes and files.

mod who;

use super::read_back::read_back;
use super::reader::{
    Budget, Limits, MAX_BYTES, ROWS_SHARE, Thinning, bytes_of_rows, bytes_of_values, bytes_of_who,
};
use super::segments::{Segment, nothing_in, open_directory, segments};
use crate::{Error, Result};
use model::recording::{
    Facts, Recording, RecordingOutcome, Schema, Series, SeriesStep, Span, Task, Tick,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use sys::directory::Directory;
use who::JoinedWho;

/// The recorder's own processor time: it begins anew with each run.
const OWN_CPU: &str = "own.cpu_ns";

/// A longer pause between two samples is marked as a gap: twice the longest period.
const GAP_NS: u64 = 2_000_000_000;

/// Of the memory that a ring may take, the segment that is added takes one part of so many,
/// the whole the rest.
pub(super) const PART_SHARE: usize = 4;

/// Reads a ring: all its segments as one recording, times counted from the first one's
/// start, series joined by their names. The facts are those of the newest segment. A pause
/// between two segments is a span of kind `gap`.
///
/// # Errors
/// [`crate::ErrorKind::NotARecording`] for a directory without a segment; others when it cannot be
/// read.
pub fn read_ring(path: &Path) -> Result<Recording> {
    read_closed(&open_directory(path)?, None, Limits::default())
}

/// As [`read_ring`], within `limits`; the segment `own`, the newest, is read by the descriptor that
/// wrote it.
pub(super) fn read_closed(
    directory: &Directory,
    own: Option<(OsString, File)>,
    limits: Limits,
) -> Result<Recording> {
    let part_bytes = limits.bytes / PART_SHARE;
    let part_limits = Limits { bytes: part_bytes, ..limits };
    let mut joined = JoinedRecording::new(limits.bytes - part_bytes);
    let mut damage = Vec::new();
    for Segment { name, .. } in segments(directory)? {
        if own.as_ref().is_some_and(|(own, _)| name == *own) {
            continue;
        }
        if let Some(mut part) = read_segment(directory, &name, None, part_limits, &mut damage) {
            joined.add_and_thin(&mut part, None);
        }
    }
    if let Some((name, file)) = own
        && let Some(mut part) = read_segment(directory, &name, Some(file), part_limits, &mut damage)
    {
        joined.add_and_thin(&mut part, None);
    }
    if !joined.is_begun {
        return Err(nothing_in(directory.path(), damage.pop()));
    }
    Ok(joined.finish(damage))
}

/// Reads one segment, from `file` if it is open already. What is wrong with it goes to `damage`,
/// after its name.
pub(super) fn read_segment(
    directory: &Directory,
    name: &OsStr,
    file: Option<File>,
    limits: Limits,
    damage: &mut Vec<String>,
) -> Option<Recording> {
    let file = file.map_or_else(|| directory.open_regular(name), Ok);
    match file.map_err(Error::from).and_then(|file| read_back(file, limits)) {
        Ok(part) => {
            let name = name.to_string_lossy();
            damage.extend(part.damage.iter().map(|text| format!("{name}: {text}")));
            Some(part)
        }
        Err(error) => {
            damage.push(error.at(directory.path().join(name)).to_string());
            None
        }
    }
}

/// The recordings of as many of the newest segments as fit, oldest first, and what is wrong with
/// them.
pub(super) fn newest(
    directory: &Directory,
    segments: &[Segment],
) -> (VecDeque<Recording>, Vec<String>) {
    let mut damage = Vec::new();
    let mut parts = VecDeque::new();
    let mut bytes = 0;
    // All of them are in memory at once, and their rows may become longer until they fit.
    let rows_share = 2 * segments.len().max(1);
    let limits = Limits { bytes: MAX_BYTES / PART_SHARE, rows_share, ..Limits::default() };
    for Segment { name, .. } in segments.iter().rev() {
        let mut own_damage = Vec::new();
        let part = read_segment(directory, name, None, limits, &mut own_damage);
        let bytes_of = |part: &Recording| bytes_of_values(part) + bytes_of_who(&part.who);
        bytes += part.as_ref().map_or(0, bytes_of);
        if bytes > MAX_BYTES / PART_SHARE {
            let path = directory.path().join(name);
            damage.push(format!("what is older than {} was left out", path.display()));
            break;
        }
        damage.extend(own_damage);
        if let Some(part) = part {
            parts.push_front(part);
        }
    }
    (parts, damage)
}

/// Segments, put together in order of their time.
#[derive(Debug)]
pub(super) struct JoinedRecording {
    pub(super) recording: Recording,
    budget: Budget,
    /// Of the samples of all segments.
    thinning: Thinning,
    ids: HashMap<String, usize>,
    who: JoinedWho,
    is_begun: bool,
    part: SegmentProgress,
}

/// How much of the segment that is added is there already.
#[derive(Debug, Default)]
struct SegmentProgress {
    is_begun: bool,
    /// The number of its first sample.
    first: u64,
    offset_ns: u64,
    ticks: usize,
    spans: usize,
    tasks: usize,
    /// Of each of its series which one it goes on with, and how many changes are there; none
    /// for the second of one name in a segment, which only a fault makes.
    series: Vec<(Option<usize>, usize)>,
}

impl JoinedRecording {
    /// Nothing yet; at most `bytes` of memory.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            recording: Recording::default(),
            budget: Budget::new(bytes),
            thinning: Thinning::new(),
            ids: HashMap::new(),
            who: JoinedWho::new(bytes / ROWS_SHARE),
            is_begun: false,
            part: SegmentProgress::default(),
        }
    }

    /// Whether it is more than a reader takes.
    pub(super) fn is_full(&self) -> bool {
        let bytes = bytes_of_values(&self.recording) + bytes_of_rows(&self.recording.who);
        bytes > self.budget.left()
    }

    /// Adds a segment, and thins the samples of the whole if they do not fit any more. Its times
    /// count from `offset_ns` of the whole, if that is known.
    pub(super) fn add_and_thin(&mut self, part: &mut Recording, offset_ns: Option<u64>) {
        self.next();
        self.begin(part, offset_ns);
        self.grow(part);
        while self.is_full() && self.recording.ticks.len() > self.recording.series.len().max(16) {
            self.thinning.halve(&mut self.recording);
        }
    }

    /// The whole, whose segments had this `damage`.
    pub(super) fn finish(mut self, damage: Vec<String>) -> Recording {
        self.recording.damage = damage;
        self.thinning.finish(&mut self.recording);
        let Recording { damage, who, .. } = &mut self.recording;
        damage.extend(self.who.finish(who));
        damage.extend(self.budget.left_out());
        self.recording
    }

    /// Adds a whole segment, and takes its rows of processes and files out of it.
    pub(super) fn add(&mut self, part: &mut Recording) {
        self.next();
        self.begin(part, None);
        self.grow(part);
    }

    /// What is added from now on is of the next segment.
    pub(super) fn next(&mut self) {
        self.part = SegmentProgress::default();
        self.who.next();
    }

    /// Adds what the segment has grown by, and takes its rows of processes and files out of it;
    /// nothing before its first sample is there.
    pub(super) fn advance(&mut self, part: &mut Recording) {
        if !self.part.is_begun && part.ticks.is_empty() && part.outcome.is_none() {
            return;
        }
        if !self.part.is_begun {
            self.begin(part, None);
        }
        self.grow(part);
    }

    /// Finds the segment's place in the whole if it is not known, and ends the series that the
    /// segment lacks.
    fn begin(&mut self, part: &Recording, known_offset_ns: Option<u64>) {
        let whole = &mut self.recording;
        if !self.is_begun {
            whole.facts.started_unix_ns = part.facts.started_unix_ns;
        }
        let last = self.thinning.last();
        let after_ns = part.facts.started_unix_ns.saturating_sub(whole.facts.started_unix_ns);
        let first = part.ticks.first().copied();
        let offset_ns = known_offset_ns.unwrap_or_else(|| offset_ns(after_ns, first, last));
        let first_ns = first.map_or(last.at_ns, |tick| tick.at_ns.saturating_add(offset_ns));
        if self.is_begun {
            whole.spans.extend(gap(last.at_ns, first_ns));
        }
        let first = self.thinning.seen();
        if !part.ticks.is_empty() {
            let at_once = |series: &&Series| series.steps.first().is_some_and(|it| it.sample == 0);
            let starting = part.series.iter().filter(at_once);
            let present: HashSet<&str> = starting.map(|series| &*series.schema.name).collect();
            let known = whole.series.iter_mut();
            for series in known.filter(|series| !present.contains(&*series.schema.name)) {
                series.push(self.thinning.place(first).unwrap_or(u32::MAX), None);
            }
        }
        self.is_begun = true;
        self.part =
            SegmentProgress { is_begun: true, first, offset_ns, ..SegmentProgress::default() };
    }

    fn grow(&mut self, part: &mut Recording) {
        let offset_ns = self.part.offset_ns;
        let moved = |ns: u64| ns.saturating_add(offset_ns);
        let whole = &mut self.recording;
        whole.facts = Facts { started_unix_ns: whole.facts.started_unix_ns, ..part.facts.clone() };
        for tick in &part.ticks[self.part.ticks..] {
            let tick = Tick { due_ns: moved(tick.due_ns), at_ns: moved(tick.at_ns) };
            self.thinning.take(tick, &mut whole.ticks);
        }
        for span in &part.spans[self.part.spans..] {
            if self.budget.has_room_for::<Span>(span.text.as_bytes(), "spans") {
                whole.spans.push(Span {
                    start_ns: moved(span.start_ns),
                    end_ns: moved(span.end_ns),
                    ..span.clone()
                });
            }
        }
        for task in &part.tasks[self.part.tasks..] {
            if self.budget.has_room_for::<Task>(task.comm.as_bytes(), "tasks") {
                whole.tasks.push(task.clone());
            }
        }
        self.part.ticks = part.ticks.len();
        self.part.spans = part.spans.len();
        self.part.tasks = part.tasks.len();
        self.grow_series(&part.series);
        self.who.grow(&mut part.who, offset_ns, &mut self.recording.who, &mut self.budget);
        self.recording.outcome = part.outcome.clone().map(|outcome| RecordingOutcome {
            ended_ns: moved(outcome.ended_ns),
            // The last run's own figure would be that of another length: of one run only, and
            // of all of it, however little of it the ring still holds.
            own_cpu_ns: own_cpu_ns(&self.recording),
            own_setup_ns: 0,
            ..outcome
        });
    }

    fn grow_series(&mut self, parts: &[Series]) {
        let whole = &mut self.recording.series;
        for part in parts.iter().skip(self.part.series.len()) {
            let next = whole.len();
            let index = *self.ids.entry(part.schema.name.clone()).or_insert(next);
            if index == next {
                let (id, schema) = (next as u32, part.schema.clone());
                whole.push(Series {
                    schema: Schema { id, ..schema },
                    steps: model::recording::Steps::new(),
                });
            }
            let is_twice = self.part.series.iter().any(|(it, _)| *it == Some(index));
            self.part.series.push(((!is_twice).then_some(index), 0));
        }
        for (part, (index, taken)) in parts.iter().zip(&mut self.part.series) {
            let Some(series) = index.map(|index| &mut whole[index]) else {
                continue;
            };
            for SeriesStep { sample, value } in part.steps.skip(*taken) {
                let sample = self.thinning.place(self.part.first + u64::from(sample));
                series.push(sample.unwrap_or(u32::MAX), value);
            }
            *taken = part.steps.len();
        }
    }
}

/// Where a segment begins that started `after_ns` after the whole by the clock of the day, and
/// whose first sample follows `last`. If the clock was set back between two runs, right after
/// `last`.
pub(super) fn offset_ns(after_ns: u64, first: Option<Tick>, last: Tick) -> u64 {
    let is_back = |first: Tick| {
        first.due_ns.saturating_add(after_ns) < last.due_ns
            || first.at_ns.saturating_add(after_ns) < last.at_ns
    };
    if first.is_some_and(is_back) { last.at_ns } else { after_ns }
}

/// The span of a long pause between the last sample of a segment and the first of the next.
pub(super) fn gap(last_ns: u64, first_ns: u64) -> Option<Span> {
    (first_ns.saturating_sub(last_ns) > GAP_NS).then(|| Span {
        kind: "gap".to_owned(),
        text: "nothing was recorded".to_owned(),
        start_ns: last_ns,
        end_ns: first_ns,
    })
}

/// What all runs together spent between the samples that are here.
pub(super) fn own_cpu_ns(recording: &Recording) -> u64 {
    let own = recording.series(OWN_CPU);
    let mut last: Option<i64> = None;
    let steps = own.into_iter().flat_map(|own| &own.steps);
    let spent = steps.filter_map(|step| {
        let before = std::mem::replace(&mut last, step.value)?;
        Some(step.value?.saturating_sub(before))
    });
    // Less than before: another run began. A damaged recording may have any numbers.
    spent.fold(0, |sum: u64, spent| sum.saturating_add(u64::try_from(spent).unwrap_or(0)))
}
