//! The figures whose usual level is learnt, in each window of a recording.
//!
//! A figure that the recording does not have is left out. The floor of each is the least by which
//! it must exceed its usual level to matter to a person; all floors are picked.

use super::windows::Windows;
use crate::recording::accounting::PROCESSORS_RUN;
use model::recording::{DeviceKind, ProcessFigure, Recording, Series};
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;

/// Nanoseconds of a second as seconds.
const SECONDS: f64 = 1e-9;

/// The page size of a recording that does not have it.
const USUAL_PAGE_BYTES: u64 = 4096;

/// A request takes so much longer than usual, ns, and so many are needed in a window.
const LATENCY_FLOOR_NS: f64 = 4_000_000.0;
const LEAST_REQUESTS: f64 = 10.0;

/// A program runs on so many more processors than usual, and on so much of all of them.
const PROGRAM_FLOOR: f64 = 0.5;
const PROGRAM_FLOOR_SHARE: f64 = 0.2;

/// A figure that is watched.
#[derive(Debug)]
pub struct WatchedFigure {
    /// Its name in JSON.
    pub id: &'static str,
    /// Its name for people.
    pub title: String,
    /// The unit of its values.
    pub unit: &'static str,
    /// Its value in each window.
    pub values: Vec<Option<f64>>,
    /// The least by which it must exceed its usual level.
    pub floor: f64,
}

