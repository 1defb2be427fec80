//! The series that events are reduced to: their names, and how they are filled.
//!
//! Devices get theirs when their first request is complete. What a device's latency was is
//! told by `trace.block.<dev>.read_le_<2^k>us`: how many reads took at most so long.

use super::Family;
use super::block::{CLASSES, Done, Requests, Sums};
use super::event::{Io, Sleep, State};
use super::reclaim::{Reclaim, Sum};
use super::states::{Threads, WALL};
use crate::registry::{Registry, Row};
use model::recording::Kind;
use std::collections::BTreeSet;

const SOURCE: &str = "kernel events";

/// A column, unless the recording has too many.
type Column = Option<u32>;

/// The columns of all families that are open.
#[derive(Debug, Default)]
pub struct Columns {
    events: Column,
    lost: Column,
    stopped: Column,
    sched: Option<Sched>,
    block: Option<Block>,
    vmscan: Option<[Pair; 3]>,
    writeback: Option<Pair>,
    faults: Column,
}

/// How often, and how long.
#[derive(Debug)]
struct Pair {
    count: Column,
    time_ns: Column,
}

#[derive(Debug)]
struct Sched {
    /// Run, queue, block I/O, children, sleep.
    states: [Column; 5],
    switches: Column,
    block_io_waits: Column,
    waits: Column,
    untold_wakeups: Column,
    threads: Column,
    wall: [Column; WALL.len()],
    sleeps: Vec<(Sleep, Column)>,
    ios: Vec<(Io, Column)>,
}

#[derive(Debug)]
struct Block {
    issued: Column,
    all: [Direction; 3],
    devices: Vec<Device>,
}

/// Requests, bytes, latency.
#[derive(Debug)]
struct Direction([Column; 3]);

#[derive(Debug)]
struct Device {
    directions: [Direction; 3],
    /// Reads and writes by latency.
    classes: [Vec<Column>; 2],
    /// Reads and writes that do not fit the medium's blocks.
    misaligned: [Column; 2],
}

fn counter(registry: &mut Registry, name: &str, unit: &str) -> Column {
    registry.id(name, unit, Kind::Counter, SOURCE)
}

impl Pair {
    fn new(registry: &mut Registry, count: &str, time: &str) -> Self {
        Self {
            count: counter(registry, count, "count"),
            time_ns: counter(registry, time, "ns"),
        }
    }

    fn fill(&self, sum: Sum, row: &mut Row) {
        set(row, self.count, sum.count);
        set(row, self.time_ns, sum.time_ns);
    }
}

impl Columns {
    /// Columns for these families.
    pub fn new(families: &BTreeSet<Family>, registry: &mut Registry) -> Self {
        let has = |family| families.contains(&family);
        Self {
            events: counter(registry, "trace.events", "count"),
            lost: counter(registry, "trace.lost", "count"),
            stopped: registry.id("trace.stopped", "count", Kind::Gauge, SOURCE),
            sched: has(Family::Sched).then(|| Sched::new(registry)),
            block: has(Family::Block).then(|| Block {
                issued: counter(registry, "trace.block.issued", "count"),
                all: directions(registry, "trace.block"),
                devices: Vec::new(),
            }),
            vmscan: has(Family::Vmscan).then(|| {
                let mut pair = |count: &str, time: &str| {
                    let name = |last: &str| format!("trace.vmscan.{last}");
                    Pair::new(registry, &name(count), &name(time))
                };
                [
                    pair("direct_reclaims", "direct_reclaim_ns"),
                    pair("throttles", "throttled_ns"),
                    pair("compactions", "compaction_ns"),
                ]
            }),
            writeback: has(Family::Writeback).then(|| {
                let time = "trace.writeback.dirty_wait_ns";
                Pair::new(registry, "trace.writeback.dirty_waits", time)
            }),
            faults: has(Family::Faults)
                .then(|| counter(registry, "trace.faults.user", "count"))
                .flatten(),
        }
    }

    /// Notes what happened to the events themselves.
    pub fn fill_events(&self, events: u64, lost: u64, stopped: bool, row: &mut Row) {
        set(row, self.events, events);
        set(row, self.lost, lost);
        set(row, self.stopped, u64::from(stopped));
    }

    /// Notes the threads' states, as of their last settling.
    pub fn fill_threads(&self, threads: &Threads, row: &mut Row) {
        if let Some(sched) = &self.sched {
            sched.fill(threads, row);
        }
    }

    /// Notes the requests; devices that are new get columns.
    pub fn fill_block(&mut self, requests: &Requests, registry: &mut Registry, row: &mut Row) {
        let Some(block) = &mut self.block else {
            return;
        };
        set(row, block.issued, requests.issued());
        fill_directions(&block.all, requests.all(), row);
        let known = block.devices.len();
        for device in requests.devices().iter().skip(known) {
            block.devices.push(Device::new(device.number, registry));
        }
        for (columns, device) in block.devices.iter().zip(requests.devices()) {
            columns.fill(&device.sums, row);
        }
    }

