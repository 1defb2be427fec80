//! `sadf -j`: the reports of `sar` as JSON, of one host.
//! A figure that a version of `sadf` does not report has no series.

use super::bounded::{EACH, FIRST, each};
use super::time;
use super::timeline::Timeline;
use model::recording::Recording;
use serde_json::Value;

/// Rates: where they stand in a report, ours, the unit, the scale.
const RATES: [(&str, &str, &str, f64); 11] = [
    ("/process-and-context-switch/proc", "stat.processes", "count", 1.0),
    ("/process-and-context-switch/cswch", "stat.ctxt", "count", 1.0),
    ("/swap-pages/pswpin", "vmstat.pswpin", "pages", 1.0),
    ("/swap-pages/pswpout", "vmstat.pswpout", "pages", 1.0),
    ("/paging/pgpgin", "vmstat.pgpgin", "count", 1.0),
    ("/paging/pgpgout", "vmstat.pgpgout", "count", 1.0),
    ("/paging/fault", "vmstat.pgfault", "count", 1.0),
    ("/paging/majflt", "vmstat.pgmajfault", "count", 1.0),
    ("/paging/pgfree", "vmstat.pgfree", "pages", 1.0),
    ("/paging/pgscank", "vmstat.pgscan_kswapd", "pages", 1.0),
    ("/paging/pgscand", "vmstat.pgscan_direct", "pages", 1.0),
];

/// Levels. Sizes are in KiB.
const LEVELS: [(&str, &str, &str, f64); 13] = [
    ("/memory/memfree", "meminfo.MemFree", "bytes", 1024.0),
    ("/memory/avail", "meminfo.MemAvailable", "bytes", 1024.0),
    ("/memory/buffers", "meminfo.Buffers", "bytes", 1024.0),
    ("/memory/cached", "meminfo.Cached", "bytes", 1024.0),
    ("/memory/active", "meminfo.Active", "bytes", 1024.0),
    ("/memory/inactive", "meminfo.Inactive", "bytes", 1024.0),
    ("/memory/dirty", "meminfo.Dirty", "bytes", 1024.0),
    ("/memory/anonpg", "meminfo.AnonPages", "bytes", 1024.0),
    ("/memory/slab", "meminfo.Slab", "bytes", 1024.0),
    ("/memory/swpfree", "meminfo.SwapFree", "bytes", 1024.0),
    ("/memory/swpused", "meminfo.SwapUsed", "bytes", 1024.0),
    ("/queue/runq-sz", "stat.procs_running", "count", 1.0),
    ("/queue/blocked", "stat.procs_blocked", "count", 1.0),
];

/// Shares of processors, in per cent; names of the short and of the long report.
const SHARES: [(&[&str], &str); 8] = [
    (&["user", "usr"], "user_ns"),
    (&["nice"], "nice_ns"),
    (&["system", "sys"], "system_ns"),
    (&["iowait"], "iowait_ns"),
    (&["steal"], "steal_ns"),
    (&["irq"], "irq_ns"),
    (&["soft"], "softirq_ns"),
    (&["idle"], "idle_ns"),
];

/// Shares of the report's time, in per cent.
const PRESSURE: [(&str, &str); 5] = [
    ("/psi/psi-cpu/some_avg", "pressure.cpu.some_ns"),
    ("/psi/psi-io/some_avg", "pressure.io.some_ns"),
    ("/psi/psi-io/full_avg", "pressure.io.full_ns"),
    ("/psi/psi-mem/some_avg", "pressure.memory.some_ns"),
    ("/psi/psi-mem/full_avg", "pressure.memory.full_ns"),
];

/// Rates of a disk, from `sar -d`.
const DISK: [(&str, &str, &str, f64); 3] = [
    ("tps", "transfers", "count", 1.0),
    ("rkB", "read_bytes", "bytes", 1024.0),
    ("wkB", "write_bytes", "bytes", 1024.0),
];

/// Where the one host is.
const HOST: &[&str] = &["sysstat", "hosts", FIRST];

/// Reads the text.
pub fn read(text: &str) -> Result<Recording, String> {
    let mut cpus = 1;
    each(text, &[HOST, &["number-of-cpus"]].concat(), |count| {
        cpus = count.as_u64().unwrap_or(1).clamp(1, 65_536);
    })?;
    let mut timeline = Timeline::new("sadf");
    timeline.facts().processors = cpus as u32;
    let mut start_s = None;
    each(text, &[HOST, &["statistics", EACH]].concat(), |report| {
        let Some(now_s) = when(&report["timestamp"]) else {
            return;
        };
        let interval_s = report["timestamp"]["interval"].as_u64().unwrap_or(0);
        let start_s = *start_s.get_or_insert_with(|| {
            let start_s = now_s.saturating_sub(interval_s);
            timeline.facts().started_unix_ns = start_s.saturating_mul(1_000_000_000);
            start_s
        });
        let at_ns = now_s.saturating_sub(start_s).saturating_mul(1_000_000_000);
        if timeline.report(at_ns) {
            take(&mut timeline, &report, cpus as f64);
        }
    })?;
    timeline.finish()
}

fn when(stamp: &Value) -> Option<u64> {
    let date = stamp["date"].as_str()?;
    let time = stamp["time"].as_str()?;
    time::seconds(&format!("{date} {time}"))
}

fn take(timeline: &mut Timeline, report: &Value, cpus: f64) {
    let figure = |path: &str| report.pointer(path).and_then(Value::as_f64);
    for (path, ours, unit, scale) in RATES {
        if let Some(value) = figure(path) {
            timeline.ran_at(ours, unit, value * scale);
        }
    }
    for (path, ours, unit, scale) in LEVELS {
        if let Some(value) = figure(path) {
            timeline.stood_at(ours, unit, value * scale);
        }
    }
    for (path, ours) in PRESSURE {
        if let Some(share) = figure(path) {
            timeline.ran_for(ours, share / 100.0);
        }
    }
    for cpu in list(report, "cpu-load") {
        let (name, count) = match cpu["cpu"].as_str() {
            Some("all") => ("cpu".to_owned(), cpus),
            Some(number) => (format!("cpu{number}"), 1.0),
            None => continue,
        };
        for (theirs, ours) in SHARES {
            let share = theirs.iter().find_map(|name| cpu[*name].as_f64());
            if let Some(share) = share {
                timeline.ran_for(&format!("stat.{name}.{ours}"), share / 100.0 * count);
            }
        }
    }
    for disk in list(report, "disk") {
        let Some(device) = disk["disk-device"].as_str() else {
            continue;
        };
        for (theirs, ours, unit, scale) in DISK {
            if let Some(value) = disk[theirs].as_f64() {
                timeline.ran_at(&format!("disk.{device}.{ours}"), unit, value * scale);
            }
        }
        if let Some(busy) = disk["util-percent"].as_f64() {
            timeline.ran_for(&format!("disk.{device}.io_ns"), busy / 100.0);
        }
        if let Some(queue) = disk["aqu-sz"].as_f64() {
            timeline.ran_for(&format!("disk.{device}.weighted_ns"), queue);
        }
    }
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map_or(&[][..], Vec::as_slice)
}
