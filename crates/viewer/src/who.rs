//! Who did it, for a browser: the processes and files of a recording, and their rows as columns.
//!
//! Rows of a process that are shorter than a page can show are merged, so that a page holds no more
//! than `ROWS_OF_A_PROCESS` of each, however long the recording is: sums stay exact. What is
//! recorded after the page was made comes row by row.

use crate::view::{ColumnRange, pack};
use model::recording::{
    Facts, FileIdentity, FileRow, GroupName, Process, ProcessFigure, ProcessRow, SourceState, Who,
};
use model::text::escaped;
use serde::Serialize;
use std::collections::HashMap;

/// The most rows of a process in a page that all its time is divided into: more than a screen has
/// columns.
const ROWS_OF_A_PROCESS: u64 = 4_000;

/// The most rows in one event of a live recording: a page that was away for long catches up in
/// steps.
const ROWS_OF_AN_EVENT: usize = 10_000;

/// The numbers of a process row: where it begins and ends, the process, the figures, the memory.
pub const PROCESS_COLUMNS: usize = 4 + ProcessFigure::COUNT;

/// The numbers of a file row: where it begins and ends, the file, the process, what was done.
pub const FILE_COLUMNS: usize = 8;

/// A process as a page knows it; its place in the list is its id.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessLine {
    /// Its name and number: `chrome 4711`.
    pub label: String,
    /// Its unit or group, user and parent.
    pub about: String,
    /// Whether these are all that have no rows of their own.
    pub is_rest: bool,
}

impl From<&Process> for ProcessLine {
    fn from(process: &Process) -> Self {
        let Process { name, pid, parent, user, group, is_kernel, is_many, .. } = process;
        let name = escaped(name);
        let place = match GroupName::of(group) {
            Some(unit) if unit.text == *group => escaped(group).into_owned(),
            Some(unit) => format!("{} ({})", escaped(&unit.text), escaped(group)),
            None => "group not known".to_owned(),
        };
        Self {
            label: if *is_many { format!("{name} (several)") } else { format!("{name} {pid}") },
            about: if *is_kernel {
                "a thread of the kernel".to_owned()
            } else {
                format!("{place}, user {user}, started by {parent}")
            },
            is_rest: is_rest(process),
        }
    }
}

/// Whether an entry stands for all that have no rows of their own: short-lived processes, and those
/// that found no room in the kernel's tables.
#[must_use]
pub fn is_rest(process: &Process) -> bool {
    process.pid == 0 && !process.is_many
}

/// The path of a file, or else its device and number there.
fn name(file: &FileIdentity) -> String {
    let (major, minor) = file.device;
    let number = || format!("inode {} of device {major}:{minor}", file.inode);
    file.path.as_deref().map_or_else(number, |path| escaped(path).into_owned())
}

/// A chart of processes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProcessLane {
    /// Its name.
    pub id: &'static str,
    /// The heading above it.
    pub title: &'static str,
    /// The number of a row that it draws.
    pub column: usize,
    /// What its axis counts.
    pub unit: &'static str,
    /// Whether its values are levels, which do not add up.
    pub is_level: bool,
    /// The series of what all used; empty where no series counts the same.
    pub all: &'static str,
}

/// The numbers of a row before the figures.
const BEFORE_FIGURES: usize = 3;

/// The charts in their order.
const LANES: [ProcessLane; 8] = {
    use ProcessFigure as Figure;
    let (threads, bytes) = ("mean threads", "bytes_per_s");
    [
        lane(Figure::Cpu, "On a processor", "mean processors", "trace.sched.run_ns"),
        lane(Figure::Queue, "Waiting for a processor", threads, "trace.sched.queue_ns"),
        lane(Figure::BlockWait, "Waiting for block I/O", threads, "trace.sched.block_io_ns"),
        lane(Figure::ReadBytes, "Read from devices", bytes, ""),
        lane(Figure::WrittenBytes, "Written, to go to devices", bytes, ""),
        lane(Figure::Refaulted, "Read again soon after it was evicted", bytes, ""),
        lane(Figure::SwappedIn, "Brought back from swap", bytes, ""),
        ProcessLane {
            id: "memory",
            title: "Resident memory",
            column: PROCESS_COLUMNS - 1,
            unit: "bytes",
            is_level: true,
            all: "",
        },
    ]
};

