//! What each process and each file used in a part of a recording.
//!
//! A row covers the time between two looks at a process. One that lies only partly inside of the
//! part is shared out by time, as if it had used the same in each moment; how much of a sum came
//! so is kept beside it, because nothing more exact can be said of that.

use model::recording::{FileRow, Process, ProcessFigure, ProcessRow, RequestRow, SampledPart, Who};
use std::collections::BTreeMap;

/// A sum, and how much of it was shared out by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedSum {
    /// The sum.
    pub value: u64,
    /// The part of it that comes from rows that lie only partly inside.
    pub shared: u64,
}

impl SharedSum {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value.saturating_add(other.value),
            shared: self.shared.saturating_add(other.shared),
        }
    }
}

/// What one process used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSum<'a> {
    /// Which.
    pub process: &'a Process,
    /// How much, by [`ProcessFigure::ALL`].
    pub figures: [SharedSum; ProcessFigure::COUNT],
    /// By how much its resident memory rose above what it had at the start, at most; bytes.
    pub memory_growth: SharedSum,
    /// The highest level of its resident memory that was seen, bytes.
    pub memory_held: SharedSum,
    /// Its resident memory at the end, or when it was last looked at; bytes.
    pub memory_bytes: u64,
    /// How many processes these are: 1, or more of [`Process::is_many`].
    pub processes: u64,
    /// Samples of processors that ran it, by [`SampledPart::ALL`].
    pub samples: [SharedSum; SampledPart::COUNT],
    /// What devices read and wrote for it, bytes.
    pub device_bytes: [SharedSum; 2],
}

impl ProcessSum<'_> {
    /// One figure.
    #[must_use]
    pub fn get(&self, figure: ProcessFigure) -> SharedSum {
        self.figures[figure as usize]
    }

    /// Samples of a part.
    #[must_use]
    pub fn sampled(&self, part: SampledPart) -> SharedSum {
        self.samples[part as usize]
    }

    /// Samples outside of user code.
    #[must_use]
    pub fn in_kernel(&self) -> SharedSum {
        let classes = self.samples.iter().skip(SampledPart::ORIGINS).take(SampledPart::CLASSES);
        classes.fold(SharedSum::default(), |all, one| all.plus(*one))
    }
}

/// Requests of one process to one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSum {
    /// The id of the process.
    pub process: u32,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Whether they are writes.
    pub is_write: bool,
    /// How many.
    pub requests: SharedSum,
    /// Their bytes.
    pub bytes: SharedSum,
    /// Their times from issue to completion, added up; ns.
    pub latency_ns: SharedSum,
    /// How many of each class of latency.
    pub classes: [SharedSum; RequestRow::CLASSES],
}

/// What was done with one file by one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSum {
    /// The file's id.
    pub file: u32,
    /// The id of the process.
    pub process: u32,
    /// Bytes added to the page cache.
    pub added: SharedSum,
    /// Of them, read again soon after they had been evicted.
    pub refaulted: SharedSum,
    /// Bytes made dirty.
    pub dirtied: SharedSum,
}

/// The part of a row that lies in `from_ns..=to_ns`.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    inside_ns: u64,
    whole_ns: u64,
}

impl Overlap {
    /// `None` where the row lies outside.
    fn of(row: (u64, u64), part: (u64, u64)) -> Option<Self> {
        // A row whose ends are exchanged is damaged; what it counts was there at its end.
        let row = (row.0.min(row.1), row.1);
        let inside_ns = row.1.min(part.1).saturating_sub(row.0.max(part.0));
        let is_instant = row.0 == row.1 && (part.0..=part.1).contains(&row.1);
        (inside_ns > 0 || is_instant).then_some(Self { inside_ns, whole_ns: row.1 - row.0 })
    }

    fn take(self, value: u64) -> SharedSum {
        if self.inside_ns == self.whole_ns {
            return SharedSum { value, shared: 0 };
        }
        let part = u128::from(value) * u128::from(self.inside_ns) / u128::from(self.whole_ns);
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        SharedSum { value: part, shared: part }
    }
}

