//! Who did it, as far as it fits in memory.
//!
//! 1. Rows take at most their share. When they are more, neighbouring rows of one process become
//!    one: of 0.2 s, then of 0.4 s, and so on, until half of the share is free. Growths add up as
//!    before, so nothing is lost but the time of day within a row.
//! 2. Names take room like other texts. A process or file without room is counted in one entry
//!    called `others`, and so are those with the smallest rows if one row of each is too much.

use super::budget::Budget;
use crate::known_identities::{is_others, others};
use model::recording::{
    FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, RequestRow, SampleRow, Who,
};
use std::collections::HashMap;
use std::hash::Hash;

/// The first length of rows that are merged: two samples at the usual rate.
const FIRST_MERGED_NS: u64 = 200_000_000;

/// Takes identities and rows one after the other.
#[derive(Debug)]
pub(in crate::file) struct WhoStore {
    /// Bytes of rows.
    limit: usize,
    /// Rows that end in the same interval of this length are merged; 0 before the first merging.
    merged_ns: u64,
    /// Where identities without room are counted, once there was one.
    other_process: Option<Others>,
    other_file: Option<Others>,
    /// How many processes and files were not kept.
    left_out: (u64, u64),
}

/// The entry that counts identities without room.
#[derive(Clone, Copy, Debug)]
struct Others {
    id: u32,
    /// So many were kept before it was needed; none after.
    kept: u32,
}

impl WhoStore {
    /// Nothing yet; rows take at most `limit` bytes.
    pub(in crate::file) fn new(limit: usize) -> Self {
        Self { limit, merged_ns: 0, other_process: None, other_file: None, left_out: (0, 0) }
    }

    /// Keeps a process whose texts have so many bytes, if there is room; its id.
    pub(in crate::file) fn keep_process(
        &mut self,
        who: &mut Who,
        budget: &mut Budget,
        text_bytes: usize,
        process: impl FnOnce(u32) -> Process,
    ) -> Option<u32> {
        if self.other_process.is_none() && budget.has_room(size_of::<Process>() + text_bytes) {
            let id = who.processes.len() as u32;
            who.processes.push(process(id));
            return Some(id);
        }
        self.left_out.0 += 1;
        None
    }

    /// As [`WhoStore::keep_process`], of a file.
    pub(in crate::file) fn keep_file(
        &mut self,
        who: &mut Who,
        budget: &mut Budget,
        text_bytes: usize,
        file: impl FnOnce(u32) -> FileIdentity,
    ) -> Option<u32> {
        if self.other_file.is_none() && budget.has_room(size_of::<FileIdentity>() + text_bytes) {
            let id = who.files.len() as u32;
            who.files.push(file(id));
            return Some(id);
        }
        self.left_out.1 += 1;
        None
    }

    /// The ids of the rows of a process and a file that came as these numbers from 0, if all came
    /// in order.
    pub(in crate::file) fn ids(&self, process: u32, file: u32) -> (u32, u32) {
        let id = |others: Option<Others>, number: u32| match others {
            Some(others) if number >= others.kept => others.id,
            _ => number,
        };
        (id(self.other_process, process), id(self.other_file, file))
    }

    /// Adds the rows of `news`, which have the ids of `who`, and makes all of them fit.
    pub(in crate::file) fn rows(&mut self, who: &mut Who, news: Who) {
        extend_in_order(&mut who.rows, news.rows);
        extend_in_order(&mut who.file_rows, news.file_rows);
        extend_in_order(&mut who.samples, news.samples);
        extend_in_order(&mut who.requests, news.requests);
        if bytes_of_rows(who) > self.limit {
            self.make_fit(who);
        }
    }

    /// Gives all rows the same length, and says how many names are missing.
    pub(in crate::file) fn finish(&self, who: &mut Who) -> Vec<String> {
        if self.merged_ns > 0 {
            merge(who, self.merged_ns);
        }
        let all = [(self.left_out.0, "processes"), (self.left_out.1, "files")];
        let some = all.into_iter().filter(|(count, _)| *count > 0);
        let said = |(count, what)| {
            format!("{count} {what} are counted as others: more than a reader takes")
        };
        some.map(said).collect()
    }

