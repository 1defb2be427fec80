//! The subject's processes, summed: what they ran, waited, faulted, read and wrote.
//!
//! Sums never fall: a process that ended stays in them with what it had when last seen. One
//! thing needs care: the kernel adds a child's I/O to its parent's when the parent waits for
//! it. So the last I/O of an ended process is kept only if no ancestor's I/O grew by it.
//! With many processes the round is made once a second, and a note says so.
//!
//! For the whole machine programs in the kernel make the same sums once a second, where it runs
//! them ([`TreeTotals`]): reading the files of 300 processes takes a third of a percent of a core.

mod members;
mod process;
mod text;

use super::{Moment, SLOW_NS, Scope, Source};
use crate::registry::{Registry, Row};
use machine::Root;
use members::ProcessFinder;
use model::duration::CLOCK_TICK_NS;
use model::recording::SeriesKind;
use process::{FIGURES, IO_FIRST, Process, Round};

/// Up to so many processes, and threads, are read for each sample with files held open.
/// 300 processes at 10 Hz would cost 9 % of a processor, and files are limited to 1,024.
const FAST_PROCESSES: usize = 20;
const FAST_THREADS: usize = 100;
/// Processes that are looked at in all.
const MAX_PROCESSES: usize = 32_768;

/// The sums in the order of [`Process::figures`], unit, source, and whether ticks.
const SUMS: [(&str, &str, &str, bool); FIGURES] = [
    ("run_ns", "ns", "schedstat", false),
    ("queue_ns", "ns", "schedstat", false),
    ("timeslices", "count", "schedstat", false),
    ("block_io_ns", "ns", "stat", true),
    ("user_ns", "ns", "stat", true),
    ("system_ns", "ns", "stat", true),
    ("minor_faults", "count", "stat", false),
    ("major_faults", "count", "stat", false),
    ("read_chars", "bytes", "io", false),
    ("write_chars", "bytes", "io", false),
    ("read_calls", "count", "io", false),
    ("write_calls", "count", "io", false),
    ("read_bytes", "bytes", "io", false),
    ("write_bytes", "bytes", "io", false),
    ("cancelled_write_bytes", "bytes", "io", false),
];
const LEVELS: [(&str, &str); 3] =
    [("processes", "count"), ("threads", "count"), ("rss_bytes", "bytes")];

/// How many sums there are.
pub(crate) const TREE_FIGURES: usize = FIGURES;
/// What the source of the series is called where programs in the kernel make them.
const IN_KERNEL: &str = "task_struct";

/// What all processes of the machine used, summed in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeTotals {
    /// In the order of [`SUMS`], of all threads that were ever seen.
    pub sums: [u64; TREE_FIGURES],
    /// That are there now.
    pub processes: u64,
    pub threads: u64,
    pub rss_bytes: u64,
    /// Processes that were ever seen.
    pub seen: u64,
}

/// The processes of the subject.
#[derive(Debug)]
pub(super) struct SubjectProcesses {
    root: Root,
    members: ProcessFinder,
    /// Parents before their children, so that a child's I/O is never missed on its way up.
    processes: Vec<Process>,
    /// What ended processes had counted, unless a parent has taken it over.
    ended: [u64; FIGURES],
    /// The sums of the last sample: a total never falls.
    reported: [u64; FIGURES],
    /// The columns, once the first sums are there: only then their source is known.
    columns: Option<Columns>,
    /// Whether programs in the kernel make the sums.
    is_in_kernel: bool,
    round: Round,
    page_bytes: u64,
    /// Ticks since boot when the recording started: what is older has a past.
    opened_ticks: u64,
    started: bool,
    many: bool,
    /// All that were ever seen.
    seen: u64,
}

/// The columns of the sums and levels.
#[derive(Debug)]
struct Columns {
    sums: [Option<u32>; FIGURES],
    levels: [Option<u32>; LEVELS.len()],
}

