//! The processes and files of a recording that is kept in parts: each part can be read alone, so
//! it has its own numbers, and names the processes and files of its rows again.
//!
//! A recorder reports a process once and may run for months. So those that ended are forgotten
//! when the next part begins, and of too many the ones whose last row is longest ago. A row of one
//! that was forgotten is counted in the entry `others`: its growth is not lost.

use model::recording::{FileIdentity, FileRow, Process, ProcessRow, RequestRow, SampleRow, Who};
use std::collections::{HashMap, HashSet};

/// The most processes that are remembered: four times as many as most kernels have at once, 30 MB.
const MAX_PROCESSES: usize = 1 << 17;

/// The most files that are remembered, 15 MB.
const MAX_FILES: usize = 1 << 16;

/// Of too many, one of so many is forgotten at once, so that forgetting is rare.
const FORGET_SHARE: usize = 4;

/// What is known of those that may have rows.
#[derive(Debug, Default)]
pub(crate) struct KnownIdentities {
    processes: HashMap<u32, Known<Process>>,
    files: HashMap<u32, Known<FileIdentity>>,
    /// Counts calls, to know what was used last.
    now: u64,
}

#[derive(Debug)]
struct Known<T> {
    identity: T,
    used: u64,
    has_ended: bool,
}

/// The numbers that identities have in one part.
#[derive(Debug, Default)]
pub(crate) struct PartIds {
    processes: HashMap<Option<u32>, u32>,
    files: HashMap<Option<u32>, u32>,
}

impl KnownIdentities {
    /// Remembers what is new, and who has ended.
    pub(crate) fn learn(&mut self, news: &Who) {
        // Before what is new, whose rows are still to come.
        forget(&mut self.processes, MAX_PROCESSES);
        forget(&mut self.files, MAX_FILES);
        self.now += 1;
        let used = self.now;
        for process in &news.processes {
            let known = Known { identity: process.clone(), used, has_ended: false };
            self.processes.insert(process.id, known);
        }
        for file in &news.files {
            let known = Known { identity: file.clone(), used, has_ended: false };
            self.files.insert(file.id, known);
        }
        for row in news.rows.iter().filter(|row| row.has_ended) {
            if let Some(known) = self.processes.get_mut(&row.process) {
                known.has_ended = true;
            }
        }
    }

    /// The rows with the numbers of a part that began at `base_ns`, and those that it did not name
    /// before. A row that began before the part begins with it.
    pub(crate) fn renumber(&mut self, news: &Who, part: &mut PartIds, base_ns: u64) -> Who {
        let mut renumbered = Who::default();
        let at = |ns: u64| ns.saturating_sub(base_ns);
        for row in &news.rows {
            let process = self.process(row.process, part, &mut renumbered.processes);
            let (from_ns, to_ns) = (at(row.from_ns), at(row.to_ns));
            renumbered.rows.push(ProcessRow { process, from_ns, to_ns, ..*row });
        }
        for row in &news.file_rows {
            let process = self.process(row.process, part, &mut renumbered.processes);
            let file = self.file(row.file, part, &mut renumbered.files);
            let (from_ns, to_ns) = (at(row.from_ns), at(row.to_ns));
            renumbered.file_rows.push(FileRow { file, process, from_ns, to_ns, ..*row });
        }
        for row in &news.samples {
            let process = self.process(row.process, part, &mut renumbered.processes);
            let (from_ns, to_ns) = (at(row.from_ns), at(row.to_ns));
            renumbered.samples.push(SampleRow { process, from_ns, to_ns, ..*row });
        }
        for row in &news.requests {
            let process = self.process(row.process, part, &mut renumbered.processes);
            let (from_ns, to_ns) = (at(row.from_ns), at(row.to_ns));
            renumbered.requests.push(RequestRow { process, from_ns, to_ns, ..*row });
        }
        renumbered
    }

    /// Forgets processes that ended: the next part will have no row of them.
    pub(crate) fn end_part(&mut self) {
        self.processes.retain(|_, known| !known.has_ended);
    }

