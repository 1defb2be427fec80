//! The writing side: keeps rows in memory until a chunk is worth writing, then writes the whole
//! chunk in one call.
//!
//! Between chunks a sample is a copy into memory; nothing is allocated once the buffers have grown.
//! After a failed write nothing more is written, so what was written stays a recording with at most
//! one cut chunk at its end.

use super::accesses;
use super::chunk::{self, ChunkKind, HEADER_BYTES, Header, MAX_RAW_BYTES};
use super::columns::{self, Base, MAX_CELLS, MAX_ROWS, PendingRows, Scratch};
use super::pending_who::PendingWho;
use crate::accesses::AccessBatch;
use crate::registry::Row;
use crate::{Error, Result};
use model::recording::{Facts, RecordingOutcome, Schema, Span, Task, Tick, Who};
use serde::Serialize;
use std::fs::File;
use std::io::{Seek, Write};

/// The most time that rows are held: what a crash may lose.
const HOLD_NS: u64 = 10_000_000_000;

/// Rows of JSON are cut into chunks of about this size, so that none nears the limit.
const TEXT_CHUNK_BYTES: usize = 1 << 20;

/// More spans than a person makes in ten seconds: written before the rows are due.
const MAX_HELD_SPANS: usize = 256;

/// A reader may begin at every so many chunks of samples, five minutes at the usual rate: a
/// row takes as much room as one chunk, and reading so many takes less time than a person sees.
const ROW_EVERY_CHUNKS: u64 = 32;

/// A recording's file belongs to its owner only.
pub(super) const FILE_MODE: u32 = 0o600;

/// What zstd is asked for. Measured on 200 rows of 1,300 columns while a compile ran; see
/// docs/recording.md.
const LEVEL: i32 = 3;

/// ... for long JSON, which is rare: the threads and series of a minute take a seventh less by it.
const TEXT_LEVEL: i32 = 9;
const LONG_TEXT_BYTES: usize = 16 << 10;

/// Writes one recording to a sink, chunk by chunk.
pub struct Writer<W: Write> {
    sink: W,
    bytes: u64,
    /// Why the sink refused; it may end in a part of a chunk.
    refusal: Option<String>,
    /// Rows were lost, so later ones cannot be decoded.
    is_over: bool,
    /// Facts to be written before the next samples.
    facts: Option<Facts>,
    held: PendingRows,
    base: Base,
    /// The most time that rows are held.
    hold_ns: u64,
    /// Chunks of samples since the start or the last row of its own.
    chunks_since_row: u64,
    scratch: Scratch,
    raw: Vec<u8>,
    packed: Vec<u8>,
    chunk: Vec<u8>,
    pack: zstd::bulk::Compressor<'static>,
    schemas_written: usize,
    schemas: Vec<Schema>,
    spans: Vec<Span>,
    who: PendingWho,
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer")
            .field("bytes", &self.bytes)
            .field("held", &self.held.ticks.len())
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a recording: the header and the facts.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn new(sink: W, facts: &Facts) -> Result<Self> {
        let pack = zstd::bulk::Compressor::new(LEVEL);
        let mut writer = Self {
            sink,
            bytes: 0,
            refusal: None,
            is_over: false,
            facts: None,
            held: PendingRows::default(),
            base: Base::default(),
            hold_ns: HOLD_NS,
            chunks_since_row: 0,
            scratch: Scratch::default(),
            raw: Vec::new(),
            packed: Vec::new(),
            chunk: Vec::new(),
            pack: pack.map_err(|error| refused(&error))?,
            schemas_written: 0,
            schemas: Vec::new(),
            spans: Vec::new(),
            who: PendingWho::default(),
        };
        let header = chunk::FILE_HEADER.to_bytes();
        writer.chunk.extend_from_slice(&header);
        writer.hand_over()?;
        writer.object(ChunkKind::Facts, facts, 0)?;
        Ok(writer)
    }

    /// Holds rows no longer than this, for the price of more chunks: a crash loses no more.
    #[must_use]
    pub(super) fn holding(self, hold_ns: u64) -> Self {
        Self { hold_ns, ..self }
    }