/// What each process used between two instants, by its id; those that had nothing are
/// left out.
#[must_use]
pub fn process_sums(who: &Who, from_ns: u64, to_ns: u64) -> Vec<ProcessSum<'_>> {
    let mut sums: Vec<ProcessSum> = who.processes.iter().map(empty).collect();
    let mut memory: Vec<MemoryLevels> = vec![MemoryLevels::default(); sums.len()];
    let started_at_ns = earliest_start(who);
    for row in &who.rows {
        // A damaged recording may name a process that is not there.
        let Some(sum) = sums.get_mut(row.process as usize) else { continue };
        let levels = &mut memory[row.process as usize];
        if levels.is_first() && has_started_inside(sum.process, row, started_at_ns) {
            levels.see(row.from_ns, 0, (from_ns, to_ns));
        }
        if !row.has_ended {
            levels.see(row.to_ns, row.memory_bytes, (from_ns, to_ns));
        } else if row.to_ns <= from_ns {
            *levels = MemoryLevels::default();
        }
        let Some(overlap) = Overlap::of((row.from_ns, row.to_ns), (from_ns, to_ns)) else {
            continue;
        };
        for figure in ProcessFigure::ALL {
            let at = figure as usize;
            sum.figures[at] = sum.figures[at].plus(overlap.take(row.get(figure)));
        }
        sum.processes = sum.processes.saturating_add(row.processes.max(1));
    }
    for row in &who.samples {
        let overlap = Overlap::of((row.from_ns, row.to_ns), (from_ns, to_ns));
        if let (Some(sum), Some(overlap)) = (sums.get_mut(row.process as usize), overlap) {
            for (sum, samples) in sum.samples.iter_mut().zip(row.samples) {
                *sum = sum.plus(overlap.take(samples));
            }
            // It was there, whether or not it has a row.
            sum.processes = sum.processes.max(1);
        }
    }
    for sum in &mut sums {
        sum.device_bytes = [ProcessFigure::ReadBytes, ProcessFigure::WrittenBytes]
            .map(|figure| sum.figures[figure as usize]);
    }
    for (sum, levels) in sums.iter_mut().zip(memory) {
        if !sum.process.is_many {
            sum.processes = sum.processes.min(1);
            sum.memory_growth = levels.growth();
            sum.memory_held = SharedSum { value: levels.highest, shared: 0 };
            sum.memory_bytes = levels.last.map_or(0, |(_, bytes)| bytes);
        }
    }
    sums.retain(|sum| sum.processes > 0 || sum.memory_held.value > 0);
    sums
}

fn empty(process: &Process) -> ProcessSum<'_> {
    ProcessSum {
        process,
        figures: [SharedSum::default(); ProcessFigure::COUNT],
        memory_growth: SharedSum::default(),
        memory_held: SharedSum::default(),
        memory_bytes: 0,
        processes: 0,
        samples: [SharedSum::default(); SampledPart::COUNT],
        device_bytes: [SharedSum::default(); 2],
    }
}

/// The requests of each process to each device between two instants.
#[must_use]
pub fn request_sums(who: &Who, from_ns: u64, to_ns: u64) -> Vec<RequestSum> {
    let mut sums: BTreeMap<_, RequestSum> = BTreeMap::new();
    for row in &who.requests {
        let Some(overlap) = Overlap::of((row.from_ns, row.to_ns), (from_ns, to_ns)) else {
            continue;
        };
        let RequestRow { process, device, is_write, .. } = *row;
        let empty = RequestSum { process, device, is_write, ..RequestSum::default() };
        let sum = sums.entry((process, device, is_write)).or_insert(empty);
        sum.requests = sum.requests.plus(overlap.take(row.requests));
        sum.bytes = sum.bytes.plus(overlap.take(row.bytes));
        sum.latency_ns = sum.latency_ns.plus(overlap.take(row.latency_ns));
        for (sum, count) in sum.classes.iter_mut().zip(row.classes) {
            *sum = sum.plus(overlap.take(count));
        }
    }
    sums.into_values().collect()
}

