//! The sources that a machine has once: which file, how often it is read, and what its words mean.
//!
//! Sources whose lines need more than a name and a number have files of their own. Names come and
//! go with kernels; what is not there gets no series.

use super::facts::area_name;
use super::keyed::{Keyed, Single, keyed, plain};
use super::table::{Column, LineTable};
use super::{STAT_INTERVAL_NS, Source, Tier, caches, disk, pressure, zones, zram};
use machine::Root;
use model::duration::CLOCK_TICK_NS;
use model::recording::SeriesKind;

/// Where the memory that was handed back to the host is counted, in KiB; the same places
/// that `machine::reported` knows.
const REPORTED: [&str; 2] = [
    "/sys/module/page_reporting/parameters/reported_kib",
    "/sys/module/virtio_balloon/parameters/reported_kib",
];

/// Of vmstat: named like levels, but they only grow.
const VMSTAT_COUNTERS: [&str; 8] = [
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
const VMSTAT_LEVELS: [&str; 1] = ["workingset_nodes"];
/// Computed for each reading, so never old.
const VMSTAT_COMPUTED: [&str; 2] = ["nr_dirty_threshold", "nr_dirty_background_threshold"];
/// Counted for each CPU apart and folded into the total only once in a while, beside `nr_*`.
const VMSTAT_FOLDED: [&str; 9] = [
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

/// CPU times in the order of the kernel. "steal" is what the hypervisor gave to others while this
/// machine wanted to run.
const CPU_TIMES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
/// CPUs with series of their own: 640 series, more than a chart can show.
const MAX_CPUS: usize = 64;

const NODES: &str = "/sys/devices/system/node";
/// Nodes with series; machines have at most a few dozen.
const MAX_NODES: usize = 64;

const ZSWAP_DEBUGFS: &str = "/sys/kernel/debug/zswap";

/// All of them that are there.
pub(super) fn open(root: &Root) -> Vec<(Tier, Box<dyn Source>)> {
    let mut found: Vec<(Tier, Box<dyn Source>)> = Vec::new();
    let mut keep = |tier, source: Option<Box<dyn Source>>| {
        found.extend(source.map(|source| (tier, source)));
    };
    keep(Tier::Fast, boxed(keyed(root, "/proc/vmstat", "vmstat", vmstat)));
    keep(Tier::Slow, boxed(keyed(root, "/proc/meminfo", "meminfo", meminfo)));
    keep(Tier::Fast, boxed(keyed(root, "/proc/stat", "stat", stat)));
    // Events count every request; these are for the share of time that a device works.
    keep(Tier::Steady, boxed(disk::open(root)));
    for resource in pressure::RESOURCES {
        keep(Tier::Fast, boxed(pressure::open(root, resource)));
    }
    keep(Tier::Slow, boxed(keyed(root, "/proc/swaps", "swap", swaps)));
    keep(Tier::Slow, boxed(Some(zram::open(root))));
    keep(Tier::Steady, boxed(Some(caches::open(root))));
    for source in zswap(root) {
        keep(Tier::Slow, boxed(Some(source)));
    }
    keep(Tier::Slow, boxed(reported(root)));
    for node in numa(root) {
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

/// What memory management did, and its levels in pages: each line is a series under its own name,
/// which shows whether it is a level. The kernel's few exceptions are listed.
fn vmstat(prefix: &str, key: &str) -> Vec<Column> {
    let level =
        (key.starts_with("nr_") && !VMSTAT_COUNTERS.contains(&key)) || VMSTAT_LEVELS.contains(&key);
    let folded = key.starts_with("nr_") || VMSTAT_FOLDED.iter().any(|start| key.starts_with(start));
    let refresh_ns = (folded && !VMSTAT_COMPUTED.contains(&key)).then_some(STAT_INTERVAL_NS);
    let column = if level {
        plain(prefix, key, "pages", SeriesKind::Gauge)
    } else {
        plain(prefix, key, "count", SeriesKind::Counter)
    };
    vec![column.refreshed(refresh_ns)]
}

/// What memory is used for, in bytes. `Active(anon)` becomes `Active_anon`. The lines on zswap are
/// named twice, also under `zswap`, where older kernels' figures for the same come from debugfs.
fn meminfo(prefix: &str, key: &str) -> Vec<Column> {
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

/// CPU time by kind, of all CPUs together and of each; switches and forks. The kernel prints ticks
/// of 10 ms whatever its own tick is.
fn stat(prefix: &str, key: &str) -> Vec<Column> {
    match key {
        "ctxt" | "processes" => vec![plain(prefix, key, "count", SeriesKind::Counter)],
        "procs_running" | "procs_blocked" => vec![plain(prefix, key, "count", SeriesKind::Gauge)],
        _ => cpu(prefix, key),
    }
}

fn cpu(prefix: &str, key: &str) -> Vec<Column> {
    let Some(number) = key.strip_prefix("cpu") else {
        return Vec::new();
    };
    let wanted = number.is_empty() || number.parse().is_ok_and(|cpu: usize| cpu < MAX_CPUS);
    let time = |(word, time): (usize, &&str)| {
        Column::counter(word, format!("{prefix}.{key}.{time}_ns"), "ns", CLOCK_TICK_NS)
            .refreshed(Some(CLOCK_TICK_NS))
    };
    let times = CPU_TIMES.iter().enumerate().map(time);
    times.filter(|_| wanted).collect()
}

/// The size and the use of each swap area:
/// "/dev/zram0 partition 8388604 524288 100": type, size, used, priority.
fn swaps(prefix: &str, key: &str) -> Vec<Column> {
    if !key.starts_with('/') {
        return Vec::new();
    }
    let name = area_name(key);
    vec![
        Column::gauge(1, format!("{prefix}.{name}.size_bytes"), "bytes", 1024),
        Column::gauge(2, format!("{prefix}.{name}.used_bytes"), "bytes", 1024),
    ]
}

/// Where each memory node's allocations were served, one file for each. On a machine with one node
/// everything is a hit; the series are kept all the same.
fn numa(root: &Root) -> Vec<LineTable<Keyed>> {
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
        keyed(root, path, format!("numa.node{node}"), numa_columns)
    };
    nodes.into_iter().filter_map(file).collect()
}

fn numa_columns(prefix: &str, key: &str) -> Vec<Column> {
    vec![plain(prefix, key, "count", SeriesKind::Counter).refreshed(Some(STAT_INTERVAL_NS))]
}

/// The compressed cache in front of swap. Since Linux 5.19 `meminfo` has both figures; before, they
/// were in debugfs, which only root can read and only if it is mounted.
fn zswap(root: &Root) -> Vec<LineTable<Single>> {
    let meminfo = root.read("/proc/meminfo").unwrap_or_default();
    if meminfo.lines().any(|line| line.starts_with("Zswap:")) {
        return Vec::new();
    }
    let page = sys::process::page_bytes() as u64;
    let file = |name: &str, series: &str, scale| {
        let column = Column::gauge(0, series, "bytes", scale);
        LineTable::open(root, format!("{ZSWAP_DEBUGFS}/{name}"), Single(vec![column]))
    };
    [
        file("pool_total_size", "zswap.pool_bytes", 1),
        file("stored_pages", "zswap.stored_bytes", page),
    ]
    .into_iter()
    .flatten()
    .collect()
}
