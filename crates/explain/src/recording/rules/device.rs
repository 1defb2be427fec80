//! Which device the subject waited for: its traffic, its place among the mounts, and the
//! median latency of its requests where events were recorded.
//!
//! Counters of devices are the whole machine's; whose requests they were is not told here.

use super::RunView;
use super::run_view::ratio;
use crate::wording::count;
use model::Evidence;
use model::duration::show_ns;
use model::recording::{DeviceFacts, DeviceKind};

/// The largest exponent of the latency histogram: 2^40 us are twelve days.
const MOST_EXPONENT: u32 = 40;

/// A device whose traffic is at least this share of the largest is preferred if it is
/// mounted: a loop device and the disk below it show the same bytes.
const STACKED_SHARE: f64 = 0.5;

/// Events are believed if they cover this share of the requests that the disk counted. Some
/// kernels lose those of a processor's idle task, where most requests of a waiting program end:
/// 72 of some thousands were told. Picked: a sample at the edge may miss a few.
const EVENTS_SHARE: f64 = 0.9;

/// Of fewer requests there is no 99th percentile.
const LEAST_FOR_P99: u64 = 100;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Towards memory.
    Read,
    /// Towards the device.
    Write,
}

impl Direction {
    /// Its word in the names of series.
    fn word(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }
}

/// What went over one device.
#[derive(Clone, Debug)]
pub(super) struct Traffic<'a> {
    /// Its name: `vda`.
    pub(super) name: String,
    /// Requests that completed.
    pub(super) requests: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// The median from issue to completion.
    pub(super) p50_ns: Option<f64>,
    /// The 99th percentile from issue to completion.
    pub(super) p99_ns: Option<f64>,
    /// The mean, which includes the wait before issue.
    pub(super) mean_ns: Option<f64>,
    /// Where a file system on it is mounted.
    pub(super) mount: Option<&'a str>,
    /// What is known of it.
    pub(super) facts: Option<&'a DeviceFacts>,
    /// The counters.
    pub(super) evidence: Vec<Evidence>,
}

impl Traffic<'_> {
    /// Its mount point, else its name.
    pub(super) fn place(&self) -> &str {
        self.mount.unwrap_or(&self.name)
    }

    /// Bytes in a mean request.
    pub(super) fn request_bytes(&self) -> f64 {
        ratio(self.bytes as f64, self.requests as f64)
    }

    /// The median, else the mean.
    pub(super) fn latency_ns(&self) -> Option<f64> {
        self.p50_ns.or(self.mean_ns)
    }

    /// `6,480 reads, p50 3.9 ms`.
    pub(super) fn description(&self, noun: &str) -> String {
        let mut text = format!("{} {noun}", count(self.requests));
        if let Some(p50) = self.p50_ns {
            text.push_str(&format!(", p50 {}", show_ns(p50)));
        } else if let Some(mean) = self.mean_ns {
            text.push_str(&format!(", {} on average", show_ns(mean)));
        }
        text
    }
}

/// The device with the most bytes that direction, if any moved; compressed memory and swap
/// areas are left out, as rules of their own judge them.
pub(super) fn busiest<'a>(run: &RunView<'a>, direction: Direction) -> Option<Traffic<'a>> {
    let suffix = format!(".{}_bytes", direction.word());
    let names = run.names_between("disk.", &suffix).into_iter();
    let devices = names.filter_map(|name| name.strip_prefix("disk.")?.strip_suffix(&suffix));
    let mut all: Vec<Traffic<'a>> = devices
        .filter(|device| !device.is_empty())
        .filter_map(|device| traffic(run, device, direction))
        .collect();
    let most = all.iter().map(|traffic| traffic.bytes).max()?;
    let large = |t: &Traffic| t.bytes as f64 >= most as f64 * STACKED_SHARE;
    // The same device on every run, whatever the order of the series.
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.name.cmp(&b.name)));
    let mounted = all.iter().position(|t| t.mount.is_some() && large(t));
    Some(all.swap_remove(mounted.unwrap_or(0)))
}

