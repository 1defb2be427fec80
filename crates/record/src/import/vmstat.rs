//! `vmstat N [-t] [-S K]`: a line a report, columns by name.
//! Sizes are taken as KiB, its default unit.

use super::time;
use super::timeline::FigureKind::{Level, Rate, Share};
use super::timeline::{Figure, ReportClock, Timeline};
use model::recording::Recording;
use std::time::Duration;

/// The columns. Swap is in KiB, a page is four of them; shares are in per cent of all processors.
const COLUMNS: [Figure; 17] = [
    (&["r"], "stat.procs_running", Level("count", 1.0)),
    (&["b"], "stat.procs_blocked", Level("count", 1.0)),
    (&["free"], "meminfo.MemFree", Level("bytes", 1024.0)),
    (&["buff"], "meminfo.Buffers", Level("bytes", 1024.0)),
    (&["cache"], "meminfo.Cached", Level("bytes", 1024.0)),
    (&["swpd"], "meminfo.SwapUsed", Level("bytes", 1024.0)),
    (&["si"], "vmstat.pswpin", Rate("pages", 0.25)),
    (&["so"], "vmstat.pswpout", Rate("pages", 0.25)),
    (&["bi"], "vmstat.pgpgin", Rate("count", 1.0)),
    (&["bo"], "vmstat.pgpgout", Rate("count", 1.0)),
    (&["in"], "stat.intr", Rate("count", 1.0)),
    (&["cs"], "stat.ctxt", Rate("count", 1.0)),
    (&["us"], "stat.cpu.user_ns", Share(100.0)),
    (&["sy"], "stat.cpu.system_ns", Share(100.0)),
    (&["id"], "stat.cpu.idle_ns", Share(100.0)),
    (&["wa"], "stat.cpu.iowait_ns", Share(100.0)),
    (&["st"], "stat.cpu.steal_ns", Share(100.0)),
];

/// Reads the text; without time stamps a report is `interval` long, else a second.
pub fn read(text: &str, interval: Option<Duration>) -> Result<Recording, String> {
    let mut timeline = Timeline::new("vmstat");
    // Its shares are of all processors; it does not report how many there are.
    timeline.facts().processors = 1;
    let mut clock = ReportClock::new(interval);
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.starts_with(&["r", "b"]) {
            names = words;
            continue;
        }
        let is_report = words.first().is_some_and(|word| word.parse::<u64>().is_ok());
        if !is_report || names.is_empty() {
            continue;
        }
        // The date and the time follow the last number; the zone is in the head of their column.
        let stamp = words.len().checked_sub(2).map(|at| words[at..].join(" "));
        let now_s = stamp.and_then(|stamp| time::seconds(&stamp));
        if clock.report(&mut timeline, now_s) {
            timeline.take("", &COLUMNS, |name| {
                let at = names.iter().position(|one| *one == name)?;
                words.get(at)?.parse().ok()
            });
        }
    }
    timeline.finish()
}
