//! Where the samples go, and what is given back when even that failed.
//!
//! [`crate::file::Output`] writes and reads back; here stands only which kind of output was
//! asked for, and that a recording always has its facts and its outcome: the command's exit
//! status must not depend on a disk.

use super::Watch;
use crate::file::Output;
use crate::registry::Row;
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Span, Task, Tick};

/// An open recording.
#[derive(Debug)]
pub(super) struct Sink(Output);

impl Sink {
    /// Starts the recording that `watch` asks for.
    pub fn create(watch: &Watch, facts: &Facts) -> Result<Self> {
        let output = match (&watch.output, watch.keep_ns) {
            (None, None) => Output::memory(facts),
            (None, Some(_)) => {
                let why = "a ring needs a directory";
                return Err(Error::new(Kind::Usage, "keep the last hours", why));
            }
            (Some(path), None) => Output::create(path, watch.force, facts),
            (Some(path), Some(keep_ns)) => Output::ring(path, keep_ns, watch.keep_bytes, facts),
        };
        output.map(Self)
    }

    /// As [`Output::sample`].
    pub fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.0.sample(tick, schemas, row)
    }

    /// As [`Output::span`].
    pub fn span(&mut self, span: &Span) -> Result<()> {
        self.0.span(span)
    }

    /// As [`Output::tasks`].
    pub fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        self.0.tasks(tasks)
    }

    /// Ends the recording and reads it back. What cannot be read is missing from it, and
    /// its damage says so.
    pub fn finish(self, facts: Facts, outcome: Outcome) -> Recording {
        match self.0.finish(&facts, &outcome) {
            Ok(recording) => recording,
            Err(error) => Recording {
                damage: vec![error.to_string()],
                outcome: Some(outcome),
                facts,
                ..Recording::default()
            },
        }
    }
}
