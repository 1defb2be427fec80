//! The machine watched in the background while a probe of this process runs.
//!
//! The probe's figures must not feel it: the sampler takes no realtime priority and locks no
//! memory, and its own cost is its thread's, not the probe's.

use super::RecordOptions;
use super::sampler::{Assignment, Ended, RecordingPurpose, Sampler};
use super::{destination, target};
use crate::Result;
use model::recording::Subject;

/// Watches the machine in the background while a probe of this process runs: `survey
/// --record FILE`. Dropping it ends the recording.
#[derive(Debug)]
pub struct BackgroundRecording {
    sampler: Sampler,
}

impl BackgroundRecording {
    /// Starts; `name` is the probe's.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(name: &str, watch: &RecordOptions) -> Result<Self> {
        super::check(watch)?;
        let found = target::find(&super::Target::Machine)?;
        let subject = Subject::Probe { name: name.to_owned() };
        let sampler = destination::start_sampler(Assignment {
            watch: watch.clone(),
            facts: super::facts(watch, subject),
            watched: found.watched,
            work: None,
            purpose: RecordingPurpose::Probe,
            cpu_before_ns: 0,
        })?;
        Ok(Self { sampler })
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