/// What was done with each file by each process between two instants.
#[must_use]
pub fn file_sums(who: &Who, from_ns: u64, to_ns: u64) -> Vec<FileSum> {
    let mut sums: BTreeMap<(u32, u32), FileSum> = BTreeMap::new();
    let mut add = |row: &FileRow, overlap: Overlap| {
        let (file, process) = (row.file, row.process);
        let empty = FileSum { file, process, ..FileSum::default() };
        let sum = sums.entry((file, process)).or_insert(empty);
        sum.added = sum.added.plus(overlap.take(row.added_bytes));
        sum.refaulted = sum.refaulted.plus(overlap.take(row.refaulted_bytes));
        sum.dirtied = sum.dirtied.plus(overlap.take(row.dirtied_bytes));
    };
    for row in &who.file_rows {
        if let Some(overlap) = Overlap::of((row.from_ns, row.to_ns), (from_ns, to_ns)) {
            add(row, overlap);
        }
    }
    sums.into_values().collect()
}

/// The latest instant, on the clock of [`Process::started_ns`], at which the recording can have
/// started: no process starts after it was first looked at.
fn earliest_start(who: &Who) -> u64 {
    let mut is_seen = vec![false; who.processes.len()];
    let mut earliest = 0;
    for row in &who.rows {
        let at = row.process as usize;
        if is_seen.get(at) == Some(&false) {
            is_seen[at] = true;
            earliest = earliest.max(who.processes[at].started_ns.saturating_sub(row.from_ns));
        }
    }
    earliest
}

/// Whether a process, by its first row, started while it was recorded: its memory then grew from
/// nothing. Of others it is not known what they had before they were first looked at.
fn has_started_inside(process: &Process, first: &ProcessRow, recording_started_ns: u64) -> bool {
    first.from_ns > 0 && process.started_ns > recording_started_ns
}

/// The levels of one process' memory, as far as a part of the recording needs them.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryLevels {
    /// The last level that was seen, and when.
    last: Option<(u64, u64)>,
    /// At the start of the part, else the first one in it.
    start: Option<u64>,
    /// The highest one in the part.
    highest: u64,
    /// Whether an end of the part lies between two levels, so that one of them was shared out.
    is_shared: bool,
}

impl MemoryLevels {
    fn is_first(&self) -> bool {
        self.last.is_none()
    }

    /// Takes the next level; between two of them it changes evenly.
    fn see(&mut self, at_ns: u64, bytes: u64, part: (u64, u64)) {
        let before = self.last.replace((at_ns, bytes));
        let crosses = |instant: u64| {
            before.filter(|before| before.0 < instant && instant < at_ns).map(|before| {
                let share = (instant - before.0) as f64 / (at_ns - before.0) as f64;
                let (old, new) = (before.1 as f64, bytes as f64);
                old.mul_add(1.0 - share, new * share) as u64
            })
        };
        if let Some(level) = crosses(part.0) {
            self.start = Some(level);
            self.highest = level;
            self.is_shared = true;
        }
        if at_ns <= part.0 {
            self.start = Some(bytes);
            self.highest = bytes;
        } else if at_ns <= part.1 {
            self.start.get_or_insert(bytes);
            self.highest = self.highest.max(bytes);
        } else if let Some(level) = crosses(part.1) {
            self.is_shared |= level > self.highest;
            self.start.get_or_insert(level);
            self.highest = self.highest.max(level);
        }
    }

