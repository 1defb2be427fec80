//! The host found memory for this guest only when it was first touched.
//!
//! The kernel time for each new page is several times the usual, and no counter of the guest
//! explains it: nothing was freed, swapped or compacted. Only for a subject that mostly takes
//! new memory, as its kernel time is then mostly the price of pages; and not where the
//! processor is emulated, as everything is dear there. Where processors were sampled, the time
//! of first touches is the price, and nothing else of the kernel's. What a survey of this machine
//! measured for a new page is quoted beside it.

use super::run_view::ratio;
use super::touched::{grown_bytes, is_emulated, touched};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::{count, long_time};
use model::duration::show_ns;
use model::explanation::Cause;
use model::{Evidence, Finding, Grade};

/// The least price of a page. Picked: 1.5 us was seen on memory touched before, 6 to 11 us
/// on memory that the host had yet to find.
const LEAST_PAGE_NS: f64 = 4_000.0;

/// The least part of the pages that the subject must still hold: one that takes and gives
/// back memory all the time reuses what the host has found already.
const LEAST_HELD: f64 = 0.4;

/// Fewer pages say nothing: 64 MiB.
const LEAST_PAGES: u64 = 16_384;

/// What moving a byte through a call costs. Picked: 5 GB/s, cached data in a guest.
const CALL_BYTE_NS: f64 = 0.2;

/// What rises when something else made pages dear.
const OTHER_CAUSES: [&str; 8] = [
    "vmstat.pgscan_direct",
    "vmstat.pswpin",
    "vmstat.pswpout",
    "vmstat.swpout_zero",
    "vmstat.compact_stall",
    "vmstat.thp_fault_alloc",
    "vmstat.thp_fault_fallback",
    "group0.memory.failcnt",
];

pub(super) fn check(run: &RunView) -> RunVerdict {
    let machine = run.facts().machine.as_ref();
    let is_guest = machine.is_some_and(|machine| {
        let kind = machine.virtualization.as_deref();
        kind.is_some_and(|kind| !kind.contains("container")) && !is_emulated(run)
    });
    let touched = touched(run).filter(|_| is_guest).ok_or(NoFinding::Nothing)?;
    let page_bytes = run.page_bytes();
    let shared = run
        .at_start("meminfo.Shmem")
        .zip(run.max("meminfo.Shmem"))
        .map_or(0, |(start, most)| u64::try_from(most.saturating_sub(start)).unwrap_or(0));
    // Pages of a RAM disk are taken by write calls, without a fault.
    let written = shared.min(run.write_chars().unwrap_or(0));
    let pages = touched.faults.saturating_add(written / page_bytes);
    let held = grown_bytes(run).saturating_add(written) / page_bytes;
    let calls = run.read_chars().unwrap_or(0).saturating_add(run.write_chars().unwrap_or(0));
    let calls_ns = (calls as f64 * CALL_BYTE_NS) as u64;
    let sampled = touched.time.clone();
    let ns = match &sampled {
        Some(time) => time.ns,
        None => touched.kernel_ns.saturating_sub(calls_ns),
    };
    let paid = if sampled.is_some() { touched.faults } else { pages };
    let each = ratio(ns as f64, paid as f64);
    let others = run.growth_of_all(&OTHER_CAUSES).unwrap_or(0);
    let what =
        if sampled.is_some() { "time of each first touch" } else { "kernel time for each page" };
    let measured =
        Evidence::new(what, each, "ns", "stime").seen_in(["tree.minor_faults", "tree.system_ns"]);
    if pages < LEAST_PAGES || each < LEAST_PAGE_NS || !run.hurts_by_estimate(ns) {
        return clear(Some(measured).filter(|_| pages >= LEAST_PAGES));
    }
    if others > pages / 100 || (held as f64) < pages as f64 * LEAST_HELD {
        return Err(NoFinding::Nothing);
    }
    let mut claim = format!(
        "About {} until the host found memory: {} for each of {} new pages, and no counter moved",
        long_time(ns as f64),
        show_ns(each),
        count(paid),
    );
    let surveyed = run.facts().new_memory.as_ref().filter(|price| price.page_ns > 0.0);
    if let Some(price) = surveyed {
        let expected_ns = price.page_ns * paid as f64;
        claim.push_str(&format!(
            "; the survey of this machine measured {} for a new page, {} for so many",
            show_ns(price.page_ns),
            long_time(expected_ns),
        ));
    }
    let mut evidence = vec![measured, touched.evidence()];
    evidence.extend(sampled.into_iter().flat_map(|time| time.evidence));
    let scanned = run.grown("vmstat.pgscan_direct");
    evidence.extend(scanned.into_iter().chain(run.grown("vmstat.pswpout")));
    evidence.extend(surveyed.map(|price| {
        Evidence::new("price of a new page by survey", price.page_ns, "ns", "terrace survey")
    }));
    // A survey is kept, and the next recording quotes it.
    let confirm = if surveyed.is_some() { "terrace measure faults" } else { "terrace survey" };
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .remedy("Touch memory before it is needed and keep it. Risk: it is then missing elsewhere.")
        .confirm(confirm);
    Ok(Cause::new(Some(ns), finding))
}
