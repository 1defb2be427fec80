//! The reading side: one pass over the chunks, values to changes.
//!
//! What is whole before the first bad chunk is kept; what was wrong is said in words. What is
//! read takes at most [`MAX_BYTES`] of memory. A recording with more values than fit is
//! thinned: every second sample goes, as often as needed, but never the first or the last
//! one. Counters stay right by that, only short peaks of levels are lost. Rows of processes and
//! files become longer instead. Spans and tasks that do not fit are left out, and the outcome is
//! read in any case.

mod budget;
mod thinning;
mod who;

use super::chunk::{self, ChunkKind, Chunks, FILE_HEADER_BYTES, Header, MAGIC};
use super::columns::{self, Base, DecodedRows};
use super::growths;
use super::identities::{self, DecodedFile, DecodedIdentities, DecodedProcess};
use crate::registry::{ABSENT, MAX_SERIES};
use crate::{Error, Result};
pub(super) use budget::Budget;
use model::duration::show_ns;
use model::recording::{Recording, Schema, Series, Span, Steps, Task, Tick};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
pub(super) use thinning::Thinning;
pub(crate) use thinning::bytes_of_values;
pub(crate) use who::bytes_of_who;
pub(super) use who::{WhoStore, bytes_of_rows};

/// The most memory that recordings take after reading, all of one command together: a day at
/// 10 Hz of a machine where 120 values change with each sample fits, and the program stays
/// below 512 MiB.
pub const MAX_BYTES: usize = 352 << 20;

/// The most changes of values that are decoded: nine days at 10 Hz and 120 changes each, some
/// ten seconds of decoding. Samples after them are left out.
pub const MAX_CHANGES: u64 = 1 << 30;

/// Memory is counted again after so many changes and samples.
const COUNT_EVERY: usize = 1 << 20;

/// And after this part of what fits.
const COUNT_SHARE: usize = 64;

/// Of the memory that a recording may take, rows of processes and files have one part of so many:
/// half a million, an hour of a desktop as it was recorded.
pub(super) const ROWS_SHARE: usize = 5;

/// Fewer samples are not thinned: the memory is not theirs then.
const MIN_SAMPLES: usize = 16;

/// What a reader takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of memory.
    pub bytes: usize,
    /// Changes of values that are decoded.
    pub changes: u64,
    /// Whether samples may go to make room. Not while a recording is followed: samples keep
    /// their numbers then, and too many end it.
    pub may_thin: bool,
    /// Rows of processes and files take one part of so many of the bytes.
    pub rows_share: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_BYTES, changes: MAX_CHANGES, may_thin: true, rows_share: ROWS_SHARE }
    }
}

/// Reads a recording; one that is cut or damaged opens with all that is whole, and says so
/// in [`Recording::damage`]. So does one that is more than a reader takes.
///
/// # Errors
/// [`crate::ErrorKind::NotARecording`] for another file or a newer major version.
pub fn read(source: impl Read) -> Result<Recording> {
    read_within(source, Limits::default())
}

/// As [`read`], within `limits`.
pub(super) fn read_within(source: impl Read, limits: Limits) -> Result<Recording> {
    let mut chunks = start(source)?;
    let mut reading = Reading::new(limits);
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
    let checked = chunk::FILE_HEADER.check(&header, "recording");
    checked.map_err(not_a_recording)?;
    Chunks::new(source).map_err(|error| failed(error.to_string()))
}

/// Whether a file starts as recordings do.
pub(super) fn starts_with_magic(file: &mut File) -> bool {
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).is_ok() && start == MAGIC
}

pub(super) fn not_a_recording(why: String) -> Error {
    Error::new(crate::ErrorKind::NotARecording, "read the recording", why)
}

fn failed(why: String) -> Error {
    Error::new(crate::ErrorKind::Failed, "read the recording", why)
}

/// What was read so far.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) recording: Recording,
    limits: Limits,
    base: Base,
    thinning: Thinning,
    /// Samples before the chunk that is decoded.
    before_chunk: u64,
    changes: u64,
    /// Changes and samples since memory was counted.
    uncounted: usize,
    /// Whether no more samples are taken.
    is_full: bool,
    budget: Budget,
    who: WhoStore,
    /// Processes and files that were read, kept or not.
    identities: (u64, u64),
    /// Rows that lie wholly outside are left out.
    rows_within_ns: (u64, u64),
    has_facts: bool,
}

