//! A memory limit of a control group made the subject free memory, swap, or read again.
//!
//! The limit counts as reached by the kernel's own count. Its price is the time of freeing
//! memory and of reading swapped pages back; where most reads are of data that it evicted,
//! those too, with the processor time that reading takes. Reaching a limit costs nothing while
//! clean cache can be dropped.

use super::caused::CausedRun;
use super::limited::{HeldGroup, evidence, in_words, none_held, others};
use super::limits::{LimitHit, counted, reached, reached_by};
use super::refaults::{refaults, stream_of_a_process};
use super::run_view::needs_events;
use super::swapped::{reclaim_ns, swapped};
use super::swapping::swap_in;
use super::{RunVerdict, RunView};
use crate::recording::limited::{self, LimitedGroup};
use crate::recording::who::quantity::Quantity;
use crate::recording::who::shares;
use crate::verdict::{NoFinding, clear, clear_count};
use crate::wording::{long_time, often};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::recording::{Ending, ProcessFigure};
use model::{Bytes, Evidence, Finding, Grade};
use std::cmp::Reverse;

/// Of groups without series of their own.
const OTHERS: &str = "memory.hits";

/// What the limit cost, by what had to be done.
pub(super) struct Price {
    freeing_ns: Option<u64>,
    swap_in_ns: u64,
    /// Waiting for what is read again.
    reread_ns: u64,
    /// On the processor meanwhile, as sampled.
    reread_run: CausedRun,
    /// The same for pages from swap.
    swap_run: CausedRun,
}

impl Price {
    /// What of it is on processors.
    pub(super) fn run_ns(&self) -> u64 {
        self.freeing_ns.unwrap_or(0).saturating_add(self.caused_ns())
    }

    /// What its waits caused on processors.
    fn caused_ns(&self) -> u64 {
        self.reread_run.ns.saturating_add(self.swap_run.ns)
    }

    fn ns(&self) -> u64 {
        let parts = [self.swap_in_ns, self.reread_ns, self.caused_ns()];
        parts.iter().fold(self.freeing_ns.unwrap_or(0), |sum, ns| sum.saturating_add(*ns))
    }

    /// `1.2 s to free memory, 3 s to read swap`.
    fn description(&self) -> String {
        let parts = [
            (self.freeing_ns.unwrap_or(0), "to free memory"),
            (self.swap_in_ns, "to read swap back"),
            (self.swap_run.ns, "of processor time for it"),
            (self.reread_ns, "to read files again"),
            (self.reread_run.ns, "of processor time to read them"),
        ];
        let costly = parts.iter().filter(|(ns, _)| *ns > 0);
        let texts = costly.map(|(ns, what)| format!("{} {what}", long_time(*ns as f64)));
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// The limit and its time, if it is a cause.
pub(super) fn at_fault(run: &RunView) -> Option<(LimitHit, u64)> {
    let hit = reached(run)?;
    let ns = price(run).ns().min(run.accounts.thread_ns);
    run.hurts(ns).then_some((hit, ns))
}

pub(super) fn price(run: &RunView) -> Price {
    let swap_in_ns = swapped(run).map_or(0, |swap| swap_in(run, &swap).0);
    let again = refaults(run).filter(|again| again.are_most_reads_at_a_limit());
    let share = again.as_ref().map_or(0.0, |again| again.share);
    Price {
        freeing_ns: reclaim_ns(run),
        swap_in_ns,
        reread_ns: again.as_ref().map_or(0, |again| again.ns),
        reread_run: CausedRun::of(run, run.sampled_device_reads(), share),
        swap_run: CausedRun::of(run, run.sampled(TimePart::SwapFault), 1.0),
    }
}

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return of_machine(run);
    }
    if reached(run).is_none() {
        return clear_count(counted(run), "refusals");
    }
    let ending = run.recording().outcome.as_ref().map(|outcome| &outcome.ending);
    let killed = matches!(ending, Some(Ending::Killed { out_of_memory: Some(_), .. }));
    if killed && at_fault(run).is_none() {
        // It is to blame for the end, which is reported first, and for no time.
        return Err(NoFinding::Nothing);
    }
    let price = price(run);
    let Some((hit, ns)) = at_fault(run) else {
        return cheap(run, &price);
    };
    let claim =
        format!("Reached the {} {}: {}", hit.description(), often(hit.times), price.description(),);
    let grade = if price.reread_ns == 0 { Grade::Measured } else { Grade::Inferred };
    let finding = Finding::new(grade, claim, hit.evidence)
        .and(run.part_evidence(TimePart::DirectReclaim))
        .and(run.part_evidence(TimePart::ReclaimThrottle));
    let own_ns = ns.saturating_sub(price.caused_ns());
    let cause = price.swap_run.add_to(Cause::new(Some(own_ns), finding));
    Ok(price.reread_run.add_to(cause))
}

