//! Memory was touched for the first time, page by page.
//!
//! Each page costs a fault, in which the kernel finds and clears it. The count is exact; the time
//! is known where processors were sampled, else only that it is no more than the kernel's. Where
//! the host's price dominates, `memory_backed_lazily` speaks.

use super::touched::{Touched, touched};
use super::{RunVerdict, RunView, memory_backed_lazily};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::duration::show_ns;
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

/// Fewer faults are not worth a word without their time: 64 MiB of pages. Picked.
const LEAST_FAULTS: u64 = 16_384;

/// Nor are those that are few beside the kernel time: from this price on it is the host's, or that
/// of other work. Picked: 0.3 us was seen on bare metal, 1 to 3 us in a guest.
const MOST_FAULT_NS: u64 = 4_000;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let Some(touched) = touched(run) else {
        return sampled_alone(run);
    };
    let faults = touched.evidence();
    if !matters(run, &touched) {
        return clear_count(Some(faults), "faults");
    }
    if memory_backed_lazily::check(run).is_ok() {
        return Err(NoFinding::Nothing);
    }
    let counted = count(touched.faults);
    let (grade, claim) = match &touched.time {
        Some(time) => (
            Grade::Measured,
            format!(
                "Took {} for the first touch of memory: {counted} page faults, at most {} each",
                long_time(time.ns as f64),
                // Other faults are in the count, so a first touch cost no less.
                show_ns(time.high_ns as f64 / touched.faults.max(1) as f64),
            ),
        ),
        None => (
            Grade::Inferred,
            format!(
                "Took {counted} page faults, mostly for the first touch of memory: at most {}, \
                 all of the kernel time",
                long_time(touched.kernel_ns as f64),
            ),
        ),
    };
    let kernel = Evidence::time("kernel", touched.kernel_ns, "stime");
    let ns = touched.time.as_ref().map(|time| time.ns);
    let mut evidence = touched.time.map(|time| time.evidence).unwrap_or_default();
    evidence.extend([faults, kernel.seen_in(run.part_series(TimePart::Kernel))]);
    Ok(Cause::new(ns, with_details(run, Finding::new(grade, claim, evidence))))
}

/// The verdict where faults were not counted, as those of a whole machine.
fn sampled_alone(run: &RunView) -> RunVerdict {
    let time = run.sampled(TimePart::FirstTouch).ok_or(NoFinding::Nothing)?;
    if !run.hurts(time.low_ns) {
        return Err(time.cleared());
    }
    let claim = format!("Took {} for the first touch of memory", long_time(time.ns as f64));
    let finding = Finding::new(Grade::Measured, claim, time.evidence);
    Ok(Cause::new(Some(time.ns), with_details(run, finding)))
}

fn with_details(run: &RunView, finding: Finding) -> Finding {
    finding
        .and(run.part_evidence(TimePart::CopyOnWrite))
        .and(run.all_grown(&["trace.faults.user", "vmstat.thp_fault_alloc"]))
        .confirm("terrace measure faults")
}

fn matters(run: &RunView, touched: &Touched) -> bool {
    match &touched.time {
        Some(time) => run.hurts(time.low_ns),
        None => {
            let is_mostly_faults = touched.faults >= LEAST_FAULTS
                && touched.kernel_ns / touched.faults <= MOST_FAULT_NS;
            let most_ns = touched.most_ns(run).filter(|_| is_mostly_faults);
            most_ns.is_some_and(|ns| run.hurts_by_estimate(ns))
        }
    }
}
