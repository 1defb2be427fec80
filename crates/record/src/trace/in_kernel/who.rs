//! Processes, by what the kernel says their threads used: which of them get a row, and when.
//!
//! What a process uses is kept until it has a row. In each sample the first ten of each figure get
//! one, if they used enough to matter in so short a time; once a second all that used anything
//! worth it, and those that have ended. What never gets a row is summed up as `others`.

use super::objects::{FIGURES, Sampled, ShortRecord, ThreadRecord};
use super::program_name;
use crate::collect::LimitedPaths;
use model::recording::{Process, ProcessFigure, ProcessRow, Who};
use std::collections::HashMap;

/// The first so many of each figure have a row in each sample.
const FIRST: usize = 10;
/// The most processes that are kept apart; more than run at once on most machines.
const PROCESSES_MAX: usize = 65_536;
/// A process has at most so many more names than its first one: some rename themselves for ever.
const RENAMED_MAX: u8 = 8;
/// One that has not been heard of for so long is forgotten.
const SILENCE_NS: u64 = 600_000_000_000;
/// Short-lived ones of a name and parent that are not in the recording are forgotten after so long,
/// those that are, after so long: they are new ones then, with an id of their own.
const SHORT_SILENCE_NS: u64 = 5_000_000_000;
const WRITTEN_SHORT_SILENCE_NS: u64 = 60_000_000_000;
/// A row is worth it from this share of the time on, in thousandths: of a sample, of a second.
const TIME_SHARE: (u64, u64) = (20, 1);
/// Times are written in whole ones.
const MICROSECOND_NS: u64 = 1000;
/// ... from so many bytes, and from so many faults.
const BYTES: (u64, u64) = (256 << 10, 64 << 10);
const FAULTS: (u64, u64) = (1024, 256);

/// A process, or several short-lived ones of one name and parent.
#[derive(Debug)]
struct Known {
    identity: Process,
    /// What the kernel calls the program that it runs.
    kernel_name: String,
    /// How many programs it has run since it was first in the recording.
    renamed: u8,
    /// Whether it is in the recording already, by its id.
    is_written: bool,
    from_ns: u64,
    heard_ns: u64,
    figures: [u64; FIGURES],
    memory_bytes: u64,
    has_ended: bool,
    /// Whether its last row is written.
    is_closed: bool,
    processes: u64,
}

/// Which entry: a process, or the short-lived ones of a parent and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Process(u32),
    /// One that has ended and whose number another process has now, by its start.
    Replaced(u32, u64),
    Short(u32, String),
    Others,
}

/// All processes of the subject that were heard of.
#[derive(Debug, Default)]
pub struct Processes {
    known: HashMap<Key, Known>,
    /// Of the short-lived ones of each parent the name of those of whom there were most.
    most_short: HashMap<u32, String>,
    next_id: u32,
    written_ns: u64,
    second_ns: u64,
    others: [u64; FIGURES],
    /// The clock of [`Process::started_ns`] less that of the rows; `None` while it is not known.
    boot_offset_ns: Option<u64>,
    limited: LimitedPaths,
}

impl Processes {
    /// Names the group of a process by the one that has a limit, where it is in several.
    pub fn name_groups_by(&mut self, limited: LimitedPaths) {
        self.limited = limited;
    }

    /// Takes what a thread used.
    pub fn take(&mut self, record: &ThreadRecord, now_ns: u64) {
        let key = Key::Process(record.process);
        let is_another = |known: &Known| known.identity.started_ns != record.started_ns;
        if self.known.get(&key).is_some_and(is_another) {
            self.replace(record.process);
        }
        if self.known.len() >= PROCESSES_MAX && !self.known.contains_key(&key) {
            return self.add_to_others(&record.figures);
        }
        let from_ns = self.heard_since_ns(record.started_ns);
        let known = self.known.entry(key).or_insert_with(|| {
            let identity = Process {
                pid: record.process,
                parent: record.parent,
                user: record.user,
                started_ns: record.started_ns,
                is_kernel: record.is_kernel,
                ..Process::default()
            };
            Known::new(identity, from_ns)
        });
        add(&mut known.figures, &record.figures);
        known.heard_ns = now_ns;
        known.has_ended |= record.has_ended;
        if record.memory_bytes > 0 {
            known.memory_bytes = record.memory_bytes;
        }
        known.call(&record.name);
    }