    /// Merges rows until half of the room is free.
    fn make_fit(&mut self, who: &mut Who) {
        if self.merged_ns > 0 {
            merge(who, self.merged_ns);
        }
        while bytes_of_rows(who) > self.limit / 2 {
            let ends = [
                who.rows.last().map(|row| row.to_ns),
                who.file_rows.last().map(|row| row.to_ns),
                who.samples.last().map(|row| row.to_ns),
                who.requests.last().map(|row| row.to_ns),
            ];
            let last_ns = ends.into_iter().flatten().max();
            if self.merged_ns > last_ns.unwrap_or(0) {
                self.rename_weakest(who);
                merge(who, self.merged_ns);
                return;
            }
            self.merged_ns = self.merged_ns.saturating_mul(2).max(FIRST_MERGED_NS);
            merge(who, self.merged_ns);
        }
    }

    /// Counts rows among the others, the smallest first, until half of the room is taken.
    fn rename_weakest(&mut self, who: &mut Who) {
        let others = self.other_process(who);
        let of_others = self.other_file(who);
        let (rows, file_rows) = (&mut who.rows, &mut who.file_rows);
        let least = least_kept(rows, self.limit / 8, weight);
        for row in rows.iter_mut().filter(|row| row.process != others && weight(row) < least) {
            row.process = others;
            self.left_out.0 += 1;
        }
        let least = least_kept(file_rows, self.limit / 8, file_weight);
        let is_weak = |row: &&mut FileRow| row.file != of_others && file_weight(row) < least;
        for row in file_rows.iter_mut().filter(is_weak) {
            (row.file, row.process) = (of_others, others);
            self.left_out.1 += 1;
        }
        let least = least_kept(&who.samples, self.limit / 8, SampleRow::all);
        for row in who.samples.iter_mut().filter(|row| row.all() < least) {
            row.process = others;
        }
        let least = least_kept(&who.requests, self.limit / 8, |row| row.latency_ns);
        for row in who.requests.iter_mut().filter(|row| row.latency_ns < least) {
            row.process = others;
        }
    }

    /// The entry that counts those without room; from now on no more are kept.
    pub(in crate::file) fn other_process(&mut self, who: &mut Who) -> u32 {
        let others = self.other_process.get_or_insert_with(|| {
            let kept = who.processes.len() as u32;
            if let Some(others) = who.processes.iter().find(|process| is_others(process)) {
                return Others { id: others.id, kept };
            }
            who.processes.push(others(kept));
            Others { id: kept, kept }
        });
        others.id
    }

    /// As [`WhoStore::other_process`], of files.
    pub(in crate::file) fn other_file(&mut self, who: &mut Who) -> u32 {
        let others = self.other_file.get_or_insert_with(|| {
            let kept = who.files.len() as u32;
            who.files.push(FileIdentity { id: kept, ..FileIdentity::default() });
            Others { id: kept, kept }
        });
        others.id
    }
}

/// Bytes that rows take.
pub(in crate::file) fn bytes_of_rows(who: &Who) -> usize {
    size_of_val(&*who.rows)
        + size_of_val(&*who.file_rows)
        + size_of_val(&*who.samples)
        + size_of_val(&*who.requests)
}

/// Bytes of rows, names and all.
pub(crate) fn bytes_of_who(who: &Who) -> usize {
    let processes = who.processes.iter();
    let process = |it: &Process| size_of::<Process>() + it.name.len() + it.group.len();
    let file =
        |it: &FileIdentity| size_of::<FileIdentity>() + it.path.as_ref().map_or(0, String::len);
    bytes_of_rows(who)
        + processes.map(process).sum::<usize>()
        + who.files.iter().map(file).sum::<usize>()
}

/// What a row of either kind is merged by.
trait Merged: Clone {
    type Key: Hash + Eq;
    fn key(&self) -> Self::Key;
    fn to_ns(&self) -> u64;
    /// Takes in an earlier row of the same key.
    fn add(&mut self, earlier: &Self, processes: &[Process]);
}

impl Merged for ProcessRow {
    type Key = u32;

    fn key(&self) -> u32 {
        self.process
    }

    fn to_ns(&self) -> u64 {
        self.to_ns
    }

    fn add(&mut self, earlier: &Self, processes: &[Process]) {
        self.from_ns = self.from_ns.min(earlier.from_ns);
        add_all(&mut self.figures, &earlier.figures);
        self.has_ended |= earlier.has_ended;
        let is_many = processes.get(self.process as usize).is_some_and(|it| it.is_many);
        self.processes = if is_many {
            self.processes.saturating_add(earlier.processes)
        } else {
            self.processes.max(earlier.processes)
        };
    }
}

