//! The subject spent its time on processors, and nothing else hurt.
//!
//! Said only where no other finding accounts for much: it is what remains, not a fault.

use super::run_view::ratio;
use super::{RunVerdict, RunView, processor_stolen};
use crate::recording::coverage::Coverage;
use crate::verdict::{NoFinding, clear};
use crate::wording::{long_time, percent};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::{Evidence, Finding};

/// The least share of the time that was run. Picked: most of it.
const LEAST_RUN: f64 = 0.5;

pub(super) fn check(run: &RunView, coverage: &Coverage) -> RunVerdict {
    let run_ns = run.run_ns();
    if run.accounts.bars.thread.is_empty() {
        return Err(NoFinding::Nothing);
    }
    // What others claim of it: kernel time, and what the host took.
    let kernel = coverage.slice(TimeSlice::Run).map_or(0, |slice| slice.covered_ns);
    let stolen = processor_stolen::check(run).ok().and_then(|cause| cause.ns).unwrap_or(0);
    let ns = run_ns.saturating_sub(kernel).saturating_sub(stolen);
    // Events, delay accounting or samples: the bar knows whom it believed.
    let bar = &run.accounts.bars.thread;
    let run_slice = bar.iter().find(|slice| slice.name == TimeSlice::Run);
    let first = run_slice.and_then(|slice| slice.evidence.first());
    let source = first.map_or("/proc/PID/schedstat", |evidence| evidence.source.as_str());
    let measured = Evidence::time("run", run_ns, source);
    let mut evidence = vec![measured.seen_in(run.slice_series(TimeSlice::Run))];
    if !run.hurts(ns) || run.share(ns) < LEAST_RUN {
        return clear(evidence.pop());
    }
    // A machine's time is that of all its processors, a program's that which it could run.
    let (who, of_ns, what) = if run.is_machine() {
        ("The processors were busy", run.accounts.thread_ns, "")
    } else {
        ("Bound by the processor: ran", run.reference_ns(), " not asleep")
    };
    let mut claim =
        format!("{who} for {} of {}{what}", long_time(run_ns as f64), long_time(of_ns as f64),);
    if let (Some(user), Some(kernel)) = (run.user_ns(), run.kernel_ns()) {
        let both = user.saturating_add(kernel) as f64;
        claim.push_str(&format!(
            ", {} in user mode, {} in the kernel",
            percent(ratio(user as f64, both)),
            percent(ratio(kernel as f64, both)),
        ));
        for (name, ns, source) in
            [(TimePart::User, user, "utime"), (TimePart::Kernel, kernel, "stime")]
        {
            let half = Evidence::time(name.id(), ns, source);
            evidence.push(half.seen_in(run.part_series(name)));
        }
    }
    Ok(Cause::new(Some(ns), Finding::new(run.slice_grade(TimeSlice::Run), claim, evidence)))
}