    /// The number of a process was given to another one: it has ended, and its last row is due.
    fn replace(&mut self, pid: u32) {
        if let Some(mut before) = self.known.remove(&Key::Process(pid)) {
            before.has_ended = true;
            let key = Key::Replaced(pid, before.identity.started_ns);
            self.known.insert(key, before);
        }
    }

    /// Sets what [`Process::started_ns`] counts from, on the clock of the rows.
    pub fn set_clock(&mut self, now_ns: u64, since_boot_ns: u64) {
        self.boot_offset_ns = since_boot_ns.checked_sub(now_ns);
    }

    /// Since when the first report of a process counts: the last walk had all others. Not before it
    /// began.
    fn heard_since_ns(&self, started_ns: u64) -> u64 {
        let begun_ns = self.boot_offset_ns.and_then(|offset_ns| started_ns.checked_sub(offset_ns));
        self.second_ns.max(begun_ns.unwrap_or_default())
    }

    /// Takes what short-lived processes of one name and parent used.
    pub fn take_short(&mut self, record: &ShortRecord, now_ns: u64) {
        let key = Key::Short(record.parent, record.name.clone());
        if self.known.len() >= PROCESSES_MAX && !self.known.contains_key(&key) {
            return self.add_to_others(&record.figures);
        }
        let from_ns = self.second_ns;
        let others = self.short_of(record.parent).and_then(|key| self.known.get(&key));
        let most = others.map_or(0, |known| known.processes);
        let known = self.known.entry(key).or_insert_with(|| {
            let (parent, name) = (record.parent, record.name.clone());
            let identity = Process { parent, name, is_many: true, ..Process::default() };
            Known::new(identity, from_ns)
        });
        add(&mut known.figures, &record.figures);
        known.processes += record.processes;
        known.heard_ns = now_ns;
        if known.processes > most {
            self.most_short.insert(record.parent, record.name.clone());
        }
    }

    /// The short-lived ones of a parent, of whose names there were most.
    fn short_of(&self, parent: u32) -> Option<Key> {
        self.most_short.get(&parent).map(|name| Key::Short(parent, name.clone()))
    }

    /// Forgets what was used so far; `others` is what had no room until now.
    pub fn restart(&mut self, others: [u64; FIGURES]) {
        self.others = others;
        self.known.retain(|_, known| !known.has_ended && !known.identity.is_many);
        self.most_short.clear();
        for known in self.known.values_mut() {
            known.figures = [0; FIGURES];
        }
    }

    /// Sets what had no room in the kernel, as a total.
    pub fn set_others(&mut self, total: [u64; FIGURES]) {
        let mut growth = [0; FIGURES];
        for (growth, (total, before)) in growth.iter_mut().zip(total.iter().zip(&self.others)) {
            *growth = total.saturating_sub(*before);
        }
        self.others = total;
        self.add_to_others(&growth);
    }

    fn add_to_others(&mut self, figures: &[u64; FIGURES]) {
        if figures.iter().any(|figure| *figure > 0) {
            add(&mut self.others_entry().figures, figures);
        }
    }

    fn others_entry(&mut self) -> &mut Known {
        let from_ns = self.second_ns;
        self.known.entry(Key::Others).or_insert_with(|| {
            let name = "others".to_owned();
            Known::new(Process { name, is_many: true, ..Process::default() }, from_ns)
        })
    }

