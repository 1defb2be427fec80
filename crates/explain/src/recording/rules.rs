//! The suspects: one file per rule; each finds a cause, clears the suspect, or says what it lacks.
//!
//! A rule blames on its own evidence only, and only for time that matters
//! ([`LEAST_SHARE`]); [`judge`] asks them all and puts what they said in order: a finding
//! that lies inside another one follows it. docs/findings.md lists the rules.

mod asleep;
mod cache_evicted_by_stream;
mod cache_hits_not_disk;
mod cache_too_small;
mod cause;
mod children_wait;
mod compaction;
mod cpu_bound;
mod cpu_contention;
mod cpu_limit;
mod device;
mod direct_io_odd;
mod dirty_throttle;
mod first_touch;
mod io_limit;
mod limits;
mod lock_contention;
mod memory_backed_lazily;
mod memory_limit;
mod misaligned_requests;
mod numa_remote;
mod out_of_memory;
mod processor_stolen;
mod proof;
mod read_ahead_large;
mod read_ahead_small;
mod reads_from_device;
mod reclaim_direct;
mod reclaim_throttled;
mod refaults;
mod run_view;
mod served_by_flash;
mod served_by_zram;
mod served_by_zswap;
mod small_sync_writes;
mod swapped;
mod swapping;
mod thp_fallback;
mod touched;
mod waits;
mod writeback_burst;
mod writes_to_device;
mod zero_pages_swapped;

use super::View;
use super::accounting::Accounts;
use model::Evidence;
use model::explanation::{Cause, ClearedCause, Unseen};
use std::cmp::Reverse;

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// The recording.
    pub view: &'a View<'a>,
    /// Its time.
    pub accounts: &'a Accounts,
}

/// What a rule says.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It hurt; one cause for each device, group or the like.
    Found(Vec<Cause>),
    /// It was checked and is not a cause; the number that clears it.
    Clear(Evidence),
    /// It does not apply here: there is no swap, no group, no quota.
    Silent,
    /// It could not be judged.
    Unseen {
        /// Why.
        why: String,
        /// What would make it visible.
        remedy: Option<String>,
    },
}

/// The rank of a rule's findings among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Before everything that is counted in time: the command was killed.
    Decisive,
    /// By its time.
    Timed,
    /// By its time, and only where nothing else accounts for much.
    Fallback,
}

/// One suspect.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A stable name for scripts: `cache_too_small`.
    pub id: &'static str,
    /// Its name in the list of cleared suspects: `small page cache`.
    pub suspect: &'static str,
    /// The rules inside of whose findings this one lies, the likeliest first; it stands
    /// alone where none of them found anything.
    pub within: &'static [&'static str],
    /// Where its findings stand.
    pub rank: Rank,
    /// Judges.
    pub check: fn(&RunView) -> Verdict,
}

/// Less than this share of the time that a subject is judged by is no finding. Picked: one
/// part in twenty is what a person may hope to notice.
pub const LEAST_SHARE: f64 = 0.05;

/// The same for wall time in which all threads slept, which is seldom shared.
pub const LEAST_ASLEEP_SHARE: f64 = 0.02;

/// A finding whose time is an estimate needs a wider margin. Picked: the estimate of a
/// fault's price is right within a factor of three.
pub const LEAST_ESTIMATED_SHARE: f64 = 0.2;

/// Less than this is no finding, however short the command was. Picked: too short to notice.
pub const LEAST_NS: u64 = 5_000_000;

/// A fallback is reported if no other finding has this share of its time.
const FALLBACK_SHARE: f64 = 0.25;

