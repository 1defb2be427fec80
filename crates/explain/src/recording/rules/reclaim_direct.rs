//! Threads freed memory for themselves because the kernel's own thread was too slow.
//!
//! At a memory limit of a group there is no such thread: then the limit is the cause, and
//! this rule is silent.

use super::{RunVerdict, RunView, memory_limit};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{long_time, often};
use model::Evidence;
use model::explanation::{Cause, TimePart};

/// How often tasks had to free memory, on the whole machine.
const STALLS: [&str; 5] = [
    "vmstat.allocstall_normal",
    "vmstat.allocstall_movable",
    "vmstat.allocstall_dma32",
    "vmstat.allocstall_dma",
    "vmstat.allocstall_device",
];

pub(super) fn check(run: &RunView) -> RunVerdict {
    let measured = run
        .growth_of_all(&STALLS)
        .map(|stalls| Evidence::count("allocstall", stalls, "/proc/vmstat").seen_in(STALLS));
    let Some(ns) = run.part_ns(TimePart::DirectReclaim) else {
        let why = "whose memory was freed by whom is not known";
        return run.without_time(measured, "stalls", why);
    };
    if memory_limit::at_fault(run).is_some() {
        return Err(NoFinding::Nothing);
    }
    if !run.hurts(ns) {
        let number = measured.or_else(|| run.part_evidence(TimePart::DirectReclaim));
        return clear_count(number, "stalls");
    }
    let mut claim = format!("Freed memory for itself for {}", long_time(ns as f64));
    if let Some(times) = run.accounts.part(TimePart::DirectReclaim).and_then(|p| p.count) {
        claim.push_str(&format!(", {}", often(times)));
    }
    let finding = run
        .part_finding(TimePart::DirectReclaim, claim)
        .and(measured)
        .and(run.all_grown(&["vmstat.pgscan_direct", "vmstat.pgsteal_direct"]));
    Ok(Cause::new(Some(ns), finding))
}
