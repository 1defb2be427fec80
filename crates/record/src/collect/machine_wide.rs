//! Opens the sources that a machine has once: which file, which shape, how often.
//!
//! What the words of a source mean is in its own file.

use super::keyed::Single;
use super::table::{Column, LineTable};
use super::{Source, Tier, disk, meminfo, numa, pressure, stat, swaps, vmstat, zones, zram, zswap};
use machine::Root;

/// Where the memory that was handed back to the host is counted, in KiB; the same places
/// that `machine::reported` knows.
const REPORTED: [&str; 2] = [
    "/sys/module/page_reporting/parameters/reported_kib",
    "/sys/module/virtio_balloon/parameters/reported_kib",
];

/// All of them that are there.
pub(super) fn open(root: &Root) -> Vec<(Tier, Box<dyn Source>)> {
    let mut found: Vec<(Tier, Box<dyn Source>)> = Vec::new();
    let mut keep = |tier, source: Option<Box<dyn Source>>| {
        found.extend(source.map(|source| (tier, source)));
    };
    keep(Tier::Fast, boxed(vmstat::open(root)));
    keep(Tier::Slow, boxed(meminfo::open(root)));
    keep(Tier::Fast, boxed(stat::open(root)));
    // Events count every request; these are for the share of time that a device works.
    keep(Tier::Steady, boxed(disk::open(root)));
    for resource in pressure::RESOURCES {
        keep(Tier::Fast, boxed(pressure::open(root, resource)));
    }
    keep(Tier::Slow, boxed(swaps::open(root)));
    keep(Tier::Slow, boxed(Some(zram::open(root))));
    for source in zswap::open(root) {
        keep(Tier::Slow, boxed(Some(source)));
    }
    keep(Tier::Slow, boxed(reported(root)));
    for node in numa::open(root) {
        keep(Tier::Slow, boxed(Some(node)));
    }
    keep(Tier::Slow, boxed(zones::watermarks(root)));
    keep(Tier::Slow, boxed(zones::blocks(root)));
    found
}

fn boxed<S: Source + 'static>(source: Option<S>) -> Option<Box<dyn Source>> {
    source.map(|source| Box::new(source) as Box<dyn Source>)
}

/// Memory handed back to the host, counted by some kernels only.
fn reported(root: &Root) -> Option<LineTable<Single>> {
    let column = Column::counter(0, "reported.to_host_bytes", "bytes", 1024);
    REPORTED.iter().find_map(|path| LineTable::open(root, *path, Single(vec![column.clone()])))
}