impl Reading {
    /// Nothing yet.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            recording: Recording::default(),
            limits,
            base: Base::default(),
            thinning: Thinning::new(),
            before_chunk: 0,
            changes: 0,
            uncounted: 0,
            is_full: false,
            budget: Budget::new(limits.bytes),
            who: WhoStore::new(limits.bytes / limits.rows_share),
            identities: (0, 0),
            rows_within_ns: (0, u64::MAX),
            has_facts: false,
        }
    }

    /// Takes one whole chunk.
    pub(super) fn take(&mut self, header: &Header, raw: &[u8]) -> std::result::Result<(), String> {
        let Self { recording, budget, .. } = self;
        match header.kind {
            ChunkKind::Facts => {
                budget.take_facts(raw)?;
                recording.facts = parse(raw)?;
                self.has_facts = true;
            }
            ChunkKind::Schema => lines(raw, |line| self.schema(line))?,
            ChunkKind::Samples => self.samples(raw)?,
            ChunkKind::Row => self.row(raw)?,
            ChunkKind::Spans => lines(raw, |line| {
                if budget.has_room_for::<Span>(line, "spans") {
                    let mut span: Span = parse(line)?;
                    span.end_ns = span.end_ns.max(span.start_ns);
                    recording.spans.push(span);
                }
                Ok(())
            })?,
            ChunkKind::Tasks => lines(raw, |line| {
                if budget.has_room_for::<Task>(line, "tasks") {
                    recording.tasks.push(parse(line)?);
                }
                Ok(())
            })?,
            ChunkKind::Outcome => recording.outcome = Some(parse(raw)?),
            ChunkKind::Identities => identities::decode(raw, self)?,
            ChunkKind::Growths => self.growths(raw)?,
            // They are many, and of no use to what reads a recording whole.
            ChunkKind::Accesses | ChunkKind::Unknown(_) => {}
        }
        Ok(())
    }

    fn schema(&mut self, line: &[u8]) -> std::result::Result<(), String> {
        let schema: Schema = parse(line)?;
        let series = &mut self.recording.series;
        if schema.id as usize != series.len() {
            return Err("its series are out of order".to_owned());
        }
        // A series that is left out would move the columns after it.
        if series.len() >= MAX_SERIES || !self.budget.has_room_for::<Series>(line, "series") {
            return Err("it has more series than a reader takes".to_owned());
        }
        let steps = Steps::new();
        series.push(Series { schema, steps });
        Ok(())
    }

    fn samples(&mut self, raw: &[u8]) -> std::result::Result<(), String> {
        if self.is_full {
            return Ok(());
        }
        self.before_chunk = self.thinning.seen();
        let known = self.recording.series.len();
        let mut base = std::mem::take(&mut self.base);
        let taken = columns::decode(raw, known, &mut base, self);
        self.base = base;
        taken.and_then(|()| self.fit())
    }

    /// A row says again what is known, unless reading begins with it.
    fn row(&mut self, raw: &[u8]) -> std::result::Result<(), String> {
        if self.is_full {
            return Ok(());
        }
        let row = Base::decode(raw, self.recording.series.len())?;
        if self.recording.ticks.is_empty() {
            let (tick, values) = row.row();
            self.tick(tick)?;
            for (column, value) in values.iter().enumerate() {
                if *value != ABSENT {
                    self.step(column, 0, *value)?;
                }
            }
            self.base = row;
        } else if row != self.base {
            return Err("its row is not the one before it".to_owned());
        }
        Ok(())
    }

    /// Takes rows of processes and files, those that are asked for.
    fn growths(&mut self, raw: &[u8]) -> std::result::Result<(), String> {
        if self.is_full {
            return Ok(());
        }
        let mut news = growths::decode(raw)?;
        let (processes, files) = self.identities;
        let is_known = |process: u32| u64::from(process) < processes;
        if !news.rows.iter().all(|row| is_known(row.process))
            || !news
                .file_rows
                .iter()
                .all(|row| is_known(row.process) && u64::from(row.file) < files)
            || !news.samples.iter().all(|row| is_known(row.process))
            || !news.requests.iter().all(|row| is_known(row.process))
        {
            return Err("it names processes or files that are not there".to_owned());
        }
        let count =
            news.rows.len() + news.file_rows.len() + news.samples.len() + news.requests.len();
        self.changes += count as u64;
        self.uncounted += count;
        let (first_ns, last_ns) = self.rows_within_ns;
        let is_asked = |from_ns, to_ns| from_ns <= last_ns && to_ns >= first_ns;
        let process = |id: &mut u32| *id = self.who.ids(*id, 0).0;
        news.rows.retain(|row| is_asked(row.from_ns, row.to_ns));
        news.file_rows.retain(|row| is_asked(row.from_ns, row.to_ns));
        news.samples.retain(|row| is_asked(row.from_ns, row.to_ns));
        news.requests.retain(|row| is_asked(row.from_ns, row.to_ns));
        news.rows.iter_mut().for_each(|row| process(&mut row.process));
        news.samples.iter_mut().for_each(|row| process(&mut row.process));
        news.requests.iter_mut().for_each(|row| process(&mut row.process));
        for row in &mut news.file_rows {
            (row.process, row.file) = self.who.ids(row.process, row.file);
        }
        self.who.rows(&mut self.recording.who, news);
        self.fit()
    }

    /// Leaves out rows that end before or begin after.
    pub(super) fn set_rows_within(&mut self, first_ns: u64, last_ns: u64) {
        self.rows_within_ns = (first_ns, last_ns);
    }

    /// Makes the samples fit, as far as they may go.
    ///
    /// # Errors
    /// When they do not fit and may not go, in words.
    fn fit(&mut self) -> std::result::Result<(), String> {
        let has_all_changes = self.changes > self.limits.changes;
        let count_every = COUNT_EVERY.min(self.limits.bytes / COUNT_SHARE);
        if !has_all_changes && self.uncounted < count_every {
            return Ok(());
        }
        self.uncounted = 0;
        let bytes = self.budget.left().saturating_sub(bytes_of_rows(&self.recording.who));
        let is_large = |recording: &Recording| bytes_of_values(recording) > bytes;
        if !self.limits.may_thin && (has_all_changes || is_large(&self.recording)) {
            return Err("it has more values than a reader takes".to_owned());
        }
        self.is_full = has_all_changes;
        while self.recording.ticks.len() > MIN_SAMPLES && is_large(&self.recording) {
            self.thinning.halve(&mut self.recording);
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
        self.thinning.finish(&mut self.recording);
        let Recording { damage, who, .. } = &mut self.recording;
        damage.extend(self.who.finish(who));
        if self.is_full {
            let until = show_ns(self.thinning.last().at_ns as f64);
            damage
                .push(format!("the samples after {until} were left out: more than a reader takes"));
        }
        damage.extend(self.budget.left_out());
        if !self.has_facts {
            damage.push("nothing says what was watched, where and when".to_owned());
        }
        self.recording.spans.sort_by_key(|span| span.start_ns);
        self.recording
    }
}

