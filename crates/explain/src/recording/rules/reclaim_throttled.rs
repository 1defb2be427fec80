//! The kernel put threads to sleep that allocated memory faster than it could be freed.
//!
//! Mostly because what should be freed is dirty and has yet to be written. It happens inside
//! of freeing memory; at a group's memory limit that is the cause and this lies within.

use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::{long_time, often};
use model::explanation::{Cause, TimePart};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ns = run.part_ns(TimePart::ReclaimThrottle).ok_or(NoFinding::Nothing)?;
    if !run.hurts(ns) {
        return clear(run.part_evidence(TimePart::ReclaimThrottle));
    }
    let times = run.growth("trace.vmscan.throttles");
    let mut claim =
        format!("Put to sleep for {} until dirty memory was written", long_time(ns as f64));
    if let Some(times) = times.filter(|times| *times > 0) {
        claim.push_str(&format!(", {}", often(times)));
    }
    let finding = run
        .part_finding(TimePart::ReclaimThrottle, claim)
        .and(run.all_grown(&["trace.vmscan.throttles", "vmstat.nr_vmscan_immediate_reclaim"]))
        .remedy(
            "Start writing earlier (a smaller vm.dirty_background_bytes), or give the group more \
             memory. Risk: data that is soon overwritten is then written in vain.",
        );
    Ok(Cause::new(Some(ns), finding))
}
