//! Threads waited until what they wrote was on its device.
//!
//! A few large waits: a sync at the end, writes that bypass the cache. Many small ones are
//! the affair of `small_sync_writes`.

use super::accused::Accused;
use super::case::clear;
use super::device::{Way, busiest};
use super::{Case, Rank, Rule, Verdict, dirty_throttle, small_sync_writes};
use crate::wording::{long_time, survey_path};
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "writes_to_device",
    suspect: "writes",
    within: &[],
    rank: Rank::Timed,
    check,
};

/// Waits for writes and syncs, where events told; direct I/O that mostly wrote with them.
pub(super) fn waited(case: &Case) -> Option<u64> {
    let is_written = case.write_bytes().unwrap_or(0) > case.read_bytes().unwrap_or(0);
    let direct = case.part_ns("direct_io").filter(|_| is_written);
    sum([waited_for_cached(case), direct])
}

/// The same for what went through the page cache.
pub(super) fn waited_for_cached(case: &Case) -> Option<u64> {
    let mut written = case.part_ns("block_write");
    if case.part_grade("block_write") == Grade::Inferred {
        // All that was charged for block I/O, which can be too long.
        let most = case.most_device_wait_ns().unwrap_or(u64::MAX);
        written = written.map(|ns| ns.min(most));
    }
    sum([case.part_ns("flush"), written])
}

fn sum<const N: usize>(known: [Option<u64>; N]) -> Option<u64> {
    let known = known.into_iter().flatten();
    known.fold(None, |sum, ns| Some(sum.unwrap_or(0u64).saturating_add(ns)))
}

fn check(case: &Case) -> Verdict {
    let Some(ns) = waited(case) else {
        return Verdict::Silent;
    };
    let parts = ["flush", "block_write", "direct_io"];
    let told = Evidence::new("waited for writes", ns as f64, "ns", "events")
        .seen_in(parts.iter().flat_map(|part| case.part_series(part)));
    if !case.hurts(ns) {
        return clear(Some(told));
    }
    if case.part_grade("block_write") == Grade::Inferred && dirty_throttle::blames(case) {
        // Without events the same wait was taken for both.
        return Verdict::Silent;
    }
    if small_sync_writes::syncs(case).is_some_and(|syncs| syncs.are_small()) {
        return Verdict::Silent;
    }
    let mut claim = format!("Waited {} for writes", long_time(ns as f64));
    let mut evidence = vec![told];
    let traffic = busiest(case, Way::Write);
    if let Some(traffic) = &traffic {
        claim.push_str(&format!(
            " to {}: {}",
            traffic.place(),
            traffic.told("writes")
        ));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    evidence.extend(case.part_evidence("flush"));
    let longest = parts.into_iter().max_by_key(|part| case.part_ns(part));
    let grade = case.part_grade(longest.unwrap_or_default());
    let accused = Accused::new(RULE.id, Some(ns), grade, claim, evidence);
    match traffic.and_then(|traffic| traffic.mount) {
        Some(mount) => accused.confirm(survey_path(mount)).blame(),
        None => accused.blame(),
    }
}