    /// These facts are right from now on. Written with what is held.
    pub(super) fn correct(&mut self, facts: &Facts) {
        self.facts = Some(facts.clone());
    }

    /// Adds a sample; `schemas` are all series known so far. Written when enough are held.
    ///
    /// Times never run backwards in a recording: an instant before the last sample or
    /// before its own due time is noted as that. Values without a schema are left out.
    ///
    /// # Errors
    /// When the sink refuses; the recording stays readable up to the last whole chunk.
    pub fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.check_open()?;
        let with_schema = row.values().len().min(schemas.len());
        let values = &row.values()[..with_schema];
        if self.held.cells_with(values.len()) > MAX_CELLS {
            self.flush()?;
        }
        if schemas.len() > self.schemas.len() {
            self.schemas.extend_from_slice(&schemas[self.schemas.len()..]);
        }
        let tick = self.base.forward(&self.held, tick);
        self.held.push(tick, values);
        let first_ns = self.held.ticks.first().map_or(0, |tick| tick.at_ns);
        if self.held.ticks.len() >= MAX_ROWS || tick.at_ns - first_ns >= self.hold_ns {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds a named instant or interval.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn span(&mut self, span: &Span) -> Result<()> {
        self.check_open()?;
        self.spans.push(span.clone());
        if self.spans.len() >= MAX_HELD_SPANS {
            self.write_spans()?;
        }
        Ok(())
    }

    /// Adds rows of delay accounting.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        let last_ns = self.last_ns();
        self.lines(ChunkKind::Tasks, tasks, 0, last_ns)
    }

    /// Adds what processes used since the last call, with what is named for the first time.
    /// Written with the samples.
    ///
    /// # Errors
    /// As [`crate::RecordSink::who`].
    pub fn who(&mut self, news: &Who) -> Result<()> {
        self.check_open()?;
        self.who.take(news)?;
        if self.who.is_full() {
            self.write_who()?;
        }
        Ok(())
    }

    /// Adds a batch of accesses, written at once, and gives its bytes; its interval does not
    /// overlap an earlier one.
    ///
    /// # Errors
    /// As [`Writer::sample`]; [`crate::ErrorKind::Usage`] for more than
    /// [`AccessBatch::MAX_EVENTS`] events of a table.
    pub fn accesses(&mut self, batch: &AccessBatch) -> Result<u64> {
        self.check_open()?;
        if batch.requests.len().max(batch.pages.len()) > AccessBatch::MAX_EVENTS {
            let why = "more events than a batch may have";
            return Err(Error::new(crate::ErrorKind::Usage, "write the recording", why));
        }
        self.raw.clear();
        accesses::encode(batch, &mut self.raw);
        let before = self.bytes;
        self.write_raw(ChunkKind::Accesses, batch.from_ns, batch.to_ns)?;
        Ok(self.bytes - before)
    }

