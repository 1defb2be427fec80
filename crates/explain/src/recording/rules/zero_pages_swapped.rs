//! Pages of zeros were swapped: no I/O, but time to find and free them.
//!
//! Newer kernels only note that a page was zero (`swpout_zero`). The time is that of freeing
//! memory, by the share of the freed pages that were zeros, and of faults on swap, by the share of
//! zeros in what came back.

use super::caused::CausedRun;
use super::run_view::{part_of, ratio};
use super::served_by::LEAST_PAGES;
use super::swapped::{anonymous_share, reclaim_ns, swapped};
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{count, long_time};
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let swap = swapped(run).ok_or(NoFinding::Nothing)?;
    let zeros = swap.zero_outs.max(swap.zero_ins);
    if zeros == 0 {
        return Err(NoFinding::Nothing);
    }
    let share = ratio(swap.zero_outs as f64, swap.zero_outs.saturating_add(swap.outs) as f64);
    let freeing = reclaim_ns(run).unwrap_or(0);
    let ns = part_of(freeing, share * anonymous_share(run));
    let measured = Evidence::new("swpout_zero", swap.zero_outs as f64, "pages", "vmstat")
        .seen_in(["group0.memory.stat.swpout_zero", "vmstat.swpout_zero"]);
    if zeros < LEAST_PAGES || !run.hurts(ns) {
        return Err(NoFinding::Cleared(measured));
    }
    let caused = CausedRun::of(run, run.sampled(TimePart::SwapFault), swap.zeros_in());
    let claim = format!(
        "About {} to swap pages of zeros, without I/O: {} out, {} in",
        long_time(ns.saturating_add(caused.ns) as f64),
        count(swap.zero_outs),
        count(swap.zero_ins),
    );
    let mut evidence = swap.evidence;
    evidence.extend(run.part_evidence(TimePart::DirectReclaim));
    let finding = Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Do not touch memory before it holds data; zeros need no memory until then. Risk: \
         none for what is never written.",
    );
    Ok(caused.add_to(Cause::new(Some(ns), finding)))
}
