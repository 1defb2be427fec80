//! /proc/meminfo: what memory is used for, in bytes.
//!
//! `Active(anon)` becomes `Active_anon`. The lines on zswap are named twice, also under
//! `zswap`, where other kernels' figures for the same come from debugfs.

use super::STAT_INTERVAL_NS;
use super::keyed::Keyed;
use super::keyed::keyed;
use super::table::{Column, LineTable};
use machine::Root;

/// The file, where there is one.
pub(super) fn open(root: &Root) -> Option<LineTable<Keyed>> {
    keyed(root, "/proc/meminfo", "meminfo", columns)
}

fn columns(prefix: &str, key: &str) -> Vec<Column> {
    let name = key.replace('(', "_").replace(')', "");
    // The pool of huge pages is counted in pages, everything else in KiB.
    let column = if key.starts_with("HugePages_") {
        Column::gauge(0, format!("{prefix}.{name}"), "pages", 1)
    } else {
        Column::gauge(0, format!("{prefix}.{name}"), "bytes", 1024)
            .refreshed(Some(STAT_INTERVAL_NS))
    };
    let zswap_name = match key {
        "Zswap" => Some("zswap.pool_bytes"),
        "Zswapped" => Some("zswap.stored_bytes"),
        _ => None,
    };
    let zswap = zswap_name.map(|name| Column::gauge(0, name, "bytes", 1024));
    [column].into_iter().chain(zswap).collect()
}
