//! A recording that is kept in memory: the bytes of its file, read back at its end.
//!
//! It is the same [`Writer`] as for files, so both give the same recording.

use super::read_back::with_end;
use super::reader::read;
use super::writer::Writer;
use crate::Result;
use crate::registry::Row;
use crate::sink::RecordSink;
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Span, Task, Tick};

impl RecordSink for Writer<Vec<u8>> {
    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        Writer::sample(self, tick, schemas, row)
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        Writer::span(self, span)
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        Writer::tasks(self, tasks)
    }

    fn flush(&mut self) -> Result<()> {
        Writer::flush(self)
    }

    fn finish(mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        let ended = self.end(facts, outcome).map(|()| outcome.clone());
        let recording = read(&*self.into_sink())?;
        Ok(with_end(recording, ended, facts, outcome))
    }
}
