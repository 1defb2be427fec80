//! Threads moved other pages about to make room for a large one.
//!
//! With events the time of the subject's own threads is counted; the kernel's count of
//! stalls is the whole machine's and clears where it stood still.

use super::{RunVerdict, RunView};
use crate::verdict::clear_count;
use crate::wording::{long_time, often};
use model::explanation::{Cause, TimePart};

const STALLS: &str = "vmstat.compact_stall";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let stalls = run.grown(STALLS);
    let Some(ns) = run.part_ns(TimePart::Compaction) else {
        return run.without_time(stalls, "stalls", "who waited for compaction is not known");
    };
    if !run.hurts(ns) {
        return clear_count(stalls.or_else(|| run.part_evidence(TimePart::Compaction)), "stalls");
    }
    let mut claim = format!("Compacted memory for {}", long_time(ns as f64));
    if let Some(times) = run.growth("trace.vmscan.compactions").filter(|n| *n > 0) {
        claim.push_str(&format!(", {}", often(times)));
    }
    let finding = run
        .part_finding(TimePart::Compaction, claim)
        .and(run.all_grown(&[STALLS, "vmstat.compact_fail", "vmstat.compact_success"]))
        .remedy(
            "Let huge pages be made in the background (transparent_hugepage/defrag: defer), or \
             keep more memory free. Risk: fewer huge pages at first.",
        );
    Ok(Cause::new(Some(ns), finding))
}
