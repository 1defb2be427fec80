//! A recording for other programs and other people: CSV with one row per sample, JSON with
//! everything, a recording again, Perfetto's trace and OpenMetrics. docs/recording.md describes all
//! of them.
//!
//! Each form is an [`Exporter`]. It writes while it goes through the recording, so the text takes
//! no memory beside it.

mod openmetrics;
mod perfetto;
mod who_json;

pub use openmetrics::OpenMetrics;
pub use perfetto::Perfetto;

use crate::file::Writer;
use crate::{ABSENT, Error, ErrorKind, Result, Row};
use model::recording::{
    Facts, Recording, RecordingOutcome, Schema, Series, SeriesKind, Span, StepIter, Steps, Task,
    Tick, WallClock, Who,
};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::iter::Peekable;
use who_json::WhoJson;

/// What the JSON calls itself; the number grows when a field changes its meaning or goes.
pub const JSON_SCHEMA: &str = "terrace.recording/1";

/// A form in which a recording is written for others.
pub trait Exporter: std::fmt::Debug + Sync {
    /// Writes the whole recording, and flushes.
    ///
    /// # Errors
    /// When the sink refuses, and when the recording has no such form.
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()>;

    /// The same form with these columns only; `None` if it has no columns.
    fn with_columns(&self, _columns: Vec<String>) -> Option<Box<dyn Exporter>> {
        None
    }
}

/// One line per sample: its time in seconds, its lateness in milliseconds, its time of day as ISO
/// 8601 has it, then the value of each series, empty if it is absent. The first line names the
/// columns.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

impl Exporter for Csv {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        finish(csv(recording, columns(recording).collect(), sink), sink)
    }

    fn with_columns(&self, columns: Vec<String>) -> Option<Box<dyn Exporter>> {
        Some(Box::new(CsvOfColumns { columns }))
    }
}

/// As [`Csv`], with these columns in this order: each is a name, with `*` for any text.
#[derive(Clone, Debug)]
struct CsvOfColumns {
    columns: Vec<String>,
}

impl Exporter for CsvOfColumns {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        let mut chosen: Vec<CsvColumn<'_>> = Vec::new();
        for pattern in &self.columns {
            let before = chosen.len();
            let is_chosen = |column: &CsvColumn<'_>| matches_pattern(column.name(), pattern);
            chosen.extend(columns(recording).filter(is_chosen));
            if chosen.len() == before {
                let why = format!("no column is called {pattern}");
                return Err(Error::new(ErrorKind::Usage, "export the recording", why));
            }
        }
        finish(csv(recording, chosen, sink), sink)
    }
}

/// All columns, in order.
fn columns(recording: &Recording) -> impl Iterator<Item = CsvColumn<'_>> {
    let times = [CsvColumn::Seconds, CsvColumn::Lateness, CsvColumn::TimeOfDay];
    times.into_iter().chain(recording.series.iter().map(of_series))
}

/// What a column of CSV has.
enum CsvColumn<'a> {
    Seconds,
    Lateness,
    TimeOfDay,
    Value(&'a str, Box<Cursor<'a>>),
}

fn of_series(series: &Series) -> CsvColumn<'_> {
    CsvColumn::Value(&series.schema.name, Box::new(Cursor::new(series)))
}

impl CsvColumn<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Seconds => "time_s",
            Self::Lateness => "late_ms",
            Self::TimeOfDay => "time",
            Self::Value(name, _) => name,
        }
    }

    fn cell(&mut self, sample: u32, tick: Tick, clock: &WallClock) -> String {
        match self {
            Self::Seconds => decimal(tick.at_ns, 9),
            Self::Lateness => decimal(tick.at_ns.saturating_sub(tick.due_ns), 6),
            Self::TimeOfDay => clock.iso(tick.at_ns.into()),
            Self::Value(_, cursor) => {
                cursor.value(sample).map_or_else(String::new, |value| value.to_string())
            }
        }
    }
}

/// Whether a name is `pattern`, in which `*` stands for any text.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let Some(left) = name.strip_prefix(start) else {
        return false;
    };
    let mut ends = (0..=left.len()).filter(|at| left.is_char_boundary(*at));
    ends.any(|at| matches_pattern(&left[at..], rest))
}

