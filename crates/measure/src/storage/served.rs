//! What really served a probe: the device, the page cache or RAM, by the kernel's counters before
//! and after.
//!
//! The process's own `read_bytes` counts what it made the block layer fetch, so it is the best
//! evidence for reads. The device's counters include all other traffic: they can refute ("the disk
//! saw nothing"), and replace the process's counters where those are absent. A file system in RAM
//! needs no evidence.

use super::target::StorageTarget;
use machine::Root;
use machine::diskstats::SECTOR_BYTES;
use model::Evidence;
use model::probe::SERVED_BY_DEVICE;
use serde::{Deserialize, Serialize};

/// From this share of the bytes, the device served the probe; below [`CACHE_SHARE`], the cache; in
/// between, both.
const DEVICE_SHARE: f64 = 0.9;
const CACHE_SHARE: f64 = 0.1;

/// Who served the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServedBy {
    /// The block device (or what it stands for: a network volume, a host's file).
    Device,
    /// The kernel's cache of the file.
    PageCache,
    /// Partly the device and partly the page cache.
    Both,
    /// A file system that lives in RAM; `O_DIRECT` changes nothing there.
    Ram,
    /// No counter tells.
    Unknown,
}

impl ServedBy {
    /// What answered the requests, as a survey's report says it; empty if no counter tells.
    #[must_use]
    pub fn answered(self) -> &'static str {
        match self {
            // A host's cache answers for the device; comparing with the raw one is a rule's part.
            ServedBy::Device => SERVED_BY_DEVICE,
            ServedBy::PageCache | ServedBy::Both => "page cache",
            ServedBy::Ram => "RAM",
            ServedBy::Unknown => "",
        }
    }
}

/// Who served the requests, and the counters that say so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// Who.
    pub by: ServedBy,
    /// Why this is believed, in one clause.
    pub reason: String,
    /// The counters, as differences over the probe.
    pub evidence: Vec<Evidence>,
}

impl Served {
    /// Who served several runs; `None` for none.
    pub fn of_runs<'s>(runs: impl IntoIterator<Item = &'s Self>) -> Option<Self> {
        let all: Vec<&Self> = runs.into_iter().collect();
        let first = *all.first()?;
        if all.iter().all(|served| served.by == first.by) {
            return Some(first.clone());
        }
        let mut each: Vec<&str> = all.iter().map(|served| served.by.answered()).collect();
        each.dedup();
        let reason = format!("it differs from run to run: {}", each.join(", "));
        Some(Self { by: ServedBy::Unknown, reason, evidence: first.evidence.clone() })
    }
}

/// Which way the bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// The counters before a probe.
#[derive(Debug)]
pub struct ServedWatch<'a> {
    root: &'a Root,
    target: &'a StorageTarget,
    before: ServedCounters,
}

/// Running totals; a counter that cannot be read is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServedCounters {
    /// Bytes that this process made the block layer read.
    pub process_read: Option<u64>,
    /// Bytes that the device read, for everyone.
    pub device_read: Option<u64>,
    /// Bytes that the device wrote, for everyone.
    pub device_written: Option<u64>,
    /// Requests that the device ended, reads and writes, for everyone.
    pub device_requests: Option<u64>,
    /// Bytes of the file in the page cache.
    pub cached: Option<u64>,
}

impl<'a> ServedWatch<'a> {
    /// Reads the counters.
    pub fn start(root: &'a Root, target: &'a StorageTarget) -> Self {
        Self { root, target, before: ServedCounters::read(root, target) }
    }

    /// Reads them again and judges: `bytes` went in `direction` in between.
    pub fn finish(&self, direction: Direction, bytes: u64) -> Served {
        let after = ServedCounters::read(self.root, self.target);
        let mut evidence = vec![Evidence::new("bytes asked", bytes as f64, "bytes", "the probe")];
        evidence.extend(self.before.grown_to(&after));
        let in_ram = self.target.in_ram().then(|| {
            let name = self.target.file_system().name;
            name.unwrap_or("the file system").to_owned()
        });
        let (by, reason) = judge(&self.before, &after, direction, bytes, in_ram.as_deref());
        Served { by, reason, evidence }
    }
}

