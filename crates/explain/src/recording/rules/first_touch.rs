//! Memory was touched for the first time, page by page.
//!
//! Each page costs a fault, in which the kernel finds and clears it. The count is exact, the
//! time an estimate. Where the host's price dominates, `memory_backed_lazily` speaks.

use super::cause::CauseBuilder;
use super::run_view::clear_count;
use super::touched::touched;
use super::{Rank, Rule, RunView, Verdict, memory_backed_lazily};
use crate::wording::{count, long_time};
use model::explanation::TimePart;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "first_touch",
    suspect: "first touch of memory",
    within: &[],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let Some(touched) = touched(run) else {
        return Verdict::Silent;
    };
    let faults = touched.evidence();
    if !run.hurts_by_estimate(touched.ns) {
        return clear_count(Some(faults), "faults");
    }
    if memory_backed_lazily::blames(run) {
        return Verdict::Silent;
    }
    let claim = format!(
        "About {} for the first touch of memory: {} page faults",
        long_time(touched.ns as f64),
        count(touched.faults),
    );
    let kernel = Evidence::new("kernel", touched.kernel_ns as f64, "ns", "stime");
    let mut evidence = vec![faults, kernel.seen_in(run.part_series(TimePart::Kernel))];
    evidence.extend(run.part_evidence(TimePart::CopyOnWrite));
    evidence.extend(run.all_grown(&["trace.faults.user", "vmstat.thp_fault_alloc"]));
    CauseBuilder::new(RULE.id, Some(touched.ns), Grade::Inferred, claim, evidence)
        .remedy(
            "Reuse memory instead of freeing and allocating it, or ask for huge pages \
             (madvise). Risk: both hold more memory than is in use.",
        )
        .confirm("terrace measure faults")
        .found()
}
