//! A made day of a server with four processors, written by the real writer of a flight recorder:
//! work by day and little by night, jobs each hour, short bursts, and what happens to it.

use model::recording::{
    Facts, Process, ProcessFigure, ProcessRow, RecordingOutcome, SeriesKind, Tick, Who,
};
use record::{RecordSink, Registry, Row, file};
use std::ops::Range;
use std::path::Path;
use testkit::Random;

pub const SECOND_NS: u64 = 1_000_000_000;
pub const DAY_S: u64 = 86_400;

/// How much the recorder wrote of the day.
#[derive(Clone, Copy, Debug)]
pub struct Density {
    /// Samples a second.
    pub rate_hz: u64,
    /// Counters that grow in each sample, beside [`COUNTERS`].
    pub growing: usize,
    /// Counters that never change.
    pub still: usize,
    /// Rows of processes are so far apart.
    pub rows_every_s: u64,
    /// Processes that have a row each time, beside those of the day.
    pub others: u32,
}

impl Density {
    /// Enough to find an incident.
    pub const SPARSE: Self = Self { rate_hz: 1, growing: 0, still: 0, rows_every_s: 5, others: 0 };

    /// As a recorder of a machine writes it. Seen in 20 s of two processors that compiled: 742
    /// series, of which 81 changed from a sample to the next.
    pub const FULL: Self =
        Self { rate_hz: 10, growing: 61, still: 661, rows_every_s: 1, others: 20 };
}

/// The midnight at which the day starts.
const MIDNIGHT_S: u64 = 20_000 * 86_400;

/// What happened, and when in the day.
pub struct Incident {
    pub when: Range<u64>,
    pub kind: IncidentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    /// Four processes of `python3 nightly_report.py` on the processors.
    Report,
    /// `tar` reads more than the limit of its group.
    Archive,
    /// `leaky` in the same group, which swaps.
    Leak,
}

impl IncidentKind {
    /// The name of who did it.
    pub fn program(self) -> &'static str {
        PROGRAMS[self as usize + 1]
    }
}

const PROGRAMS: [&str; 4] = ["webapp", "python3 nightly_report.py", "tar", "leaky"];

/// The counters, with their growth in a second of a quiet night and what each incident adds.
const COUNTERS: [(&str, u64, [u64; 3]); 20] = [
    ("stat.cpu.user_ns", 150_000_000, [3_500_000_000, 100_000_000, 300_000_000]),
    ("stat.cpu.system_ns", 40_000_000, [50_000_000, 700_000_000, 500_000_000]),
    ("stat.cpu.iowait_ns", 4_000_000, [0, 900_000_000, 800_000_000]),
    ("schedstat.run_ns", 190_000_000, [3_600_000_000, 800_000_000, 800_000_000]),
    ("schedstat.queue_ns", 20_000_000, [2_400_000_000, 10_000_000, 10_000_000]),
    ("pressure.cpu.some_ns", 10_000_000, [800_000_000, 5_000_000, 5_000_000]),
    ("pressure.io.some_ns", 3_000_000, [0, 650_000_000, 500_000_000]),
    ("pressure.memory.some_ns", 0, [0, 250_000_000, 700_000_000]),
    ("disk.vda.reads", 30, [0, 1_500, 3_000]),
    ("disk.vda.read_bytes", 400_000, [0, 180 << 20, 12 << 20]),
    ("disk.vda.read_ns", 9_000_000, [0, 900_000_000, 700_000_000]),
    ("disk.vda.writes", 40, [0, 10, 2_000]),
    ("disk.vda.write_bytes", 600_000, [0, 0, 14 << 20]),
    ("disk.vda.write_ns", 20_000_000, [0, 0, 400_000_000]),
    ("vmstat.pgmajfault", 1, [0, 200, 2_500]),
    ("vmstat.pswpin", 0, [0, 0, 3_000]),
    ("vmstat.pswpout", 0, [0, 0, 3_500]),
    ("vmstat.workingset_refault_file", 20, [0, 6_000, 500]),
    ("limited0.memory.failcnt", 0, [0, 4_000, 3_000]),
    ("own.cpu_ns", 3_000_000, [0, 0, 0]),
];

/// Three incidents of a minute, at times that the seed decides.
pub fn three_incidents(seed: u64) -> Vec<Incident> {
    let mut random = Random(seed * 77 + 5);
    let kinds = [IncidentKind::Report, IncidentKind::Archive, IncidentKind::Leak];
    let incident = |(third, kind): (u64, IncidentKind)| {
        let start = third * (DAY_S / 3) + 600 + random.next_u64() % (DAY_S / 3 - 1_800);
        Incident { when: start..start + 60, kind }
    };
    (0..).zip(kinds).map(incident).collect()
}

