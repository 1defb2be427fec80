//! The reading side: one pass over the chunks, values to steps.
//!
//! What is whole before the first bad chunk is kept; what was wrong is said in words. A
//! hostile file can fill memory up to the limits named here and no further, and is never
//! worth a panic.

use super::chunk::{self, Chunks, FILE_HEADER_BYTES, Header, Kind};
use super::columns::{self, Base, Sink};
use crate::registry::{ABSENT, MAX_SERIES};
use crate::{Error, Result};
use model::recording::{Recording, Schema, Series, Span, Step, Tick};
use serde::de::DeserializeOwned;
use std::io::{BufReader, Read};
use std::path::Path;

/// The most changes of values, 1.5 GB in memory: sixteen hours at 10 Hz of a machine where
/// a hundred values change all the time.
pub const MAX_STEPS: usize = 64 << 20;

/// The most samples: 46 hours at 100 Hz.
pub const MAX_SAMPLES: usize = 16 << 20;

/// The most spans; nobody reads more.
pub const MAX_SPANS: usize = 1 << 20;

/// The most tasks: a build that forks a thousand times a second for a quarter of an hour.
/// The recorder sums tasks up long before.
pub const MAX_TASKS: usize = 1 << 20;

/// The most bytes of JSON in one recording; a million tasks have about as many.
pub const MAX_TEXT_BYTES: usize = 512 << 20;

/// Reads a recording; one that is cut or damaged opens with all that is whole, and says so
/// in [`Recording::damage`].
///
/// # Errors
/// [`crate::Kind::NotARecording`] for another file or a newer major version.
pub fn read(source: impl Read) -> Result<Recording> {
    read_within(source, MAX_STEPS)
}

/// As [`read`], with at most `max_steps` changes of values.
fn read_within(source: impl Read, max_steps: usize) -> Result<Recording> {
    let mut chunks = start(source)?;
    let mut reading = Reading::new(max_steps);
    loop {
        let offset = chunks.offset;
        let taken = match chunks.next() {
            Ok(None) => break,
            Ok(Some((header, raw))) => reading.take(&header, raw),
            Err(why) => Err(why),
        };
        if let Err(why) = taken {
            reading.damaged(offset, &why);
            break;
        }
    }
    Ok(reading.finish())
}

/// The chunks of a recording, once its header is right.
pub(super) fn start<R: Read>(mut source: R) -> Result<Chunks<R>> {
    let mut header = [0; FILE_HEADER_BYTES];
    let length = chunk::fill(&mut source, &mut header).map_err(failed)?;
    if length < FILE_HEADER_BYTES {
        let why = match length {
            0 => "it is empty".to_owned(),
            _ => format!("it has only {length} bytes"),
        };
        return Err(not_a_recording(why));
    }
    chunk::check_file_header(&header).map_err(not_a_recording)?;
    Chunks::new(source).map_err(|error| failed(error.to_string()))
}

/// Reads the recording at `path`: a file, or a directory that is a ring of them.
///
/// # Errors
/// As [`read`], and when it cannot be opened.
pub fn open(path: &Path) -> Result<Recording> {
    // Looked at before it is opened, which would wait for ever on a pipe.
    let about = path.metadata();
    let about = about.map_err(|error| Error::io("open", path, error))?;
    if about.is_dir() {
        return super::read_ring(path);
    }
    if !about.is_file() {
        return Err(not_a_recording("it is no regular file".to_owned()).at(path));
    }
    let file =
        sys::file::open_input(path).map_err(|error| Error::io("open", path, error.source))?;
    read(BufReader::new(file)).map_err(|error| error.at(path))
}

fn not_a_recording(why: String) -> Error {
    Error::new(crate::Kind::NotARecording, "read the recording", why)
}

fn failed(why: String) -> Error {
    Error::new(crate::Kind::Failed, "read the recording", why)
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) recording: Recording,
    base: Base,
    steps_left: usize,
    text_bytes: usize,
    has_facts: bool,
}

impl Reading {
    /// Nothing yet; at most `max_steps` changes of values.
    pub(super) fn new(max_steps: usize) -> Self {
        Self {
            steps_left: max_steps,
            ..Self::default()
        }
    }

    /// Takes one whole chunk.
    pub(super) fn take(&mut self, header: &Header, raw: &[u8]) -> std::result::Result<(), String> {
        if !matches!(header.kind, Kind::Samples | Kind::Row | Kind::Unknown(_)) {
            self.text_bytes += raw.len();
            if self.text_bytes > MAX_TEXT_BYTES {
                return Err(format!("more than {MAX_TEXT_BYTES} bytes of text"));
            }
        }
        let recording = &mut self.recording;
        match header.kind {
            Kind::Facts => {
                recording.facts = parse(raw)?;
                self.has_facts = true;
            }
            Kind::Schema => lines(raw, |schema: Schema| self.schema(schema))?,
            Kind::Samples => self.samples(raw)?,
            Kind::Row => self.row(raw)?,
            Kind::Spans => lines(raw, |mut span: Span| {
                span.end_ns = span.end_ns.max(span.start_ns);
                keep(&mut recording.spans, span, MAX_SPANS, "spans")
            })?,
            Kind::Tasks => lines(raw, |task| {
                keep(&mut recording.tasks, task, MAX_TASKS, "tasks")
            })?,
            Kind::Outcome => recording.outcome = Some(parse(raw)?),
            Kind::Unknown(_) => {}
        }
        Ok(())
    }