/// What went over one device that way; `None` of nothing, and of memory that plays a disk.
pub(super) fn traffic<'a>(
    run: &RunView<'a>,
    device: &str,
    direction: Direction,
) -> Option<Traffic<'a>> {
    let facts = run.facts();
    let known = facts.devices.iter().find(|known| known.name == device);
    let in_memory =
        known.is_some_and(|known| matches!(known.kind, DeviceKind::Zram | DeviceKind::RamDisk));
    if in_memory || device.starts_with("zram") {
        return None;
    }
    let word = direction.word();
    let traced = format!("trace.block.{device}");
    let disk = format!("disk.{device}");
    let events = run.growth(&format!("{traced}.{word}s")).unwrap_or(0);
    let counted = run.growth(&format!("{disk}.{word}s")).unwrap_or(events);
    let from_trace = events > 0 && events as f64 >= counted as f64 * EVENTS_SHARE;
    let base = if from_trace { &traced } else { &disk };
    let named = |what: &str| format!("{base}.{what}");
    let requests = run.growth(&named(&format!("{word}s")))?;
    let bytes = run.growth(&named(&format!("{word}_bytes")))?;
    if requests == 0 || bytes == 0 {
        return None;
    }
    let ns = run.growth(&named(&format!("{word}_ns")));
    let names = [named(&format!("{word}s")), named(&format!("{word}_bytes"))];
    let mut evidence: Vec<Evidence> = names.iter().filter_map(|name| run.grown(name)).collect();
    let steps = format!("{traced}.{word}_le_");
    let at = |share: f64| from_trace.then(|| quantile(run, &steps, requests, share)).flatten();
    let p50_ns = at(0.5).filter(|_| direction == Direction::Read);
    evidence.extend(p50_ns.map(|p50| {
        let names = run.names_between(&steps, "us");
        Evidence::new(format!("{traced} p50"), p50, "ns", "events").seen_in(names)
    }));
    let on = |of: Option<&String>| of.is_some_and(|of| is_part(of, device));
    Some(Traffic {
        name: device.to_owned(),
        requests,
        bytes,
        p50_ns,
        p99_ns: at(0.99).filter(|_| p50_ns.is_some() && requests >= LEAST_FOR_P99),
        mean_ns: ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / requests as f64),
        mount: facts
            .mounts
            .iter()
            .find(|mount| on(mount.device.as_ref()))
            .map(|mount| mount.point.as_str()),
        facts: known,
        evidence,
    })
}

/// Whether `name` is the device or a partition of it: `vda1` and `nvme0n1p2` are.
pub(super) fn is_part(name: &str, device: &str) -> bool {
    let Some(rest) = name.strip_prefix(device) else {
        return false;
    };
    let number = rest.strip_prefix('p').unwrap_or(rest);
    rest.is_empty() || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The latency that this share of the requests did not exceed, from the histogram by powers of two
/// whose series begin with `name`, interpolated inside its step.
fn quantile(run: &RunView, name: &str, requests: u64, share: f64) -> Option<f64> {
    let steps: Vec<(f64, u64)> = (0..=MOST_EXPONENT)
        .map(|exponent| 1u64 << exponent)
        .filter_map(|us| {
            let grown = run.growth(&format!("{name}{us}us"))?;
            Some((us as f64 * 1e3, grown))
        })
        .collect();
    let sum: u64 = steps.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n));
    // Counters "up to" may count each request once or in every step above it.
    let is_cumulative = sum > requests && steps.windows(2).all(|two| two[0].1 <= two[1].1);
    let mut below = 0u64;
    // Requests slower than the last step are in none.
    let all = if is_cumulative { requests } else { sum };
    let wanted = all as f64 * share;
    for (limit_ns, counted) in &steps {
        let upto = if is_cumulative { *counted } else { below.saturating_add(*counted) };
        if upto > below && upto as f64 >= wanted {
            let into = (wanted - below as f64) / (upto - below) as f64;
            return Some(limit_ns / 2.0 * (1.0 + into.clamp(0.0, 1.0)));
        }
        below = upto;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_belong_to_their_device_and_others_do_not() {
        for (name, device) in [("vda", "vda"), ("vda1", "vda"), ("nvme0n1p2", "nvme0n1")] {
            assert!(is_part(name, device), "{name}");
        }
        for (name, device) in [("vdaa", "vda"), ("vdap", "vda"), ("sda", "vda")] {
            assert!(!is_part(name, device), "{name}");
        }
    }
}