impl Merged for FileRow {
    type Key = (u32, u32);

    fn key(&self) -> (u32, u32) {
        (self.file, self.process)
    }

    fn to_ns(&self) -> u64 {
        self.to_ns
    }

    fn add(&mut self, earlier: &Self, _: &[Process]) {
        self.from_ns = self.from_ns.min(earlier.from_ns);
        for (sum, before) in [
            (&mut self.added_bytes, earlier.added_bytes),
            (&mut self.refaulted_bytes, earlier.refaulted_bytes),
            (&mut self.dirtied_bytes, earlier.dirtied_bytes),
            (&mut self.evicted_bytes, earlier.evicted_bytes),
        ] {
            *sum = sum.saturating_add(before);
        }
    }
}

impl Merged for SampleRow {
    type Key = u32;

    fn key(&self) -> u32 {
        self.process
    }

    fn to_ns(&self) -> u64 {
        self.to_ns
    }

    fn add(&mut self, earlier: &Self, _: &[Process]) {
        self.from_ns = self.from_ns.min(earlier.from_ns);
        add_all(&mut self.samples, &earlier.samples);
    }
}

impl Merged for RequestRow {
    type Key = (u32, (u32, u32), bool);

    fn key(&self) -> Self::Key {
        (self.process, self.device, self.is_write)
    }

    fn to_ns(&self) -> u64 {
        self.to_ns
    }

    fn add(&mut self, earlier: &Self, _: &[Process]) {
        self.from_ns = self.from_ns.min(earlier.from_ns);
        self.requests = self.requests.saturating_add(earlier.requests);
        self.bytes = self.bytes.saturating_add(earlier.bytes);
        self.latency_ns = self.latency_ns.saturating_add(earlier.latency_ns);
        add_all(&mut self.classes, &earlier.classes);
    }
}