    /// Writes the rows that are due, with the identities of the processes that are new.
    pub fn write(&mut self, is_second: bool, now_ns: u64, who: &mut Who) {
        let now_ns = now_ns / MICROSECOND_NS * MICROSECOND_NS;
        let passed_ns =
            now_ns.saturating_sub(if is_second { self.second_ns } else { self.written_ns });
        let mut due = self.due(is_second, passed_ns);
        due.sort_unstable_by_key(|(id_order, _)| *id_order);
        for (_, key) in due {
            self.write_row(&key, now_ns, who);
        }
        self.written_ns = now_ns;
        if is_second {
            self.second_ns = now_ns;
            self.forget(now_ns);
        }
    }

    /// The entries that get a row now; those with an id first, in its order.
    fn due(&self, is_second: bool, passed_ns: u64) -> Vec<(u64, Key)> {
        let order = |known: &Known| {
            let new = u64::from(u32::MAX) + u64::from(known.identity.pid);
            if known.is_written { u64::from(known.identity.id) } else { new }
        };
        let floors = floors(is_second, passed_ns);
        let matters =
            |known: &Known| known.figures.iter().zip(floors).any(|(has, floor)| *has >= floor);
        let worthy = self.known.iter().filter(|(_, known)| matters(known) && known.has_used());
        if is_second {
            let all = worthy.map(|(key, known)| (order(known), key.clone()));
            let is_over = |known: &Known| known.is_written && known.has_ended && !known.is_closed;
            let over = self.known.iter().filter(|(_, known)| is_over(known));
            let ended = over.map(|(key, known)| (order(known), key.clone()));
            let mut all: Vec<_> = all.chain(ended).collect();
            all.sort_unstable_by_key(|(order, _)| *order);
            all.dedup_by(|a, b| a.1 == b.1);
            return all;
        }
        let worthy: Vec<(&Key, &Known)> = worthy.collect();
        let mut firsts: Vec<&(&Key, &Known)> = Vec::new();
        for (figure, floor) in floors.iter().enumerate() {
            let mut ranked: Vec<&(&Key, &Known)> =
                worthy.iter().filter(|(_, known)| known.figures[figure] >= *floor).collect();
            ranked.sort_unstable_by_key(|(_, known)| std::cmp::Reverse(known.figures[figure]));
            firsts.extend(ranked.into_iter().take(FIRST));
        }
        let mut keys: Vec<(u64, Key)> =
            firsts.into_iter().map(|(key, known)| (order(known), (*key).clone())).collect();
        keys.sort_unstable_by_key(|(order, _)| *order);
        keys.dedup_by(|a, b| a.1 == b.1);
        keys
    }

    fn write_row(&mut self, key: &Key, now_ns: u64, who: &mut Who) {
        let Some(id) = self.identify(key, who) else {
            return;
        };
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        let has_ended = known.has_ended;
        let figures = take_whole(&mut known.figures);
        who.rows.push(ProcessRow {
            process: id,
            from_ns: known.from_ns.min(now_ns),
            to_ns: now_ns,
            figures,
            memory_bytes: if has_ended { 0 } else { known.memory_bytes },
            has_ended,
            processes: std::mem::replace(&mut known.processes, u64::from(!known.identity.is_many)),
        });
        known.from_ns = now_ns;
        known.is_closed = has_ended;
    }

    /// The id of an entry, whose identity is written if it was not yet.
    fn identify(&mut self, key: &Key, who: &mut Who) -> Option<u32> {
        let known = self.known.get_mut(key)?;
        if !known.is_written {
            known.is_written = true;
            known.identity.id = self.next_id;
            self.next_id += 1;
            let Known { identity, kernel_name, .. } = &mut *known;
            // What /proc has under its number is another process.
            let is_replaced = matches!(key, Key::Replaced(..));
            let pid = if is_replaced { 0 } else { identity.pid };
            identity.group = group_of(pid, identity.parent, &self.limited);
            if is_replaced {
                identity.name.clone_from(kernel_name);
            } else if !identity.is_many && !identity.is_kernel {
                identity.name = program_name::of(identity.pid, kernel_name);
            }
            who.processes.push(known.identity.clone());
        }
        Some(known.identity.id)
    }

