//! Threads moved other pages about to make room for a large one.
//!
//! With events the time of the subject's own threads is counted; the kernel's count of
//! stalls is the whole machine's and clears where it stood still.

use super::run_view::needs_events;
use super::{RunVerdict, RunView};
use crate::verdict::clear_count;
use crate::wording::{long_time, often};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding};

const STALLS: &str = "vmstat.compact_stall";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let stalls = run.growth(STALLS);
    let Some(ns) = run.part_ns(TimePart::Compaction) else {
        let nameless = run.accounts.thread(TimeSlice::Unexplained);
        return if stalls.unwrap_or(0) > 0 && run.hurts(nameless) {
            needs_events("who waited for compaction is not known")
        } else {
            clear_count(run.grown(STALLS), "stalls")
        };
    };
    if !run.hurts(ns) {
        let number = run.grown(STALLS).or_else(|| run.part_evidence(TimePart::Compaction));
        return clear_count(number, "stalls");
    }
    let mut claim = format!("Compacted memory for {}", long_time(ns as f64));
    if let Some(times) = run.growth("trace.vmscan.compactions").filter(|n| *n > 0) {
        claim.push_str(&format!(", {}", often(times)));
    }
    let mut evidence: Vec<Evidence> = run.part_evidence(TimePart::Compaction).into_iter().collect();
    evidence.extend(run.all_grown(&[STALLS, "vmstat.compact_fail", "vmstat.compact_success"]));
    let grade = run.part_grade(TimePart::Compaction);
    Ok(Cause::new(
        Some(ns),
        Finding::new(grade, claim, evidence).remedy(
            "Let huge pages be made in the background (transparent_hugepage/defrag: defer), or \
             keep more memory free. Risk: fewer huge pages at first.",
        ),
    ))
}