impl Columns {
    fn register(registry: &mut Registry, delays: bool, is_in_kernel: bool) -> Self {
        let source = |file: &str| {
            if is_in_kernel { IN_KERNEL.to_owned() } else { format!("/proc/PID/{file}") }
        };
        let sums = SUMS.map(|(name, unit, file, ticks)| {
            let wanted = name != "block_io_ns" || delays;
            let refresh_ns = ticks.then_some(CLOCK_TICK_NS);
            let (name, source) = (format!("tree.{name}"), source(file));
            let id =
                || registry.id_refreshed(&name, unit, SeriesKind::Counter, &source, refresh_ns);
            wanted.then(id).flatten()
        });
        let levels = LEVELS.map(|(name, unit)| {
            registry.id(&format!("tree.{name}"), unit, SeriesKind::Gauge, &source("stat"))
        });
        Self { sums, levels }
    }
}

impl SubjectProcesses {
    /// The tree of this scope; nothing is read yet.
    pub fn open(root: &Root, scope: &Scope) -> Self {
        let delays = counts_block_waits(root);
        Self {
            root: root.clone(),
            members: ProcessFinder::new(root, scope),
            processes: Vec::new(),
            ended: [0; FIGURES],
            reported: [0; FIGURES],
            columns: None,
            is_in_kernel: false,
            round: Round { buffer: [0; text::FILE_BYTES], hold: true, full: true, delays },
            page_bytes: sys::process::page_bytes() as u64,
            opened_ticks: uptime_ticks(root),
            started: false,
            many: false,
            seen: 0,
        }
    }

    /// Leaves the sums to programs in the kernel: nothing is read any more.
    pub fn leave_to_kernel(&mut self) {
        self.is_in_kernel = true;
    }

    /// Writes the sums that programs in the kernel made.
    pub fn take(&mut self, totals: &TreeTotals, registry: &mut Registry, row: &mut Row) {
        self.seen = self.seen.max(totals.seen);
        let levels = [totals.processes, totals.threads, totals.rss_bytes];
        self.write_row(totals.sums, levels, true, registry, row);
    }

