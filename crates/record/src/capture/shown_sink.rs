//! A sink that writes a recording and also keeps its last minutes in memory, so that a command
//! draws from the samples that it writes.
//!
//! What is written decides: only its failures end the recording.

use super::recent::RecentSink;
use crate::Result;
use crate::accesses::AccessBatch;
use crate::registry::Row;
use crate::sink::RecordSink;
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Span, Task, Tick, Who};

/// `written`, with the last minutes beside it.
#[derive(Debug)]
pub(super) struct ShownSink<S> {
    written: S,
    recent: RecentSink,
}

impl<S: RecordSink> ShownSink<S> {
    /// Keeps what is written to `written` from its start on.
    pub fn new(written: S, recent: RecentSink) -> Self {
        Self { written, recent }
    }
}

impl<S: RecordSink> RecordSink for ShownSink<S> {
    fn started(&mut self, facts: &Facts) {
        self.recent.started(facts);
        self.written.started(facts);
    }

    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.recent.sample(tick, schemas, row)?;
        self.written.sample(tick, schemas, row)
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        self.recent.span(span)?;
        self.written.span(span)
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        self.written.tasks(tasks)
    }

    fn who(&mut self, news: &Who) -> Result<()> {
        self.recent.who(news)?;
        self.written.who(news)
    }

    fn accesses(&mut self, batch: &AccessBatch) -> Result<u64> {
        self.written.accesses(batch)
    }

    fn flush(&mut self) -> Result<()> {
        self.written.flush()
    }

    fn loss(&self) -> Option<&'static str> {
        self.written.loss()
    }

    fn news(&mut self) -> Option<String> {
        self.written.news()
    }

    fn finish(self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        self.written.finish(facts, outcome)
    }

    fn discard(self) {
        self.written.discard();
    }
}
