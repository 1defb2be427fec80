//! Time that no other finding accounts for, where it is more than a person may hope to notice:
//! each slice says what its parts know of it.
//!
//! Judged after all others, so that nothing is said twice. Such a finding accounts for the parts
//! that it names and for no more.

use super::run_view::needs_events;
use super::{RunVerdict, RunView};
use crate::recording::coverage::Coverage;
use crate::verdict::NoFinding;
use crate::wording::{list, long_time};
use model::explanation::{Cause, TimePart, TimeSlice};
use model::recording::SourceState;
use model::{Evidence, Finding, Grade};

/// So many parts are named.
const MOST_NAMED: usize = 4;

/// What the kernel did on processors.
pub(super) fn kernel_time(run: &RunView, coverage: &Coverage) -> RunVerdict {
    let rest = coverage.slice(TimeSlice::Run).ok_or(NoFinding::Nothing)?;
    let Some(samples) = run.processor_samples() else {
        return undivided(run, rest.rest_ns());
    };
    let time = samples.kernel(run.run_ns());
    if !run.hurts(time.low_ns.saturating_sub(rest.covered_ns)) {
        return Err(NoFinding::Nothing);
    }
    let (named, ns) = rest.named_rest(MOST_NAMED);
    let claim = format!("Ran in the kernel for {}{}", long_time(rest.rest_ns() as f64), of(named));
    Ok(Cause::new(Some(ns), Finding::new(Grade::Measured, claim, time.evidence)))
}

/// Time in the kernel of which nothing is known but its length.
fn undivided(run: &RunView, ns: u64) -> RunVerdict {
    let sight = run.facts().sight("events.cpu");
    // A closed sight speaks for itself, and so do too few samples.
    let is_listed =
        !matches!(sight, SourceState::NotAsked) || run.sum("trace.cpu.samples").is_some();
    if is_listed || run.accounts.part(TimePart::Kernel).is_none() || !run.hurts(ns) {
        return Err(NoFinding::Nothing);
    }
    needs_events(run, "what the kernel did is known by samples of the processors only")
}

/// What threads waited for in block I/O.
pub(super) fn block_io(run: &RunView, coverage: &Coverage) -> RunVerdict {
    let rest = coverage.slice(TimeSlice::BlockIo).ok_or(NoFinding::Nothing)?;
    let (rest_ns, (named, ns)) = (rest.rest_ns(), rest.named_rest(MOST_NAMED));
    // Without events the wait is one number, and may be charged from a wrong start.
    if named.is_empty() || !run.has_wait_classes() || !run.hurts(rest_ns) {
        return Err(NoFinding::Nothing);
    }
    let claim = format!("{} for other block I/O{}", run.waited(rest_ns), of(named));
    let slice = run.slice_series(TimeSlice::BlockIo);
    let waited = Evidence::time("block I/O", rest_ns.saturating_add(rest.covered_ns), "accounting");
    let mut evidence = vec![waited.seen_in(slice)];
    evidence.extend(run.part_evidence(TimePart::BlockOther));
    Ok(Cause::new(Some(ns), Finding::new(run.slice_grade(TimeSlice::BlockIo), claim, evidence)))
}

/// What all threads slept on at once.
pub(super) fn sleep(run: &RunView, coverage: &Coverage) -> RunVerdict {
    let asleep = coverage.slice(TimeSlice::Sleep).filter(|_| !run.is_machine());
    let rest = asleep.ok_or(NoFinding::Nothing)?;
    let (rest_ns, (named, ns)) = (rest.rest_ns(), rest.named_rest(MOST_NAMED));
    if named.is_empty() || !run.hurts(rest_ns) {
        return Err(NoFinding::Nothing);
    }
    let claim =
        format!("All threads slept {} on something else{}", long_time(rest_ns as f64), of(named));
    let wall_ns = run.accounts.wall(TimeSlice::Sleep);
    let evidence = Evidence::time("all threads asleep", wall_ns, "events").seen_in(
        ["trace.wall.asleep_ns"]
            .map(str::to_owned)
            .into_iter()
            .chain(run.slice_series(TimeSlice::Sleep)),
    );
    Ok(Cause::new(Some(ns), Finding::new(run.slice_grade(TimeSlice::Sleep), claim, [evidence])))
}

/// `: openat call 0.9 s and faults on files 0.2 s`.
fn of(named: Vec<String>) -> String {
    if named.is_empty() { String::new() } else { format!(": {}", list(&named)) }
}
