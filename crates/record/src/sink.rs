//! Where a recording goes while it is made: the one seam between the sampler and what keeps its
//! samples.
//!
//! A sink is chosen once, when a recording begins, and the sampler is compiled for its type. So a
//! sample reaches the sink in one direct call. [`crate::file`] keeps recordings in memory, in a
//! file or in a ring of files; [`crate::capture::Live`] keeps the last minutes.

use crate::Result;
use crate::accesses::AccessBatch;
use crate::registry::Row;
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Span, Task, Tick, Who};

/// Takes one recording while it is made.
///
/// The caller passes times that never run backwards, and schemas that only grow at their end.
/// After an error the recording stays readable up to what was written before.
pub trait RecordSink {
    /// The recording begins now, some time after it was opened: these facts have the right start.
    /// Called once, before the first sample. A recording that lacks its end has them too.
    fn started(&mut self, _facts: &Facts) {}

    /// Adds a sample; `schemas` are all series known so far.
    ///
    /// # Errors
    /// When the sample cannot be kept.
    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()>;

    /// Adds a named instant or interval.
    ///
    /// # Errors
    /// As [`RecordSink::sample`].
    fn span(&mut self, span: &Span) -> Result<()>;

    /// Adds rows of delay accounting.
    ///
    /// # Errors
    /// As [`RecordSink::sample`].
    fn tasks(&mut self, tasks: &[Task]) -> Result<()>;

    /// Adds what processes used since the last call, with the processes and files that are named
    /// for the first time; their ids go on. At most once a sample, before it.
    ///
    /// # Errors
    /// As [`RecordSink::sample`]; [`crate::ErrorKind::Usage`] for ids that do not go on, and for
    /// rows that name unknown ones.
    fn who(&mut self, news: &Who) -> Result<()>;

    /// Adds single accesses; how many bytes they take. Sinks that keep none leave them out.
    ///
    /// # Errors
    /// As [`RecordSink::sample`].
    fn accesses(&mut self, _batch: &AccessBatch) -> Result<u64> {
        Ok(0)
    }

    /// Writes what is still in memory, so that another reader sees it.
    ///
    /// # Errors
    /// As [`RecordSink::sample`].
    fn flush(&mut self) -> Result<()>;

    /// Why the written recording cannot be found any more; `None` while it can.
    fn loss(&self) -> Option<&'static str> {
        None
    }

    /// What the user should know now; each text is given once.
    fn news(&mut self) -> Option<String> {
        None
    }

    /// Ends the recording and reads it back.
    ///
    /// Also after a failed write: then the end is written behind the last whole chunk. The facts
    /// and the outcome are those given here; the damage says what is missing.
    ///
    /// # Errors
    /// When nothing can be read back.
    fn finish(self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording>
    where
        Self: Sized;

    /// Removes the file of a recording of nothing; earlier recordings stay.
    fn discard(self)
    where
        Self: Sized,
    {
    }
}