impl ServedCounters {
    fn read(root: &Root, target: &StorageTarget) -> Self {
        let io = machine::process_io::read(root);
        let device =
            target.device().and_then(|(major, minor)| machine::diskstats::of(root, major, minor));
        Self {
            process_read: io.map(|io| io.read_bytes),
            device_read: device.as_ref().map(|d| d.sectors_read * SECTOR_BYTES),
            device_written: device.as_ref().map(|d| d.sectors_written * SECTOR_BYTES),
            device_requests: device.as_ref().map(|d| d.reads + d.writes),
            cached: target.cache_state(0).map(|state| state.cached_bytes()),
        }
    }

    /// Each counter's growth as evidence; absent ones leave no line.
    fn grown_to(&self, after: &ServedCounters) -> Vec<Evidence> {
        let diskstats = "/proc/diskstats";
        let read = grown(self.device_read, after.device_read);
        let written = grown(self.device_written, after.device_written);
        let requests = grown(self.device_requests, after.device_requests);
        let by_process = grown(self.process_read, after.process_read);
        let io = "/proc/self/io read_bytes";
        let rows = [
            ("read by this process from devices", by_process, "bytes", io),
            ("read by the device, for everyone", read, "bytes", diskstats),
            ("written by the device, for everyone", written, "bytes", diskstats),
            ("requests ended by the device, for everyone", requests, "count", diskstats),
            ("of the file in the page cache, before", self.cached, "bytes", "cachestat"),
            ("of the file in the page cache, after", after.cached, "bytes", "cachestat"),
        ];
        rows.into_iter()
            .filter_map(|(name, value, unit, source)| {
                Some(Evidence::new(name, value? as f64, unit, source))
            })
            .collect()
    }
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// The verdict, from the counters alone; `in_ram` names a file system in RAM.
fn judge(
    before: &ServedCounters,
    after: &ServedCounters,
    direction: Direction,
    bytes: u64,
    in_ram: Option<&str>,
) -> (ServedBy, String) {
    if let Some(name) = in_ram {
        return (ServedBy::Ram, format!("{name} lives in memory, direct or not"));
    }
    if bytes == 0 {
        return (ServedBy::Unknown, "nothing was moved".to_owned());
    }
    let process = match direction {
        Direction::Read => grown(before.process_read, after.process_read),
        // `write_bytes` counts pages made dirty, not written: not evidence.
        Direction::Write => None,
    };
    let device = match direction {
        Direction::Read => grown(before.device_read, after.device_read),
        Direction::Write => grown(before.device_written, after.device_written),
    };
    let Some(moved) = process.or(device) else {
        let reason = "neither the process nor a device has counters here";
        return (ServedBy::Unknown, reason.to_owned());
    };
    let share = moved as f64 / bytes as f64;
    let by = if share >= DEVICE_SHARE {
        ServedBy::Device
    } else if share <= CACHE_SHARE {
        ServedBy::PageCache
    } else {
        ServedBy::Both
    };
    let percent = (share * 100.0).min(100.0).round();
    let reason = format!("{percent} % of the bytes went through the block device");
    (by, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_reads(process: Option<u64>, device: Option<u64>) -> ServedBy {
        let before = ServedCounters {
            process_read: process.map(|_| 1000),
            device_read: device.map(|_| 5000),
            ..ServedCounters::default()
        };
        let after = ServedCounters {
            process_read: process.map(|grown| 1000 + grown),
            device_read: device.map(|grown| 5000 + grown),
            ..ServedCounters::default()
        };
        judge(&before, &after, Direction::Read, 4096, None).0
    }

    #[test]
    fn the_process_counter_is_believed_before_the_device() {
        assert_eq!(after_reads(Some(4096), Some(0)), ServedBy::Device);
        // Someone else read from the device meanwhile.
        assert_eq!(after_reads(Some(0), Some(1 << 30)), ServedBy::PageCache);
        assert_eq!(after_reads(Some(2048), None), ServedBy::Both);
    }

    #[test]
    fn the_device_stands_in_and_nothing_is_unknown() {
        assert_eq!(after_reads(None, Some(4096)), ServedBy::Device);
        assert_eq!(after_reads(None, Some(0)), ServedBy::PageCache);
        assert_eq!(after_reads(None, None), ServedBy::Unknown);
    }

    #[test]
    fn a_file_system_in_ram_needs_no_counter() {
        let none = ServedCounters::default();
        let (by, reason) = judge(&none, &none, Direction::Read, 4096, Some("tmpfs"));
        assert_eq!(by, ServedBy::Ram);
        assert!(reason.contains("tmpfs"), "{reason}");
    }

    #[test]
    fn absent_counters_leave_no_evidence() {
        let none = ServedCounters::default();
        assert!(none.grown_to(&none).is_empty());
    }
}
