//! The compressed cache in front of swap, for kernels whose /proc/meminfo lacks it.
//!
//! Since Linux 5.19 `meminfo` has both figures; before, they were in debugfs, which only root can
//! read and only if it is mounted. What went in and out is in vmstat.

use super::keyed::Single;
use super::table::{Column, LineTable};
use machine::Root;

const DEBUGFS: &str = "/sys/kernel/debug/zswap";

/// The files of debugfs that exist, if `meminfo` lacks the figures.
pub(super) fn open(root: &Root) -> Vec<LineTable<Single>> {
    let meminfo = root.read("/proc/meminfo").unwrap_or_default();
    if meminfo.lines().any(|line| line.starts_with("Zswap:")) {
        return Vec::new();
    }
    let page = sys::process::page_bytes() as u64;
    let file = |name: &str, series: &str, scale| {
        let column = Column::gauge(0, series, "bytes", scale);
        LineTable::open(root, format!("{DEBUGFS}/{name}"), Single(vec![column]))
    };
    [
        file("pool_total_size", "zswap.pool_bytes", 1),
        file("stored_pages", "zswap.stored_bytes", page),
    ]
    .into_iter()
    .flatten()
    .collect()
}