    fn schema(&mut self, schema: Schema) -> std::result::Result<(), String> {
        let series = &mut self.recording.series;
        if schema.id as usize != series.len() {
            return Err("its series are out of order".to_owned());
        }
        let steps = Vec::new();
        keep(series, Series { schema, steps }, MAX_SERIES, "series")
    }

    fn samples(&mut self, raw: &[u8]) -> std::result::Result<(), String> {
        let known = self.recording.series.len();
        let mut base = std::mem::take(&mut self.base);
        let taken = columns::decode(raw, known, &mut base, &mut self.rows());
        self.base = base;
        taken
    }

    /// Where rows go that come now.
    fn rows(&mut self) -> Rows<'_> {
        Rows {
            first: self.recording.ticks.len(),
            ticks: &mut self.recording.ticks,
            series: &mut self.recording.series,
            steps_left: &mut self.steps_left,
        }
    }

    /// A row says again what is known, unless reading begins with it.
    fn row(&mut self, raw: &[u8]) -> std::result::Result<(), String> {
        let row = Base::decode(raw, self.recording.series.len())?;
        if self.recording.ticks.is_empty() {
            let (tick, values) = row.row();
            let mut rows = self.rows();
            rows.tick(tick)?;
            for (column, value) in values.iter().enumerate() {
                if *value != ABSENT {
                    rows.step(column, 0, *value)?;
                }
            }
            self.base = row;
        } else if row != self.base {
            return Err("its row is not the one before it".to_owned());
        }
        Ok(())
    }

    /// Notes that the chunk at `offset` and all that follows it cannot be used.
    pub(super) fn damaged(&mut self, offset: u64, why: &str) {
        let text =
            format!("the chunk at byte {offset} is damaged: {why}; it and what follows is lost");
        self.recording.damage.push(text);
    }

    pub(super) fn finish(mut self) -> Recording {
        if !self.has_facts {
            let text = "nothing says what was watched, where and when";
            self.recording.damage.push(text.to_owned());
        }
        self.recording.spans.sort_by_key(|span| span.start_ns);
        self.recording
    }
}

/// Where the rows of one chunk go.
struct Rows<'a> {
    /// The number of the chunk's first sample.
    first: usize,
    ticks: &'a mut Vec<Tick>,
    series: &'a mut [Series],
    steps_left: &'a mut usize,
}

impl Sink for Rows<'_> {
    fn tick(&mut self, tick: Tick) -> std::result::Result<(), String> {
        keep(self.ticks, tick, MAX_SAMPLES, "samples")
    }

    fn step(&mut self, column: usize, row: usize, value: i64) -> std::result::Result<(), String> {
        let Some(steps_left) = self.steps_left.checked_sub(1) else {
            return Err("it has more changes of values than a reader takes".to_owned());
        };
        *self.steps_left = steps_left;
        // Below MAX_SAMPLES, so it fits.
        let sample = (self.first + row) as u32;
        let value = (value != ABSENT).then_some(value);
        if let Some(series) = self.series.get_mut(column) {
            series.steps.push(Step { sample, value });
        }
        Ok(())
    }
}

fn keep<T>(
    list: &mut Vec<T>,
    item: T,
    limit: usize,
    what: &str,
) -> std::result::Result<(), String> {
    if list.len() >= limit {
        return Err(format!("more than {limit} {what}"));
    }
    list.push(item);
    Ok(())
}

fn parse<T: DeserializeOwned>(raw: &[u8]) -> std::result::Result<T, String> {
    serde_json::from_slice(raw).map_err(|_| "its text makes no sense".to_owned())
}

/// Reads JSON objects, one a line.
fn lines<T: DeserializeOwned>(
    raw: &[u8],
    mut take: impl FnMut(T) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    for line in raw.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            take(parse(line)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Writer;
    use crate::{Registry, Row};
    use model::recording::{Facts, Outcome};

    #[test]
    fn the_number_of_changes_is_bounded() {
        let mut registry = Registry::new();
        for column in 0..10 {
            let name = format!("s{column}");
            registry.id(&name, "count", model::recording::Kind::Gauge, "x");
        }
        let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
        let mut row = Row::default();
        for number in 0..500 {
            for column in 0..10 {
                row.set(column, number);
            }
            writer
                .sample(Tick::default(), registry.schemas(), &row)
                .unwrap();
        }
        let file = writer
            .finish(&Facts::default(), &Outcome::default())
            .unwrap();
        let steps = |limit| {
            let recording = read_within(&file[..], limit).unwrap();
            let lists = recording.series.iter().map(|series| series.steps.len());
            (lists.sum::<usize>(), recording.damage.len())
        };
        assert_eq!(steps(5000), (5000, 0));
        assert_eq!(steps(4999), (4999, 1));
        assert_eq!(steps(0), (0, 1));
    }
}
