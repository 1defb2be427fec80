//! Memory was touched for the first time, page by page.
//!
//! Each page costs a fault, in which the kernel finds and clears it. The count is exact, the
//! time an estimate. Where the host's price dominates, `memory_backed_lazily` speaks.

use super::touched::touched;
use super::{RunVerdict, RunView, memory_backed_lazily};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let touched = touched(run).ok_or(NoFinding::Nothing)?;
    let faults = touched.evidence();
    if !run.hurts_by_estimate(touched.ns) {
        return clear_count(Some(faults), "faults");
    }
    if memory_backed_lazily::check(run).is_ok() {
        return Err(NoFinding::Nothing);
    }
    let claim = format!(
        "About {} for the first touch of memory: {} page faults",
        long_time(touched.ns as f64),
        count(touched.faults),
    );
    let kernel = Evidence::time("kernel", touched.kernel_ns, "stime");
    let evidence = [faults, kernel.seen_in(run.part_series(TimePart::Kernel))];
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .and(run.part_evidence(TimePart::CopyOnWrite))
        .and(run.all_grown(&["trace.faults.user", "vmstat.thp_fault_alloc"]))
        .remedy(
            "Reuse memory instead of freeing and allocating it, or ask for huge pages \
             (madvise). Risk: both hold more memory than is in use.",
        )
        .confirm("terrace measure faults");
    Ok(Cause::new(Some(touched.ns), finding))
}
