//! Threads waited until what they wrote was on its device.
//!
//! A few large waits: a sync at the end, writes that bypass the cache. Many small ones are
//! the affair of `small_sync_writes`.

use super::caused::CausedRun;
use super::device::{Direction, busiest};
use super::{RunVerdict, RunView, dirty_throttle, small_sync_writes};
use crate::verdict::{NoFinding, clear};
use crate::wording::survey_path;
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ns = run.write_wait_ns().ok_or(NoFinding::Nothing)?;
    let parts = [TimePart::Flush, TimePart::BlockWrite, TimePart::DirectIo];
    let measured = Evidence::time("waited for writes", ns, "events")
        .seen_in(parts.iter().flat_map(|part| run.part_series(*part)));
    if !run.hurts(ns) {
        return clear(Some(measured));
    }
    if run.part_grade(TimePart::BlockWrite) == Grade::Inferred && dirty_throttle::check(run).is_ok()
    {
        // Without events the same wait was taken for both.
        return Err(NoFinding::Nothing);
    }
    if small_sync_writes::syncs(run).is_some_and(|syncs| syncs.are_small()) {
        return Err(NoFinding::Nothing);
    }
    let mut claim = format!("{} for writes", run.waited(ns));
    let mut evidence = vec![measured];
    let traffic = busiest(run, Direction::Write);
    if let Some(traffic) = &traffic {
        claim.push_str(&format!(" to {}: {}", traffic.place(), traffic.description("writes")));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    let caused = CausedRun::of(run, run.sampled_device_writes(), 1.0);
    claim.push_str(&caused.words());
    evidence.extend(run.part_evidence(TimePart::Flush));
    let longest = parts.into_iter().max_by_key(|part| run.part_ns(*part));
    let grade = run.part_grade(longest.unwrap_or(TimePart::Flush));
    let confirm = traffic.and_then(|traffic| traffic.mount).map(survey_path);
    let finding = Finding { confirm, ..Finding::new(grade, claim, evidence) };
    Ok(caused.add_to(Cause::new(Some(ns), finding)))
}
