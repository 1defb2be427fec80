//! Actors and files in sentences.
//!
//! `chrome (pid 4711, session-3.scope) waited 12 s for block I/O and read 2.1 GiB, 81 % of it
//! evicted moments before; backup.service (pid 812, tar) added 14 GiB to the page cache meanwhile`.

use super::actors::{ActorView, FoundActors};
use super::quantity::Quantity;
use super::ranking::{User, UserKind};
use super::sums::ProcessSum;
use crate::wording::{count, long_time, percent};
use model::Bytes;
use model::explanation::FileUse;
use model::recording::{Process, ProcessFigure as Figure, Subject, Who};

/// Less than this share of what was read is no word about eviction worth. Picked, as a finding's.
const LEAST_EVICTED: f64 = 0.05;

/// How users are called in one recording.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The recording's, for parents.
    pub who: &'a Who,
    /// What is watched: the group of everybody in it is not worth a word.
    pub subject: &'a Subject,
    /// How long the finding lasted, of which sampled users have their shares.
    pub finding_ns: Option<u64>,
}

impl Names<'_> {
    /// `chrome (pid 4711, session-3.scope)`, `backup.service (pid 812, tar)`,
    /// `cc1plus (312 processes, session-3.scope)`, `kernel thread kswapd0`.
    pub fn label(&self, user: &User) -> String {
        let first = user.first();
        if first.is_kernel {
            return format!("kernel thread {}", first.name);
        }
        let how_many = if first.is_many {
            format!("{}{}", short_lived(user.count), self.started_by(first))
        } else if user.count == 1 {
            format!("pid {}", first.pid)
        } else {
            format!("{} processes", count(user.count))
        };
        match self.group(user) {
            Some((group, _)) if user.of == UserKind::Group => format!("{group} ({how_many})"),
            Some(_) if user.of == UserKind::Name => {
                format!("{} ({how_many} in {} groups)", first.name, user.group_count())
            }
            Some((group, true)) => format!("{group} ({how_many}, {})", first.name),
            Some((group, false)) => format!("{} ({how_many}, {group})", first.name),
            None => format!("{} ({how_many})", first.name),
        }
    }

    /// How much a user has: of samples its share of the finding's time.
    fn value(&self, user: &User) -> String {
        match self.finding_ns.filter(|_| user.quantity.is_sampled()) {
            Some(ns) => long_time(ns as f64 * user.share),
            None => value(user.quantity, user.sum.value),
        }
    }

    /// The name of the user's group, and whether it says more than the program's name; `None` if
    /// it is not known, or that of everybody in the recording.
    fn group(&self, user: &User) -> Option<(String, bool)> {
        let name = user.group_name()?;
        let is_worth_naming = match self.subject {
            Subject::Machine | Subject::Probe { .. } => name.text != "/",
            Subject::Command { .. } | Subject::Process { .. } => false,
            Subject::Group { path, .. } => *path != name.path,
        };
        let is_service = name.is_service();
        is_worth_naming.then_some((name.text, is_service))
    }

    /// `, started by cron (pid 700)`; empty if the parent has no rows.
    fn started_by(&self, process: &Process) -> String {
        let is_parent = |other: &&Process| other.pid == process.parent && !other.is_many;
        // Of several processes with that number the last one is the likeliest.
        match self.who.processes.iter().rev().find(is_parent) {
            Some(parent) if parent.pid != 0 => {
                format!(", started by {} (pid {})", parent.name, parent.pid)
            }
            _ => String::new(),
        }
    }
}

fn short_lived(processes: u64) -> String {
    match processes {
        1 => "a short-lived process".to_owned(),
        _ => format!("{} short-lived processes", count(processes)),
    }
}

/// The actors in one sentence, without its full stop; empty if there are none.
pub fn of_actors(found: &FoundActors, of: &ActorView, names: Names) -> String {
    let (sums, then) = (of.view.process_sums(), of.meanwhile.process_sums());
    let mut clauses: Vec<String> = Vec::new();
    if let [first, others @ ..] = found.victims.as_slice() {
        let mut clause = format!("{} {}", names.label(first), waited(first, sums, names));
        if !others.is_empty() {
            let labels: Vec<String> = others.iter().map(|user| with_value(user, names)).collect();
            clause.push_str(&format!(", {}", labels.join(", ")));
        }
        clauses.push(clause);
    }
    clauses.extend(found.is_own.as_ref().map(|own| {
        let is_named = found.victims.iter().any(|victim| victim.processes == own.processes);
        let part = if is_named {
            "its own part".to_owned()
        } else {
            format!("the part of {}", names.label(own))
        };
        let (whole, much) = (own.quantity.whole_in_words(), names.value(own));
        format!("{part} of {whole} was {} ({much})", share(own))
    }));
    if let [first, others @ ..] = found.culprits.as_slice() {
        // Without a victim there is nothing that it could be meanwhile to.
        let meanwhile = !found.victims.is_empty();
        let done = used(first, then, meanwhile, names);
        let mut clause = format!("{} {done} ({})", names.label(first), share(first));
        for user in others {
            clause.push_str(&format!(", {} ({})", with_value(user, names), share(user)));
        }
        clauses.push(clause);
    }
    clauses.extend(found.workers.iter().map(|worker| {
        format!("{} {} for it", names.label(worker), used(worker, then, false, names))
    }));
    clauses.extend(found.outside.map(|(share, quantity)| {
        let whole = quantity.whole_in_words();
        format!("{} of {whole} is of processes that this recording does not watch", percent(share))
    }));
    clauses.extend(unclear(&found.unclear, names));
    clauses.join("; ")
}

