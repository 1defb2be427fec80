//! Memory went to swap and had to be read back.
//!
//! The wait is that for pages that came back, and the share of freeing memory that went into
//! writing them out. That pages moved at all is shown by `pswpin` and `pswpout`.

use super::caused::CausedRun;
use super::run_view::{part_of, ratio};
use super::swapped::{Swapped, anonymous_share, reclaim_ns, swapped};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, list};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let swap = swapped(run).ok_or(NoFinding::Nothing)?;
    let moved = swap.ins.saturating_add(swap.outs);
    let (ns, grade) = wait(run, &swap);
    if moved == 0 || !run.hurts(ns) {
        return clear_count(swap.clearing, "pages");
    }
    let areas = &run.facts().swaps;
    let to = if areas.is_empty() { String::new() } else { format!(" ({})", list(areas)) };
    let caused = CausedRun::of(run, run.sampled(TimePart::SwapFault), 1.0 - swap.zeros_in());
    let claim = format!(
        "{} for swap{to}: {} pages in, {} out{}",
        run.waited(ns),
        count(swap.ins),
        count(swap.outs),
        caused.words(),
    );
    let finding =
        Finding::new(grade, claim, run.part_evidence(TimePart::SwapIn)).and(swap.evidence);
    Ok(caused.add_to(Cause::new(Some(ns), finding)))
}

/// The wait for pages in both directions.
pub(super) fn wait(run: &RunView, swap: &Swapped) -> (u64, Grade) {
    let (back, grade) = swap_in(run, swap);
    let out = if swap.outs > 0 {
        // Zeros are freed without I/O; their rule takes their share.
        let zeros = ratio(swap.zero_outs as f64, swap.zero_outs.saturating_add(swap.outs) as f64);
        let share = anonymous_share(run) * (1.0 - zeros);
        part_of(reclaim_ns(run).unwrap_or(0), share)
    } else {
        0
    };
    (back.saturating_add(out), grade)
}

/// The wait for pages that came back: known by the stack, else their share of all reads.
pub(super) fn swap_in(run: &RunView, swap: &Swapped) -> (u64, Grade) {
    if swap.ins == 0 {
        return (0, Grade::Measured);
    }
    let part_ns = run.part_ns(TimePart::SwapIn).unwrap_or(0);
    if run.part_grade(TimePart::SwapIn) == Grade::Measured && part_ns > 0 {
        return (part_ns, Grade::Measured);
    }
    // From here on it is a share of what was charged for all block I/O, which can be too long.
    let most = run.most_device_wait_ns().unwrap_or(u64::MAX);
    let part_ns = part_ns.min(most);
    if run.part_ns(TimePart::BlockRead).is_some() {
        // Events told all other waits, and this one was none.
        return (part_ns, Grade::Inferred);
    }
    let swapped = swap.ins.saturating_mul(run.page_bytes());
    let read =
        run.growth_between("disk.", ".read_bytes").unwrap_or(0).max(run.read_bytes().unwrap_or(0));
    let share = ratio(swapped as f64, read.max(swapped) as f64);
    let major = run.major_faults().unwrap_or(0);
    if major == 0 {
        return (part_ns, Grade::Inferred);
    }
    let estimate = part_of(run.accounts.thread(TimeSlice::BlockIo), share);
    (estimate.min(most).max(part_ns), Grade::Inferred)
}