    /// How many processes were seen to belong to the subject.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn read_known(&mut self) {
        let round = &mut self.round;
        let mut gone = Vec::new();
        for (place, process) in self.processes.iter_mut().enumerate() {
            process.mark_io();
            process.gone = !process.read(round);
            if process.gone {
                gone.push(place);
            }
        }
        for place in gone.iter().rev() {
            self.bury(*place);
        }
    }

    /// Takes an ended process out; the deepest come first, since children stand behind.
    fn bury(&mut self, place: usize) {
        let dead = self.processes.remove(place);
        let figures = dead.figures();
        let io: [u64; FIGURES - IO_FIRST] = std::array::from_fn(|index| figures[IO_FIRST + index]);
        let handed_on = self.heir(&dead).is_some_and(|heir| {
            let heir = &mut self.processes[heir];
            heir.read_io(&mut self.round);
            heir.inherit(&io)
        });
        let kept = if handed_on { IO_FIRST } else { FIGURES };
        for (sum, figure) in self.ended.iter_mut().zip(figures).take(kept) {
            *sum = sum.saturating_add(figure);
        }
    }

    /// The nearest ancestor that still exists: it reaped the process, or the process's reaper.
    fn heir(&self, dead: &Process) -> Option<usize> {
        let mut parent = dead.stat.parent;
        // The bound only matters if process numbers form a circle.
        for _ in 0..=self.processes.len() {
            let numbered = |process: &Process| process.number == parent;
            let place = self.processes.iter().position(numbered)?;
            if !self.processes[place].gone {
                return Some(place);
            }
            parent = self.processes[place].stat.parent;
        }
        None
    }

    fn welcome(&mut self, full: bool) {
        let processes = &self.processes;
        let known = |number| processes.iter().any(|process| process.number == number);
        let newcomers = self.members.newcomers(&known, full);
        for number in newcomers {
            if self.processes.len() >= MAX_PROCESSES {
                break;
            }
            let directory = self.root.path(format!("/proc/{number}"));
            let opened = Process::open(directory, number, &mut self.round);
            let Some(mut process) = opened else {
                continue;
            };
            // A process that joins later, as a group's member may, brings its past with it.
            if self.started && process.stat.start_ticks < self.opened_ticks {
                process.forget_past();
            }
            self.seen += 1;
            self.processes.push(process);
        }
    }

    /// Sums of all that were ever seen, levels, and whether any I/O could be read.
    fn add_up(&self) -> ([u64; FIGURES], [u64; LEVELS.len()], bool) {
        let mut sums = self.ended;
        let (mut alive, mut threads, mut pages) = (0u64, 0u64, 0u64);
        let mut io_seen = self.reported[IO_FIRST..].iter().any(|sum| *sum > 0);
        for process in &self.processes {
            for (sum, figure) in sums.iter_mut().zip(process.figures()) {
                *sum = sum.saturating_add(figure);
            }
            io_seen |= process.io.is_some();
            if !process.is_over() {
                alive += 1;
                threads += process.stat.threads;
                pages = pages.saturating_add(process.stat.rss_pages);
            }
        }
        (sums, [alive, threads, pages.saturating_mul(self.page_bytes)], io_seen)
    }

    fn write_row(
        &mut self,
        sums: [u64; FIGURES],
        levels: [u64; LEVELS.len()],
        io_seen: bool,
        registry: &mut Registry,
        row: &mut Row,
    ) {
        let (delays, is_in_kernel) = (self.round.delays, self.is_in_kernel);
        let register = || Columns::register(registry, delays, is_in_kernel);
        let columns = self.columns.get_or_insert_with(register);
        for (index, (reported, sum)) in self.reported.iter_mut().zip(sums).enumerate() {
            *reported = (*reported).max(sum);
            // If no process's I/O may be read the sum is absent, not 0.
            if let Some(id) = columns.sums[index].filter(|_| index < IO_FIRST || io_seen) {
                row.count(id, *reported);
            }
        }
        for (id, level) in columns.levels.iter().zip(levels) {
            if let Some(id) = id {
                row.count(*id, level);
            }
        }
    }

    fn set_pace(&mut self, moment: &mut Moment<'_>) {
        let threads: usize = self.processes.iter().map(Process::thread_count).sum();
        let count = self.processes.len();
        let many = count > FAST_PROCESSES || threads > FAST_THREADS;
        if many != self.many {
            let text = if many {
                format!(
                    "{count} processes with {threads} threads: the process tree is read once a second"
                )
            } else {
                "few processes again: the process tree is read for each sample".to_owned()
            };
            moment.note("rate", text);
        }
        self.many = many;
        self.round.hold = !many;
    }
}

impl Source for SubjectProcesses {
    fn read(&mut self, moment: &mut Moment<'_>) {
        if self.is_in_kernel || self.many && !moment.slow {
            return;
        }
        self.round.full = moment.all || (moment.slow && !self.many) || !self.started;
        self.read_known();
        // Delay accounting covers processes that live for less.
        if moment.steady {
            self.welcome(moment.slow);
        }
        let (sums, levels, io_seen) = self.add_up();
        self.write_row(sums, levels, io_seen, moment.registry, moment.row);
        self.set_pace(moment);
        self.started = true;
    }
}

/// Whether waits for block I/O are counted. Older kernels without the switch always do.
pub(crate) fn counts_block_waits(root: &Root) -> bool {
    let switch = root.read("/proc/sys/kernel/task_delayacct");
    switch.map_or(true, |text| text.trim() != "0")
}

fn uptime_ticks(root: &Root) -> u64 {
    let text = root.read("/proc/uptime").unwrap_or_default();
    let seconds = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let ticks_per_s = (SLOW_NS / CLOCK_TICK_NS) as f64;
    seconds.map_or(0, |seconds| (seconds * ticks_per_s) as u64)
}
