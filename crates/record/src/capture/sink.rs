//! Where the samples go, and what is given back when even that failed.
//!
//! [`crate::file::Output`] writes and reads back, [`super::recent`] keeps the last minutes; here
//! stands only which of them was asked for, and that a recording always has its facts and its
//! outcome: the command's exit status must not depend on a disk.

use super::Watch;
use super::recent::Shared;
use crate::file::Output;
use crate::registry::Row;
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Span, Task, Tick};

/// An open recording.
#[derive(Debug)]
pub(super) enum Sink {
    /// That is written, and read back at its end.
    Kept(Box<Output>),
    /// That is looked at while it is made, and forgotten.
    Recent(Shared),
}

impl Sink {
    /// Starts the recording that `watch` asks for, or begins with `recent`.
    pub fn create(watch: &Watch, recent: Option<Shared>, facts: &Facts) -> Result<Self> {
        if let Some(recent) = recent {
            recent.lock().begin(facts);
            return Ok(Self::Recent(recent));
        }
        let output = match (&watch.output, watch.keep_ns) {
            (None, None) => Output::memory(facts),
            (None, Some(_)) => {
                let why = "a ring needs a directory";
                return Err(Error::new(Kind::Usage, "keep the last hours", why));
            }
            (Some(path), None) => Output::create(path, watch.force, facts),
            (Some(path), Some(keep_ns)) => Output::ring(path, keep_ns, watch.keep_bytes, facts),
        };
        output.map(|output| Self::Kept(Box::new(output)))
    }

    /// As [`Output::sample`].
    pub fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        match self {
            Self::Kept(output) => output.sample(tick, schemas, row),
            Self::Recent(recent) => {
                recent.lock().sample(tick, schemas, row);
                Ok(())
            }
        }
    }

    /// As [`Output::span`].
    pub fn span(&mut self, span: &Span) -> Result<()> {
        match self {
            Self::Kept(output) => output.span(span),
            Self::Recent(recent) => {
                recent.lock().span(span);
                Ok(())
            }
        }
    }

    /// As [`Output::tasks`]; of the last minutes nobody asks for them.
    pub fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        match self {
            Self::Kept(output) => output.tasks(tasks),
            Self::Recent(_) => Ok(()),
        }
    }

    /// As [`Output::loss`].
    pub fn loss(&self) -> Option<&'static str> {
        match self {
            Self::Kept(output) => output.loss(),
            Self::Recent(_) => None,
        }
    }

    /// As [`Output::news`].
    pub fn news(&mut self) -> Option<String> {
        match self {
            Self::Kept(output) => output.news(),
            Self::Recent(_) => None,
        }
    }

    /// As [`Output::discard`].
    pub fn discard(self) {
        if let Self::Kept(output) = self {
            output.discard();
        }
    }

    /// Ends the recording and reads it back. What cannot be read is missing from it, and
    /// its damage says so; the last minutes stay with whoever looks at them.
    pub fn finish(self, facts: Facts, outcome: Outcome) -> Recording {
        let damage = match self {
            Self::Recent(_) => Vec::new(),
            Self::Kept(output) => match output.finish(&facts, &outcome) {
                Ok(recording) => return recording,
                Err(error) => vec![error.to_string()],
            },
        };
        Recording {
            damage,
            outcome: Some(outcome),
            facts,
            ..Recording::default()
        }
    }
}