    /// The number of a process in a part, which names it now if it did not before.
    fn process(&mut self, id: u32, part: &mut PartIds, named: &mut Vec<Process>) -> u32 {
        let known = self.processes.get_mut(&id).map(|known| {
            known.used = self.now;
            &known.identity
        });
        let key = (known.is_some() || part.processes.contains_key(&Some(id))).then_some(id);
        let next = part.processes.len() as u32;
        *part.processes.entry(key).or_insert_with(|| {
            named.push(match known {
                Some(identity) => Process { id: next, ..identity.clone() },
                None => others(next),
            });
            next
        })
    }

    fn file(&mut self, id: u32, part: &mut PartIds, named: &mut Vec<FileIdentity>) -> u32 {
        let known = self.files.get_mut(&id).map(|known| {
            known.used = self.now;
            &known.identity
        });
        let key = (known.is_some() || part.files.contains_key(&Some(id))).then_some(id);
        let next = part.files.len() as u32;
        *part.files.entry(key).or_insert_with(|| {
            named.push(match known {
                Some(identity) => FileIdentity { id: next, ..identity.clone() },
                None => FileIdentity { id: next, ..FileIdentity::default() },
            });
            next
        })
    }
}

impl PartIds {
    /// Removes from a part what has no row in it any more, and numbers the rest anew.
    pub(crate) fn remove_unused(&mut self, part: &mut Who) {
        let mut used: HashSet<u32> = part.rows.iter().map(|row| row.process).collect();
        used.extend(part.file_rows.iter().map(|row| row.process));
        used.extend(part.samples.iter().map(|row| row.process));
        used.extend(part.requests.iter().map(|row| row.process));
        let moved = moved(part.processes.len(), &used);
        part.processes.retain_mut(|process| is_kept(&mut process.id, &moved));
        self.processes.retain(|_, id| is_kept(id, &moved));
        let of_rows = part.rows.iter_mut().map(|row| &mut row.process);
        let of_files = part.file_rows.iter_mut().map(|row| &mut row.process);
        let of_samples = part.samples.iter_mut().map(|row| &mut row.process);
        let of_requests = part.requests.iter_mut().map(|row| &mut row.process);
        for id in of_rows.chain(of_files).chain(of_samples).chain(of_requests) {
            is_kept(id, &moved);
        }
        let used = part.file_rows.iter().map(|row| row.file).collect();
        let moved = self::moved(part.files.len(), &used);
        part.files.retain_mut(|file| is_kept(&mut file.id, &moved));
        self.files.retain(|_, id| is_kept(id, &moved));
        for row in &mut part.file_rows {
            is_kept(&mut row.file, &moved);
        }
    }
}

/// The new numbers of those that are used.
fn moved(count: usize, used: &HashSet<u32>) -> Vec<Option<u32>> {
    let mut next = 0;
    let number = |id| {
        used.contains(&id).then(|| {
            next += 1;
            next - 1
        })
    };
    (0..count as u32).map(number).collect()
}

/// Gives an identity its new number; false if it has none.
fn is_kept(id: &mut u32, moved: &[Option<u32>]) -> bool {
    let new = moved.get(*id as usize).copied().flatten();
    *id = new.unwrap_or(*id);
    new.is_some()
}

/// The entry that counts processes without a name of their own.
pub(crate) fn others(id: u32) -> Process {
    Process { id, name: OTHERS.to_owned(), is_many: true, ..Process::default() }
}

/// Whether a process is such an entry.
pub(crate) fn is_others(process: &Process) -> bool {
    process.pid == 0 && process.name == OTHERS
}

/// The name of processes without one of their own.
const OTHERS: &str = "others";