/// What the charts show.
const ABOUT: &str = "The first ten processes of the time that is shown, with their shares of what \
                     all processes used in it. Press one to see it alone in all charts, and again \
                     to see all.";

/// The headings of the table of files.
const FILE_HEADS: [&str; 6] =
    ["File", "Read into the cache", "of it again", "Written", "Evicted", "By"];

const fn lane(
    figure: ProcessFigure,
    title: &'static str,
    unit: &'static str,
    all: &'static str,
) -> ProcessLane {
    let column = BEFORE_FIGURES + figure as usize;
    ProcessLane { id: figure.id(), title, column, unit, is_level: false, all }
}

/// Rows as columns, one number of each row after another.
#[derive(Clone, Debug, Serialize)]
pub struct RowColumns {
    /// How many rows.
    pub rows: usize,
    /// Where each column is.
    pub columns: Vec<ColumnRange>,
}

/// Who did it, of a whole recording.
#[derive(Clone, Debug, Serialize)]
pub struct WhoContents {
    /// What is shown, or why nothing is.
    pub about: String,
    /// What is drawn of processes.
    pub lanes: [ProcessLane; 8],
    /// The processes, by their ids.
    pub processes: Vec<ProcessLine>,
    /// What they used: [`PROCESS_COLUMNS`], times in microseconds.
    pub process_rows: RowColumns,
    /// The heading of the table of files.
    pub files_title: &'static str,
    /// Those of its columns.
    pub file_heads: [&'static str; 6],
    /// The names of the files, by their ids.
    pub files: Vec<String>,
    /// What was done with them: [`FILE_COLUMNS`], times in microseconds.
    pub file_rows: RowColumns,
}

impl WhoContents {
    /// Packs who did it in a recording that took `wall_ns`.
    #[must_use]
    pub fn new(who: &Who, facts: &Facts, wall_ns: u64, columns: &mut Vec<u8>) -> Self {
        let least_ns = wall_ns / ROWS_OF_A_PROCESS;
        let mut rows = merged(&known(&who.rows, who), least_ns);
        // Rows of one process are alike, and each begins where the last one ended.
        rows.sort_by_key(|row| (row.process, row.to_ns));
        let mut file_rows = merged(&known(&who.file_rows, who), least_ns);
        file_rows.sort_by_key(|row| (row.file, row.process, row.to_ns));
        Self {
            about: unwatched(who, facts).unwrap_or_else(|| ABOUT.to_owned()),
            lanes: LANES,
            processes: who.processes.iter().map(ProcessLine::from).collect(),
            process_rows: packed(rows.iter().map(process_numbers), columns),
            files_title: "Which files, the first twenty by bytes",
            file_heads: FILE_HEADS,
            files: who.files.iter().map(name).collect(),
            file_rows: packed(file_rows.iter().map(file_numbers), columns),
        }
    }
}

/// What a row takes in a page, about: most of its numbers are those of the row before.
const ROW_BYTES: usize = 16;

/// About how many bytes of a page who did it takes.
#[must_use]
pub fn bytes_in_page(who: &Who) -> usize {
    let names = who.processes.iter().map(|process| process.name.len() + process.group.len());
    let paths = who.files.iter().map(|file| file.path.as_ref().map_or(0, String::len));
    let lines = (who.processes.len() + who.files.len()) * ROW_BYTES;
    let most = |count: usize| count.saturating_mul(ROWS_OF_A_PROCESS as usize);
    let rows = who.rows.len().min(most(who.processes.len()))
        + who.file_rows.len().min(most(who.files.len()));
    names.chain(paths).sum::<usize>() + lines + rows * ROW_BYTES
}

/// Why a recording does not say who did it, as a sentence; `None` if it does.
#[must_use]
pub fn unwatched(who: &Who, facts: &Facts) -> Option<String> {
    match facts.sight("who") {
        _ if !who.is_empty() => None,
        SourceState::Open => Some("No process used anything worth a row.".to_owned()),
        SourceState::NotAsked => Some("Processes were not watched.".to_owned()),
        SourceState::Closed { why, remedy: None } => {
            Some(format!("Processes were not watched: {why}."))
        }
        SourceState::Closed { why, remedy: Some(remedy) } => {
            Some(format!("Processes were not watched: {why}. Would show them: {remedy}."))
        }
    }
}

/// How much of who did it a page knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhoPosition {
    /// Processes that it has.
    pub processes: usize,
    /// Their rows that it has, in order of arrival.
    pub rows: usize,
    /// Files that it has.
    pub files: usize,
    /// Their rows that it has, in order of arrival.
    pub file_rows: usize,
}