fn add_all(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Merges rows of one key that end in the same interval of `every_ns`.
fn merge(who: &mut Who, every_ns: u64) {
    merge_rows(&mut who.rows, every_ns, &who.processes);
    merge_rows(&mut who.file_rows, every_ns, &who.processes);
    merge_rows(&mut who.samples, every_ns, &who.processes);
    merge_rows(&mut who.requests, every_ns, &who.processes);
}

/// The last row of each key and interval takes in the others; rows stay in order.
fn merge_rows<T: Merged>(rows: &mut Vec<T>, every_ns: u64, processes: &[Process]) {
    let mut places: HashMap<T::Key, usize> = HashMap::new();
    let mut interval = None;
    let mut start = rows.len();
    for index in (0..rows.len()).rev() {
        let row = rows[index].clone();
        let of_row = row.to_ns() / every_ns;
        if interval != Some(of_row) {
            places.clear();
            interval = Some(of_row);
        }
        match places.entry(row.key()) {
            std::collections::hash_map::Entry::Occupied(place) => {
                rows[*place.get()].add(&row, processes);
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                start -= 1;
                place.insert(start);
                rows[start] = row;
            }
        }
    }
    rows.drain(..start);
    rows.shrink_to_fit();
}

/// Appends rows that are in order of their end, and keeps all of them so.
fn extend_in_order<T: Merged>(rows: &mut Vec<T>, new: Vec<T>) {
    let before = rows.len();
    rows.extend(new);
    let Some(first_ns) = rows.get(before).map(Merged::to_ns) else {
        return;
    };
    let start = rows[..before].partition_point(|row| row.to_ns() <= first_ns);
    if start < before {
        rows[start..].sort_by_key(Merged::to_ns);
    }
}

/// How much a row says: nanoseconds and bytes count the same, a fault like a page of them.
fn weight(row: &ProcessRow) -> u64 {
    let figures = ProcessFigure::ALL.iter().map(|figure| match figure.unit() {
        "count" => row.get(*figure).saturating_mul(4096),
        _ => row.get(*figure),
    });
    figures.fold(0, u64::saturating_add)
}

fn file_weight(row: &FileRow) -> u64 {
    let sums = [row.added_bytes, row.dirtied_bytes, row.evicted_bytes];
    sums.into_iter().fold(0, u64::saturating_add)
}

/// The weight below which rows go, so that the others take at most about so many bytes.
fn least_kept<T>(rows: &[T], bytes: usize, weight: impl Fn(&T) -> u64) -> u64 {
    let kept = bytes / size_of::<T>();
    let Some(gone) = rows.len().checked_sub(kept).filter(|gone| *gone > 0) else {
        return 0;
    };
    let mut weights: Vec<u64> = rows.iter().map(weight).collect();
    let (_, last_gone, _) = weights.select_nth_unstable(gone - 1);
    last_gone.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testkit::{MadeWho, Random};

    const SAMPLE_NS: u64 = 100_000_000;

    /// Sums over all processes: figures, then bytes of files.
    fn totals(who: &Who) -> Vec<u128> {
        let mut totals = vec![0; ProcessFigure::COUNT + 4];
        for row in &who.rows {
            for (sum, figure) in totals.iter_mut().zip(row.figures) {
                *sum += u128::from(figure);
            }
        }
        for row in &who.file_rows {
            let of_row =
                [row.added_bytes, row.refaulted_bytes, row.dirtied_bytes, row.evicted_bytes];
            for (sum, bytes) in totals[ProcessFigure::COUNT..].iter_mut().zip(of_row) {
                *sum += u128::from(bytes);
            }
        }
        totals
    }

    /// Of each process its figures, its last memory, and how many ended in it.
    /// Samples and requests of all.
    fn sampled(who: &Who) -> (u64, u64) {
        let samples = who.samples.iter().map(SampleRow::all).sum();
        (samples, who.requests.iter().map(|row| row.requests).sum())
    }

    fn by_process(who: &Who) -> HashMap<u32, ([u64; ProcessFigure::COUNT], u64, bool)> {
        let mut all: HashMap<u32, ([u64; ProcessFigure::COUNT], u64, bool)> = HashMap::new();
        for row in &who.rows {
            let of = all.entry(row.process).or_default();
            for (sum, figure) in of.0.iter_mut().zip(row.figures) {
                *sum += figure;
            }
            (of.1, of.2) = (row.memory_bytes, of.2 | row.has_ended);
        }
        all
    }

    /// A store that got a made desktop, sample after sample, and all that it got.
    fn stored(limit: usize, samples: u64) -> (WhoStore, Who, Who) {
        let (mut store, mut kept, mut whole) =
            (WhoStore::new(limit), Who::default(), Who::default());
        let mut budget = Budget::new(1 << 30);
        let mut made = MadeWho::new(5);
        for number in 0..samples {
            let news = made.sample(number * SAMPLE_NS);
            for process in &news.processes {
                store.keep_process(&mut kept, &mut budget, 0, |id| Process {
                    id,
                    ..process.clone()
                });
            }
            for file in &news.files {
                store
                    .keep_file(&mut kept, &mut budget, 0, |id| FileIdentity { id, ..file.clone() });
            }
            whole.rows.extend_from_slice(&news.rows);
            whole.file_rows.extend_from_slice(&news.file_rows);
            whole.samples.extend_from_slice(&news.samples);
            whole.requests.extend_from_slice(&news.requests);
            store.rows(&mut kept, news);
            assert!(bytes_of_rows(&kept) <= limit, "sample {number}");
        }
        (store, kept, whole)
    }

    #[test]
    fn rows_become_longer_and_nothing_else_is_lost() {
        let (_, _, whole) = stored(usize::MAX, 3_000);
        let all = bytes_of_rows(&whole);
        for share in [2, 3, 10, 20] {
            let (store, mut kept, _) = stored(all / share, 3_000);
            // The newest rows are still as they came.
            assert_eq!(kept.rows.last(), whole.rows.last());
            assert_eq!(store.finish(&mut kept), Vec::<String>::new());
            assert_eq!(by_process(&kept), by_process(&whole), "1 of {share}");
            assert_eq!(totals(&kept), totals(&whole));
            assert_eq!(sampled(&kept), sampled(&whole));
            assert!(kept.rows.is_sorted_by_key(|row| row.to_ns));
            assert!(kept.file_rows.is_sorted_by_key(|row| row.to_ns));
            assert!(kept.rows.len() > whole.rows.len() / share / 8, "no shorter than needed");
            let length_ns = |row: &ProcessRow| row.to_ns - row.from_ns;
            let longest_ns = whole.rows.iter().map(length_ns).max().unwrap();
            assert!(kept.rows.iter().all(|row| length_ns(row) < store.merged_ns + longest_ns));
        }
    }

    #[test]
    fn without_room_for_names_the_rows_are_counted_as_others() {
        let (mut store, mut who) = (WhoStore::new(1 << 20), Who::default());
        let mut budget = Budget::new(30 << 10);
        for number in 0..200 {
            let kept = store.keep_process(&mut who, &mut budget, 20, |id| Process {
                id,
                pid: number + 1,
                ..Process::default()
            });
            if kept.is_none() {
                store.other_process(&mut who);
            }
            let (process, _) = store.ids(number, 0);
            let row = ProcessRow { process, to_ns: 5, figures: [1; 11], ..ProcessRow::default() };
            store.rows(&mut who, Who { rows: vec![row], ..Who::default() });
        }
        let others = who.processes.last().unwrap();
        assert!(is_others(others) && others.is_many && who.processes.len() < 150);
        assert_eq!(totals(&who)[0], 200);
        let of_others = who.rows.iter().filter(|row| row.process == others.id).count();
        assert_eq!(of_others, 200 - (who.processes.len() - 1));
        let said = store.finish(&mut who);
        assert_eq!(
            said,
            [format!("{of_others} processes are counted as others: more than a reader takes")]
        );
    }

    #[test]
    fn of_more_processes_and_files_than_fit_the_smallest_are_others() {
        let limit = 100 << 10;
        let (mut store, mut who) = (WhoStore::new(limit), Who::default());
        let mut budget = Budget::new(1 << 30);
        let (mut random, mut whole) = (Random(9), Who::default());
        for number in 0..5_000 {
            let made = |id| Process { id, pid: number + 1, ..Process::default() };
            store.keep_process(&mut who, &mut budget, 0, made);
            let made = |id| FileIdentity { id, inode: 7, ..FileIdentity::default() };
            store.keep_file(&mut who, &mut budget, 0, made);
            let (process, file) = store.ids(number, number);
            let from_ns = u64::from(number) * 1_000;
            let mut row = ProcessRow { process, from_ns, to_ns: from_ns, ..ProcessRow::default() };
            row.figures[0] = random.below(1 << 20);
            if number == 50 {
                row.figures[0] = 1 << 40;
            }
            let file_row = FileRow {
                file,
                process,
                from_ns,
                to_ns: from_ns,
                added_bytes: random.below(1 << 20),
                ..FileRow::default()
            };
            whole.rows.push(row);
            whole.file_rows.push(file_row);
            let news = Who { rows: vec![row], file_rows: vec![file_row], ..Who::default() };
            store.rows(&mut who, news);
            assert!(bytes_of_rows(&who) <= limit);
        }
        let large = who.rows.iter().find(|row| row.figures[0] >= 1 << 40).unwrap();
        assert_eq!(who.processes[large.process as usize].pid, 51, "the largest keeps its name");
        assert_eq!(totals(&who), totals(&whole));
        assert_eq!(store.finish(&mut who).len(), 2);
    }

    proptest! {
        #[test]
        fn merging_keeps_every_sum(
            rows in prop::collection::vec((0..4u32, 0..5_000u64, 0..900u64, 0..1_000u64), 0..60),
            every_ns in 1..3_000u64,
        ) {
            let processes = (0..4).map(|id| Process { id, ..Process::default() }).collect();
            let mut who = Who { processes, ..Who::default() };
            let mut new: Vec<ProcessRow> = rows
                .iter()
                .map(|(process, to_ns, length, figure)| ProcessRow {
                    process: *process,
                    from_ns: to_ns.saturating_sub(*length),
                    to_ns: *to_ns,
                    figures: [*figure; ProcessFigure::COUNT],
                    memory_bytes: *figure,
                    ..ProcessRow::default()
                })
                .collect();
            new.sort_by_key(|row| row.to_ns);
            extend_in_order(&mut who.rows, new);
            let before = who.clone();
            merge(&mut who, every_ns);
            prop_assert_eq!(by_process(&who), by_process(&before));
            prop_assert!(who.rows.is_sorted_by_key(|row| row.to_ns));
            let mut intervals: Vec<_> =
                who.rows.iter().map(|row| (row.process, row.to_ns / every_ns)).collect();
            intervals.sort_unstable();
            prop_assert!(intervals.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
