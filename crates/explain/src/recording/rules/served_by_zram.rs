//! Proof card: swapped pages were kept in and served from compressed RAM.
//!
//! What moved are the counters of the zram device itself.

use super::proof::card;
use super::{Rank, Rule, RunView, Verdict};
use model::recording::DeviceKind;

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "served_by_zram",
    suspect: "compressed RAM disk",
    within: &["swapping", "memory_limit", "reclaim_direct"],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let devices = &run.view.facts().devices;
    let of_kind = devices.iter().filter(|d| d.kind == DeviceKind::Zram);
    let names = of_kind.map(|device| device.name.clone());
    // The counter that grew most, among the two places that may have one.
    let counter = |what: &str| {
        names
            .clone()
            .flat_map(|name| [format!("zram.{name}.{what}"), format!("disk.{name}.{what}")])
            .filter_map(|name| run.grew(&name).map(|grown| (name, grown)))
            .max_by_key(|(_, grown)| *grown)
    };
    let (Some(reads), Some(writes)) = (counter("reads"), counter("writes")) else {
        return Verdict::Silent;
    };
    let ins = (reads.0.as_str(), reads.1);
    let outs = (writes.0.as_str(), writes.1);
    card(run, RULE.id, "Compressed RAM (zram)", ins, outs)
}