impl WhoPosition {
    /// That of a page that knows all of `who`.
    #[must_use]
    pub fn end_of(who: &Who) -> Self {
        Self {
            processes: who.processes.len(),
            rows: who.rows.len(),
            files: who.files.len(),
            file_rows: who.file_rows.len(),
        }
    }
}

/// What a page does not have yet.
#[derive(Clone, Debug, Serialize)]
pub struct WhoNews {
    about: &'static str,
    processes: Vec<ProcessLine>,
    process_rows: Vec<[u64; PROCESS_COLUMNS]>,
    files: Vec<String>,
    file_rows: Vec<[u64; FILE_COLUMNS]>,
}

impl WhoNews {
    /// What of `who` is after `place`, and the place after it; `None` when nothing is.
    #[must_use]
    pub fn after(who: &Who, place: WhoPosition) -> Option<(Self, WhoPosition)> {
        let rows = next(&who.rows, place.rows);
        let file_rows = next(&who.file_rows, place.file_rows);
        let processes = who.processes.get(place.processes..).unwrap_or_default();
        let files = who.files.get(place.files..).unwrap_or_default();
        if rows.is_empty() && file_rows.is_empty() && processes.is_empty() && files.is_empty() {
            return None;
        }
        let after = WhoPosition {
            rows: place.rows + rows.len(),
            file_rows: place.file_rows + file_rows.len(),
            ..WhoPosition::end_of(who)
        };
        let news = Self {
            about: ABOUT,
            processes: processes.iter().map(ProcessLine::from).collect(),
            process_rows: known(rows, who).iter().map(process_numbers).collect(),
            files: files.iter().map(name).collect(),
            file_rows: known(file_rows, who).iter().map(file_numbers).collect(),
        };
        Some((news, after))
    }
}

fn next<T>(rows: &[T], known: usize) -> &[T] {
    let new = rows.get(known..).unwrap_or_default();
    &new[..new.len().min(ROWS_OF_AN_EVENT)]
}

fn process_numbers(row: &ProcessRow) -> [u64; PROCESS_COLUMNS] {
    let mut numbers = [0; PROCESS_COLUMNS];
    numbers[..BEFORE_FIGURES].copy_from_slice(&[
        row.from_ns / 1_000,
        row.to_ns / 1_000,
        row.process.into(),
    ]);
    numbers[BEFORE_FIGURES..PROCESS_COLUMNS - 1].copy_from_slice(&row.figures);
    numbers[PROCESS_COLUMNS - 1] = row.memory_bytes;
    numbers
}

fn file_numbers(row: &FileRow) -> [u64; FILE_COLUMNS] {
    [
        row.from_ns / 1_000,
        row.to_ns / 1_000,
        row.file.into(),
        row.process.into(),
        row.added_bytes,
        row.refaulted_bytes,
        row.dirtied_bytes,
        row.evicted_bytes,
    ]
}

