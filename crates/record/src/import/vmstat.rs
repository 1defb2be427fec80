//! `vmstat N [-t] [-S K]`: a line a report, columns by name.
//! Sizes are taken as KiB, its default unit.

use super::time;
use super::timeline::Timeline;
use model::recording::Recording;
use std::time::Duration;

/// A column of levels: its name, ours, and what one of its unit is.
const LEVELS: [(&str, &str, &str, f64); 6] = [
    ("r", "stat.procs_running", "count", 1.0),
    ("b", "stat.procs_blocked", "count", 1.0),
    ("free", "meminfo.MemFree", "bytes", 1024.0),
    ("buff", "meminfo.Buffers", "bytes", 1024.0),
    ("cache", "meminfo.Cached", "bytes", 1024.0),
    ("swpd", "meminfo.SwapUsed", "bytes", 1024.0),
];

/// A column of rates. Swap is in KiB, a page is four of them.
const RATES: [(&str, &str, &str, f64); 6] = [
    ("si", "vmstat.pswpin", "pages", 0.25),
    ("so", "vmstat.pswpout", "pages", 0.25),
    ("bi", "vmstat.pgpgin", "count", 1.0),
    ("bo", "vmstat.pgpgout", "count", 1.0),
    ("in", "stat.intr", "count", 1.0),
    ("cs", "stat.ctxt", "count", 1.0),
];

/// A column of shares, in per cent of all processors.
const SHARES: [(&str, &str); 5] = [
    ("us", "stat.cpu.user_ns"),
    ("sy", "stat.cpu.system_ns"),
    ("id", "stat.cpu.idle_ns"),
    ("wa", "stat.cpu.iowait_ns"),
    ("st", "stat.cpu.steal_ns"),
];

/// Reads the text; without time stamps a report is `interval` long, else a second.
pub fn read(text: &str, interval: Option<Duration>) -> Result<Recording, String> {
    let mut timeline = Timeline::new("vmstat");
    // Its shares are of all processors; it does not report how many there are.
    timeline.facts().processors = 1;
    let interval = interval.unwrap_or(Duration::from_secs(1));
    let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let mut names: Vec<&str> = Vec::new();
    let mut first_s = None;
    let mut reports = 0u64;
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
        let at_ns = match (now_s, first_s) {
            (Some(now), Some(first)) => now.saturating_sub(first).saturating_mul(1_000_000_000),
            _ => reports.saturating_mul(interval_ns),
        };
        if reports == 0 {
            first_s = now_s;
            timeline.facts().started_unix_ns = now_s.unwrap_or(0).saturating_mul(1_000_000_000);
        }
        reports += 1;
        if reports > 1 && timeline.report(at_ns) {
            take(&mut timeline, &names, &words);
        }
    }
    timeline.finish()
}

fn take(timeline: &mut Timeline, names: &[&str], words: &[&str]) {
    let value = |name: &str| -> Option<f64> {
        let at = names.iter().position(|one| *one == name)?;
        words.get(at)?.parse().ok()
    };
    for (name, ours, unit, scale) in LEVELS {
        if let Some(value) = value(name) {
            timeline.stood_at(ours, unit, value * scale);
        }
    }
    for (name, ours, unit, scale) in RATES {
        if let Some(value) = value(name) {
            timeline.ran_at(ours, unit, value * scale);
        }
    }
    for (name, ours) in SHARES {
        if let Some(value) = value(name) {
            timeline.ran_for(ours, value / 100.0);
        }
    }
}