/// A figure that is the growth of counters, as a rate a second times `scale`.
struct Rate {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// The counters; the first list of which any is recorded counts.
    counters: &'static [&'static [&'static str]],
    scale: fn(&Recording) -> f64,
    floor: f64,
}

/// Time as a share of time.
fn share(_: &Recording) -> f64 {
    SECONDS
}

/// Time of all processors as a share of theirs.
fn share_of_processors(recording: &Recording) -> f64 {
    SECONDS / f64::from(recording.facts.processors.max(1))
}

fn times(_: &Recording) -> f64 {
    1.0
}

fn bytes_of_pages(recording: &Recording) -> f64 {
    match recording.facts.page_bytes {
        0 => USUAL_PAGE_BYTES as f64,
        bytes => bytes as f64,
    }
}

const RATES: [Rate; 12] = [
    Rate {
        id: "cpu_pressure",
        title: "tasks that waited for processors",
        unit: "ratio",
        counters: &[&["pressure.cpu.some_ns"]],
        scale: share,
        floor: 0.2,
    },
    Rate {
        id: "memory_pressure",
        title: "tasks that waited for memory",
        unit: "ratio",
        counters: &[&["pressure.memory.some_ns"]],
        scale: share,
        floor: 0.05,
    },
    Rate {
        id: "io_pressure",
        title: "tasks that waited for block I/O",
        unit: "ratio",
        counters: &[&["pressure.io.some_ns"], &["tree.block_io_ns"]],
        scale: share,
        floor: 0.15,
    },
    Rate {
        id: "processors",
        title: "processors busy",
        unit: "ratio",
        counters: &[&PROCESSORS_RUN],
        scale: share_of_processors,
        floor: 0.3,
    },
    Rate {
        id: "steal",
        title: "processors taken by the host",
        unit: "ratio",
        counters: &[&["stat.cpu.steal_ns"]],
        scale: share_of_processors,
        floor: 0.1,
    },
    Rate {
        id: "run_queue",
        title: "threads in the run queue",
        unit: "threads",
        counters: &[&["schedstat.queue_ns"], &["tree.queue_ns"]],
        scale: share,
        floor: 2.0,
    },
    Rate {
        id: "swapped_in",
        title: "back from swap",
        unit: "bytes/s",
        counters: &[&["vmstat.pswpin"]],
        scale: bytes_of_pages,
        floor: MIB,
    },
    Rate {
        id: "swapped_out",
        title: "swapped out",
        unit: "bytes/s",
        counters: &[&["vmstat.pswpout"]],
        scale: bytes_of_pages,
        floor: 2.0 * MIB,
    },
    Rate {
        id: "refaulted",
        title: "read again soon after it was evicted",
        unit: "bytes/s",
        counters: &[&["vmstat.workingset_refault_file"]],
        scale: bytes_of_pages,
        floor: 8.0 * MIB,
    },
    Rate {
        id: "major_faults",
        title: "page faults that waited for a device",
        unit: "per second",
        counters: &[&["vmstat.pgmajfault"]],
        scale: times,
        floor: 200.0,
    },
    Rate {
        id: "direct_reclaim",
        title: "tasks that freed memory themselves",
        unit: "per second",
        counters: &[&[
            "vmstat.allocstall_dma",
            "vmstat.allocstall_dma32",
            "vmstat.allocstall_normal",
            "vmstat.allocstall_movable",
        ]],
        scale: times,
        floor: 20.0,
    },
    Rate {
        id: "killed",
        title: "killed for lack of memory",
        unit: "per second",
        counters: &[&["vmstat.oom_kill"]],
        scale: times,
        // One, however long the window is.
        floor: 0.01,
    },
];

/// All figures of `recording`.
pub fn watched(recording: &Recording, windows: &Windows) -> Vec<WatchedFigure> {
    let by_name: BTreeMap<&str, &Series> =
        recording.series.iter().map(|series| (series.schema.name.as_str(), series)).collect();
    let mut all: Vec<WatchedFigure> =
        RATES.iter().filter_map(|rate| of_rate(rate, recording, &by_name, windows)).collect();
    all.extend(of_disks(recording, windows));
    all.extend(of_limits(recording, windows));
    all.extend(of_programs(recording, windows));
    all
}

fn of_rate(
    rate: &Rate,
    recording: &Recording,
    by_name: &BTreeMap<&str, &Series>,
    windows: &Windows,
) -> Option<WatchedFigure> {
    let lists = rate.counters.iter();
    let series = lists
        .map(|names| names.iter().filter_map(|name| by_name.get(name)).collect::<Vec<_>>())
        .find(|series| !series.is_empty())?;
    let mut grown = vec![0.0; windows.count()];
    series.iter().for_each(|series| windows.add_growth(series, &mut grown));
    Some(WatchedFigure {
        id: rate.id,
        title: rate.title.to_owned(),
        unit: rate.unit,
        values: windows.rates(&grown, (rate.scale)(recording)),
        floor: rate.floor,
    })
}

/// The traffic of all disks, and the latency of each.
fn of_disks(recording: &Recording, windows: &Windows) -> Vec<WatchedFigure> {
    let empty = || vec![0.0; windows.count()];
    let (mut read, mut written) = (empty(), empty());
    let mut times: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for series in &recording.series {
        let Some((disk, what)) = of_disk(recording, &series.schema.name) else { continue };
        match what {
            "read_bytes" => windows.add_growth(series, &mut read),
            "write_bytes" => windows.add_growth(series, &mut written),
            "read_ns" | "write_ns" | "reads" | "writes" => {
                let (ns, requests) = times.entry(disk).or_insert_with(|| (empty(), empty()));
                let sums = if what.ends_with("_ns") { ns } else { requests };
                windows.add_growth(series, sums);
            }
            _ => {}
        }
    }
    if times.is_empty() {
        return Vec::new();
    }
    let rate = |id, title: &str, grown: &[f64], floor| WatchedFigure {
        id,
        title: title.to_owned(),
        unit: "bytes/s",
        values: windows.rates(grown, 1.0),
        floor,
    };
    let mut all = vec![
        rate("read", "read from disks", &read, 16.0 * MIB),
        rate("written", "written to disks", &written, 32.0 * MIB),
    ];
    all.extend(times.into_iter().map(|(disk, (ns, requests))| {
        let latency =
            |(ns, requests): (&f64, &f64)| (*requests >= LEAST_REQUESTS).then(|| ns / requests);
        WatchedFigure {
            id: "latency",
            title: format!("a request to {disk}"),
            unit: "ns",
            values: ns.iter().zip(&requests).map(latency).collect(),
            floor: LATENCY_FLOOR_NS,
        }
    }));
    all
}

/// The disk of a series, one that is made of no others, and what the series counts.
fn of_disk<'a>(recording: &Recording, name: &'a str) -> Option<(&'a str, &'a str)> {
    let (disk, what) = name.strip_prefix("disk.")?.rsplit_once('.')?;
    let known = recording.facts.devices.iter().find(|device| device.name == disk);
    let is_disk = known.map_or(!disk.starts_with("zram"), |device| device.kind == DeviceKind::Disk);
    is_disk.then_some((disk, what))
}

