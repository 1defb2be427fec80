//! Writers were held back because too much written data was not yet on its device.
//!
//! The kernel charges this as block I/O. With events it has its own count; without them it
//! is concluded from waits without reads while dirty pages were near their threshold.

use super::accused::Accused;
use super::case::needs_events;
use super::device::{Way, busiest};
use super::{Case, Rank, Rule, Verdict};
use crate::wording::{long_time, often};
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "dirty_throttle",
    suspect: "dirty throttle",
    within: &[],
    rank: Rank::Timed,
    check,
};

/// Dirty pages are near the threshold from this share on: the kernel starts to hold writers
/// back halfway between the background threshold and the other one.
const NEAR: f64 = 0.5;

/// Without events: reads are few if they are less than this part of the writes.
const FEW_READS: u64 = 10;

fn check(case: &Case) -> Verdict {
    let waits = case.grown("trace.writeback.dirty_waits");
    let (ns, grade) = match case.part_ns("dirty_throttle") {
        Some(ns) => (ns, case.part_grade("dirty_throttle")),
        None => match by_conclusion(case) {
            Ok(ns) => (ns, Grade::Inferred),
            Err(verdict) => return verdict,
        },
    };
    if !case.hurts(ns) {
        let spent = Evidence::new("held back", ns as f64, "ns", "block I/O")
            .seen_in(case.part_series("dirty_throttle"));
        return Verdict::Clear(waits.unwrap_or(spent));
    }
    let mut claim = format!(
        "Held back for {} because too much was dirty",
        long_time(ns as f64)
    );
    let mut evidence: Vec<Evidence> = case.part_evidence("dirty_throttle").into_iter().collect();
    if evidence.is_empty() {
        // Concluded from all waits for block I/O.
        let waited = Evidence::new("block I/O", ns as f64, "ns", "delay accounting");
        evidence.push(waited.seen_in(case.slice_series("block_io")));
    }
    if let Some(waits) = waits.filter(|waits| waits.value > 0.0) {
        claim.push_str(&format!(", {}", often(waits.value as u64)));
        evidence.push(waits);
    }
    if let Some(traffic) = busiest(case, Way::Write) {
        claim.push_str(&format!("; {} takes the writes", traffic.place()));
        evidence.extend(traffic.evidence);
    }
    for name in ["vmstat.nr_dirty", "vmstat.nr_dirty_threshold"] {
        let most = case.view.max(name);
        evidence.extend(most.map(|most| case.evidence(name, most as f64)));
    }
    Accused::new(RULE.id, Some(ns), grade, claim, evidence)
        .remedy(
            "A faster device, or a higher vm.dirty_bytes for short bursts. Risk: more is lost in \
             a crash, and a later fsync waits for more.",
        )
        .blame()
}

/// The wait without events, or why it cannot be told.
fn by_conclusion(case: &Case) -> Result<u64, Verdict> {
    let block_io = case.accounts.thread("block_io");
    let read = case.read_bytes().unwrap_or(0);
    let Some(written) = case.write_bytes() else {
        return Err(Verdict::Silent);
    };
    if written == 0 || !case.hurts(block_io) || read >= written {
        return Ok(0);
    }
    let dirty = case.view.max("vmstat.nr_dirty");
    let threshold = case.view.max("vmstat.nr_dirty_threshold");
    let is_near = match (dirty, threshold) {
        (Some(dirty), Some(threshold)) => dirty as f64 >= threshold as f64 * NEAR,
        _ => false,
    };
    if is_near && read < written / FEW_READS {
        return Ok(block_io);
    }
    Err(needs_events(
        "without events a writer that is held back looks like one that waits for its device",
    ))
}

/// Whether it blames.
pub(super) fn blames(case: &Case) -> bool {
    matches!(check(case), Verdict::Blame(_))
}
