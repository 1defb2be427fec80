//! Reading a ring: segments put together to one recording, the last one as far as it is written.
//!
//! Series are joined by their names, times count from the first segment's start. What a
//! segment does not have is absent while it lasts.

use super::place::{Segment, segments};
use crate::file::output::{at, read_back};
use crate::file::{MAX_SAMPLES, MAX_STEPS};
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Series, Span, Step, Tick};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use sys::directory::Directory;

/// The recorder's own processor time: it begins anew with each run.
const OWN_CPU: &str = "own.cpu_ns";

/// A pause between two samples that is told as a gap: twice the longest period there is.
const GAP_NS: u64 = 2_000_000_000;

/// Reads a ring: all its segments as one recording, times counted from the first one's
/// start, series joined by their names. The facts are those of the newest segment. A pause
/// between two segments is a span of kind `gap`; of more than a reader takes, the newest is
/// kept.
///
/// # Errors
/// [`Kind::NotARecording`] for a directory without a segment; others when it cannot be read.
pub fn read_ring(path: &Path) -> Result<Recording> {
    read_closed(&opened(path)?, None)
}

/// The directory of a ring, to be read.
pub(super) fn opened(path: &Path) -> Result<Directory> {
    Directory::open(path).map_err(|error| at("open", path, &error))
}

/// As [`read_ring`]; the segment `own` is read by the descriptor that wrote it.
pub(super) fn read_closed(
    directory: &Directory,
    own: Option<(OsString, File)>,
) -> Result<Recording> {
    let mut all = segments(directory)?;
    let mut own_files = Vec::new();
    if let Some((name, file)) = own {
        all.retain(|segment| segment.name != name);
        own_files.push((name, file));
    }
    let (parts, mut damage) = newest_with(directory, &all, own_files);
    if parts.is_empty() {
        let why = damage.pop();
        return Err(nothing_in(directory.path(), why));
    }
    let mut joined = Joined::default();
    for part in parts {
        joined.add(&part);
    }
    let mut recording = joined.recording;
    recording.damage = damage;
    Ok(recording)
}

/// A directory without a recording that can be read.
pub(super) fn nothing_in(directory: &Path, why: Option<String>) -> Error {
    let why = why.unwrap_or_else(|| "no recording is in it".to_owned());
    Error::new(Kind::NotARecording, "read the recordings in", why).at(directory)
}

/// The recordings of as many of the newest segments as a reader takes, oldest first, and what is
/// wrong with them.
pub(super) fn newest(
    directory: &Directory,
    segments: &[Segment],
) -> (VecDeque<Recording>, Vec<String>) {
    newest_with(directory, segments, Vec::new())
}

/// As [`newest`], after segments whose files are open.
fn newest_with(
    directory: &Directory,
    segments: &[Segment],
    open: Vec<(OsString, File)>,
) -> (VecDeque<Recording>, Vec<String>) {
    let mut damage = Vec::new();
    let mut parts = VecDeque::new();
    let (mut steps, mut samples) = (0, 0);
    let open = open.into_iter().map(|(name, file)| (name, Some(file)));
    let closed = segments
        .iter()
        .rev()
        .map(|segment| (segment.name.clone(), None));
    for (name, file) in open.chain(closed) {
        let file = match file {
            Some(file) => Ok(file),
            None => directory.open_regular(&name).map_err(Error::from),
        };
        let path = directory.path().join(&name);
        let recording = match file.and_then(read_back) {
            Ok(recording) => recording,
            Err(error) => {
                damage.push(error.at(&path).to_string());
                continue;
            }
        };
        samples += recording.ticks.len();
        let series = recording.series.iter();
        steps += series.map(|series| series.steps.len()).sum::<usize>();
        if steps > MAX_STEPS || samples > MAX_SAMPLES {
            let path = path.display();
            damage.push(format!("what is older than {path} was left out"));
            break;
        }
        let name = name.to_string_lossy();
        let texts = recording.damage.iter();
        damage.extend(texts.map(|text| format!("{name}: {text}")));
        parts.push_front(recording);
    }
    (parts, damage)
}

/// Segments, put together in order of their time.
#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) recording: Recording,
    /// Changes of values in it.
    pub(super) steps: usize,
    ids: HashMap<String, usize>,
    is_begun: bool,
    part: Part,
}

/// How much of the segment that is added is there already.
#[derive(Debug, Default)]
struct Part {
    is_begun: bool,
    /// The number of its first sample.
    first: u32,
    offset_ns: u64,
    ticks: usize,
    spans: usize,
    tasks: usize,
    /// Of each of its series which one it goes on with, and how many changes are there; none
    /// for the second of one name in a segment, which only a fault makes.
    series: Vec<(Option<usize>, usize)>,
}