    fn growth(&self) -> SharedSum {
        let value = self.highest.saturating_sub(self.start.unwrap_or(self.highest));
        SharedSum { value, shared: if self.is_shared { value } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32, pid: u32, started_ns: u64) -> Process {
        Process { id, pid, started_ns, name: format!("p{pid}"), ..Process::default() }
    }

    fn row(process: u32, from_ns: u64, to_ns: u64, cpu: u64, memory_bytes: u64) -> ProcessRow {
        let mut row = ProcessRow {
            process,
            from_ns,
            to_ns,
            memory_bytes,
            processes: 1,
            ..Default::default()
        };
        row.figures[ProcessFigure::Cpu as usize] = cpu;
        row
    }

    fn cpu(sums: &[ProcessSum], pid: u32) -> (u64, u64) {
        let sum = sums.iter().find(|sum| sum.process.pid == pid);
        let cpu = sum.map_or_else(SharedSum::default, |sum| sum.get(ProcessFigure::Cpu));
        (cpu.value, cpu.shared)
    }

    #[test]
    fn rows_that_lie_partly_inside_are_shared_out_by_time() {
        let who = Who {
            processes: vec![process(0, 7, 1), process(1, 8, 1)],
            rows: vec![row(0, 0, 100, 50, 0), row(0, 100, 200, 80, 0), row(1, 0, 400, 40, 0)],
            ..Who::default()
        };
        let all = process_sums(&who, 0, 400);
        assert_eq!((cpu(&all, 7), cpu(&all, 8)), ((130, 0), (40, 0)));
        let part = process_sums(&who, 50, 200);
        assert_eq!((cpu(&part, 7), cpu(&part, 8)), ((105, 25), (15, 15)));
        let after = process_sums(&who, 200, 400);
        assert_eq!((cpu(&after, 7), cpu(&after, 8)), ((0, 0), (20, 20)));
        assert!(after.iter().all(|sum| sum.process.pid != 7), "it has no row there");
    }

    #[test]
    fn parts_next_to_each_other_add_up_to_the_whole() {
        let who = Who {
            processes: vec![process(0, 7, 1)],
            rows: vec![row(0, 13, 1013, 1000, 0), row(0, 1013, 2013, 3000, 0)],
            ..Who::default()
        };
        for middle in [0, 13, 400, 1013, 1500, 2013] {
            let (before, after) = (process_sums(&who, 0, middle), process_sums(&who, middle, 3000));
            assert_eq!(cpu(&before, 7).0 + cpu(&after, 7).0, 4000, "{middle}");
        }
    }

    /// The second process with a number is another one.
    #[test]
    fn a_number_that_is_used_twice_is_two_processes() {
        let who = Who {
            processes: vec![process(0, 7, 1), process(1, 7, 900)],
            rows: vec![row(0, 0, 100, 10, 0), row(1, 100, 200, 30, 0)],
            ..Who::default()
        };
        let sums = process_sums(&who, 0, 200);
        let each: Vec<u64> = sums.iter().map(|sum| sum.get(ProcessFigure::Cpu).value).collect();
        assert_eq!(each, [10, 30]);
    }

    #[test]
    fn memory_grows_from_the_level_at_the_start_to_the_highest() {
        let mut ended = row(0, 300, 400, 0, 0);
        ended.has_ended = true;
        let who = Who {
            // The second one started 150 ns after the recording.
            processes: vec![process(0, 7, 1000), process(1, 8, 1150)],
            rows: vec![
                row(0, 0, 100, 0, 500),
                row(1, 150, 200, 0, 70),
                row(0, 100, 300, 0, 900),
                ended,
            ],
            ..Who::default()
        };
        let growth = |from, to| {
            let sums = process_sums(&who, from, to);
            let of = |pid| {
                let sum = sums.iter().find(|sum| sum.process.pid == pid);
                sum.map_or((0, 0), |sum| (sum.memory_growth.value, sum.memory_growth.shared))
            };
            (of(7), of(8))
        };
        // What the first one had before it was first looked at is not known.
        assert_eq!(growth(0, 400), ((400, 0), (70, 0)));
        // Half of the way from 500 to 900 lies in the part.
        assert_eq!(growth(200, 400), ((200, 200), (0, 0)));
        assert_eq!(growth(0, 200), ((200, 200), (70, 0)));
    }

    #[test]
    fn files_are_summed_by_process() {
        let file_row = |process, to_ns, added_bytes| FileRow {
            file: 3,
            process,
            from_ns: to_ns - 100,
            to_ns,
            added_bytes,
            ..FileRow::default()
        };
        let who = Who {
            file_rows: vec![file_row(1, 100, 8), file_row(1, 200, 8), file_row(2, 200, 4)],
            ..Who::default()
        };
        let sums = file_sums(&who, 0, 150);
        let added: Vec<(u32, u64, u64)> =
            sums.iter().map(|sum| (sum.process, sum.added.value, sum.added.shared)).collect();
        assert_eq!(added, [(1, 12, 4), (2, 2, 2)]);
    }

    #[test]
    fn damaged_rows_do_no_harm() {
        let who = Who {
            processes: vec![process(0, 7, u64::MAX)],
            rows: vec![
                row(9, 0, 10, 5, 5),
                row(0, 90, 10, u64::MAX, u64::MAX),
                row(0, 0, u64::MAX, u64::MAX, 1),
            ],
            ..Who::default()
        };
        let sums = process_sums(&who, 0, u64::MAX);
        assert_eq!(cpu(&sums, 7).0, u64::MAX);
        let _ = process_sums(&who, u64::MAX, u64::MAX);
    }
}