    /// Writes what is still held, so that a reader sees it.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn flush(&mut self) -> Result<()> {
        if let Some(why) = &self.refusal {
            return Err(failed(why.clone()));
        }
        if let Some(facts) = self.facts.take() {
            self.object(ChunkKind::Facts, &facts, 0)?;
        }
        if self.schemas_written < self.schemas.len() {
            let schemas = std::mem::take(&mut self.schemas);
            let last_ns = self.last_ns();
            let new = &schemas[self.schemas_written..];
            let written = self.lines(ChunkKind::Schema, new, last_ns, last_ns);
            self.schemas_written = schemas.len();
            self.schemas = schemas;
            written?;
        }
        // A follower that sees a sample has seen what was used until then.
        self.write_who()?;
        if let (Some(first), Some(last)) = (self.held.ticks.first(), self.held.ticks.last()) {
            let (first_ns, last_ns) = (first.at_ns, last.at_ns);
            // Chunks that are held for less time are smaller.
            if self.chunks_since_row >= ROW_EVERY_CHUNKS * HOLD_NS / self.hold_ns {
                self.write_row()?;
            }
            self.chunks_since_row += 1;
            self.raw.clear();
            columns::encode(&self.held, &mut self.base, &mut self.scratch, &mut self.raw);
            self.held.clear();
            self.write_raw(ChunkKind::Samples, first_ns, last_ns)?;
        }
        self.write_spans()?;
        self.sink.flush().map_err(|error| refused(&error))
    }

    /// Ends the recording with final facts (sights may have closed) and its outcome, and
    /// gives the sink back.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn finish(mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<W> {
        self.end(facts, outcome)?;
        Ok(self.sink)
    }

    /// As [`Writer::finish`]; the sink stays usable if it refuses.
    pub(super) fn end(&mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<()> {
        self.flush()?;
        self.object(ChunkKind::Facts, facts, outcome.ended_ns)?;
        self.object(ChunkKind::Outcome, outcome, outcome.ended_ns)?;
        self.sink.flush().map_err(|error| refused(&error))
    }

    /// Bytes given to the sink so far, in whole chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The rows that are held: how many, and when the first was taken.
    pub(super) fn held(&self) -> (u64, Option<u64>) {
        let first = self.held.ticks.first();
        (self.held.ticks.len() as u64, first.map(|tick| tick.at_ns))
    }

    /// How long the first of the rows that are held has been.
    pub(super) fn held_ns(&self) -> u64 {
        let first = self.held.ticks.first();
        first.map_or(0, |first| self.last_ns().saturating_sub(first.at_ns))
    }

    /// The sink, to ask about it.
    pub(super) fn sink(&self) -> &W {
        &self.sink
    }

    /// The sink, to read back what it holds.
    pub(super) fn into_sink(self) -> W {
        self.sink
    }

    /// Whether rows may still be added.
    fn check_open(&self) -> Result<()> {
        match &self.refusal {
            Some(why) => Err(failed(why.clone())),
            None if self.is_over => Err(failed("rows before these were lost")),
            None => Ok(()),
        }
    }

    /// When the last sample was taken.
    fn last_ns(&self) -> u64 {
        let held = self.held.ticks.last().map(|tick| tick.at_ns);
        held.unwrap_or_else(|| self.base.at_ns())
    }

    /// Writes the row that the next chunk counts from.
    fn write_row(&mut self) -> Result<()> {
        self.raw.clear();
        self.base.encode(&mut self.raw);
        let at_ns = self.base.at_ns();
        self.chunks_since_row = 0;
        self.write_raw(ChunkKind::Row, at_ns, at_ns)
    }

    fn write_spans(&mut self) -> Result<()> {
        let spans = std::mem::take(&mut self.spans);
        let first_ns = spans.iter().map(|span| span.start_ns).min();
        let last_ns = spans.iter().map(|span| span.end_ns).max();
        let written =
            self.lines(ChunkKind::Spans, &spans, first_ns.unwrap_or(0), last_ns.unwrap_or(0));
        self.spans = spans;
        self.spans.clear();
        written
    }

    fn write_who(&mut self) -> Result<()> {
        let mut who = std::mem::take(&mut self.who);
        let written = self.write_who_of(&mut who);
        self.who = who;
        written
    }

    fn write_who_of(&mut self, who: &mut PendingWho) -> Result<()> {
        let last_ns = self.last_ns();
        self.raw.clear();
        while who.next_identities(&mut self.raw) {
            self.write_raw(ChunkKind::Identities, last_ns, last_ns)?;
            self.raw.clear();
        }
        for mut batch in who.take_growths() {
            while let Some((first_ns, last_ns)) = batch.next(&mut self.raw) {
                self.write_raw(ChunkKind::Growths, first_ns, last_ns)?;
                self.raw.clear();
            }
        }
        Ok(())
    }

    /// Writes one chunk with one JSON object.
    fn object(&mut self, kind: ChunkKind, object: &impl Serialize, at_ns: u64) -> Result<()> {
        self.raw.clear();
        serde_json::to_writer(&mut self.raw, object).map_err(|error| failed(error.to_string()))?;
        self.write_raw(kind, at_ns, at_ns)
    }

    /// Writes JSON objects, one a line, in as many chunks as they need.
    fn lines<T: Serialize>(
        &mut self,
        kind: ChunkKind,
        objects: &[T],
        first_ns: u64,
        last_ns: u64,
    ) -> Result<()> {
        self.raw.clear();
        for object in objects {
            serde_json::to_writer(&mut self.raw, object)
                .map_err(|error| failed(error.to_string()))?;
            self.raw.push(b'\n');
            if self.raw.len() >= TEXT_CHUNK_BYTES {
                self.write_raw(kind, first_ns, last_ns)?;
                self.raw.clear();
            }
        }
        if self.raw.is_empty() {
            return Ok(());
        }
        self.write_raw(kind, first_ns, last_ns)
    }

    /// Packs `self.raw` into one chunk and hands it to the sink.
    fn write_raw(&mut self, kind: ChunkKind, first_ns: u64, last_ns: u64) -> Result<()> {
        if self.raw.len() > MAX_RAW_BYTES {
            return Err(Error::new(
                crate::ErrorKind::Usage,
                "write the recording",
                format!("one entry has {} bytes, more than a reader takes", self.raw.len()),
            ));
        }
        self.chunk.clear();
        self.chunk.resize(HEADER_BYTES, 0);
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        let is_long_text = kind.is_text() && self.raw.len() >= LONG_TEXT_BYTES;
        let level = if is_long_text { TEXT_LEVEL } else { LEVEL };
        self.pack.set_compression_level(level).map_err(|error| refused(&error))?;
        let packed = self.pack.compress_to_buffer(&self.raw, &mut self.packed);
        packed.map_err(|error| refused(&error))?;
        let is_zstd = self.packed.len() < self.raw.len();
        let payload = if is_zstd { &self.packed } else { &self.raw };
        self.chunk.extend_from_slice(payload);
        let header = Header {
            kind,
            is_zstd,
            payload_bytes: payload.len(),
            raw_bytes: self.raw.len(),
            first_ns,
            last_ns,
        };
        let sealed = header.seal(&mut self.chunk);
        sealed.map_err(|damage| failed(damage.to_string()))?;
        self.hand_over()
    }

    /// Gives `self.chunk` to the sink, whole or never again.
    fn hand_over(&mut self) -> Result<()> {
        if let Some(why) = &self.refusal {
            return Err(failed(why.clone()));
        }
        if let Err(error) = self.sink.write_all(&self.chunk) {
            let error = refused(&error);
            self.refusal = Some(error.source.to_string());
            return Err(error);
        }
        self.bytes += self.chunk.len() as u64;
        Ok(())
    }
}

