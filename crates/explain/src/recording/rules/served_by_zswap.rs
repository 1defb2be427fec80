//! Proof card: swapped pages were kept in and served from zswap, compressed before the
//! swap device.
//!
//! What moved are `zswpin` and `zswpout`.

use super::proof::card;
use super::{Rank, Rule, RunView, Verdict};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "served_by_zswap",
    suspect: "compressed swap",
    within: &["swapping", "memory_limit", "reclaim_direct"],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let (ins, outs) = ("vmstat.zswpin", "vmstat.zswpout");
    let grew = |name| run.grew(name).unwrap_or(0);
    if run.grew(ins).is_none() {
        return Verdict::Silent;
    }
    let server = "Compressed memory (zswap)";
    card(run, RULE.id, server, (ins, grew(ins)), (outs, grew(outs)))
}
