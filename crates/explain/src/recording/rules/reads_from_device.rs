//! Threads waited for reads from a device.
//!
//! With events the kernel's stack at each wait says that it was a read. Without them block
//! I/O is a wait for reads only where bytes were read and few were written, as writers that
//! are held back wait in the same state.

use super::cause::CauseBuilder;
use super::device::{Way, busiest};
use super::refaults::refaults;
use super::run_view::{clear, needs_events, part_of};
use super::waits::ReadWait;
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{long_time, survey_path};
use model::Evidence;
use model::explanation::{TimePart, TimeSlice};

/// The rule.
pub(super) const RULE: Rule =
    Rule { id: "reads_from_device", suspect: "reads", within: &[], rank: Rank::Timed, check };

fn check(run: &RunView) -> Verdict {
    let read = run.read_bytes();
    let counted = read.map(|bytes| {
        Evidence::new("read_bytes", bytes as f64, "bytes", "/proc/PID/io")
            .seen_in(["tree.read_bytes"])
    });
    let (mut ns, grade) = match run.read_wait() {
        ReadWait::Ns { ns, grade } => (ns, grade),
        ReadWait::Nothing => return clear(counted),
        ReadWait::Unclear(why) => return unclear(run, why, counted),
    };
    // What a memory limit made it read again is told with the limit.
    let again = refaults(run).filter(|again| again.are_most_reads_at_a_limit());
    let again = again.filter(|again| run.hurts(again.ns));
    if let Some(again) = &again {
        ns -= part_of(ns, again.share);
    }
    if !run.hurts(ns) {
        if again.is_some() {
            return Verdict::Silent;
        }
        return Verdict::Clear(wait_evidence(run, ns));
    }
    let traffic = busiest(run, Way::Read);
    let mut claim = format!("Waited {} for reads", long_time(ns as f64));
    if again.is_some() {
        claim.push_str(" of data not read before");
    }
    let mut evidence = vec![wait_evidence(run, ns)];
    evidence.extend(counted);
    if let Some(traffic) = &traffic {
        claim.push_str(&format!(" from {}: {}", traffic.place(), traffic.description("reads")));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    let cause = CauseBuilder::new(RULE.id, Some(ns), grade, claim, evidence);
    match traffic.and_then(|traffic| traffic.mount) {
        Some(mount) => cause.confirm(survey_path(mount)).found(),
        None => cause.found(),
    }
}

/// The wait as evidence: of the events, or of all block I/O where it was concluded from that.
fn wait_evidence(run: &RunView, ns: u64) -> Evidence {
    let parts = [TimePart::BlockRead, TimePart::DirectIo];
    let series = parts.iter().flat_map(|part| run.part_series(*part));
    Evidence::new("waited for reads", ns as f64, "ns", "block I/O")
        .seen_in(series.chain(run.slice_series(TimeSlice::BlockIo)))
}

/// Unseen only where there was a wait that could be one for reads.
fn unclear(run: &RunView, why: &'static str, counted: Option<Evidence>) -> Verdict {
    let accounts = run.accounts;
    let nameless =
        accounts.thread(TimeSlice::BlockIo).saturating_add(accounts.thread(TimeSlice::Unexplained));
    if run.hurts(nameless) { needs_events(why) } else { clear(counted) }
}
