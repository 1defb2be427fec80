//! `sadf -j`: the reports of `sar` as JSON, of one host.
//! A figure that a version of `sadf` does not report has no series.

use super::bounded::{EACH, FIRST, each};
use super::time;
use super::timeline::FigureKind::{Level, Rate, Share};
use super::timeline::{Figure, Timeline};
use model::recording::Recording;
use serde_json::Value;

/// Rates, levels, and shares of the report's time in per cent, by where they are in a report.
/// Sizes are in KiB.
const REPORT: [Figure; 29] = [
    (&["/process-and-context-switch/proc"], "stat.processes", Rate("count", 1.0)),
    (&["/process-and-context-switch/cswch"], "stat.ctxt", Rate("count", 1.0)),
    (&["/swap-pages/pswpin"], "vmstat.pswpin", Rate("pages", 1.0)),
    (&["/swap-pages/pswpout"], "vmstat.pswpout", Rate("pages", 1.0)),
    (&["/paging/pgpgin"], "vmstat.pgpgin", Rate("count", 1.0)),
    (&["/paging/pgpgout"], "vmstat.pgpgout", Rate("count", 1.0)),
    (&["/paging/fault"], "vmstat.pgfault", Rate("count", 1.0)),
    (&["/paging/majflt"], "vmstat.pgmajfault", Rate("count", 1.0)),
    (&["/paging/pgfree"], "vmstat.pgfree", Rate("pages", 1.0)),
    (&["/paging/pgscank"], "vmstat.pgscan_kswapd", Rate("pages", 1.0)),
    (&["/paging/pgscand"], "vmstat.pgscan_direct", Rate("pages", 1.0)),
    (&["/memory/memfree"], "meminfo.MemFree", Level("bytes", 1024.0)),
    (&["/memory/avail"], "meminfo.MemAvailable", Level("bytes", 1024.0)),
    (&["/memory/buffers"], "meminfo.Buffers", Level("bytes", 1024.0)),
    (&["/memory/cached"], "meminfo.Cached", Level("bytes", 1024.0)),
    (&["/memory/active"], "meminfo.Active", Level("bytes", 1024.0)),
    (&["/memory/inactive"], "meminfo.Inactive", Level("bytes", 1024.0)),
    (&["/memory/dirty"], "meminfo.Dirty", Level("bytes", 1024.0)),
    (&["/memory/anonpg"], "meminfo.AnonPages", Level("bytes", 1024.0)),
    (&["/memory/slab"], "meminfo.Slab", Level("bytes", 1024.0)),
    (&["/memory/swpfree"], "meminfo.SwapFree", Level("bytes", 1024.0)),
    (&["/memory/swpused"], "meminfo.SwapUsed", Level("bytes", 1024.0)),
    (&["/queue/runq-sz"], "stat.procs_running", Level("count", 1.0)),
    (&["/queue/blocked"], "stat.procs_blocked", Level("count", 1.0)),
    (&["/psi/psi-cpu/some_avg"], "pressure.cpu.some_ns", Share(100.0)),
    (&["/psi/psi-io/some_avg"], "pressure.io.some_ns", Share(100.0)),
    (&["/psi/psi-io/full_avg"], "pressure.io.full_ns", Share(100.0)),
    (&["/psi/psi-mem/some_avg"], "pressure.memory.some_ns", Share(100.0)),
    (&["/psi/psi-mem/full_avg"], "pressure.memory.full_ns", Share(100.0)),
];

/// Times of so many processors; names of the short and of the long report.
const PROCESSOR: [Figure; 8] = [
    (&["user", "usr"], "user_ns", Share(1.0)),
    (&["nice"], "nice_ns", Share(1.0)),
    (&["system", "sys"], "system_ns", Share(1.0)),
    (&["iowait"], "iowait_ns", Share(1.0)),
    (&["steal"], "steal_ns", Share(1.0)),
    (&["irq"], "irq_ns", Share(1.0)),
    (&["soft"], "softirq_ns", Share(1.0)),
    (&["idle"], "idle_ns", Share(1.0)),
];

/// Figures of a disk, from `sar -d`.
const DISK: [Figure; 5] = [
    (&["tps"], "transfers", Rate("count", 1.0)),
    (&["rkB"], "read_bytes", Rate("bytes", 1024.0)),
    (&["wkB"], "write_bytes", Rate("bytes", 1024.0)),
    (&["util-percent"], "io_ns", Share(100.0)),
    (&["aqu-sz"], "weighted_ns", Share(1.0)),
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
    timeline.take("", &REPORT, |path| report.pointer(path).and_then(Value::as_f64));
    for cpu in list(report, "cpu-load") {
        let (name, count) = match cpu["cpu"].as_str() {
            Some("all") => ("cpu".to_owned(), cpus),
            Some(number) => (format!("cpu{number}"), 1.0),
            None => continue,
        };
        let share = |theirs: &str| Some(cpu[theirs].as_f64()? / 100.0 * count);
        timeline.take(&format!("stat.{name}."), &PROCESSOR, share);
    }
    for disk in list(report, "disk") {
        if let Some(device) = disk["disk-device"].as_str() {
            timeline.take(&format!("disk.{device}."), &DISK, |theirs| disk[theirs].as_f64());
        }
    }
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map_or(&[][..], Vec::as_slice)
}
