//! Proof cards: which counter moved when something is credited with having served pages,
//! its value before and after.
//!
//! A card blames nobody and has no time of its own.

use super::cause::CauseBuilder;
use super::{RunView, Verdict};
use crate::wording::count;
use model::{Evidence, Grade};

/// Fewer pages are not worth a card. Picked: 4 MiB.
pub(super) const LEAST_PAGES: u64 = 1024;

/// The least faults that waited, for a subject that swapped so many. Picked: what swap reads
/// ahead at a time, eight pages.
const LEAST_WAITS: u64 = LEAST_PAGES / 8;

/// The values of a counter before and after.
pub(super) fn before_and_after(run: &RunView, series: &str) -> Vec<Evidence> {
    let both = [("before", run.view.at_start(series)), ("after", run.view.at_end(series))];
    both.into_iter()
        .filter_map(|(when, value)| {
            let mut evidence = run.evidence(series, value? as f64);
            evidence.name = format!("{series} {when}");
            Some(evidence)
        })
        .collect()
}

/// Whether the subject can have had a part in what the whole machine swapped: a task
/// waits for each page that it gets back.
pub(super) fn has_swapped(run: &RunView) -> bool {
    let waits = || run.major_faults().is_none_or(|faults| faults >= LEAST_WAITS);
    run.is_machine() || waits()
}

/// A card for so many pages in and out, or the number that says that there were few.
pub(super) fn card(
    run: &RunView,
    id: &'static str,
    server: &str,
    ins: (&str, u64),
    outs: (&str, u64),
) -> Verdict {
    if ins.1.max(outs.1) < LEAST_PAGES || !has_swapped(run) {
        let evidence = run.grown(ins.0).or_else(|| run.grown(outs.0));
        return super::run_view::clear_count(evidence, "pages");
    }
    let mut evidence = before_and_after(run, ins.0);
    evidence.extend(before_and_after(run, outs.0));
    if evidence.is_empty() {
        return Verdict::Silent;
    }
    let claim = format!("{server} served {} pages and took {}", count(ins.1), count(outs.1),);
    CauseBuilder::new(id, None, Grade::Measured, claim, evidence).found()
}