impl Joined {
    /// Adds a whole segment.
    pub(super) fn add(&mut self, part: &Recording) {
        self.next();
        self.begin(part);
        self.grow(part);
    }

    /// What is added from now on is of the next segment.
    pub(super) fn next(&mut self) {
        self.part = Part::default();
    }

    /// Adds what the segment has grown by; nothing before its first sample is there.
    pub(super) fn advance(&mut self, part: &Recording) {
        if !self.part.is_begun && part.ticks.is_empty() && part.outcome.is_none() {
            return;
        }
        if !self.part.is_begun {
            self.begin(part);
        }
        self.grow(part);
    }

    /// Where the segment lies in the whole, and what it lacks.
    fn begin(&mut self, part: &Recording) {
        let whole = &mut self.recording;
        if !self.is_begun {
            whole.facts.started_unix_ns = part.facts.started_unix_ns;
        }
        let last = whole.ticks.last().copied().unwrap_or_default();
        let started_unix_ns = whole.facts.started_unix_ns;
        let mut offset_ns = part.facts.started_unix_ns.saturating_sub(started_unix_ns);
        let is_back = |first: &Tick| {
            first.due_ns.saturating_add(offset_ns) < last.due_ns
                || first.at_ns.saturating_add(offset_ns) < last.at_ns
        };
        if part.ticks.first().is_some_and(is_back) {
            // The clock was set back between two runs.
            offset_ns = last.at_ns;
        }
        let first = part.ticks.first();
        let first_ns = first.map_or(last.at_ns, |tick| tick.at_ns.saturating_add(offset_ns));
        if self.is_begun && first_ns - last.at_ns > GAP_NS {
            whole.spans.push(Span {
                kind: "gap".to_owned(),
                text: "nothing was recorded".to_owned(),
                start_ns: last.at_ns,
                end_ns: first_ns,
            });
        }
        let first = whole.ticks.len() as u32;
        if !part.ticks.is_empty() {
            let at_once = |series: &&Series| series.steps.first().is_some_and(|it| it.sample == 0);
            let there = part.series.iter().filter(at_once);
            let there: HashSet<&str> = there.map(|series| &*series.schema.name).collect();
            let known = whole.series.iter_mut();
            for series in known.filter(|series| !there.contains(&*series.schema.name)) {
                series.push(first, None);
            }
        }
        self.is_begun = true;
        self.part = Part {
            is_begun: true,
            first,
            offset_ns,
            ..Part::default()
        };
    }

    fn grow(&mut self, part: &Recording) {
        let offset_ns = self.part.offset_ns;
        let moved = |ns: u64| ns.saturating_add(offset_ns);
        let whole = &mut self.recording;
        whole.facts = Facts {
            started_unix_ns: whole.facts.started_unix_ns,
            ..part.facts.clone()
        };
        let ticks = part.ticks[self.part.ticks..].iter();
        whole.ticks.extend(ticks.map(|tick| Tick {
            due_ns: moved(tick.due_ns),
            at_ns: moved(tick.at_ns),
        }));
        let spans = part.spans[self.part.spans..].iter();
        whole.spans.extend(spans.map(|span| Span {
            start_ns: moved(span.start_ns),
            end_ns: moved(span.end_ns),
            ..span.clone()
        }));
        let tasks = &part.tasks[self.part.tasks..];
        whole.tasks.extend_from_slice(tasks);
        self.part.ticks = part.ticks.len();
        self.part.spans = part.spans.len();
        self.part.tasks = part.tasks.len();
        self.grow_series(&part.series);
        self.recording.outcome = part.outcome.clone().map(|outcome| Outcome {
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
                    steps: Vec::new(),
                });
            }
            let is_twice = self.part.series.iter().any(|(it, _)| *it == Some(index));
            self.part.series.push(((!is_twice).then_some(index), 0));
        }
        for (part, (index, taken)) in parts.iter().zip(&mut self.part.series) {
            let Some(series) = index.map(|index| &mut whole[index]) else {
                continue;
            };
            let before = series.steps.len();
            for Step { sample, value } in &part.steps[*taken..] {
                series.push(self.part.first + sample, *value);
            }
            *taken = part.steps.len();
            self.steps += series.steps.len() - before;
        }
    }
}

/// What all runs together spent between the samples that are here.
fn own_cpu_ns(recording: &Recording) -> u64 {
    let own = recording.series(OWN_CPU);
    let steps = own.map_or(&[][..], |own| &own.steps);
    let pairs = steps.windows(2);
    let spent = pairs.filter_map(|pair| Some(pair[1].value?.saturating_sub(pair[0].value?)));
    // Less than before: another run began.
    spent.map(|spent| u64::try_from(spent).unwrap_or(0)).sum()
}
