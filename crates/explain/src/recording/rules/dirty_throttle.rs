//! Writers were held back because too much written data was not yet on its device.
//!
//! The kernel charges this as block I/O. With events it has its own count; without them it
//! is concluded from waits without reads while dirty pages were near their threshold.

use super::device::{Direction, busiest};
use super::run_view::needs_events;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, Verdict};
use crate::wording::{long_time, often};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding, Grade};

/// Dirty pages are near the threshold from this share on: the kernel starts to hold writers
/// back halfway between the background threshold and the other one.
const NEAR: f64 = 0.5;

/// Without events: reads are few if they are less than this part of the writes.
const FEW_READS: u64 = 10;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let waits = run.grown("trace.writeback.dirty_waits");
    let (ns, grade) = match run.part_ns(TimePart::DirtyThrottle) {
        Some(ns) => (ns, run.part_grade(TimePart::DirtyThrottle)),
        None => (by_conclusion(run)?, Grade::Inferred),
    };
    if !run.hurts(ns) {
        let spent = Evidence::time("held back", ns, "block I/O")
            .seen_in(run.part_series(TimePart::DirtyThrottle));
        return Err(NoFinding::Cleared(waits.unwrap_or(spent)));
    }
    let mut claim = format!("Held back for {} because too much was dirty", long_time(ns as f64));
    let spent = run.part_evidence(TimePart::DirtyThrottle).unwrap_or_else(|| {
        // Concluded from all waits for block I/O.
        Evidence::time("block I/O", ns, "delay accounting")
            .seen_in(run.slice_series(TimeSlice::BlockIo))
    });
    let mut evidence = vec![spent];
    if let Some(waits) = waits.filter(|waits| waits.value > 0.0) {
        claim.push_str(&format!(", {}", often(waits.value as u64)));
        evidence.push(waits);
    }
    if let Some(traffic) = busiest(run, Direction::Write) {
        claim.push_str(&format!("; {} takes the writes", traffic.place()));
        evidence.extend(traffic.evidence);
    }
    for name in ["vmstat.nr_dirty", "vmstat.nr_dirty_threshold"] {
        evidence.extend(run.max(name).map(|most| run.evidence(name, most as f64)));
    }
    Ok(Cause::new(Some(ns), Finding::new(grade, claim, evidence)))
}

/// The wait without events, or why it is not known.
fn by_conclusion(run: &RunView) -> Verdict<u64> {
    let block_io = run.accounts.thread(TimeSlice::BlockIo);
    let read = run.read_bytes().unwrap_or(0);
    let written = run.write_bytes().ok_or(NoFinding::Nothing)?;
    if written == 0 || !run.hurts(block_io) || read >= written {
        return Ok(0);
    }
    let both = run.max("vmstat.nr_dirty").zip(run.max("vmstat.nr_dirty_threshold"));
    let is_near = both.is_some_and(|(dirty, threshold)| dirty as f64 >= threshold as f64 * NEAR);
    if is_near && read < written / FEW_READS {
        return Ok(block_io);
    }
    needs_events(
        run,
        "without events a writer that is held back looks like one that waits for its device",
    )
}