/// The columns of rows; only changes from row to row are stored.
fn packed<const N: usize>(
    rows: impl Iterator<Item = [u64; N]>,
    columns: &mut Vec<u8>,
) -> RowColumns {
    let rows: Vec<[u64; N]> = rows.collect();
    let column = |at: usize| {
        let mut last = None;
        let values = (0..).zip(&rows).filter_map(move |(number, row)| {
            let value = i64::try_from(row[at]).unwrap_or(i64::MAX);
            let is_change = last.replace(value) != Some(value);
            is_change.then_some((number, Some(value)))
        });
        pack(values, columns)
    };
    RowColumns { rows: rows.len(), columns: (0..N).map(column).collect() }
}

/// The rows of processes and files that are there: a damaged recording may name others.
fn known<T: Merge>(rows: &[T], who: &Who) -> Vec<T> {
    rows.iter().filter(|row| row.is_known(who)).cloned().collect()
}

/// A row that can take in the one after it.
trait Merge: Clone {
    /// Whether its process and file are there.
    fn is_known(&self, who: &Who) -> bool;
    /// Whose row it is.
    fn key(&self) -> (u32, u32);
    /// Where it ends.
    fn end_ns(&self) -> u64;
    /// Where it begins.
    fn begin_ns(&self) -> u64;
    /// Adds what follows.
    fn merge(&mut self, next: &Self);
}

impl Merge for ProcessRow {
    fn is_known(&self, who: &Who) -> bool {
        (self.process as usize) < who.processes.len()
    }
    fn key(&self) -> (u32, u32) {
        (self.process, 0)
    }
    fn end_ns(&self) -> u64 {
        self.to_ns
    }
    fn begin_ns(&self) -> u64 {
        self.from_ns
    }
    fn merge(&mut self, next: &Self) {
        for (sum, value) in self.figures.iter_mut().zip(next.figures) {
            *sum = sum.saturating_add(value);
        }
        self.processes = self.processes.saturating_add(next.processes);
        (self.to_ns, self.memory_bytes) = (next.to_ns, next.memory_bytes);
        self.has_ended |= next.has_ended;
    }
}

impl Merge for FileRow {
    fn is_known(&self, who: &Who) -> bool {
        (self.process as usize) < who.processes.len() && (self.file as usize) < who.files.len()
    }
    fn key(&self) -> (u32, u32) {
        (self.file, self.process)
    }
    fn end_ns(&self) -> u64 {
        self.to_ns
    }
    fn begin_ns(&self) -> u64 {
        self.from_ns
    }
    fn merge(&mut self, next: &Self) {
        self.to_ns = next.to_ns;
        let sums = [
            (&mut self.added_bytes, next.added_bytes),
            (&mut self.refaulted_bytes, next.refaulted_bytes),
            (&mut self.dirtied_bytes, next.dirtied_bytes),
            (&mut self.evicted_bytes, next.evicted_bytes),
        ];
        for (sum, value) in sums {
            *sum = sum.saturating_add(value);
        }
    }
}