impl DecodedRows for Reading {
    fn tick(&mut self, tick: Tick) -> std::result::Result<(), String> {
        self.thinning.take(tick, &mut self.recording.ticks);
        self.uncounted += 1;
        Ok(())
    }

    fn step(&mut self, column: usize, row: usize, value: i64) -> std::result::Result<(), String> {
        self.changes += 1;
        self.uncounted += 1;
        let place = self.thinning.place(self.before_chunk + row as u64);
        let sample = place.ok_or("it has too many samples")?;
        if let Some(series) = self.recording.series.get_mut(column) {
            series.push(sample, (value != ABSENT).then_some(value));
        }
        Ok(())
    }
}

impl DecodedIdentities for Reading {
    fn process(
        &mut self,
        number: u64,
        process: &DecodedProcess<'_>,
    ) -> std::result::Result<(), String> {
        next_of(&mut self.identities.0, number)?;
        let Recording { who, .. } = &mut self.recording;
        let bytes = process.text_bytes();
        let made = |id| process.with_id(id);
        if self.who.keep_process(who, &mut self.budget, bytes, made).is_none() {
            self.who.other_process(who);
        }
        Ok(())
    }

    fn file(&mut self, number: u64, file: &DecodedFile<'_>) -> std::result::Result<(), String> {
        next_of(&mut self.identities.1, number)?;
        let Recording { who, .. } = &mut self.recording;
        let made = |id| file.with_id(id);
        if self.who.keep_file(who, &mut self.budget, file.text_bytes(), made).is_none() {
            self.who.other_file(who);
        }
        Ok(())
    }
}

/// Counts an identity, whose number must be the next one.
fn next_of(count: &mut u64, number: u64) -> std::result::Result<(), String> {
    if number != *count {
        return Err("its processes or files are out of order".to_owned());
    }
    *count += 1;
    Ok(())
}

fn parse<T: DeserializeOwned>(raw: &[u8]) -> std::result::Result<T, String> {
    serde_json::from_slice(raw).map_err(|_| "its text makes no sense".to_owned())
}

