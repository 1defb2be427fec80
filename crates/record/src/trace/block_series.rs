//! The series of requests to block devices.
//!
//! A device gets its series when its first request is complete.
//! `trace.block.<dev>.read_le_<2^k>us` tells how many reads took at most so long.

use super::Family;
use super::block::{CLASSES, CompletedRequests, RequestSums};
use super::columns::{ColumnId, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::device_number;
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;

/// Requests to block devices of the whole machine.
#[derive(Debug, Default)]
pub struct BlockSeries(Option<BlockColumns>);

impl Reducer for BlockSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0 = families.contains(&Family::Block).then(|| BlockColumns {
            issued: counter(registry, "trace.block.issued", "count"),
            all: directions(registry, "trace.block"),
            devices: Vec::new(),
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        let (Some(columns), totals) = (&mut self.0, sums.requests) else {
            return;
        };
        set(row, columns.issued, totals.issued);
        fill_directions(&columns.all, &totals.all, row);
        let known = columns.devices.len();
        for device in totals.devices.iter().skip(known) {
            columns.devices.push(DeviceColumns::new(device.number, registry));
        }
        for (columns, device) in columns.devices.iter().zip(&totals.devices) {
            columns.fill(&device.sums, row);
        }
    }
}

#[derive(Debug)]
struct BlockColumns {
    issued: ColumnId,
    all: [DirectionColumns; 3],
    devices: Vec<DeviceColumns>,
}

/// Requests, bytes, latency.
#[derive(Debug)]
struct DirectionColumns([ColumnId; 3]);

#[derive(Debug)]
struct DeviceColumns {
    directions: [DirectionColumns; 3],
    /// Reads and writes by latency.
    classes: [Vec<ColumnId>; 2],
    /// Reads and writes that do not fit the medium's blocks.
    misaligned: [ColumnId; 2],
}

impl DeviceColumns {
    fn new(number: u32, registry: &mut Registry) -> Self {
        let prefix = format!("trace.block.{}", device_name(number));
        let mut classes = |direction: &str| {
            let name = |power: u32| format!("{prefix}.{direction}_le_{}us", 1u64 << power);
            let column = |power| counter(registry, &name(power), "count");
            CLASSES.map(column).collect()
        };
        Self {
            classes: [classes("read"), classes("write")],
            misaligned: ["reads", "writes"]
                .map(|name| counter(registry, &format!("{prefix}.misaligned_{name}"), "count")),
            directions: directions(registry, &prefix),
        }
    }

    fn fill(&self, sums: &RequestSums, row: &mut Row) {
        fill_directions(&self.directions, sums, row);
        for (column, done) in self.misaligned.iter().zip(sums) {
            set(row, *column, done.misaligned);
        }
        for (columns, done) in self.classes.iter().zip(sums) {
            let mut at_most = 0;
            for (column, count) in columns.iter().zip(done.classes) {
                at_most += count;
                set(row, *column, at_most);
            }
        }
    }
}

/// Columns for reads, writes, flushes. A flush carries no bytes.
fn directions(registry: &mut Registry, prefix: &str) -> [DirectionColumns; 3] {
    [("read", true), ("write", true), ("flush", false)].map(|(name, has_bytes)| {
        let plural = if name == "flush" { "es" } else { "s" };
        let mut column =
            |last: &str, unit: &str| counter(registry, &format!("{prefix}.{name}{last}"), unit);
        DirectionColumns([
            column(plural, "count"),
            has_bytes.then(|| column("_bytes", "bytes")).flatten(),
            column("_ns", "ns"),
        ])
    })
}

fn fill_directions(directions: &[DirectionColumns; 3], sums: &RequestSums, row: &mut Row) {
    for (DirectionColumns([requests, bytes, latency]), done) in directions.iter().zip(sums) {
        let CompletedRequests { requests: count, bytes: sum, latency_ns, .. } = *done;
        set(row, *requests, count);
        set(row, *bytes, sum);
        set(row, *latency, latency_ns);
    }
}

/// The unit that the medium of a device writes, by the kernel's number.
pub fn block_bytes(number: u32) -> Option<u64> {
    let (major, minor) = device_number::split(number);
    let file = format!("/sys/dev/block/{major}:{minor}/queue/physical_block_size");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The name of a device by the kernel's number; the number itself for one that is gone.
fn device_name(number: u32) -> String {
    let (major, minor) = device_number::split(number);
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}"));
    let name = link.ok().and_then(|link| {
        let name = link.file_name()?.to_str()?;
        Some(name.to_owned())
    });
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}