/// `no single process: the first of them, Xorg (pid 900), had 18 % of the processor time, mpv (pid
/// 10) 12 %`
fn unclear(users: &[User], names: Names) -> Option<String> {
    let (first, others) = users.split_first()?;
    let what = if first.count > 1 { "program" } else { "process" };
    let (label, had) = (names.label(first), share(first));
    let whole = first.quantity.whole_in_words();
    let mut further = String::new();
    for user in others {
        further.push_str(&format!(", {} {}", names.label(user), share(user)));
    }
    Some(format!("no single {what}: the first of them, {label}, had {had} of {whole}{further}"))
}

/// `Xorg (pid 900) 1.2 s`
fn with_value(user: &User, names: Names) -> String {
    format!("{} {}", names.label(user), names.value(user))
}

/// `79.3 %`; of samples the 95 % interval, `72 to 85 %`.
fn share(user: &User) -> String {
    match user.interval {
        Some((low, high)) => format!("{:.0} to {:.0} %", low * 100.0, high * 100.0),
        None => percent(user.share),
    }
}

/// A value with its unit.
pub fn value(quantity: Quantity, value: u64) -> String {
    match quantity.unit() {
        "ns" => long_time(value as f64),
        "bytes" => Bytes(value).to_string(),
        "samples" => format!("{} samples", count(value)),
        _ => count(value),
    }
}

/// What a victim went through.
fn waited(user: &User, sums: &[ProcessSum], names: Names) -> String {
    let much = value(user.quantity, user.sum.value);
    let read = user.get(sums, Figure::ReadBytes);
    let again = user.get(sums, Figure::Refaulted);
    match user.quantity {
        Quantity::Figure(Figure::Queue) => format!("waited {much} for a processor"),
        Quantity::Figure(Figure::BlockWait) => {
            let read =
                if read > 0 { format!(" and {}", read_again(read, again)) } else { String::new() };
            format!("waited {much} for block I/O{read}")
        }
        Quantity::Figure(Figure::Reclaim) => format!("spent {much} freeing memory"),
        Quantity::LackOfMemory => format!("lost {much} for lack of memory"),
        Quantity::Figure(Figure::SwappedIn) => format!("read {much} of its memory back from swap"),
        Quantity::Figure(Figure::Refaulted) => read_again(read.max(again), again),
        _ => used(user, sums, false, names),
    }
}

/// `read 2.1 GiB, 81 % of it evicted moments before`
fn read_again(read: u64, again: u64) -> String {
    let share = again as f64 / read.max(1) as f64;
    let evicted = if share < LEAST_EVICTED {
        String::new()
    } else {
        format!(", {} of it evicted moments before", percent(share.min(1.0)))
    };
    format!("read {}{evicted}", Bytes(read))
}

/// What a user did.
fn used(user: &User, sums: &[ProcessSum], meanwhile: bool, names: Names) -> String {
    let much = names.value(user);
    let words = match user.quantity {
        Quantity::Figure(Figure::Cpu) => format!("ran {much}"),
        Quantity::Figure(Figure::Queue | Figure::BlockWait) => format!("waited {much}"),
        Quantity::Figure(Figure::Reclaim) => format!("freed memory for {much}"),
        Quantity::Figure(Figure::ReadBytes | Figure::Refaulted) => format!("read {much}"),
        Quantity::Figure(Figure::WrittenBytes) => format!("wrote {much}"),
        Quantity::Figure(Figure::MajorFaults | Figure::MinorFaults) => {
            format!("took {much} page faults")
        }
        Quantity::Figure(Figure::SwappedIn) => format!("read {much} back from swap"),
        Quantity::Figure(Figure::CacheAdded) | Quantity::CacheFilled => {
            format!("added {much} to the page cache")
        }
        Quantity::MemoryGrowth => format!("took {much} more memory"),
        Quantity::LackOfMemory => format!("lost {much} for lack of memory"),
        Quantity::MemoryHeld => format!("had {much} of memory"),
        Quantity::Sampled(_) | Quantity::SampledKernel => format!("spent {much} of it"),
        Quantity::DeviceBytes => {
            let (read, wrote) = user.device_bytes(sums);
            match (read, wrote) {
                (0, _) => format!("wrote {}", Bytes(wrote)),
                (_, 0) => format!("read {}", Bytes(read)),
                _ => format!("read {} and wrote {}", Bytes(read), Bytes(wrote)),
            }
        }
    };
    if meanwhile { format!("{words} meanwhile") } else { words }
}

/// The files behind a finding in one sentence: `Of it 1.2 GiB (61 %) from /data/db, read by
/// postgres (pid 12)`; empty if there are none.
pub fn of_files(files: &[FileUse], with_readers: bool) -> String {
    let Some(first) = files.first() else {
        return String::new();
    };
    let each = files.iter().map(|file| {
        let by = match file.pid {
            Some(pid) if with_readers => format!(", by {} (pid {pid})", file.name),
            _ => String::new(),
        };
        let (bytes, share) = (Bytes(file.bytes), percent(file.share));
        format!("{} {bytes} ({share}{by})", file.label)
    });
    let verb = match first.figure.as_str() {
        "refaulted" => "Read again",
        "dirtied" => "Written",
        _ => "Read",
    };
    format!("{verb}: {}", each.collect::<Vec<_>>().join(", "))
}
