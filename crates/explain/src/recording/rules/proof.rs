//! Proof cards: which counter moved when something is credited with having served pages,
//! its value before and after.
//!
//! A card blames nobody and has no time of its own.

use super::accused::Accused;
use super::{Case, Verdict};
use crate::wording::count;
use model::{Evidence, Grade};

/// Fewer pages are not worth a card. Picked: 4 MiB.
pub(super) const LEAST_PAGES: u64 = 1024;

/// The least faults that waited, for a subject that swapped so many. Picked: what swap reads
/// ahead at a time, eight pages.
const LEAST_WAITS: u64 = LEAST_PAGES / 8;

/// The values of a counter before and after.
pub(super) fn before_and_after(case: &Case, series: &str) -> Vec<Evidence> {
    let both = [
        ("before", case.view.at_start(series)),
        ("after", case.view.at_end(series)),
    ];
    both.into_iter()
        .filter_map(|(when, value)| {
            let mut evidence = case.evidence(series, value? as f64);
            evidence.name = format!("{series} {when}");
            Some(evidence)
        })
        .collect()
}

/// Whether the subject can have had a part in what the whole machine swapped: nobody gets a
/// page back without waiting for it.
pub(super) fn has_swapped(case: &Case) -> bool {
    let waits = || {
        case.major_faults()
            .is_none_or(|faults| faults >= LEAST_WAITS)
    };
    case.is_machine() || waits()
}

/// A card for so many pages in and out, or the number that says that there were few.
pub(super) fn card(
    case: &Case,
    id: &'static str,
    server: &str,
    ins: (&str, u64),
    outs: (&str, u64),
) -> Verdict {
    if ins.1.max(outs.1) < LEAST_PAGES || !has_swapped(case) {
        let evidence = case.grown(ins.0).or_else(|| case.grown(outs.0));
        return super::case::clear_count(evidence, "pages");
    }
    let mut evidence = before_and_after(case, ins.0);
    evidence.extend(before_and_after(case, outs.0));
    if evidence.is_empty() {
        return Verdict::Silent;
    }
    let claim = format!(
        "{server} served {} pages and took {}",
        count(ins.1),
        count(outs.1),
    );
    Accused::new(id, None, Grade::Measured, claim, evidence).blame()
}
