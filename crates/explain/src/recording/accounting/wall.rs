//! The wall bar of a command, a process or a group: each instant belongs to the first
//! that holds: some thread on a processor, some runnable, some in block I/O, all asleep.
//!
//! Events tell it exactly. Samples tell how much the threads ran in each interval, so as
//! much of it was run at most; they cannot tell what a command slept for, or that it did.

use super::bar::{Bar, FilledBar};
use super::sampled::{self, SampleInterval};
use super::source::Sources;
use crate::recording::View;
use model::explanation::TimeSlice;
use model::{Evidence, Grade};

/// What the bar is a bar of.
pub(super) const OF: &str = "the wall time";

/// The states in the order in which they win an instant.
const STATES: [(TimeSlice, &str); 4] = [
    (TimeSlice::Run, "trace.wall.run_ns"),
    (TimeSlice::Queue, "trace.wall.queue_ns"),
    (TimeSlice::BlockIo, "trace.wall.block_io_ns"),
    (TimeSlice::Sleep, "trace.wall.asleep_ns"),
];

/// Fills the wall bar; `threads` is the thread bar of the same view.
pub(super) fn bar(view: &View, sources: &Sources, threads: &FilledBar) -> FilledBar {
    let by_events = sources.events.then(|| by_events(view, sources)).flatten();
    by_events.unwrap_or_else(|| by_samples(view, threads))
}

/// From the clock of the events; `None` where they kept none.
pub(super) fn by_events(view: &View, sources: &Sources) -> Option<FilledBar> {
    view.sum(STATES[0].1)?;
    let grade = sources.events_grade();
    let late = sources.late.on_the_clock(view);
    let mut bar = Bar::new(OF, view.wall_ns());
    for (state, name) in STATES {
        let ns = view.sum(name).unwrap_or(0);
        let evidence = Evidence::time(name, ns, view.source(name));
        let ns = late.put_right(state, ns);
        // The events go on until the last sample, a little after the subject's end: all that
        // is left of it is asleep then, so more of that than fits is no error.
        let after_end = state == TimeSlice::Sleep;
        let ns = if after_end { ns.min(bar.left_ns()) } else { ns };
        bar.add(state, ns, grade, vec![evidence]);
    }
    Some(close(view, bar))
}

/// SampleInterval by interval, in the order of the states; then what the thread bar knows and no
/// sample saw: a command shorter than the samples are apart is one interval.
fn by_samples(view: &View, threads: &FilledBar) -> FilledBar {
    let names = ["tree.run_ns", "tree.queue_ns", "tree.block_io_ns"];
    let intervals = sampled::intervals(view, names).unwrap_or_default();
    let seen = first_come(&intervals);
    let mut grown = [0u64; 3];
    for interval in &intervals {
        for (sum, ns) in grown.iter_mut().zip(interval.grown_ns) {
            *sum = sum.saturating_add(ns);
        }
    }
    let mut bar = Bar::new(OF, view.wall_ns());
    let is_alone = view.max("tree.threads") == Some(1);
    let states = STATES.map(|(state, _)| state);
    for (index, state) in states.into_iter().take(names.len()).enumerate() {
        let Some(slice) = threads.slices.iter().find(|slice| slice.name == state) else {
            continue;
        };
        let unseen = slice.ns.saturating_sub(grown[index]);
        // What a wait was long is told at its end, when more than the interval has passed: one
        // thread alone spends its time and the clock's alike.
        let seen_ns = if is_alone { grown[index] } else { seen[index] };
        // Threads may do together what no sample split, so more than is left is no error; and
        // the clock cannot hold more of a state than the threads do.
        let ns = seen_ns.saturating_add(unseen).min(slice.ns).min(bar.left_ns());
        let evidence = slice.evidence.clone();
        bar.add(state, ns, Grade::Inferred, evidence);
    }
    close(view, bar)
}

/// Gives each interval to the first sum as far as that grew, then to the next.
pub(super) fn first_come<const N: usize>(intervals: &[SampleInterval<N>]) -> [u64; N] {
    let mut sums = [0u64; N];
    for interval in intervals {
        let mut left = interval.length_ns;
        for (sum, grown) in sums.iter_mut().zip(interval.grown_ns) {
            let taken = grown.min(left);
            *sum = sum.saturating_add(taken);
            left -= taken;
        }
    }
    sums
}

/// The bar with what is left of the wall time.
pub(super) fn close(view: &View, bar: Bar) -> FilledBar {
    bar.close(Evidence::time("wall time", view.wall_ns(), "CLOCK_MONOTONIC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_state_wins_and_nothing_is_counted_twice() {
        let interval = |length_ns, grown_ns| SampleInterval { length_ns, grown_ns };
        let intervals =
            [interval(100, [60, 60, 60]), interval(100, [250, 9, 9]), interval(100, [0, 0, 30])];
        assert_eq!(first_come(&intervals), [160, 40, 30]);
    }
}