    /// Notes reclaim, compaction, waits for write-back.
    pub fn fill_reclaim(&self, reclaim: &Reclaim, row: &mut Row) {
        if let Some([reclaims, throttles, compactions]) = &self.vmscan {
            reclaims.fill(reclaim.reclaims(), row);
            throttles.fill(reclaim.throttles(), row);
            compactions.fill(reclaim.compactions(), row);
        }
        if let Some(pair) = &self.writeback {
            pair.fill(reclaim.dirty_waits(), row);
        }
    }

    /// Notes page faults.
    pub fn fill_faults(&self, faults: u64, row: &mut Row) {
        set(row, self.faults, faults);
    }
}

impl Sched {
    fn new(registry: &mut Registry) -> Self {
        let mut sched =
            |last: &str, unit: &str| counter(registry, &format!("trace.sched.{last}"), unit);
        let states = [
            "run_ns",
            "queue_ns",
            "block_io_ns",
            "children_ns",
            "sleep_ns",
        ];
        let states = states.map(|name| sched(name, "ns"));
        let switches = sched("switches", "count");
        let block_io_waits = sched("block_io_waits", "count");
        let waits = sched("waits", "count");
        let untold_wakeups = sched("untold_wakeups", "count");
        let threads = sched("threads", "count");
        let mut time =
            |group: &str, name: &str| counter(registry, &format!("trace.{group}.{name}_ns"), "ns");
        Self {
            states,
            switches,
            block_io_waits,
            waits,
            untold_wakeups,
            threads,
            wall: WALL.map(|name| time("wall", name)),
            sleeps: Vec::from(Sleep::ALL.map(|(sleep, name)| (sleep, time("sleep", name)))),
            ios: Vec::from(Io::ALL.map(|(io, name)| (io, time("block_io", name)))),
        }
    }

    fn fill(&self, threads: &Threads, row: &mut Row) {
        let mut sleep_ns = 0;
        for (sleep, column) in &self.sleeps {
            let sum_ns = threads.sum_ns(State::Sleep(*sleep));
            sleep_ns += sum_ns;
            set(row, *column, sum_ns);
        }
        let mut block_io_ns = 0;
        for (io, column) in &self.ios {
            let sum_ns = threads.sum_ns(State::BlockIo(*io));
            block_io_ns += sum_ns;
            set(row, *column, sum_ns);
        }
        let [run, queue, children] =
            [State::Run, State::Queue, State::Children].map(|state| threads.sum_ns(state));
        let sums = [run, queue, block_io_ns, children, sleep_ns];
        for (column, sum_ns) in self.states.iter().zip(sums) {
            set(row, *column, sum_ns);
        }
        for (column, sum_ns) in self.wall.iter().zip(threads.wall_ns()) {
            set(row, *column, sum_ns);
        }
        set(row, self.switches, threads.switches);
        set(row, self.block_io_waits, threads.block_io_waits);
        set(row, self.waits, threads.waits);
        set(row, self.untold_wakeups, threads.untold_wakeups);
        set(row, self.threads, threads.seen);
    }
}

impl Device {
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

    fn fill(&self, sums: &Sums, row: &mut Row) {
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
fn directions(registry: &mut Registry, prefix: &str) -> [Direction; 3] {
    [("read", true), ("write", true), ("flush", false)].map(|(name, has_bytes)| {
        let plural = if name == "flush" { "es" } else { "s" };
        let mut column =
            |last: &str, unit: &str| counter(registry, &format!("{prefix}.{name}{last}"), unit);
        Direction([
            column(plural, "count"),
            has_bytes.then(|| column("_bytes", "bytes")).flatten(),
            column("_ns", "ns"),
        ])
    })
}

fn fill_directions(directions: &[Direction; 3], sums: &Sums, row: &mut Row) {
    for (Direction([requests, bytes, latency]), done) in directions.iter().zip(sums) {
        let Done {
            requests: count,
            bytes: sum,
            latency_ns,
            ..
        } = *done;
        set(row, *requests, count);
        set(row, *bytes, sum);
        set(row, *latency, latency_ns);
    }
}

/// The unit that the medium of a device writes, by the kernel's number.
pub fn block_bytes(number: u32) -> Option<u64> {
    let (major, minor) = major_minor(number);
    let file = format!("/sys/dev/block/{major}:{minor}/queue/physical_block_size");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The kernel's own form, not that of stat(2): 12 bits and 20 bits.
fn major_minor(number: u32) -> (u32, u32) {
    (number >> 20, number & 0xf_ffff)
}

/// The name of a device by the kernel's number; the number itself for one that is gone.
fn device_name(number: u32) -> String {
    let (major, minor) = major_minor(number);
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}"));
    let name = link.ok().and_then(|link| {
        let name = link.file_name()?.to_str()?;
        Some(name.to_owned())
    });
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

fn set(row: &mut Row, column: Column, value: u64) {
    if let Some(id) = column {
        row.count(id, value);
    }
}