/// What the limits of control groups held back, all groups together.
fn of_limits(recording: &Recording, windows: &Windows) -> Vec<WatchedFigure> {
    let empty = || vec![0.0; windows.count()];
    let (mut hits, mut throttled, mut refused) = (empty(), empty(), empty());
    let mut has_any = false;
    for series in &recording.series {
        let name = series.schema.name.as_str();
        let is_group = name.starts_with("limited") || name.starts_with("group");
        let Some((_, what)) = name.split_once('.').filter(|_| is_group) else { continue };
        let what = what.strip_prefix("others.").unwrap_or(what);
        let sums = match what {
            "others.memory.hits" | "memory.hits" | "memory.failcnt" | "memory.events.max"
            | "memory.events.high" => &mut hits,
            "cpu.throttled_ns" => &mut throttled,
            "pids.refused" | "memory.events.oom_kill" => &mut refused,
            _ => continue,
        };
        has_any = true;
        windows.add_growth(series, sums);
    }
    if !has_any {
        return Vec::new();
    }
    let watched = |id, title: &str, unit, values, floor| WatchedFigure {
        id,
        title: title.to_owned(),
        unit,
        values,
        floor,
    };
    vec![
        watched(
            "memory_limits",
            "memory limits of groups reached",
            "per second",
            windows.rates(&hits, 1.0),
            20.0,
        ),
        watched(
            "cpu_limits",
            "processors stopped by limits of groups",
            "processors",
            windows.rates(&throttled, SECONDS),
            0.3,
        ),
        watched(
            "refused",
            "processes refused or killed by limits of groups",
            "per second",
            windows.rates(&refused, 1.0),
            0.01,
        ),
    ]
}

/// The processor time of each program that ever used much of it.
fn of_programs(recording: &Recording, windows: &Windows) -> Vec<WatchedFigure> {
    let processors = f64::from(recording.facts.processors.max(1));
    let floor = PROGRAM_FLOOR.max(processors * PROGRAM_FLOOR_SHARE);
    let who = &recording.who;
    let cpu_s = |row: &model::recording::ProcessRow| row.get(ProcessFigure::Cpu) as f64 * SECONDS;
    let mut whole: BTreeMap<&str, f64> = BTreeMap::new();
    let name_of = |id: u32| who.processes.get(id as usize).map(|process| process.name.as_str());
    for row in &who.rows {
        if let Some(name) = name_of(row.process) {
            *whole.entry(name).or_default() += cpu_s(row);
        }
    }
    // A program that used less in all can have exceeded the floor in no window.
    whole.retain(|_, seconds| *seconds >= floor * windows.seconds());
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in &who.rows {
        let Some(name) = name_of(row.process).filter(|name| whole.contains_key(name)) else {
            continue;
        };
        let sums = by_name.entry(name).or_insert_with(|| vec![0.0; windows.count()]);
        windows.add_evenly(row.from_ns, row.to_ns, cpu_s(row), sums);
    }
    let programs = by_name.into_iter().map(|(name, sums)| WatchedFigure {
        id: "process_cpu",
        title: format!("processors that ran {name}"),
        unit: "processors",
        values: windows.rates(&sums, 1.0),
        floor,
    });
    programs.filter(|one| one.values.iter().flatten().any(|value| *value > floor)).collect()
}