fn csv(
    recording: &Recording,
    mut columns: Vec<CsvColumn<'_>>,
    sink: &mut dyn Write,
) -> io::Result<()> {
    let clock = WallClock::of(recording);
    let mut line = String::new();
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        push_quoted(&mut line, column.name());
    }
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    for (sample, tick) in (0..).zip(&recording.ticks) {
        line.clear();
        for (at, column) in columns.iter_mut().enumerate() {
            if at > 0 {
                line.push(',');
            }
            line += &column.cell(sample, *tick, &clock);
        }
        line.push('\n');
        sink.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// One JSON object with the whole recording; values as their changes.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Exporter for Json {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        let written = serde_json::to_writer(&mut *sink, &WholeJson::of(recording));
        finish(written.map_err(io::Error::from).and_then(|()| sink.write_all(b"\n")), sink)
    }
}

/// A recording again, which `explain` takes like the first one: what was replaced in it stays
/// replaced. One that was cut is cut again, at its last sample. A damaged one is refused, because
/// its copy would look whole.
#[derive(Clone, Copy, Debug)]
pub struct Trec;

impl Exporter for Trec {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        copy(recording, sink)
    }
}

fn copy(recording: &Recording, sink: &mut dyn Write) -> Result<()> {
    if let Some(damage) = recording.damage.first() {
        let why = format!("it is damaged: {damage}");
        return Err(Error::new(ErrorKind::Failed, "copy the recording", why));
    }
    let schemas: Vec<Schema> = (0..)
        .zip(&recording.series)
        .map(|(id, series)| Schema { id, ..series.schema.clone() })
        .collect();
    let mut cursors: Vec<Cursor<'_>> = recording.series.iter().map(Cursor::new).collect();
    let mut writer = Writer::new(sink, &recording.facts)?;
    let mut row = Row::default();
    let mut who = WhoCursor::new(&recording.who);
    for (sample, tick) in (0..).zip(&recording.ticks) {
        writer.who(&who.until(tick.at_ns))?;
        for (id, cursor) in (0..).zip(&mut cursors) {
            row.set(id, cursor.value(sample).unwrap_or(ABSENT));
        }
        writer.sample(*tick, &schemas, &row)?;
    }
    writer.who(&who.until(u64::MAX))?;
    for span in &recording.spans {
        writer.span(span)?;
    }
    writer.tasks(&recording.tasks)?;
    match &recording.outcome {
        Some(outcome) => writer.finish(&recording.facts, outcome).map(drop),
        None => writer.flush(),
    }
}

/// A series that is walked through in order of its samples.
struct Cursor<'a> {
    rest: Peekable<StepIter<'a>>,
    value: Option<i64>,
}

impl<'a> Cursor<'a> {
    fn new(series: &'a Series) -> Self {
        Self { rest: series.steps.iter().peekable(), value: None }
    }

    /// The value at `sample`, which never goes back.
    fn value(&mut self, sample: u32) -> Option<i64> {
        while let Some(step) = self.rest.next_if(|step| step.sample <= sample) {
            self.value = step.value;
        }
        self.value
    }
}

/// Rows of processes and files that are walked through in order of their end.
struct WhoCursor<'a> {
    who: &'a Who,
    has_given_names: bool,
    rows: usize,
    file_rows: usize,
    samples: usize,
    requests: usize,
}

impl<'a> WhoCursor<'a> {
    fn new(who: &'a Who) -> Self {
        Self { who, has_given_names: false, rows: 0, file_rows: 0, samples: 0, requests: 0 }
    }

    /// The rows that end until `at_ns` and were not given; the first time all identities.
    fn until(&mut self, at_ns: u64) -> Who {
        let rows = self.who.rows[self.rows..].iter().take_while(|row| row.to_ns <= at_ns);
        let left = self.who.file_rows[self.file_rows..].iter();
        let file_rows = left.take_while(|row| row.to_ns <= at_ns);
        let left = self.who.samples[self.samples..].iter();
        let samples = left.take_while(|row| row.to_ns <= at_ns);
        let left = self.who.requests[self.requests..].iter();
        let requests = left.take_while(|row| row.to_ns <= at_ns);
        let mut news = Who {
            rows: rows.copied().collect(),
            file_rows: file_rows.copied().collect(),
            samples: samples.copied().collect(),
            requests: requests.copied().collect(),
            ..Who::default()
        };
        self.rows += news.rows.len();
        self.file_rows += news.file_rows.len();
        self.samples += news.samples.len();
        self.requests += news.requests.len();
        if !std::mem::replace(&mut self.has_given_names, true) {
            news.processes.clone_from(&self.who.processes);
            news.files.clone_from(&self.who.files);
        }
        news
    }
}

