//! Which files of a group count how often its limit held it back, and what they say.
//!
//! Only what a group's own limit did counts: of version 2's memory events the local ones, which
//! leave out those of the groups in it.

use machine::cgroup::{CgroupVersion, LimitKind};
use std::collections::HashMap;
use std::time::Instant;

/// How many kinds of limits there are.
pub(super) const KINDS: usize = 4;

/// From this share of its limit on, a group's traffic is held back. As the rule that judges it.
const NEAR: f64 = 0.85;

/// How often a limit was reached, and for how long as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldBack {
    pub times: u64,
    pub ns: u64,
}

impl HeldBack {
    /// What was counted after `before`. Counters of a group that was made anew begin again.
    pub fn since(self, before: Self) -> Self {
        Self {
            times: self.times.saturating_sub(before.times),
            ns: self.ns.saturating_sub(before.ns),
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, more: Self) {
        self.times = self.times.saturating_add(more.times);
        self.ns = self.ns.saturating_add(more.ns);
    }
}

/// The files with counters; the first that is there says how often the limit was reached.
pub(super) fn files(version: CgroupVersion, kind: LimitKind) -> &'static [&'static str] {
    match (version, kind) {
        (CgroupVersion::V1, LimitKind::Memory) => &["memory.failcnt", "memory.oom_control"],
        (CgroupVersion::V2, LimitKind::Memory) => &["memory.events.local", "memory.events"],
        (_, LimitKind::Cpu) => &["cpu.stat"],
        (CgroupVersion::V1, LimitKind::Io) => &[
            "blkio.throttle.io_service_bytes_recursive",
            "blkio.throttle.io_service_bytes",
            "blkio.throttle.io_serviced_recursive",
            "blkio.throttle.io_serviced",
        ],
        (CgroupVersion::V2, LimitKind::Io) => &["io.stat"],
        (_, LimitKind::Pids) => &["pids.events"],
    }
}

/// The files with the limits of a group's block I/O.
pub(super) fn io_limit_files(version: CgroupVersion) -> &'static [&'static str] {
    match version {
        CgroupVersion::V1 => &[
            "blkio.throttle.read_bps_device",
            "blkio.throttle.write_bps_device",
            "blkio.throttle.read_iops_device",
            "blkio.throttle.write_iops_device",
        ],
        CgroupVersion::V2 => &["io.max"],
    }
}

/// What the first of [`files`] says of any limit but that of I/O.
pub(super) fn held_back(kind: LimitKind, text: &[u8]) -> HeldBack {
    let text = String::from_utf8_lossy(text);
    let mut held = HeldBack::default();
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or(("", line));
        let value: u64 = value.trim().parse().unwrap_or(0);
        match (kind, key) {
            (LimitKind::Memory, "" | "high" | "max")
            | (LimitKind::Cpu, "nr_throttled")
            | (LimitKind::Pids, "max") => held.times = held.times.saturating_add(value),
            (LimitKind::Cpu, "throttled_time") => held.ns = value,
            (LimitKind::Cpu, "throttled_usec") => held.ns = value.saturating_mul(1_000),
            _ => {}
        }
    }
    held
}

/// Bytes read and written, and requests of both, or the limits of these, by device.
pub(super) type IoValues = HashMap<(String, usize), u64>;

/// Adds what a file of counters or limits of block I/O says: lines of a device's number and one
/// value, two words, or four pairs.
pub(super) fn read_io(file: &str, text: &[u8], values: &mut IoValues) {
    let text = String::from_utf8_lossy(text);
    let of_file = usize::from(file.contains("write")) + 2 * usize::from(file.contains("iops"));
    let of_requests = 2 * usize::from(!file.contains("bytes"));
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let device = words.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = words.collect();
        let pairs = rest.iter().filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            let which = match key {
                "rbytes" | "rbps" => 0,
                "wbytes" | "wbps" => 1,
                "rios" | "riops" => 2,
                "wios" | "wiops" => 3,
                _ => return None,
            };
            Some((which, value))
        });
        let found: Vec<(usize, &str)> = match rest.as_slice() {
            ["Read", value] => vec![(of_requests, value)],
            ["Write", value] => vec![(of_requests + 1, value)],
            [value] if !value.contains('=') => vec![(of_file, value)],
            _ => pairs.collect(),
        };
        for (which, value) in found {
            if let Ok(value) = value.parse() {
                values.entry((device.clone(), which)).or_insert(value);
            }
        }
    }
}

/// What a group moved until the last look.
#[derive(Debug, Default)]
pub(super) struct IoTraffic {
    last: Option<(Instant, IoValues)>,
}

impl IoTraffic {
    /// Whether the traffic since the last look ran at one of the limits, and for how long.
    pub fn held_back(&mut self, moved: IoValues, limits: &IoValues, now: Instant) -> HeldBack {
        let before = self.last.replace((now, moved));
        let (Some((then, before)), Some((_, moved))) = (before, &self.last) else {
            return HeldBack::default();
        };
        let passed = now.duration_since(then);
        let is_reached = limits.iter().any(|(key, limit)| {
            let until = |values: &IoValues| values.get(key).copied().unwrap_or(0);
            let growth = until(moved).saturating_sub(until(&before)) as f64;
            growth > 0.0 && growth >= *limit as f64 * passed.as_secs_f64() * NEAR
        });
        let ns = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        if is_reached { HeldBack { times: 1, ns } } else { HeldBack::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_kind_counts_what_its_limit_did() {
        let of = |kind, text: &str| held_back(kind, text.as_bytes());
        assert_eq!(of(LimitKind::Memory, "42\n").times, 42);
        let events = "low 9\nhigh 3\nmax 4\noom 5\noom_kill 6\n";
        assert_eq!(of(LimitKind::Memory, events).times, 7);
        let v1 = "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n";
        assert_eq!(of(LimitKind::Cpu, v1), HeldBack { times: 4, ns: 77 });
        let v2 = "usage_usec 9\nnr_throttled 4\nthrottled_usec 77\n";
        assert_eq!(of(LimitKind::Cpu, v2), HeldBack { times: 4, ns: 77_000 });
        assert_eq!(of(LimitKind::Pids, "max 2\n").times, 2);
        assert_eq!(of(LimitKind::Pids, "garbage"), HeldBack::default());
    }

    #[test]
    fn traffic_at_its_limit_is_held_back() {
        let values = |file: &str, text: &str| {
            let mut values = IoValues::new();
            read_io(file, text.as_bytes(), &mut values);
            values
        };
        let limits = values("io.max", "7:0 rbps=1000 wbps=max riops=max wiops=max\n");
        let v1 = values("blkio.throttle.read_bps_device", "7:0 1000\n");
        assert_eq!(limits, v1);
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut traffic = IoTraffic::default();
        let stat = |bytes: u64| values("io.stat", &format!("7:0 rbytes={bytes} wbytes=9 rios=1\n"));
        assert_eq!(traffic.held_back(stat(5), &limits, at(0)).times, 0, "the first look");
        assert_eq!(traffic.held_back(stat(105), &limits, at(1)).times, 0);
        let held = traffic.held_back(stat(2005), &limits, at(3));
        assert_eq!(held, HeldBack { times: 1, ns: 2_000_000_000 });
        let file = "blkio.throttle.io_service_bytes_recursive";
        let moved = values(file, "7:0 Read 3905\n7:0 Write 3\nTotal 3908\n");
        assert_eq!(traffic.held_back(moved, &v1, at(5)).times, 1);
    }
}