impl Writer<File> {
    /// Ends the recording, and returns the outcome as it was written. If the disk is full, the end
    /// is written behind the last whole chunk, and the outcome says that rows are missing.
    pub(super) fn end_or_cut(
        &mut self,
        facts: &Facts,
        outcome: &RecordingOutcome,
    ) -> Result<RecordingOutcome> {
        let Err(error) = self.end(facts, outcome) else {
            return Ok(outcome.clone());
        };
        if self.cut_to_whole().is_err() {
            return Err(error);
        }
        let mut outcome = outcome.clone();
        outcome.stopped_early.get_or_insert(error.source.to_string());
        self.end(facts, &outcome).map(|()| outcome)
    }

    /// After a failed write: cuts the file behind its last whole chunk, which also frees
    /// what a full disk needs for the end of the recording. What was held is lost.
    ///
    /// # Errors
    /// When the file cannot be cut; nothing can be written then.
    pub(super) fn cut_to_whole(&mut self) -> std::io::Result<()> {
        self.sink.set_len(self.bytes)?;
        self.sink.seek(std::io::SeekFrom::Start(self.bytes))?;
        self.held.clear();
        self.spans.clear();
        self.who.clear();
        self.schemas_written = self.schemas.len();
        self.is_over = true;
        self.refusal = None;
        Ok(())
    }
}

fn refused(error: &std::io::Error) -> Error {
    let kind = match (sys::ErrorKind::of(error), error.kind()) {
        (_, std::io::ErrorKind::FileTooLarge) => crate::ErrorKind::FileTooLarge,
        (sys::ErrorKind::NoSpace, _) => crate::ErrorKind::NoSpace,
        _ => crate::ErrorKind::Failed,
    };
    Error::new(kind, "write the recording", sys::plain_reason(error))
}

fn failed(why: impl Into<String>) -> Error {
    Error::new(crate::ErrorKind::Failed, "write the recording", why.into())
}