/// `number` over ten to the `places`.
fn decimal(number: u64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let width = places as usize;
    format!("{}.{:0width$}", number / unit, number % unit)
}

/// Appends one field of CSV, quoted where it has to be (RFC 4180).
fn push_quoted(line: &mut String, field: &str) {
    if !field.contains([',', '"', '\n', '\r']) {
        line.push_str(field);
        return;
    }
    line.push('"');
    line.push_str(&field.replace('"', "\"\""));
    line.push('"');
}

/// A recording as the JSON has it; values as their changes.
#[derive(Serialize)]
struct WholeJson<'a> {
    schema: &'static str,
    facts: &'a Facts,
    samples: &'a [Tick],
    series: Vec<SeriesJson<'a>>,
    spans: &'a [Span],
    tasks: &'a [Task],
    who: WhoJson<'a>,
    outcome: &'a Option<RecordingOutcome>,
    damage: &'a [String],
}

#[derive(Serialize)]
struct SeriesJson<'a> {
    name: &'a str,
    unit: &'a str,
    kind: SeriesKind,
    source: &'a str,
    refresh_ns: Option<u64>,
    #[serde(serialize_with = "write_steps")]
    steps: &'a Steps,
}

impl<'a> WholeJson<'a> {
    fn of(recording: &'a Recording) -> Self {
        let series = recording.series.iter().map(|Series { schema, steps }| SeriesJson {
            name: &schema.name,
            unit: &schema.unit,
            kind: schema.kind,
            source: &schema.source,
            refresh_ns: schema.refresh_ns,
            steps,
        });
        Self {
            schema: JSON_SCHEMA,
            facts: &recording.facts,
            samples: &recording.ticks,
            series: series.collect(),
            spans: &recording.spans,
            tasks: &recording.tasks,
            who: WhoJson(&recording.who),
            outcome: &recording.outcome,
            damage: &recording.damage,
        }
    }
}

/// `[sample, value]` each: a third of the text that an object with names would take.
fn write_steps<S: Serializer>(steps: &&Steps, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(steps.iter().map(|step| (step.sample, step.value)))
}

