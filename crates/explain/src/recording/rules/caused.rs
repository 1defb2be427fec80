//! Processor time that waits cause: the kernel asks a device for pages and takes them in. It is
//! sampled, and goes with the wait: without the wait it would not be.
//!
//! A finding of waits counts it beside them, as far as it is worth a word.

use super::RunView;
use super::run_view::part_of;
use crate::recording::accounting::processor_samples::SampledTime;
use crate::wording::long_time;
use model::Evidence;
use model::explanation::Cause;

/// Less of the time that shares are taken of is not counted. Picked: a sentence is too long for it.
const LEAST_SHARE: f64 = 0.01;

/// Such a time; 0 where it is not known or too short.
#[derive(Clone, Debug, Default)]
pub(super) struct CausedRun {
    /// Its length.
    pub(super) ns: u64,
    evidence: Option<Evidence>,
}

impl CausedRun {
    /// The share of a sampled time that a finding has.
    pub(super) fn of(run: &RunView, time: Option<SampledTime>, share: f64) -> Self {
        let Some(time) = time else {
            return Self::default();
        };
        let ns = part_of(time.ns, share);
        if run.share(ns) < LEAST_SHARE {
            return Self::default();
        }
        let sampled = time.evidence.into_iter().next();
        let evidence = sampled.map(|sampled| Evidence {
            name: "processor time for it".to_owned(),
            value: ns as f64,
            ..sampled
        });
        Self { ns, evidence }
    }

    /// `, and 221 ms of processor time to ask for them`; empty if it is 0.
    pub(super) fn words(&self) -> String {
        match self.ns {
            0 => String::new(),
            ns => format!(", and {} of processor time to ask for them", long_time(ns as f64)),
        }
    }

    /// Counts it beside what the cause has.
    pub(super) fn add_to(self, mut cause: Cause) -> Cause {
        if self.ns > 0 {
            cause.ns = cause.ns.map(|ns| ns.saturating_add(self.ns));
            cause.on_processor_ns =
                Some(cause.on_processor_ns.unwrap_or(0).saturating_add(self.ns));
            cause.finding.evidence.extend(self.evidence);
        }
        cause
    }
}
