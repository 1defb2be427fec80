//! /proc/diskstats: requests, bytes and times of each whole device.
//!
//! Partitions are left out: their requests are in the whole device's. A device that comes
//! or goes while recording gives a span.

use super::table::{Change, Column, LineTable, Shape, word_at};
use super::{Moment, Source};
use machine::Root;

/// What the kernel calls a sector here, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

/// Word behind the device's name, name, unit, scale; see the kernel's
/// `Documentation/admin-guide/iostats.rst`. Word 8 is the one level.
const COUNTERS: [(usize, &str, &str, u64); 15] = [
    (0, "reads", "count", 1),
    (1, "reads_merged", "count", 1),
    (2, "read_bytes", "bytes", SECTOR_BYTES),
    (3, "read_ns", "ns", NS_PER_MS),
    (4, "writes", "count", 1),
    (5, "writes_merged", "count", 1),
    (6, "write_bytes", "bytes", SECTOR_BYTES),
    (7, "write_ns", "ns", NS_PER_MS),
    (9, "io_ns", "ns", NS_PER_MS),
    (10, "weighted_ns", "ns", NS_PER_MS),
    (11, "discards", "count", 1),
    (13, "discard_bytes", "bytes", SECTOR_BYTES),
    (14, "discard_ns", "ns", NS_PER_MS),
    (15, "flushes", "count", 1),
    (16, "flush_ns", "ns", NS_PER_MS),
];
const IN_FLIGHT: usize = 8;

/// The file, with the knowledge which devices are whole.
#[derive(Debug)]
pub(super) struct Disks {
    table: LineTable<DiskLines>,
    started: bool,
}

#[derive(Debug)]
struct DiskLines {
    root: Root,
}

/// The file, where there is one.
pub(super) fn open(root: &Root) -> Option<Disks> {
    let shape = DiskLines { root: root.clone() };
    Some(Disks { table: LineTable::open(root, "/proc/diskstats", shape)?, started: false })
}

impl Source for Disks {
    fn read(&mut self, moment: &mut Moment<'_>) {
        let change = self.table.read(moment.registry, moment.row);
        // The first plan adds all devices, so none of them is new.
        if let Some(change) = change.filter(|_| self.started) {
            announce(&change, moment);
        }
        self.started = true;
    }
}

fn announce(change: &Change, moment: &mut Moment<'_>) {
    for name in &change.added {
        moment.note("device_added", format!("the device {name} appeared"));
    }
    for name in &change.removed {
        moment.note("device_removed", format!("the device {name} vanished"));
    }
}

impl Shape for DiskLines {
    fn head<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let (_, major) = word_at(line, 0)?;
        let (_, minor) = word_at(line, major)?;
        word_at(line, minor)
    }

    fn columns(&self, key: &str) -> Vec<Column> {
        let directory = format!("/sys/block/{}", key.replace('/', "!"));
        let whole = key.starts_with(|first: char| first.is_ascii_alphanumeric())
            && self.root.path(directory).exists();
        if !whole {
            return Vec::new();
        }
        let counter = |(word, name, unit, scale): &(usize, &str, &'static str, u64)| {
            Column::counter(*word, format!("disk.{key}.{name}"), unit, *scale)
        };
        let in_flight = Column::gauge(IN_FLIGHT, format!("disk.{key}.in_flight"), "count", 1);
        COUNTERS.iter().map(counter).chain([in_flight]).collect()
    }
}