/// Goes over JSON objects, one a line.
fn lines(
    raw: &[u8],
    mut take: impl FnMut(&[u8]) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    for line in raw.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            take(line)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Writer;
    use crate::{Registry, Row};
    use model::recording::{Facts, RecordingOutcome, Tick};

    const COLUMNS: u32 = 10;
    const SAMPLES: u64 = 20_000;

    /// Ten values that change at different rates, one of which comes and goes, with a mark and a
    /// thread for every hundredth sample.
    fn bytes() -> Vec<u8> {
        let mut registry = Registry::new();
        for column in 0..COLUMNS {
            let name = format!("s{column}");
            registry.id(&name, "count", model::recording::SeriesKind::Gauge, "x");
        }
        let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
        let mut row = Row::default();
        for number in 0..SAMPLES {
            for column in 0..COLUMNS {
                let value = number * number % 977 / (u64::from(column) + 1);
                row.set(column, value as i64);
            }
            if number % 31 < 9 {
                row.set(3, ABSENT);
            }
            let (due_ns, at_ns) = (number * 10, number * 10);
            let tick = Tick { due_ns, at_ns };
            writer.sample(tick, registry.schemas(), &row).unwrap();
            if number % 100 == 0 {
                let mark = Span {
                    kind: "mark".to_owned(),
                    text: "x".repeat(50),
                    start_ns: at_ns,
                    end_ns: at_ns,
                };
                writer.span(&mark).unwrap();
            }
        }
        writer.tasks(&vec![Task::default(); 300]).unwrap();
        writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap()
    }

    fn within(limits: Limits) -> Recording {
        read_within(&bytes()[..], limits).unwrap()
    }

    #[test]
    fn what_does_not_fit_is_thinned_and_every_kept_sample_is_right() {
        let whole = within(Limits::default());
        assert!(whole.damage.is_empty());
        let needed = bytes_of_values(&whole);
        for part in [1, 2, 3, 7, 20] {
            let bytes = needed / part + (40 << 10);
            let limits = Limits { bytes, ..Limits::default() };
            let thinned = within(limits);
            assert!(bytes_of_values(&thinned) <= bytes + bytes / 8, "part {part}");
            assert_eq!(thinned.ticks.first(), whole.ticks.first());
            assert_eq!(thinned.ticks.last(), whole.ticks.last());
            assert!(thinned.outcome.is_some());
            let is_said = thinned.damage.iter().any(|text| text.contains("1 of "));
            assert_eq!(is_said, thinned.ticks.len() < whole.ticks.len());
            assert_eq!(is_said, part > 1, "{:?}", thinned.damage);
            for (sample, tick) in (0..).zip(&thinned.ticks) {
                let original = (tick.at_ns / 10) as u32;
                for (thinned, whole) in thinned.series.iter().zip(&whole.series) {
                    assert_eq!(thinned.at(sample), whole.at(original), "{original}");
                }
            }
        }
    }

    #[test]
    fn spans_and_tasks_without_room_are_left_out_and_the_outcome_is_read() {
        let bytes = 100 << 10;
        let few = within(Limits { bytes, ..Limits::default() });
        assert!(few.spans.len() < 200 && !few.spans.is_empty());
        let said = few.damage.join("; ");
        assert!(said.contains("tasks were left out"), "{said}");
        assert!(few.outcome.is_some());
    }

    #[test]
    fn the_number_of_changes_is_bounded_and_the_outcome_is_read() {
        let changes = 10_000;
        let some = within(Limits { changes, ..Limits::default() });
        let steps: usize = some.series.iter().map(|series| series.steps.len()).sum();
        assert!((10_000..12_000).contains(&steps), "{steps}");
        assert!(some.outcome.is_some() && some.tasks.len() == 300);
        assert!(some.damage[0].contains("samples after"), "{:?}", some.damage);
    }

    #[test]
    fn what_is_followed_is_never_thinned() {
        let some = within(Limits { bytes: 200 << 10, may_thin: false, ..Limits::default() });
        assert!(some.damage[0].contains("more values"), "{:?}", some.damage);
        assert_eq!(some.ticks[1].at_ns, 10);
    }

    #[test]
    fn facts_that_grow_when_they_are_parsed_are_refused() {
        let facts = Facts { swaps: vec![String::new(); 200_000], ..Facts::default() };
        let writer = Writer::new(Vec::new(), &facts).unwrap();
        let file = writer.finish(&facts, &RecordingOutcome::default()).unwrap();
        assert!(read(&file[..]).unwrap().damage.is_empty());
        let limits = Limits { bytes: 32 << 20, ..Limits::default() };
        let refused = read_within(&file[..], limits).unwrap();
        assert!(refused.damage[0].contains("facts"), "{:?}", refused.damage);
    }
}
