//! What is inside of the bars: parts that overlap with each other and are never stacked.
//!
//! Each names the slice of the thread bar that holds it and is no longer than that slice,
//! but for the [`ELAPSED`] ones. Parts by events, by rows and by counters are a file each;
//! where two could tell the same, the more exact one is asked first and the other is left.

mod charged;
mod counted;
mod events;
mod run;

use super::bar::FilledBar;
use super::source::Sources;
use crate::recording::View;
use model::explanation::OverlappingPart;
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// Parts that the kernel times from their begin to their end, whatever the thread did in
/// between: a reclaim that was preempted and that waited for a device is longer than it
/// ran. Their `within` is where most of such time lies; only the lives of all threads
/// bound them. `flush` is the sum of two waits that lie in two slices.
pub const ELAPSED: [TimePart; 7] = [
    TimePart::DirectReclaim,
    TimePart::Compaction,
    TimePart::CopyOnWrite,
    TimePart::SwapIn,
    TimePart::Refault,
    TimePart::Interrupts,
    TimePart::Flush,
];

/// The parts of a command's, a process's or a group's bar.
pub(super) fn of_threads(
    view: &View,
    sources: &Sources,
    threads: &FilledBar,
) -> Vec<OverlappingPart> {
    let mut parts = Parts { view, sources, threads, parts: Vec::new() };
    if !run::by_samples(&mut parts) {
        run::split(&mut parts);
    }
    if sources.events {
        events::block_io(&mut parts);
    } else {
        counted::block_io(&mut parts);
    }
    events::memory(&mut parts);
    charged::memory(&mut parts);
    counted::refault(&mut parts);
    if sources.events {
        events::sleep(&mut parts);
    }
    counted::cpu_limit(&mut parts);
    run::steal(&mut parts);
    longest_first(parts.parts)
}

/// The parts of the machine's bar: what its processors ran, and what events tell of the
/// waits of all threads together.
pub(super) fn of_machine(view: &View, sources: &Sources, bar: &FilledBar) -> Vec<OverlappingPart> {
    let mut parts = Parts { view, sources, threads: bar, parts: Vec::new() };
    if !run::by_samples(&mut parts) {
        run::split_machine(&mut parts);
    }
    if sources.events {
        events::block_io(&mut parts);
    }
    events::memory(&mut parts);
    counted::refault(&mut parts);
    counted::cpu_limits(&mut parts);
    longest_first(parts.parts)
}

/// Stable: parts of one length stay in the order in which they were found.
fn longest_first(mut parts: Vec<OverlappingPart>) -> Vec<OverlappingPart> {
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    parts
}

/// The parts found so far.
#[derive(Debug)]
struct Parts<'a> {
    view: &'a View<'a>,
    sources: &'a Sources,
    threads: &'a FilledBar,
    parts: Vec<OverlappingPart>,
}

impl Parts<'_> {
    fn slice(&self, name: TimeSlice) -> Option<u64> {
        self.threads.slice_ns(name)
    }

    /// Adds a part, no longer than what holds it; nothing where there is nothing of it, or
    /// where a better source was asked before.
    fn add(&mut self, part: Part) {
        let Part { name, within, .. } = &part;
        if self.parts.iter().any(|known| known.name == *name) {
            return;
        }
        let machine = super::source::is_machine(self.view);
        let (within, held_ns) = match self.slice(*within) {
            Some(ns) => (*within, ns),
            // Only its wall bar has one.
            None if machine && *within == TimeSlice::Queue => (*within, u64::MAX),
            None => (TimeSlice::Unexplained, self.slice(TimeSlice::Unexplained).unwrap_or(0)),
        };
        // The machine's slices are processor time, its waits thread time: they share no
        // whole, so nothing bounds one by the other.
        let bound_ns = match () {
            () if machine && within != TimeSlice::Run => u64::MAX,
            () if ELAPSED.iter().any(|of| *name == *of) => self.threads.whole_ns,
            () => held_ns,
        };
        let ns = part.ns.min(bound_ns);
        if ns > 0 || part.count.is_some_and(|count| count > 0) {
            self.parts.push(OverlappingPart {
                name: part.name,
                within: within.into(),
                ns,
                count: part.count,
                grade: part.grade,
                evidence: part.evidence,
                span: None,
            });
        }
    }
}

/// A part before it is known whether it fits.
#[derive(Debug)]
struct Part {
    name: String,
    within: TimeSlice,
    ns: u64,
    count: Option<u64>,
    grade: Grade,
    evidence: Vec<Evidence>,
}

impl Part {
    fn new(
        name: impl Into<String>,
        within: TimeSlice,
        ns: u64,
        grade: Grade,
        evidence: impl Into<Vec<Evidence>>,
    ) -> Self {
        Self { name: name.into(), within, ns, count: None, grade, evidence: evidence.into() }
    }

    fn counted(self, count: Option<u64>) -> Self {
        Self { count, ..self }
    }
}
