//! Which processes and control groups waited for what came back, and their part of what more memory
//! would have spared: by their share of those waits.

use super::blocks::{Observation, part_of};
use model::advice::{AdviceUser, MemoryAdvice};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many are named.
const MOST_NAMED: usize = 5;

/// Who waited for less than this share of it is not named. Picked, as a finding's.
const LEAST_SHARE: f64 = 0.05;

/// The first processes, and the first groups.
pub(super) fn first(
    seen: &Observation,
    memory: &MemoryAdvice,
) -> (Vec<AdviceUser>, Vec<AdviceUser>) {
    let is_named = |more: i64| Some(more) == memory.named_bytes;
    let named = memory.sizes.iter().find(|gain| is_named(gain.more_bytes));
    let spared_ns = named.and_then(|gain| gain.spared).map_or(0, |spared| spared.ns);
    if named.is_none() {
        return (Vec::new(), Vec::new());
    }
    (ranked(&seen.processes, spared_ns), ranked(&seen.groups, spared_ns))
}

fn ranked(waits: &BTreeMap<String, u64>, spared_ns: u64) -> Vec<AdviceUser> {
    let all_ns = waits.values().fold(0, |all: u64, ns| all.saturating_add(*ns));
    let mut users: Vec<AdviceUser> = waits
        .iter()
        .map(|(label, &waited_ns)| AdviceUser {
            label: label.clone(),
            waited_ns,
            share: waited_ns as f64 / all_ns.max(1) as f64,
            spared_ns: part_of(spared_ns, waited_ns, all_ns),
        })
        .filter(|user| user.share >= LEAST_SHARE)
        .collect();
    users.sort_by_key(|user| Reverse(user.waited_ns));
    users.truncate(MOST_NAMED);
    users
}
