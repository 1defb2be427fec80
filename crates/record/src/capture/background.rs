//! The machine watched in the background while a probe or a copy of this process runs.
//!
//! The work's figures must not feel it: the sampler takes no realtime priority and locks no
//! memory, and its own cost is its thread's, not the work's.

use super::recent::RecentSink;
use super::sampler::{Assignment, Ended, RecordingPurpose, Sampler};
use super::{Keep, RecordOptions, destination, target};
use crate::Result;
use model::recording::{Recording, Subject};

/// Watches the machine in the background while a probe or a copy of this process runs: `survey
/// --record FILE`. What [`RecordOptions::gauges`] counts is sampled with it. Dropping it ends the
/// recording.
#[derive(Debug)]
pub struct BackgroundRecording {
    sampler: Sampler,
    recent: Option<RecentSink>,
}

impl BackgroundRecording {
    /// Starts; `name` is the probe's.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(name: &str, watch: &RecordOptions) -> Result<Self> {
        Self::start_with(name, watch, None)
    }

    /// As [`BackgroundRecording::start`]; also keeps the last minutes in memory for
    /// [`BackgroundRecording::look`]. Without an output nothing else is kept.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start_shown(name: &str, watch: &RecordOptions, keep: Keep) -> Result<Self> {
        Self::start_with(name, watch, Some(RecentSink::new(keep)))
    }

    fn start_with(name: &str, watch: &RecordOptions, recent: Option<RecentSink>) -> Result<Self> {
        super::check(watch)?;
        let found = target::find(&super::Target::Machine)?;
        let subject = Subject::Probe { name: name.to_owned() };
        let assignment = Assignment {
            watch: watch.clone(),
            facts: super::facts(watch, subject),
            watched: found.watched,
            work: None,
            purpose: RecordingPurpose::Probe,
            cpu_before_ns: 0,
        };
        let sampler = destination::start_shown_sampler(assignment, recent.clone())?;
        Ok(Self { sampler, recent })
    }

    /// Shows what is kept in memory; `None` if nothing is. The next sample waits for `look`.
    pub fn look<T>(&self, look: impl FnOnce(&Recording) -> T) -> Option<T> {
        self.recent.as_ref().map(|recent| look(recent.lock().recording()))
    }

    /// Notes how much of the work is done, in its unit (`bytes`): spans `progress`, by which
    /// `compare --align progress` lays two recordings beside each other. Cheap, and as often as one
    /// likes: one a second is kept, and the last.
    pub fn progress(&self, done: u64, unit: &str) {
        self.sampler.progress(format!("{done} {unit}"));
    }

    /// Notes a step of the probe.
    pub fn mark(&self, text: &str) {
        self.sampler.mark(text);
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// When the recording is not whole: what was written before stays readable.
    pub fn finish(self) -> Result<()> {
        self.sampler.take_last_sample();
        let recording = self.sampler.close(Ended::default())?;
        let stopped = recording.outcome.and_then(|outcome| outcome.stopped_early);
        match stopped.or_else(|| recording.damage.into_iter().next()) {
            None => Ok(()),
            Some(why) => {
                Err(crate::Error::new(crate::ErrorKind::Failed, "finish the recording", why))
            }
        }
    }
}