/// Of too many, forgets those that ended, and then the ones whose last row is longest ago.
fn forget<T>(all: &mut HashMap<u32, Known<T>>, most: usize) {
    if all.len() <= most {
        return;
    }
    all.retain(|_, known| !known.has_ended);
    let least = most - most / FORGET_SHARE;
    let Some(gone) = all.len().checked_sub(least).filter(|gone| *gone > 0) else {
        return;
    };
    let mut uses: Vec<u64> = all.values().map(|known| known.used).collect();
    let (_, last_gone, _) = uses.select_nth_unstable(gone - 1);
    let last_gone = *last_gone;
    all.retain(|_, known| known.used > last_gone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::MadeWho;

    /// Rows of a few samples in parts of ten samples: each part can be read with its own names.
    #[test]
    fn each_part_names_its_own_and_loses_no_row() {
        let (mut known, mut made) = (KnownIdentities::default(), MadeWho::new(4));
        let mut names = HashMap::new();
        let mut known_most = 0;
        for part in 0..300_u64 {
            let (mut ids, mut who) = (PartIds::default(), Who::default());
            for number in part * 10..part * 10 + 10 {
                let news = made.sample((number + 1) * 100_000_000);
                names.extend(news.processes.iter().map(|it| (it.id, (it.pid, it.name.clone()))));
                known.learn(&news);
                let renumbered = known.renumber(&news, &mut ids, part * 1_000_000_000);
                who.processes.extend(renumbered.processes);
                for (row, original) in renumbered.rows.iter().zip(&news.rows) {
                    let process = &who.processes[row.process as usize];
                    let (pid, name) = &names[&original.process];
                    assert_eq!((process.id, &process.pid, &process.name), (row.process, pid, name));
                    assert_eq!(row.figures, original.figures);
                    assert_eq!(row.to_ns, original.to_ns - part * 1_000_000_000);
                }
            }
            known_most = known_most.max(known.processes.len());
            known.end_part();
        }
        assert!(names.len() > 100 && known_most < 60, "{} {known_most}", names.len());
    }

    #[test]
    fn rows_of_what_was_forgotten_are_counted_as_others() {
        let mut known = KnownIdentities::default();
        let process = Process { pid: 7, ..Process::default() };
        let mut news = Who { processes: vec![process], ..Who::default() };
        news.rows = vec![ProcessRow { has_ended: true, ..ProcessRow::default() }];
        known.learn(&news);
        known.renumber(&news, &mut PartIds::default(), 0);
        known.end_part();
        news.processes.clear();
        news.file_rows = vec![FileRow { file: 9, added_bytes: 5, ..FileRow::default() }];
        let part = known.renumber(&news, &mut PartIds::default(), 0);
        assert_eq!(part.processes, [others(0)]);
        assert_eq!(part.files, [FileIdentity::default()]);
        assert_eq!((part.rows[0].process, part.file_rows[0].added_bytes), (0, 5));
    }

    #[test]
    fn of_too_many_the_ones_not_seen_for_longest_are_forgotten() {
        let mut known = KnownIdentities::default();
        let mut ids = PartIds::default();
        let most = MAX_FILES as u32 + 3_000;
        for start in (0..most).step_by(1_000) {
            let files = (start..start + 1_000).map(|id| FileIdentity { id, ..Default::default() });
            // The first of all is used again and again.
            let rows = [0, start].map(|file| FileRow { file, ..FileRow::default() });
            let (files, file_rows) = (files.collect(), rows.to_vec());
            let news = Who { files, file_rows, ..Who::default() };
            known.learn(&news);
            known.renumber(&news, &mut ids, 0);
        }
        assert!(known.files.len() < MAX_FILES + 1_000 && known.files.len() > MAX_FILES / 2);
        assert!(known.files.contains_key(&0) && !known.files.contains_key(&5));
    }

    #[test]
    fn what_has_no_row_any_more_is_removed_and_named_again_later() {
        let (mut known, mut ids, mut part) =
            (KnownIdentities::default(), PartIds::default(), Who::default());
        let processes = (0..3).map(|id| Process { id, pid: id + 10, ..Process::default() });
        let row = |process| ProcessRow { process, ..ProcessRow::default() };
        let news =
            Who { processes: processes.collect(), rows: vec![row(2), row(1)], ..Who::default() };
        known.learn(&news);
        let first = known.renumber(&news, &mut ids, 0);
        part.processes.extend(first.processes);
        part.rows.push(first.rows[1]);
        ids.remove_unused(&mut part);
        assert_eq!((part.processes.len(), part.processes[0].pid), (1, 11));
        assert_eq!((part.processes[0].id, part.rows[0].process), (0, 0));
        let again = Who { rows: vec![row(1), row(2)], ..Who::default() };
        let second = known.renumber(&again, &mut ids, 0);
        assert_eq!((second.rows[0].process, second.rows[1].process), (0, 1));
        assert_eq!((second.processes.len(), second.processes[0].pid), (1, 12));
    }
}
