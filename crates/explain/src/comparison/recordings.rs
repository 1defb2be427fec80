//! Recordings of two sides, by their explanations: the wall time, its slices, what
//! lies inside of them, and the time of each finding.

use super::judge::{Figure, can_prove, median};
use super::sentence;
use super::split::{self, LEAST_SHARE};
use model::compared::{
    Basis, ComparedFigure, Comparison, ComparisonSubject, SCHEMA, Side, TimeDifference,
};
use model::estimate::Better;
use model::explanation::Explanation;
use std::collections::BTreeSet;

/// Compares the runs of two sides.
#[must_use]
pub fn recordings(first: &[Explanation], second: &[Explanation]) -> Comparison {
    let items = items(first, second);
    let split = split::split(first, second).map(|split| with_interval_of(&items, split));
    Comparison {
        schema: SCHEMA.to_owned(),
        what: ComparisonSubject::Recordings,
        first: side(first),
        second: side(second),
        sentence: sentence::of_recordings(&items, split.as_ref()),
        items,
        split,
        aligned: None,
        tried: None,
        notes: notes(first, second),
    }
}

/// The whole has one interval, that on which its verdict rests.
fn with_interval_of(items: &[ComparedFigure], split: TimeDifference) -> TimeDifference {
    let wall = items.iter().find(|item| item.of == "wall");
    match wall.filter(|wall| wall.basis == Basis::Ranks) {
        Some(wall) => TimeDifference { low_ns: wall.low, high_ns: wall.high, ..split },
        None => split,
    }
}

pub(super) fn side(runs: &[Explanation]) -> Side {
    let mut subjects: Vec<&str> = runs.iter().map(|run| run.subject.as_str()).collect();
    subjects.dedup();
    let name = match subjects[..] {
        [] => String::new(),
        [only] => only.to_owned(),
        [first, ..] => format!("{first} and others"),
    };
    Side { name, files: Vec::new(), runs: runs.len() as u32 }
}

/// The figures, the wall time first.
fn items(first: &[Explanation], second: &[Explanation]) -> Vec<ComparedFigure> {
    let wall = figure("wall", "wall", first, second, |run| Some(run.wall_ns));
    let least_of = |figure: &Figure| LEAST_SHARE * median(&figure.first).unwrap_or(0.0);
    let threads = figure("thread", "thread", first, second, |run| Some(run.thread_ns));
    let (least_wall, least_thread) = (least_of(&wall), least_of(&threads));
    let better = Some(Better::Lower);
    let mut items = vec![Figure { better, ..wall }.by_ranks(least_wall)];
    for name in names(first, second, |run| run.bars.wall.iter().map(|slice| &slice.name)) {
        let of = |run: &Explanation| {
            let slice = run.bars.wall.iter().find(|slice| slice.name == name);
            slice.map(|slice| slice.ns)
        };
        items.push(figure("slice", &name, first, second, of).by_ranks(least_wall));
    }
    for name in names(first, second, |run| run.of_which.iter().map(|part| &part.name)) {
        let of = |run: &Explanation| {
            let parts = run.of_which.iter().filter(|part| part.name == name);
            Some(parts.fold(0u64, |sum, part| sum.saturating_add(part.ns)))
        };
        items.push(figure("of_which", &name, first, second, of).by_ranks(least_thread));
    }
    let timed = |run: &Explanation, name: &str| {
        let causes = run.findings.iter().filter(|cause| cause.finding.id == name);
        causes.filter_map(|cause| cause.ns).fold(0u64, u64::saturating_add)
    };
    for name in names(first, second, |run| run.findings.iter().map(|cause| &cause.finding.id)) {
        let of = |run: &Explanation| Some(timed(run, &name));
        items.push(figure("finding", &name, first, second, of).by_ranks(least_thread));
    }
    items
}

/// The names that any run of either side has, in the order in which they come.
fn names<'a, I: Iterator<Item = &'a String>>(
    first: &'a [Explanation],
    second: &'a [Explanation],
    of: impl Fn(&'a Explanation) -> I,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = first.iter().chain(second).flat_map(of);
    all.filter(|name| seen.insert(name.as_str())).cloned().collect()
}

fn figure(
    of: &str,
    name: &str,
    first: &[Explanation],
    second: &[Explanation],
    value: impl Fn(&Explanation) -> Option<u64>,
) -> Figure {
    let values = |runs: &[Explanation]| -> Vec<f64> {
        runs.iter().filter_map(&value).map(|ns| ns as f64).collect()
    };
    Figure {
        of: of.to_owned(),
        name: name.to_owned(),
        unit: "ns",
        better: None,
        first: values(first),
        second: values(second),
    }
}

/// That a source was there for one side only; one that was there and quiet does not count.
pub(super) fn watched_differently(first: &[Explanation], second: &[Explanation]) -> Vec<String> {
    let closed = |runs: &[Explanation]| -> BTreeSet<&'static str> {
        let unseen = runs.iter().flat_map(|run| &run.unseen);
        let sources = unseen.filter_map(|unseen| source_words(&unseen.what));
        let no_events = runs.iter().any(|run| run.watching.events.is_none());
        sources.chain(no_events.then_some(KERNEL_EVENTS)).collect()
    };
    let (first, second) = (closed(first), closed(second));
    let apart: Vec<String> =
        first.symmetric_difference(&second).map(|words| (*words).to_owned()).collect();
    if apart.is_empty() {
        return Vec::new();
    }
    let list = crate::wording::list(&apart);
    vec![format!("The two sides were not watched alike: {list} could be seen on one of them only.")]
}

/// What is missing where no events were followed at all.
const KERNEL_EVENTS: &str = "kernel events";

/// What a source shows, in words; `None` for what is no source of times or counts.
fn source_words(name: &str) -> Option<&'static str> {
    Some(match name {
        "events.sched" => "running and waiting threads",
        "events.block" => "requests to devices",
        "events.vmscan" => "reclaim",
        "events.writeback" => "writeback",
        "events.cpu" => "what processors did",
        "events.who" => "single processes",
        "delay_accounting" => "delays that the kernel charges",
        "exits" => "the ends of threads",
        _ => return None,
    })
}

/// Why the comparison deserves less trust than usual.
fn notes(first: &[Explanation], second: &[Explanation]) -> Vec<String> {
    let mut notes = watched_differently(first, second);
    let failed: BTreeSet<&str> = first
        .iter()
        .chain(second)
        .filter(|run| !["exit 0", "stopped", ""].contains(&run.ending.as_str()))
        .map(|run| run.ending.as_str())
        .collect();
    if !failed.is_empty() {
        let ends: Vec<String> = failed.into_iter().map(str::to_owned).collect();
        notes.push(format!(
            "Not every run ended well ({}): what was cut short is not comparable.",
            crate::wording::list(&ends)
        ));
    }
    if !can_prove(first.len(), second.len()) {
        notes.push("At least 4 runs of each side can prove a difference.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
