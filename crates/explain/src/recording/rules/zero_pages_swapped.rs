//! Pages of zeros were swapped: no I/O, but time to find and free them.
//!
//! Newer kernels only note that a page was zero (`swpout_zero`). The time is that of freeing
//! memory, by the share of the freed pages that were zeros.

use super::cause::CauseBuilder;
use super::proof::LEAST_PAGES;
use super::run_view::{part_of, ratio};
use super::swapped::{anonymous_share, reclaim_ns, swapped};
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{count, long_time};
use model::explanation::TimePart;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "zero_pages_swapped",
    suspect: "swapped zeros",
    within: &["memory_limit", "swapping", "reclaim_direct"],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let Some(swap) = swapped(run) else {
        return Verdict::Silent;
    };
    let zeros = swap.zero_outs.max(swap.zero_ins);
    if zeros == 0 {
        return Verdict::Silent;
    }
    let share = ratio(swap.zero_outs as f64, swap.zero_outs.saturating_add(swap.outs) as f64);
    let freeing = reclaim_ns(run).unwrap_or(0);
    let ns = part_of(freeing, share * anonymous_share(run));
    let measured = Evidence::new("swpout_zero", swap.zero_outs as f64, "pages", "vmstat")
        .seen_in(["group0.memory.stat.swpout_zero", "vmstat.swpout_zero"]);
    if zeros < LEAST_PAGES || !run.hurts(ns) {
        return Verdict::Clear(measured);
    }
    let claim = format!(
        "About {} to swap pages of zeros, without I/O: {} out, {} in",
        long_time(ns as f64),
        count(swap.zero_outs),
        count(swap.zero_ins),
    );
    let mut evidence = swap.evidence;
    evidence.extend(run.part_evidence(TimePart::DirectReclaim));
    CauseBuilder::new(RULE.id, Some(ns), Grade::Inferred, claim, evidence)
        .remedy(
            "Do not touch memory before it holds data; zeros need no memory until then. Risk: \
             none for what is never written.",
        )
        .found()
}
