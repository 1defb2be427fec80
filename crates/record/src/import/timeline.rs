//! A recording that grows report by report: growths and levels of an interval in, counters
//! and gauges out.

use crate::file::bytes_of_values;
use crate::registry::MAX_SERIES;
use model::duration::SECOND_NS;
use model::recording::{
    Facts, Recording, RecordingOutcome, Schema, Series, SeriesKind, SourceState, Span, Tick,
};
use std::collections::HashMap;
use std::time::Duration;

/// Sights that no report of another tool opens.
const CLOSED: [&str; 6] = [
    "delay_accounting",
    "exits",
    "events.sched",
    "events.block",
    "events.vmscan",
    "events.writeback",
];

/// The most reports: twelve days of one a second.
const MAX_REPORTS: usize = 1 << 20;

/// The most memory that values take.
const MAX_VALUE_BYTES: usize = 96 << 20;

/// Memory is counted again after so many values.
const COUNT_EVERY: usize = 1 << 20;

/// A longer name is not that of a device: its values are left out.
const MAX_NAME_BYTES: usize = 255;

/// What a tool calls a figure in its versions, what it is called here, and what it says.
pub type Figure = (&'static [&'static str], &'static str, FigureKind);

/// What a figure says of its report: unit, and what one of the tool's is in it.
#[derive(Clone, Copy, Debug)]
pub enum FigureKind {
    /// How much a counter grew.
    Growth(&'static str, f64),
    /// How much a counter grew in each second.
    Rate(&'static str, f64),
    /// Where a level stood at the end.
    Level(&'static str, f64),
    /// For which share of the time a clock ran, and what is the whole of it: 100 for per cent.
    Share(f64),
}

/// When the reports of a text end: by their time stamps, else one interval after the other. The
/// first one is an average since the machine's start and is left out.
pub struct ReportClock {
    interval_ns: u64,
    count: u64,
    first_s: Option<u64>,
}

impl ReportClock {
    /// Without time stamps a report is `interval` long, else a second.
    pub fn new(interval: Option<Duration>) -> Self {
        let interval = interval.unwrap_or(Duration::from_secs(1));
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Self { interval_ns, count: 0, first_s: None }
    }

    /// Begins a report with this time stamp; whether it is taken.
    pub fn report(&mut self, timeline: &mut Timeline, stamp_s: Option<u64>) -> bool {
        if self.count == 0 {
            self.first_s = stamp_s;
            let started_ns = stamp_s.unwrap_or(0).saturating_mul(SECOND_NS);
            timeline.facts().started_unix_ns = started_ns;
        }
        let at_ns = match (stamp_s, self.first_s) {
            (Some(now), Some(first)) => now.saturating_sub(first).saturating_mul(SECOND_NS),
            _ => self.count.saturating_mul(self.interval_ns),
        };
        self.count += 1;
        self.count > 1 && timeline.report(at_ns)
    }
}

/// A recording while it is made.
pub struct Timeline {
    recording: Recording,
    ids: HashMap<String, usize>,
    /// The exact sum of each counter: a small growth is not lost to rounding.
    sums: Vec<f64>,
    source: String,
    /// Values since memory was counted.
    uncounted: usize,
    /// It has more than is taken in.
    is_full: bool,
}

impl Timeline {
    /// An empty one, of text that `source` wrote: `vmstat`.
    pub fn new(source: &str) -> Self {
        let closed = |name: &str| {
            let why = format!("it was imported from {source}, which does not tell it");
            (name.to_owned(), SourceState::closed(why, None))
        };
        let facts = Facts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            page_bytes: 4096,
            sights: CLOSED.map(closed).into_iter().collect(),
            ..Facts::default()
        };
        let recording = Recording { facts, ticks: vec![Tick::default()], ..Recording::default() };
        Self {
            recording,
            ids: HashMap::new(),
            sums: Vec::new(),
            source: source.to_owned(),
            uncounted: 0,
            is_full: false,
        }
    }

    /// The facts, to add what the text says of the machine.
    pub fn facts(&mut self) -> &mut Facts {
        &mut self.recording.facts
    }

    /// Begins the report that ended at `at_ns` after the start. False where it is not later
    /// than the last one, which leaves it out, or there are too many, which ends in an error.
    pub fn report(&mut self, at_ns: u64) -> bool {
        let last = self.recording.ticks.last().map_or(0, |tick| tick.at_ns);
        if self.uncounted >= COUNT_EVERY {
            self.uncounted = 0;
            self.is_full |= bytes_of_values(&self.recording) > MAX_VALUE_BYTES;
        }
        self.is_full |= self.recording.ticks.len() > MAX_REPORTS;
        if at_ns <= last || self.is_full {
            return false;
        }
        let due_ns = at_ns;
        self.recording.ticks.push(Tick { due_ns, at_ns });
        true
    }

    /// How long the report that was begun last covers.
    pub fn interval_ns(&self) -> u64 {
        match self.recording.ticks.as_slice() {
            [.., before, last] => last.at_ns - before.at_ns,
            _ => 0,
        }
    }

    /// Takes those of `figures` that the report has; `prefix` stands before their names here.
    pub fn take(&mut self, prefix: &str, figures: &[Figure], value: impl Fn(&str) -> Option<f64>) {
        for (theirs, ours, kind) in figures {
            let Some(value) = theirs.iter().find_map(|name| value(name)) else {
                continue;
            };
            let name = format!("{prefix}{ours}");
            match *kind {
                FigureKind::Growth(unit, scale) => self.grew(&name, unit, value * scale),
                FigureKind::Rate(unit, scale) => self.ran_at(&name, unit, value * scale),
                FigureKind::Level(unit, scale) => self.stood_at(&name, unit, value * scale),
                FigureKind::Share(whole) => self.ran_for(&name, value / whole),
            }
        }
    }

    /// A counter grew by so much in this report.
    pub fn grew(&mut self, name: &str, unit: &str, by: f64) {
        let Some(index) = self.index(name, unit, SeriesKind::Counter) else {
            return;
        };
        let by = if by.is_finite() { by.max(0.0) } else { 0.0 };
        let now = self.now();
        self.uncounted += 1;
        self.sums[index] += by;
        let sum = self.sums[index].round() as i64;
        let series = &mut self.recording.series[index];
        if series.steps.is_empty() {
            series.push(now.saturating_sub(1), Some(0));
        }
        series.push(now, Some(sum));
    }

    /// A counter grew at this rate, in units a second, during this report.
    pub fn ran_at(&mut self, name: &str, unit: &str, per_second: f64) {
        let seconds = self.interval_ns() as f64 / 1e9;
        self.grew(name, unit, per_second * seconds);
    }

    /// A clock ran for this share, 0 to 1, of this report.
    pub fn ran_for(&mut self, name: &str, share: f64) {
        let ns = self.interval_ns() as f64;
        self.grew(name, "ns", share * ns);
    }

    /// A level stood here at the end of this report.
    pub fn stood_at(&mut self, name: &str, unit: &str, value: f64) {
        let now = self.now();
        if let Some(index) = self.index(name, unit, SeriesKind::Gauge) {
            self.uncounted += 1;
            let value = value.is_finite().then_some(value.round() as i64);
            self.recording.series[index].push(now, value);
        }
    }

    /// The recording.
    ///
    /// # Errors
    /// When there was no report, or too much.
    pub fn finish(mut self) -> Result<Recording, String> {
        if self.is_full {
            return Err("it has more reports or values than are taken in".to_owned());
        }
        let ticks = &self.recording.ticks;
        let Some(ended_ns) = ticks.last().map(|tick| tick.at_ns).filter(|at| *at > 0) else {
            return Err(format!("{} wrote no report with an interval here", self.source));
        };
        let mean_ns = ended_ns / (ticks.len() as u64 - 1);
        self.recording.facts.rate_hz = (1_000_000_000 / mean_ns.max(1)).max(1) as u32;
        self.recording.spans.push(Span {
            kind: "imported".to_owned(),
            text: format!("from {}: averages over {:.1} s", self.source, mean_ns as f64 / 1e9),
            start_ns: 0,
            end_ns: ended_ns,
        });
        self.recording.outcome = Some(RecordingOutcome { ended_ns, ..RecordingOutcome::default() });
        Ok(self.recording)
    }

    fn now(&self) -> u32 {
        (self.recording.ticks.len() - 1) as u32
    }

    fn index(&mut self, name: &str, unit: &str, kind: SeriesKind) -> Option<usize> {
        if let Some(index) = self.ids.get(name) {
            return Some(*index);
        }
        let index = self.recording.series.len();
        if index >= MAX_SERIES || name.len() > MAX_NAME_BYTES {
            return None;
        }
        self.recording.series.push(Series {
            schema: Schema {
                id: index as u32,
                name: name.to_owned(),
                unit: unit.to_owned(),
                kind,
                source: self.source.clone(),
                refresh_ns: None,
            },
            steps: model::recording::Steps::new(),
        });
        self.sums.push(0.0);
        self.ids.insert(name.to_owned(), index);
        Some(index)
    }
}
