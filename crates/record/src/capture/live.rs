//! Live view: samples a running target, and keeps only the last minutes in memory.
//!
//! Delay accounting is left out: it describes a whole recording, and this one has no end.

use super::recent::RecentSink;
use super::sampler::{Assignment, RecordingPurpose, Sampler};
use super::target::{self, TargetEnd};
use super::{Keep, RecordOptions, Target};
use crate::Result;
use model::recording::Recording;
use std::os::fd::AsFd;

/// Something that is watched now. Dropping it ends the watching.
#[derive(Debug)]
pub struct Live {
    sampler: Sampler,
    recent: RecentSink,
    end: TargetEnd,
}

impl Live {
    /// Starts to watch `target`; the first sample has been taken when it returns.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`] when the target is not there; others when it cannot be watched.
    pub fn start(target: &Target, watch: &RecordOptions, keep: Keep) -> Result<Self> {
        super::check(watch)?;
        let mut found = target::find(target)?;
        found.watched.tree = None;
        let recent = RecentSink::new(keep);
        let sink = recent.clone();
        let assignment = Assignment {
            watch: watch.clone(),
            facts: super::facts(watch, found.subject),
            watched: found.watched,
            work: None,
            purpose: RecordingPurpose::Viewer,
            cpu_before_ns: 0,
        };
        let sampler = Sampler::start(assignment, move |_| Ok(sink))?;
        Ok(Self { sampler, recent, end: found.end })
    }

    /// Shows what is kept. The next sample waits for `look`, so it must be short. Ids of processes
    /// and files hold for one look only: they change when something is forgotten.
    pub fn look<T>(&self, look: impl FnOnce(&Recording) -> T) -> T {
        look(self.recent.lock().recording())
    }

    /// Whether nothing more will come: the subject has ended, or the recorder failed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.sampler.has_failed() || self.end.has_come()
    }
}

impl TargetEnd {
    fn has_come(&self) -> bool {
        match self {
            TargetEnd::Never => false,
            TargetEnd::Process(process) => {
                let [ended] = sys::poll::readable([Some(process.as_fd())], Some(0));
                ended
            }
            TargetEnd::Group(directory) => !directory.exists(),
        }
    }
}
