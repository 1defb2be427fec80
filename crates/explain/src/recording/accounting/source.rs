//! Which of the three tellers of thread time may be believed here: events, the rows of
//! delay accounting, or samples of the process tree. docs/accounting.md has the order.

use super::late::Late;
use super::queued;
use super::rows::Rows;
use crate::recording::View;
use model::Grade;
use model::recording::{Subject, TaskSource};

/// What is known of the subject's threads.
#[derive(Debug)]
pub(super) struct Sources {
    /// Whether switch events cover the view from its start to its end.
    pub events: bool,
    /// Whether events were lost in it: sums go on, their split is no longer exact.
    pub events_lost: bool,
    /// The rows, where they cover the view and all its threads that the kernel could tell.
    pub rows: Option<Rows>,
    /// Ends of threads that the kernel could not tell of.
    pub lost_exits: u64,
    /// Time that was run and reported as a wait.
    pub late: Late,
}

impl Sources {
    /// Looks at what `view` has.
    pub(super) fn of(view: &View) -> Self {
        let outcome = view.recording().outcome.as_ref();
        // Rows that were read from /proc are only of those that lived to the end; the
        // sampled sums have these and the others.
        let is_reported = |source: TaskSource| source != TaskSource::Proc;
        let any = view.tasks().iter().any(|task| is_reported(task.source));
        let lost = view.sum("trace.lost").unwrap_or(0);
        let whole_lost = outcome.map_or(0, |outcome| outcome.lost_events);
        let lost_exits = outcome.map_or(0, |outcome| outcome.lost_exits);
        let rows = any.then(|| Rows::of(view.tasks(), queued::longest_ns(view)));
        Self {
            events: events_cover(view),
            events_lost: lost > 0 || (view.is_whole() && whole_lost > 0),
            late: Late::of(view, rows.as_ref().filter(|_| lost_exits == 0)),
            rows,
            lost_exits,
        }
    }

    /// How times by events are known.
    pub(super) fn events_grade(&self) -> Grade {
        if self.events_lost { Grade::Inferred } else { Grade::Measured }
    }
}

/// Whether the subject is all of the machine: its threads are then everybody's, and the
/// bar is one of processor time.
pub(super) fn is_machine(view: &View) -> bool {
    matches!(view.facts().subject, Subject::Machine | Subject::Probe { .. })
}

/// Events count where they were followed all the time, or were stopped after the view's end.
fn events_cover(view: &View) -> bool {
    let present = view.sum("trace.sched.run_ns").is_some();
    let is_open = view.facts().sight("events.sched").is_open() || view.events_were_stopped();
    present && is_open && view.events_gap().is_none()
}