/// The rows, each with those of the same process that follow it within `least_ns` of its beginning.
fn merged<T: Merge>(rows: &[T], least_ns: u64) -> Vec<T> {
    let mut merged: Vec<T> = Vec::new();
    let mut last: HashMap<(u32, u32), usize> = HashMap::new();
    for row in rows {
        let known = last.get(&row.key()).map(|at| &mut merged[*at]);
        match known {
            Some(before) if row.end_ns().saturating_sub(before.begin_ns()) <= least_ns => {
                before.merge(row);
            }
            _ => {
                last.insert(row.key(), merged.len());
                merged.push(row.clone());
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32, name: &str) -> Process {
        Process { id, pid: 100 + id, name: name.to_owned(), ..Process::default() }
    }

    /// A row of a tenth of a second.
    fn row(process: u32, tenth: u64, cpu_ns: u64) -> ProcessRow {
        let mut row = ProcessRow {
            process,
            from_ns: tenth * 100_000_000,
            to_ns: (tenth + 1) * 100_000_000,
            memory_bytes: 4096 * tenth,
            processes: 1,
            ..ProcessRow::default()
        };
        row.figures[ProcessFigure::Cpu as usize] = cpu_ns;
        row
    }

    fn who() -> Who {
        let mut who = Who {
            processes: vec![process(0, "a"), process(1, "<b>")],
            files: vec![
                FileIdentity { path: Some("/x".to_owned()), ..FileIdentity::default() },
                FileIdentity { id: 1, device: (8, 1), inode: 1 << 40, path: None },
            ],
            ..Who::default()
        };
        for tenth in 0..100 {
            who.rows.push(row(0, tenth, 50));
            who.rows.push(row(1, tenth, tenth));
        }
        who.file_rows.push(FileRow { file: 1, to_ns: 9, added_bytes: 8, ..FileRow::default() });
        who
    }

    #[test]
    fn short_rows_are_merged_and_no_sum_changes() {
        let rows = merged(&who().rows, 1_000_000_000);
        assert_eq!(rows.len(), 20);
        let sum: u64 = rows.iter().map(|row| row.get(ProcessFigure::Cpu)).sum();
        assert_eq!(sum, 100 * 50 + 99 * 100 / 2);
        let last = rows.last().unwrap();
        assert_eq!((last.from_ns, last.to_ns), (9_000_000_000, 10_000_000_000));
        assert_eq!((last.memory_bytes, last.processes), (4096 * 99, 10));
    }

    #[test]
    fn rows_of_a_process_are_together_and_only_changes_take_bytes() {
        let mut columns = Vec::new();
        let contents = WhoContents::new(&who(), &Facts::default(), 10_000_000_000, &mut columns);
        assert_eq!(contents.process_rows.rows, 200);
        assert_eq!(contents.process_rows.columns.len(), PROCESS_COLUMNS);
        // The process: one number for each; the figures that no process used: one 0.
        assert!(contents.process_rows.columns[2].length < 12);
        assert_eq!(contents.process_rows.columns[4].length, 4);
        assert_eq!(contents.file_rows.rows, 1);
        assert_eq!(contents.files[1], "inode 1099511627776 of device 8:1");
    }

    #[test]
    fn what_is_new_comes_once() {
        let (news, place) = WhoNews::after(&who(), WhoPosition::default()).unwrap();
        assert_eq!((news.processes.len(), news.process_rows.len()), (2, 200));
        assert_eq!(news.process_rows[3][..4], [100_000, 200_000, 1, 1]);
        assert_eq!(place, WhoPosition::end_of(&who()));
        assert!(WhoNews::after(&who(), place).is_none());
    }

    #[test]
    fn a_page_that_was_away_gets_rows_in_steps() {
        let mut who = who();
        who.rows = vec![row(0, 0, 1); ROWS_OF_AN_EVENT + 5];
        let (news, place) = WhoNews::after(&who, WhoPosition::default()).unwrap();
        assert_eq!(news.process_rows.len(), ROWS_OF_AN_EVENT);
        let (news, place) = WhoNews::after(&who, place).unwrap();
        assert_eq!(news.process_rows.len(), 5);
        assert!(WhoNews::after(&who, place).is_none());
    }

    #[test]
    fn why_nothing_is_known_is_said_with_its_remedy() {
        let mut facts = Facts::default();
        let said = |facts: &Facts| unwatched(&Who::default(), facts).unwrap();
        assert_eq!(said(&facts), "Processes were not watched.");
        let closed = SourceState::closed("it needs CAP_BPF", Some("run it as root"));
        facts.sights.insert("who".to_owned(), closed);
        assert_eq!(
            said(&facts),
            "Processes were not watched: it needs CAP_BPF. Would show them: run it as root."
        );
        assert_eq!(unwatched(&who(), &facts), None);
    }
}
