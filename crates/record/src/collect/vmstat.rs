//! /proc/vmstat: the kernel's counts of what memory management did, and its levels in pages.
//!
//! Names come and go with kernels; each line becomes a series under its own name. The name shows
//! whether it is a level; the kernel's few exceptions are listed.

use super::STAT_INTERVAL_NS;
use super::keyed::Keyed;
use super::keyed::{keyed, plain};
use super::table::{Column, LineTable};
use machine::Root;
use model::recording::SeriesKind;

/// Named like levels, but they only grow.
const COUNTERS: [&str; 8] = [
    "nr_dirtied",
    "nr_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_iowait",
];
/// Named like counters, but levels.
const LEVELS: [&str; 1] = ["workingset_nodes"];
/// Computed for each reading, so never old.
const COMPUTED: [&str; 2] = ["nr_dirty_threshold", "nr_dirty_background_threshold"];
/// Counted for each CPU apart and folded into the total only once in a while, beside `nr_*`.
const FOLDED: [&str; 9] = [
    "workingset_",
    "pgpromote_",
    "pgdemote_",
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "numa_interleave",
    "numa_local",
    "numa_other",
];

/// The file, where there is one.
pub(super) fn open(root: &Root) -> Option<LineTable<Keyed>> {
    keyed(root, "/proc/vmstat", "vmstat", columns)
}

fn columns(prefix: &str, key: &str) -> Vec<Column> {
    let level = (key.starts_with("nr_") && !COUNTERS.contains(&key)) || LEVELS.contains(&key);
    let folded = key.starts_with("nr_") || FOLDED.iter().any(|start| key.starts_with(start));
    let refresh_ns = (folded && !COMPUTED.contains(&key)).then_some(STAT_INTERVAL_NS);
    let column = if level {
        plain(prefix, key, "pages", SeriesKind::Gauge)
    } else {
        plain(prefix, key, "count", SeriesKind::Counter)
    };
    vec![column.refreshed(refresh_ns)]
}
