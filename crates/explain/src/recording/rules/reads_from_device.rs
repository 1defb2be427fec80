//! Threads waited for reads from a device.
//!
//! With events the kernel's stack at each wait says that it was a read. Without them block
//! I/O is a wait for reads only where bytes were read and few were written, as writers that
//! are held back wait in the same state.

use super::caused::CausedRun;
use super::device::{Direction, busiest};
use super::refaults::refaults;
use super::run_view::needs_events;
use super::waits::ReadWait;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::survey_path;
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let read = run.read_bytes();
    let counted = read.map(|bytes| {
        Evidence::bytes("read_bytes", bytes, "/proc/PID/io").seen_in(["tree.read_bytes"])
    });
    let (mut ns, grade) = match run.read_wait() {
        ReadWait::Ns { ns, grade } => (ns, grade),
        ReadWait::Nothing => return clear(counted),
        ReadWait::Unclear(why) => return unclear(run, why, counted),
    };
    // If most of it was read again, the finding on what evicted it has that time.
    let again = refaults(run).filter(|again| again.are_most_reads() && run.hurts(again.ns));
    if let Some(again) = &again {
        ns = ns.saturating_sub(again.ns);
    }
    if !run.hurts(ns) {
        if again.is_some() {
            return Err(NoFinding::Nothing);
        }
        return Err(NoFinding::Cleared(wait_evidence(run, ns)));
    }
    let share = again.as_ref().map_or(1.0, |again| 1.0 - again.share);
    let caused = CausedRun::of(run, run.sampled_device_reads(), share);
    let traffic = busiest(run, Direction::Read);
    let mut claim = format!("{} for reads", run.waited(ns));
    if again.is_some() {
        claim.push_str(" of data not read before");
    }
    let mut evidence = vec![wait_evidence(run, ns)];
    evidence.extend(counted);
    if let Some(traffic) = &traffic {
        // The requests are all of them, those for what is read again too.
        let from = if again.is_some() { "; all reads from" } else { " from" };
        claim.push_str(&format!("{from} {}: {}", traffic.place(), traffic.description("reads")));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    claim.push_str(&caused.words());
    let confirm = traffic.and_then(|traffic| traffic.mount).map(survey_path);
    let finding = Finding { confirm, ..Finding::new(grade, claim, evidence) };
    Ok(caused.add_to(Cause::new(Some(ns), finding)))
}

/// The wait as evidence: of the events, or of all block I/O where it was concluded from that.
fn wait_evidence(run: &RunView, ns: u64) -> Evidence {
    let parts = [TimePart::BlockRead, TimePart::DirectIo];
    let series = parts.iter().flat_map(|part| run.part_series(*part));
    Evidence::time("waited for reads", ns, "block I/O")
        .seen_in(series.chain(run.slice_series(TimeSlice::BlockIo)))
}

/// Unseen only where there was a wait that could be one for reads.
fn unclear(run: &RunView, why: &'static str, counted: Option<Evidence>) -> RunVerdict {
    let accounts = run.accounts;
    let nameless =
        accounts.thread(TimeSlice::BlockIo).saturating_add(accounts.thread(TimeSlice::Unexplained));
    if run.hurts(nameless) { needs_events(run, why) } else { clear(counted) }
}