/// Every suspect, in the order in which cleared ones are listed.
pub const RULES: &[Rule] = &[
    out_of_memory::RULE,
    swapping::RULE,
    processor_stolen::RULE,
    cpu_limit::RULE,
    io_limit::RULE,
    memory_limit::RULE,
    dirty_throttle::RULE,
    reads_from_device::RULE,
    cache_too_small::RULE,
    cache_evicted_by_stream::RULE,
    read_ahead_small::RULE,
    read_ahead_large::RULE,
    direct_io_odd::RULE,
    misaligned_requests::RULE,
    writes_to_device::RULE,
    small_sync_writes::RULE,
    writeback_burst::RULE,
    cpu_contention::RULE,
    reclaim_direct::RULE,
    reclaim_throttled::RULE,
    zero_pages_swapped::RULE,
    served_by_zram::RULE,
    served_by_zswap::RULE,
    served_by_flash::RULE,
    memory_backed_lazily::RULE,
    first_touch::RULE,
    thp_fallback::RULE,
    compaction::RULE,
    numa_remote::RULE,
    cache_hits_not_disk::RULE,
    asleep::TIMER_SLEEP,
    asleep::SOCKET_WAIT,
    asleep::PIPE_WAIT,
    asleep::POLL_WAIT,
    lock_contention::RULE,
    asleep::FILE_LOCK_WAIT,
    asleep::FILE_SYSTEM_WAIT,
    children_wait::RULE,
    cpu_bound::RULE,
];

/// What all rules together say.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// What hurt, worst first.
    pub causes: Vec<Cause>,
    /// The suspects that are not a cause.
    pub cleared: Vec<ClearedCause>,
    /// Who could not be judged.
    pub unseen: Vec<Unseen>,
}

/// Asks every rule.
#[must_use]
pub fn judge(run: &RunView) -> Judged {
    let mut judged = Judged::default();
    let mut found = Vec::new();
    for rule in RULES {
        match (rule.check)(run) {
            Verdict::Found(causes) => found.extend(causes.into_iter().map(|cause| (rule, cause))),
            Verdict::Clear(evidence) => judged.cleared.push(ClearedCause {
                id: rule.id.to_owned(),
                name: rule.suspect.to_owned(),
                evidence,
            }),
            Verdict::Silent => {}
            Verdict::Unseen { why, remedy } => {
                judged.unseen.push(Unseen { what: rule.id.to_owned(), why, remedy })
            }
        }
    }
    drop_fallbacks(&mut found);
    judged.causes = in_order(found);
    judged
}

/// Leaves out the fallbacks beside which something else accounts for much.
fn drop_fallbacks(found: &mut Vec<(&'static Rule, Cause)>) {
    let others = found
        .iter()
        .filter(|(rule, _)| rule.rank != Rank::Fallback)
        .filter_map(|(_, cause)| cause.ns)
        .max()
        .unwrap_or(0);
    found.retain(|(rule, cause)| {
        let own = cause.ns.unwrap_or(0) as f64;
        rule.rank != Rank::Fallback || (others as f64) < own * FALLBACK_SHARE
    });
}

/// Roots by rank and time, each followed by what lies inside of it.
fn in_order(mut found: Vec<(&'static Rule, Cause)>) -> Vec<Cause> {
    // Stable: equals stay in the order of the rules.
    found.sort_by_key(|(rule, cause)| (rule.rank != Rank::Decisive, Reverse(cause.ns)));
    let ids: Vec<&str> = found.iter().map(|(rule, _)| rule.id).collect();
    let is_root = |rule: &'static Rule| root(rule, &ids) == rule.id;
    let (roots, inside): (Vec<_>, Vec<_>) = found.iter().partition(|(rule, _)| is_root(rule));
    let mut ordered: Vec<Cause> = roots.into_iter().map(|(_, cause)| cause.clone()).collect();
    for (rule, cause) in inside {
        let of = root(rule, &ids);
        let outer = ordered.iter().rposition(|other| other.finding.id == of);
        let mut at = outer.map_or(ordered.len(), |at| at + 1);
        while ordered.get(at).is_some_and(|next| next.within_previous) {
            at += 1;
        }
        let mut cause = cause.clone();
        cause.within_previous = outer.is_some();
        ordered.insert(at, cause);
    }
    ordered
}

/// The outermost of the findings that this rule's lie in; its own where it stands alone.
fn root(rule: &'static Rule, found: &[&str]) -> &'static str {
    let mut at = rule;
    // No chain is longer than the list of rules, whatever `within` says.
    for _ in RULES {
        let outer = at.within.iter().find(|id| found.contains(id));
        match outer.and_then(|id| RULES.iter().find(|known| known.id == *id)) {
            Some(next) => at = next,
            None => break,
        }
    }
    at.id
}