/// Writes the day as a ring in the directory at `path`.
pub fn write(path: &Path, seed: u64, incidents: &[Incident], density: Density) {
    let facts = Facts {
        processors: 4,
        root: true,
        started_unix_ns: MIDNIGHT_S * SECOND_NS,
        page_bytes: 4096,
        ..Facts::default()
    };
    let Density { rate_hz, rows_every_s, .. } = density;
    let mut ring = file::Ring::open(path, 2 * DAY_S * SECOND_NS, 1 << 30, &facts).unwrap();
    let mut registry = Registry::new();
    let source = "/sys/fs/cgroup/memory/./web/memory.failcnt";
    let mut id = |name: &str| registry.id(name, "ns", SeriesKind::Counter, source).unwrap();
    let ids = COUNTERS.map(|(name, ..)| id(name));
    let growing: Vec<u32> = (0..density.growing).map(|at| id(&format!("made.{at}"))).collect();
    let mut row = Row::default();
    (0..density.still).for_each(|at| row.count(id(&format!("still.{at}")), 7 * at as u64));
    let mut random = Random(seed);
    let mut values = COUNTERS.map(|_| 1_000);
    let mut grown = vec![0; growing.len()];
    let bursts = bursts(seed);
    for number in 0..=DAY_S * rate_hz {
        let second = number / rate_hz;
        let happening = incidents.iter().find(|one| one.when.contains(&second));
        let is_burst = bursts.iter().any(|burst| burst.contains(&second));
        let busy = busy(second) * if is_burst { 3.0 } else { 1.0 };
        for (at, (_, rate, more)) in COUNTERS.iter().enumerate() {
            let noise = 0.5 + (random.next_u64() % 1_000) as f64 / 1_000.0;
            let usual = (*rate as f64 * busy * noise) as u64;
            let more = happening.map_or(0, |one| more[one.kind as usize]);
            values[at] += (usual + more) / rate_hz;
            row.count(ids[at], values[at]);
        }
        let bits = random.next_u64();
        for (at, (id, value)) in growing.iter().zip(&mut grown).enumerate() {
            *value += 100 + (bits >> (at % 50)) % 64;
            row.count(*id, *value);
        }
        let at_ns = number * SECOND_NS / rate_hz;
        let is_due = number > 0 && number.is_multiple_of(rows_every_s * rate_hz);
        if is_due {
            let who = used_until(second, incidents, density);
            ring.who(&who).unwrap();
        }
        ring.sample(Tick { due_ns: at_ns, at_ns }, registry.schemas(), &row).unwrap();
    }
    let ended_ns = DAY_S * SECOND_NS;
    ring.finish(&facts, &RecordingOutcome { ended_ns, ..RecordingOutcome::default() }).unwrap();
}

/// How busy the server is in a second of the day, against a quiet night: five times as much at
/// noon, and a job at each full hour.
fn busy(second: u64) -> f64 {
    let of_day = second as f64 / DAY_S as f64 * std::f64::consts::TAU;
    let hourly = if second % 3_600 < 20 { 4.0 } else { 0.0 };
    (3.0 - 2.0 * of_day.cos()) + hourly
}

/// A hundred times of one to three seconds with more work than usual.
fn bursts(seed: u64) -> Vec<Range<u64>> {
    let mut random = Random(seed * 31 + 7);
    let burst = |_| {
        let start = random.next_u64() % DAY_S;
        start..start + 1 + random.next_u64() % 3
    };
    (0..100).map(burst).collect()
}

/// What the programs used in the last seconds. A segment of a ring names its processes anew, which
/// the ring does by itself.
fn used_until(second: u64, incidents: &[Incident], density: Density) -> Who {
    let every_s = density.rows_every_s;
    let others = 4..4 + density.others;
    let mut who = Who::default();
    if second == every_s {
        who.processes = (0..).zip(PROGRAMS).map(process).collect();
        let other = |id: u32| process((id, &format!("daemon{id}")));
        who.processes.extend(others.clone().map(other));
    }
    let from_s = second - every_s;
    let mut used = |process: usize, cpu_ns: u64, read: u64, memory_bytes: u64| {
        let mut row = ProcessRow {
            process: process as u32,
            from_ns: from_s * SECOND_NS,
            to_ns: second * SECOND_NS,
            processes: 1,
            memory_bytes,
            ..ProcessRow::default()
        };
        row.figures[ProcessFigure::Cpu as usize] = cpu_ns * every_s;
        row.figures[ProcessFigure::ReadBytes as usize] = read * every_s;
        row.figures[ProcessFigure::CacheAdded as usize] = read * every_s;
        row.figures[ProcessFigure::SwappedIn as usize] = if process == 3 { 50 << 20 } else { 0 };
        who.rows.push(row);
    };
    used(0, (150e6 * busy(second)) as u64, 100_000, 300 << 20);
    others.for_each(|id| used(id as usize, 1_000_000 + second % 7 * 1_000, 0, 20 << 20));
    for one in incidents.iter().filter(|one| one.when.contains(&(second - 1))) {
        let into = second - one.when.start;
        match one.kind {
            IncidentKind::Report => used(1, 3_500_000_000, 0, 40 << 20),
            IncidentKind::Archive => used(2, 600_000_000, 180 << 20, 8 << 20),
            IncidentKind::Leak => used(3, 300_000_000, 12 << 20, into * (12 << 20)),
        }
    }
    who
}

fn process((id, name): (u32, &str)) -> Process {
    let group = if id > 1 { "/web" } else { "/system.slice/webapp.service" };
    Process {
        id,
        pid: 100 + id,
        parent: 1,
        name: name.to_owned(),
        group: group.to_owned(),
        ..Process::default()
    }
}
