//! Threads waited until what they wrote was on its device.
//!
//! A few large waits: a sync at the end, writes that bypass the cache. Many small ones are
//! the affair of `small_sync_writes`.

use super::cause::CauseBuilder;
use super::device::{Way, busiest};
use super::run_view::clear;
use super::{Rank, Rule, RunView, Verdict, dirty_throttle, small_sync_writes};
use crate::wording::{long_time, survey_path};
use model::explanation::TimePart;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule =
    Rule { id: "writes_to_device", suspect: "writes", within: &[], rank: Rank::Timed, check };

fn check(run: &RunView) -> Verdict {
    let Some(ns) = run.write_wait_ns() else {
        return Verdict::Silent;
    };
    let parts = [TimePart::Flush, TimePart::BlockWrite, TimePart::DirectIo];
    let measured = Evidence::new("waited for writes", ns as f64, "ns", "events")
        .seen_in(parts.iter().flat_map(|part| run.part_series(*part)));
    if !run.hurts(ns) {
        return clear(Some(measured));
    }
    if run.part_grade(TimePart::BlockWrite) == Grade::Inferred && dirty_throttle::blames(run) {
        // Without events the same wait was taken for both.
        return Verdict::Silent;
    }
    if small_sync_writes::syncs(run).is_some_and(|syncs| syncs.are_small()) {
        return Verdict::Silent;
    }
    let mut claim = format!("Waited {} for writes", long_time(ns as f64));
    let mut evidence = vec![measured];
    let traffic = busiest(run, Way::Write);
    if let Some(traffic) = &traffic {
        claim.push_str(&format!(" to {}: {}", traffic.place(), traffic.description("writes")));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    evidence.extend(run.part_evidence(TimePart::Flush));
    let longest = parts.into_iter().max_by_key(|part| run.part_ns(*part));
    let grade = run.part_grade(longest.unwrap_or(TimePart::Flush));
    let cause = CauseBuilder::new(RULE.id, Some(ns), grade, claim, evidence);
    match traffic.and_then(|traffic| traffic.mount) {
        Some(mount) => cause.confirm(survey_path(mount)).found(),
        None => cause.found(),
    }
}