/// Flushes what was written, or says why it could not be.
fn finish(written: io::Result<()>, sink: &mut dyn Write) -> Result<()> {
    written.and_then(|()| sink.flush()).map_err(|error| {
        let reason = sys::plain_reason(&error);
        Error::new(ErrorKind::Failed, "export the recording", reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{
        FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, RequestRow, SampleRow,
        SampledPart,
    };

    fn recording() -> Recording {
        let tick = |due_ns, at_ns| Tick { due_ns, at_ns };
        let series = |name: &str, values: [Option<i64>; 3]| {
            let mut series = Series {
                schema: Schema { name: name.to_owned(), ..Schema::default() },
                steps: Steps::new(),
            };
            for (sample, value) in (0..).zip(values) {
                series.push(sample, value);
            }
            series
        };
        Recording {
            ticks: vec![
                tick(0, 5),
                tick(100_000_000, 100_250_000),
                tick(2_000_000_000, 2_000_000_001),
            ],
            series: vec![
                series("a", [None, Some(i64::MAX), Some(i64::MAX)]),
                series("b,\"c", [Some(-1), None, Some(0)]),
            ],
            ..Recording::default()
        }
    }

    #[test]
    fn csv_has_a_row_per_sample_and_nothing_for_absent() {
        let mut text = Vec::new();
        Csv.export(&recording(), &mut text).unwrap();
        let expected = "time_s,late_ms,time,a,\"b,\"\"c\"\n\
            0.000000005,0.000005,1970-01-01T00:00:00.000+00:00,,-1\n\
            0.100250000,0.250000,1970-01-01T00:00:00.100+00:00,9223372036854775807,\n\
            2.000000001,0.000001,1970-01-01T00:00:02.000+00:00,9223372036854775807,0\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn csv_has_the_columns_that_were_asked_for() {
        let export = |columns: &[&str]| {
            let columns = columns.iter().map(|name| (*name).to_owned()).collect();
            let mut text = Vec::new();
            let exporter = Csv.with_columns(columns).unwrap();
            exporter.export(&recording(), &mut text).map(|()| String::from_utf8(text).unwrap())
        };
        assert_eq!(export(&["b*", "time_s"]).unwrap().lines().nth(1), Some("-1,0.000000005"));
        assert_eq!(export(&["time*"]).unwrap().lines().next(), Some("time_s,time"));
        let refused = export(&["a", "nothing.*"]).unwrap_err();
        assert!(refused.to_string().contains("no column is called nothing.*"), "{refused}");
        assert!(Json.with_columns(Vec::new()).is_none());
        for (name, pattern, is_it) in [
            ("disk.vda.reads", "disk.*.reads", true),
            ("disk.vda.reads", "*", true),
            ("disk.vda.reads_merged", "disk.*.reads", false),
            ("disk.vda.reads", "disk", false),
            ("", "*", true),
        ] {
            assert_eq!(matches_pattern(name, pattern), is_it, "{name} {pattern}");
        }
    }

    #[test]
    fn a_recording_comes_back_as_it_was_and_a_damaged_one_is_refused() {
        for outcome in [None, Some(RecordingOutcome::default())] {
            let mut whole = recording();
            whole.outcome = outcome;
            whole.spans = vec![Span {
                kind: "mark".to_owned(),
                text: "half".to_owned(),
                start_ns: 1,
                end_ns: 2,
            }];
            whole.tasks = vec![Task::default()];
            let mut bytes = Vec::new();
            Trec.export(&whole, &mut bytes).unwrap();
            let again = crate::file::read(&bytes[..]).unwrap();
            assert_eq!(again.series[1].schema.id, 1);
            whole.series[1].schema.id = 1;
            assert_eq!(again, whole);
            whole.damage.push("a byte".to_owned());
            let refused = Trec.export(&whole, &mut io::sink()).unwrap_err();
            assert!(refused.to_string().contains("damaged: a byte"), "{refused}");
        }
    }

    #[test]
    fn json_names_the_figures_of_processes_that_are_not_0() {
        let mut row = ProcessRow { to_ns: 9, memory_bytes: 4096, ..ProcessRow::default() };
        row.figures[ProcessFigure::ReadBytes as usize] = 7;
        let mut samples = SampleRow::default();
        samples.samples[SampledPart::KernelCopying as usize] = 4;
        let mut recording = recording();
        recording.who = Who {
            processes: vec![Process { name: "cc1".to_owned(), ..Process::default() }],
            rows: vec![row],
            files: vec![FileIdentity::default()],
            file_rows: vec![FileRow { evicted_bytes: 5, ..FileRow::default() }],
            samples: vec![samples],
            requests: vec![RequestRow { device: (254, 0), requests: 3, ..RequestRow::default() }],
        };
        let mut text = Vec::new();
        Json.export(&recording, &mut text).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let who = &value["who"];
        assert_eq!(who["figures"][4], serde_json::json!({"name": "read_bytes", "unit": "bytes"}));
        assert_eq!(who["processes"][0]["name"], "cc1");
        assert_eq!(who["rows"][0]["figures"], serde_json::json!({"read_bytes": 7}));
        assert_eq!(who["rows"][0]["memory_bytes"], 4096);
        assert!(who["files"][0]["path"].is_null());
        assert_eq!(who["file_rows"][0]["evicted_bytes"], 5);
        assert_eq!(who["samples"][0]["samples"], serde_json::json!({"kernel.copying": 4}));
        assert_eq!(who["requests"][0]["requests"], 3);
    }

    #[test]
    fn json_has_everything_and_null_for_absent() {
        let mut text = Vec::new();
        Json.export(&recording(), &mut text).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["schema"], JSON_SCHEMA);
        assert_eq!(value["samples"][1]["at_ns"], 100_250_000);
        let steps = serde_json::json!([[0, -1], [1, null], [2, 0]]);
        assert_eq!(value["series"][1]["steps"], steps);
        assert_eq!(value["series"][0]["steps"][0][1], i64::MAX);
        assert!(value["outcome"].is_null() && value["facts"].is_object());
        for list in ["spans", "tasks", "damage"] {
            assert_eq!(value[list], serde_json::json!([]), "{list}");
        }
    }
}