    /// Gives up what will not be heard of again.
    fn forget(&mut self, now_ns: u64) {
        let mut gone = [0; FIGURES];
        let most_short = &mut self.most_short;
        self.known.retain(|key, known| {
            let is_over = known.is_closed || known.has_ended && !known.is_written;
            let silence_ns = match key {
                Key::Short(..) if known.is_written => WRITTEN_SHORT_SILENCE_NS,
                Key::Short(..) => SHORT_SILENCE_NS,
                Key::Process(_) | Key::Replaced(..) | Key::Others => SILENCE_NS,
            };
            let is_silent = now_ns.saturating_sub(known.heard_ns) > silence_ns;
            let stays = *key == Key::Others || !(is_over || is_silent);
            if !stays {
                add(&mut gone, &known.figures);
                if let Key::Short(parent, name) = key
                    && most_short.get(parent) == Some(name)
                {
                    most_short.remove(parent);
                }
            }
            stays
        });
        self.add_to_others(&gone);
    }

    /// The id of a process in the recording, which gets an entry if it has none. What is not known
    /// is among the others, as is what reclaim does, which works for others.
    pub fn id_of(&mut self, pid: u32, who: &mut Who) -> u32 {
        let mut key = Key::Process(pid);
        if !self.known.contains_key(&key) {
            self.others_entry();
            key = Key::Others;
        }
        self.identify(&key, who).unwrap_or_default()
    }

    /// The id of a process that a sample met. One that has ended is among the short-lived ones of
    /// its parent, those of its name first: it may have been met before it executed its program.
    pub fn id_of_sampled(&mut self, of: &Sampled, who: &mut Who) -> u32 {
        let named = Key::Short(of.parent, of.name.clone());
        if self.known.contains_key(&Key::Process(of.process)) {
            return self.id_of(of.process, who);
        }
        let has_named = self.known.contains_key(&named);
        match has_named.then_some(named).or_else(|| self.short_of(of.parent)) {
            Some(key) => self.identify(&key, who).unwrap_or_default(),
            None => self.id_of(0, who),
        }
    }
}

impl Known {
    /// One that has used nothing yet and has no row before `from_ns`.
    fn new(identity: Process, from_ns: u64) -> Self {
        Self {
            kernel_name: String::new(),
            renamed: 0,
            is_written: false,
            from_ns,
            heard_ns: from_ns,
            figures: [0; FIGURES],
            memory_bytes: 0,
            has_ended: false,
            is_closed: false,
            processes: u64::from(!identity.is_many),
            identity,
        }
    }

    /// Notes what the kernel calls it. One that runs another program is another entry of the
    /// recording from then on, with the same number; what it used since its last row is in there.
    fn call(&mut self, kernel_name: &str) {
        if self.kernel_name == kernel_name || (self.is_written && self.renamed == RENAMED_MAX) {
            return;
        }
        self.renamed += u8::from(self.is_written);
        self.is_written = false;
        kernel_name.clone_into(&mut self.kernel_name);
        kernel_name.clone_into(&mut self.identity.name);
    }

    fn has_used(&self) -> bool {
        self.figures.iter().any(|figure| *figure > 0)
    }
}

/// Takes all but parts of a microsecond, which wait for the next row: whole ones take less room in
/// a recording.
fn take_whole(figures: &mut [u64; FIGURES]) -> [u64; FIGURES] {
    let mut whole = *figures;
    *figures = [0; FIGURES];
    for figure in ProcessFigure::ALL.into_iter().filter(|figure| figure.unit() == "ns") {
        let index = figure as usize;
        figures[index] = whole[index] % MICROSECOND_NS;
        whole[index] -= figures[index];
    }
    whole
}

