//! /proc/stat: CPU time by kind, of all CPUs together and of each; switches and forks.
//!
//! The kernel prints ticks of 10 ms whatever its own tick is. "steal" is what the
//! hypervisor gave to others while this machine wanted to run.

use super::keyed::Keyed;
use super::keyed::{keyed, plain};
use super::table::{Column, LineTable};
use machine::Root;
use model::duration::CLOCK_TICK_NS;
use model::recording::SeriesKind;

/// The order of the kernel.
const TIMES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
/// CPUs with series of their own: 640 series, more than a chart can show.
const MAX_CPUS: usize = 64;

/// The file, where there is one.
pub(super) fn open(root: &Root) -> Option<LineTable<Keyed>> {
    keyed(root, "/proc/stat", "stat", columns)
}

fn columns(prefix: &str, key: &str) -> Vec<Column> {
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
    let times = TIMES.iter().enumerate().map(time);
    times.filter(|_| wanted).collect()
}
