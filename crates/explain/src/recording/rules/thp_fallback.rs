//! Huge pages were wanted and small ones given, so that memory took many more faults.
//!
//! The kernel counts both for the whole machine; it is the subject's affair only where its
//! own faults are as many as the small pages that it got instead. Their part of the faults has
//! that part of the time of first touches, which is known where processors were sampled.

use super::run_view::{part_of, ratio};
use super::touched::touched;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time, percent};
use model::explanation::Cause;
use model::{Finding, Grade};

/// The least share of requests that fell back. Picked: most of them.
const LEAST_SHARE_FELL: f64 = 0.5;

/// Fewer say nothing: 64 MiB.
const LEAST_FELL: u64 = 32;

/// Small pages in a huge one of 2 MiB.
const SMALL_PAGES: u64 = 512;

/// The least part of the small pages that the subject touched.
const LEAST_TOUCHED: f64 = 0.5;

/// Those that a full control group refused, however much memory there was in one piece.
const CHARGE: &str = "vmstat.thp_fault_fallback_charge";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let fell = run.growth("vmstat.thp_fault_fallback");
    let (Some(fell), Some(given)) = (fell, run.growth("vmstat.thp_fault_alloc")) else {
        return Err(NoFinding::Nothing);
    };
    let measured = run.grown("vmstat.thp_fault_fallback");
    let share = ratio(fell as f64, fell.saturating_add(given) as f64);
    let small = fell.saturating_mul(SMALL_PAGES);
    let Some(touched) = touched(run) else {
        return clear_count(measured, "fallbacks");
    };
    let is_own = touched.faults as f64 >= small as f64 * LEAST_TOUCHED;
    let of_faults = ratio(small as f64, touched.faults as f64).min(1.0);
    let ns = touched.time.as_ref().map(|time| part_of(time.ns, of_faults));
    let most_ns = part_of(touched.most_ns(run).unwrap_or(0), of_faults);
    if fell < LEAST_FELL || share < LEAST_SHARE_FELL || !is_own || !run.hurts(most_ns) {
        return clear_count(measured, "fallbacks");
    }
    let claim = format!(
        "Huge pages were not to be had in {} of {} cases ({}): {} {} for small ones",
        count(fell),
        count(fell.saturating_add(given)),
        percent(share),
        if ns.is_some() { "about" } else { "at most" },
        long_time(most_ns as f64),
    );
    let finding = Finding::new(Grade::Inferred, claim, measured)
        .and(run.grown("vmstat.thp_fault_alloc"))
        .and([touched.evidence()])
        .and(run.all_grown(&[CHARGE, "vmstat.compact_fail", "vmstat.compact_stall"]))
        .remedy(remedy(run, fell))
        .confirm("terrace measure memlat");
    Ok(Cause::new(ns, finding))
}

/// A group that is full needs room; otherwise memory is in pieces.
fn remedy(run: &RunView, fell: u64) -> &'static str {
    if run.growth(CHARGE).is_some_and(|refused| refused > fell / 2) {
        "Raise the memory limit of its control group, which has no room for a large page. Risk: \
         less memory for others."
    } else {
        "Compact memory before the program starts (vm.compact_memory). Risk: it holds up others \
         for seconds."
    }
}
