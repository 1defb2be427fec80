//! Where each memory node's allocations were served: /sys/devices/system/node/node*/numastat.
//!
//! On a machine with one node everything is a hit; the series are kept all the same.

use super::STAT_INTERVAL_NS;
use super::keyed::Keyed;
use super::keyed::{keyed, plain};
use super::table::{Column, LineTable};
use machine::Root;
use model::recording::SeriesKind;

const NODES: &str = "/sys/devices/system/node";
/// Nodes with series; machines have at most a few dozen.
const MAX_NODES: usize = 64;

/// One file for each node.
pub(super) fn open(root: &Root) -> Vec<LineTable<Keyed>> {
    let entries = std::fs::read_dir(root.path(NODES)).into_iter().flatten();
    let mut nodes: Vec<u32> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_prefix("node")?.parse().ok()
        })
        .collect();
    nodes.sort_unstable();
    nodes.truncate(MAX_NODES);
    let file = |node: u32| {
        let path = format!("{NODES}/node{node}/numastat");
        keyed(root, path, format!("numa.node{node}"), columns)
    };
    nodes.into_iter().filter_map(file).collect()
}

fn columns(prefix: &str, key: &str) -> Vec<Column> {
    vec![plain(prefix, key, "count", SeriesKind::Counter).refreshed(Some(STAT_INTERVAL_NS))]
}