/// A limit that was reached and cost little, or at a price that is not known.
fn cheap(run: &RunView, price: &Price) -> RunVerdict {
    if refaults(run).is_some_and(|again| run.hurts(again.ns)) {
        // The cache's size is blamed, and names this limit.
        return Err(NoFinding::Nothing);
    }
    let nameless = run.accounts.thread(TimeSlice::Unexplained);
    if price.freeing_ns.is_none() && run.hurts(nameless) {
        return needs_events(run, "the time of freeing memory is not known");
    }
    let lost = Evidence::time("lost at the memory limit", price.ns(), "events");
    let freeing = [TimePart::DirectReclaim, TimePart::ReclaimThrottle];
    Err(NoFinding::Cleared(lost.seen_in(freeing.iter().flat_map(|part| run.part_series(*part)))))
}

/// Of the whole machine: every group that reached its limit, the dearest first.
fn of_machine(run: &RunView) -> RunVerdict {
    let held = held_groups(run);
    if held.is_empty() {
        return none_held(run, OTHERS);
    }
    let ns = lost_ns(&held);
    if !run.hurts(ns) {
        if held.iter().all(|one| one.is_timed) {
            return clear(Some(Evidence::time("lost at memory limits", ns, "who")));
        }
        return Err("what it costs groups to be at their memory limit is not known".into());
    }
    let lost = long_time(ns as f64);
    let names = in_words(&held, others(run, OTHERS) > 0);
    let claim = format!(
        "Lost {lost} at memory limits, freeing memory and reading evicted data again: {names}"
    );
    Ok(Cause::new(Some(ns), Finding::new(Grade::Inferred, claim, evidence(&held))))
}

/// What all groups of the machine lost at their limits; 0 of another subject.
pub(super) fn lost_in_groups_ns(run: &RunView) -> u64 {
    if run.is_machine() { lost_ns(&held_groups(run)) } else { 0 }
}

fn lost_ns(held: &[HeldGroup]) -> u64 {
    held.iter().fold(0, |sum: u64, one| sum.saturating_add(one.ns))
}

/// Every group of the machine that reached its limit, the dearest first.
fn held_groups<'a>(run: &RunView<'a>) -> Vec<HeldGroup<'a>> {
    let groups = limited::held(run, |group| reached_by(run, group).is_some());
    let mut held: Vec<HeldGroup> =
        groups.into_iter().filter_map(|group| held_group(run, group)).collect();
    held.retain(HeldGroup::is_worth_naming);
    held.sort_by_key(|one| Reverse(one.ns));
    held
}

/// What the processes in a group lost for lack of memory. Reading again what one of them evicted
/// by streaming through the group's cache is the stream's price, at any limit.
fn lost_at_limit_ns<'a>(run: &RunView<'a>, group: &LimitedGroup<'a>) -> Option<u64> {
    let lost = group.used(run, Quantity::LackOfMemory)?;
    let own = group.own_processes(run)?;
    let again = own.iter().fold(0, |sum: u64, process| {
        sum.saturating_add(process.get(ProcessFigure::Refaulted).value)
    });
    let price = stream_of_a_process(&own, again).and_then(|_| shares::refault_wait_ns(&own));
    Some(lost.saturating_sub(price.unwrap_or(0)))
}

/// A group that reached its memory limit, and what that cost the processes in it: freeing memory,
/// and waiting for what had been evicted or swapped. Where they were not watched, the kernel's
/// count of stalls.
fn held_group<'a>(run: &RunView<'a>, group: LimitedGroup<'a>) -> Option<HeldGroup<'a>> {
    let hit = reached_by(run, &group)?;
    let by_processes = lost_at_limit_ns(run, &group);
    let stalled = group.growth(run, "pressure.memory.some_ns");
    let known = by_processes.or(stalled);
    let ns = known.unwrap_or(0);
    let limit = hit.limit_bytes.map(|bytes| format!("limit {}, ", Bytes(bytes)));
    let words = format!(
        "{} ({}reached {})",
        long_time(ns as f64),
        limit.unwrap_or_default(),
        often(hit.times)
    );
    Some(HeldGroup { group, ns, is_timed: known.is_some(), words, evidence: hit.evidence })
}