/// From what on each figure is worth a row.
fn floors(is_second: bool, passed_ns: u64) -> [u64; FIGURES] {
    let pick = |(sample, second): (u64, u64)| if is_second { second } else { sample };
    ProcessFigure::ALL.map(|figure| {
        let floor = match figure.unit() {
            "ns" => passed_ns / 1000 * pick(TIME_SHARE),
            "bytes" => pick(BYTES),
            _ if figure == ProcessFigure::MajorFaults => 1,
            _ => pick(FAULTS),
        };
        floor.max(1)
    })
}

fn add(figures: &mut [u64; FIGURES], more: &[u64; FIGURES]) {
    for (figure, more) in figures.iter_mut().zip(more) {
        *figure = figure.saturating_add(*more);
    }
}

/// The control group of a process, or of its parent where it has ended.
fn group_of(pid: u32, parent: u32, limited: &LimitedPaths) -> String {
    let read = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
    let text = if pid == 0 { None } else { read(pid) }.or_else(|| read(parent));
    text.map_or_else(String::new, |text| group_in(&text, limited).to_owned())
}

/// Of the groups that a /proc/PID/cgroup names, one for each hierarchy: the first that has a limit,
/// else that of version 2, else the one by which memory is counted, else any but the top.
fn group_in<'a>(text: &'a str, limited: &LimitedPaths) -> &'a str {
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let rank = |controllers: &str, path: &str| match () {
        () if path == "/" => 0,
        () if limited.contain(controllers, path) => 4,
        () if controllers.is_empty() => 3,
        () if controllers.split(',').any(|controller| controller == "memory") => 2,
        () => 1,
    };
    // Of equals the first: `max_by_key` takes the last.
    let first_best = lines.rev().max_by_key(|(controllers, path)| rank(controllers, path));
    first_best.map_or("", |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn used(process: u32, cpu_ns: u64) -> ThreadRecord {
        let mut figures = [0; FIGURES];
        figures[ProcessFigure::Cpu as usize] = cpu_ns;
        ThreadRecord {
            process,
            started_ns: 7,
            figures,
            name: "x".to_owned(),
            ..ThreadRecord::default()
        }
    }

    fn cpu(who: &Who) -> u64 {
        who.rows.iter().map(|row| row.get(ProcessFigure::Cpu)).sum()
    }

    #[test]
    fn rows_follow_each_other_and_lose_nothing() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        for sample in 1..=20u64 {
            // 3 % and 0.1 % of a processor, and one that does nothing.
            processes.take(&used(4, 3 * MS), sample * 100 * MS);
            processes.take(&used(5, MS / 8), sample * 100 * MS);
            processes.take(&used(6, 0), sample * 100 * MS);
            processes.write(sample % 10 == 0, sample * 100 * MS, &mut whole);
        }
        let rows = |pid: u32| {
            let id = whole.processes.iter().find(|process| process.pid == pid).map(|p| p.id);
            whole.rows.iter().filter(|row| Some(row.process) == id).collect::<Vec<_>>()
        };
        assert_eq!(rows(4).len(), 20, "one in each sample");
        assert_eq!(rows(5).len(), 2, "one a second");
        assert!(rows(6).is_empty());
        assert_eq!(cpu(&whole), 20 * 3 * MS + 20 * (MS / 8));
        assert!(rows(4).windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
    }

    #[test]
    fn a_number_that_is_given_again_is_another_process() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        processes.take(&used(4, 50 * MS), 100 * MS);
        processes.write(false, 100 * MS, &mut whole);
        processes.take(&used(4, MS), 150 * MS);
        processes.take(&ThreadRecord { started_ns: 9, ..used(4, 60 * MS) }, 200 * MS);
        processes.write(true, 1000 * MS, &mut whole);
        let of = |started_ns| whole.processes.iter().filter(move |p| p.started_ns == started_ns);
        assert_eq!((of(7).count(), of(9).count()), (1, 1));
        let id = of(7).next().unwrap().id;
        let last = whole.rows.iter().rfind(|row| row.process == id).unwrap();
        assert!(last.has_ended && last.get(ProcessFigure::Cpu) == MS, "{last:?}");
        assert_eq!(cpu(&whole), 111 * MS);
        assert!(whole.processes.iter().all(|process| process.name != "others"));
    }

    #[test]
    fn one_that_is_replaced_before_its_first_row_is_named() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        // This process has the number now.
        let own = std::process::id();
        processes.take(&ThreadRecord { name: "first".to_owned(), ..used(own, 60 * MS) }, 100 * MS);
        processes.take(&ThreadRecord { started_ns: 9, ..used(own, 70 * MS) }, 200 * MS);
        processes.write(true, 1000 * MS, &mut whole);
        let names: Vec<_> =
            whole.processes.iter().map(|one| (&*one.name, one.started_ns)).collect();
        assert!(names.contains(&("first", 7)) && names.len() == 2, "{names:?}");
        assert_eq!(cpu(&whole), 130 * MS);
    }

    #[test]
    fn one_that_runs_another_program_is_another_entry_of_the_same_number() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        // No process has this number: it stays below the kernel's largest.
        let named =
            |name: &str, cpu_ns| ThreadRecord { name: name.to_owned(), ..used(u32::MAX, cpu_ns) };
        processes.take(&named("sh", 50 * MS), 100 * MS);
        processes.write(false, 100 * MS, &mut whole);
        processes.take(&named("backup", 90 * MS), 200 * MS);
        processes.write(true, 1000 * MS, &mut whole);
        let names: Vec<&str> = whole.processes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["sh", "backup"]);
        assert_eq!((whole.processes[0].id, whole.processes[1].id), (0, 1));
        let times = whole.rows.iter().map(|row| (row.process, row.get(ProcessFigure::Cpu)));
        assert_eq!(times.collect::<Vec<_>>(), [(0, 50 * MS), (1, 90 * MS)]);
        for turn in 0..100u64 {
            processes.take(&named(&turn.to_string(), 90 * MS), (1100 + turn) * MS);
            processes.write(true, (2000 + turn) * MS, &mut whole);
        }
        assert_eq!(whole.processes.len(), 1 + usize::from(RENAMED_MAX), "it is bounded");
        assert_eq!(cpu(&whole), 140 * MS + 100 * 90 * MS, "and nothing is lost");
    }

    #[test]
    fn those_that_ended_are_said_to_have() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        processes.take(&used(4, 50 * MS), 100 * MS);
        processes.write(false, 100 * MS, &mut whole);
        processes.take(&ThreadRecord { has_ended: true, ..used(4, 10) }, 200 * MS);
        processes.write(true, 1000 * MS, &mut whole);
        assert!(whole.rows.last().unwrap().has_ended);
        assert!(processes.known.keys().all(|key| *key == Key::Others), "it is forgotten");
    }

    #[test]
    fn short_ones_are_one_entry_by_name_and_parent() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        let mut figures = [0; FIGURES];
        figures[ProcessFigure::Cpu as usize] = 300 * MS;
        let record = ShortRecord { parent: 3, name: "true".to_owned(), processes: 900, figures };
        processes.take_short(&record, 100 * MS);
        processes.take_short(&record, 900 * MS);
        processes.write(true, 1000 * MS, &mut whole);
        assert!(whole.processes[0].is_many && whole.processes[0].parent == 3);
        assert_eq!((whole.rows[0].processes, cpu(&whole)), (1800, 600 * MS));
    }

    #[test]
    fn short_ones_are_bounded_and_forgotten_when_no_more_come() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        let mut figures = [0; FIGURES];
        figures[ProcessFigure::Cpu as usize] = 10_000;
        let short = |parent: u32, name: &str, figures| {
            let name = name.to_owned();
            ShortRecord { parent, name, processes: 1, figures }
        };
        for second in 1..=100u64 {
            for number in 0..1024u32 {
                let parent = second as u32 * 1024 + number;
                processes.take_short(&short(parent, "true", figures), second * 1000 * MS);
            }
            processes.write(true, second * 1000 * MS, &mut whole);
            assert!(processes.known.len() <= 7 * 1024, "{}", processes.known.len());
        }
        processes.take_short(&short(3, "backup", [300 * MS; FIGURES]), 101_000 * MS);
        processes.write(true, 101_000 * MS, &mut whole);
        processes.write(true, 150_000 * MS, &mut whole);
        processes.take_short(&short(3, "backup", [300 * MS; FIGURES]), 151_000 * MS);
        processes.write(true, 151_000 * MS, &mut whole);
        let named = |whole: &Who| {
            let backups = whole.processes.iter().filter(|one| one.name == "backup");
            backups.map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(named(&whole).len(), 1, "one that is in the recording stays longer");
        processes.write(true, 250_000 * MS, &mut whole);
        processes.take_short(&short(3, "backup", [300 * MS; FIGURES]), 251_000 * MS);
        processes.write(true, 251_000 * MS, &mut whole);
        let ids = named(&whole);
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        let of = |id: u32| whole.rows.iter().filter(move |row| row.process == id).count();
        assert_eq!((of(ids[0]), of(ids[1])), (2, 1));
        assert_eq!(cpu(&whole), 100 * 1024 * 10_000 + 900 * MS, "and nothing is lost");
        assert_eq!(processes.most_short.len(), 1, "nor kept of those that are forgotten");
        for parent in 0..PROCESSES_MAX as u32 + 100 {
            processes.take_short(&short(parent, "many", figures), 252_000 * MS);
        }
        assert!(processes.known.len() <= PROCESSES_MAX + 1, "{}", processes.known.len());
    }

    #[test]
    fn a_sample_of_one_that_ended_is_of_those_like_it() {
        let mut processes = Processes::default();
        let mut whole = Who::default();
        let figures = [300 * MS; FIGURES];
        for (name, count) in [("cc", 5), ("as", 9), ("ld", 1)] {
            let name = name.to_owned();
            let record = ShortRecord { parent: 3, name, processes: count, figures };
            processes.take_short(&record, 100 * MS);
        }
        let mut name_of = |parent, name: &str| {
            let name = name.to_owned();
            let sampled = Sampled { process: 9, parent, name, is_kernel_thread: false };
            let id = processes.id_of_sampled(&sampled, &mut whole);
            whole.processes.iter().find(|one| one.id == id).unwrap().name.clone()
        };
        assert_eq!(name_of(3, "cc"), "cc");
        assert_eq!(name_of(3, "make"), "as", "it had not executed its program yet");
        assert_eq!(name_of(4, "cc"), "others");
    }

    #[test]
    fn the_group_that_says_most_is_taken() {
        let both = "3:memory:/box\n2:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
        let none = LimitedPaths::default();
        let group = |text| group_in(text, &none);
        assert_eq!(group(both), "/user.slice/x.scope");
        assert_eq!(group("3:memory:/box\n2:cpu:/other\n0::/\n"), "/box");
        assert_eq!(group("3:memory:/\n2:cpu,cpuacct:/other\n0::/\n"), "/other");
        assert_eq!(group("3:memory:/\n0::/\n"), "/");
        assert_eq!(group(""), "");
        let limited = LimitedPaths::of(&[("cpu", "/quota")]);
        let text = "3:memory:/box\n2:cpu,cpuacct:/quota/a\n0::/user.slice/x.scope\n";
        assert_eq!(group_in(text, &limited), "/quota/a");
        assert_eq!(group_in("3:memory:/quota\n2:cpu:/quotas\n", &limited), "/quota");
    }
}
