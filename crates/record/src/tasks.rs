//! Delay accounting: the delays that the kernel charged to every thread. Threads that end are
//! reported by the kernel; those that still run are read at the end.
//!
//! What a thread had been charged before [`Listener::watch`] is subtracted. Ends are kept if they
//! belong to the watched tree (`members` decides); rows beyond a limit are summed up by name
//! (`kept`). If the kernel reports no ends, only running threads are read, by taskstats or from
//! /proc, and the sights say so.

mod kept;
mod members;
mod proc;
mod row;
mod sights;

use crate::process_tree;
use kept::Kept;
use members::{Membership, TreeMembers};
use model::recording::{SourceState, Task, TaskSource};
use row::Charges;
use std::collections::{HashMap, HashSet, VecDeque};
use sys::taskstats::{Connection, Stats};

pub(crate) use sights::DELAY_SWITCH;

/// Whose tasks are kept.
#[derive(Clone, Debug, Default)]
pub struct TaskScope {
    /// The processes at the top; a task belongs if its chain of parents leads to one of
    /// them. `None`: every task.
    pub processes: Option<Vec<u32>>,
    /// The process that orphans of the tree are given to, where the recorder is that.
    pub reaper: Option<u32>,
}

impl TaskScope {
    /// The processes at the top, as far as they are named.
    fn tops(&self) -> &[u32] {
        self.processes.as_deref().unwrap_or_default()
    }
}

/// A listener to the ends of threads.
#[derive(Debug)]
pub struct Listener {
    started_ns: u64,
    /// When delay accounting was found on or off.
    opened_ns: u64,
    /// Receives ends; `None` if the kernel reports none.
    ends: Option<Connection>,
    /// Asks about threads that live; `None` where only /proc can be read.
    asks: Option<Connection>,
    /// Whether threads that begin now are charged for block I/O.
    charging: bool,
    /// Whether every thread since the machine started was.
    since_boot: bool,
    tree: TaskScope,
    members: TreeMembers,
    /// What threads had been charged when they were first seen to be watched.
    before: HashMap<u32, Charges>,
    watched_ns: Option<u64>,
    /// Ends whose chain of parents is not known yet.
    waiting: VecDeque<ThreadEnd>,
    /// The threads whose end was read last, and when.
    recent_ends: HashMap<u32, u64>,
    kept: Kept,
    lives_ns: HashMap<u32, u64>,
    /// Ends whose row could not be placed because too many waited.
    unplaced: u64,
    /// Times that the kernel said it lost some, where it does not say how many.
    overruns: u64,
}

/// The end of a thread as it was reported.
#[derive(Clone, Debug)]
struct ThreadEnd {
    stats: Stats,
    /// When it was read; the end itself was earlier.
    received_ns: u64,
}

/// The delays of the tree: of threads that ended and of those that still run.
#[derive(Debug, Default)]
pub struct TaskReport {
    /// The threads, or sums of many of one name.
    pub tasks: Vec<Task>,
    /// Processes of the subject.
    pub processes: u64,
    /// Ends that were lost.
    pub lost: u64,
    /// How long the first threads of the processes at the top of the tree lived, if their ends were
    /// reported.
    pub lives_ns: HashMap<u32, u64>,
}

/// Ends that may wait for their parents to be known. Children end before their parents, and
/// parents are found in /proc while they live, so few wait.
const WAITING_MAX: usize = 4096;

/// How often the waiting are looked at anew after one reading: a chain that arrives in the
/// worst order is resolved one link at a time.
const PASSES: usize = 16;

/// Threads whose charges before the watch are kept, about 400 bytes each. Beyond it threads
/// that ran already are left out and counted as lost.
const BEFORE_MAX: usize = 65_536;

impl Listener {
    /// Starts to listen; what was charged to threads of the tree that run already is subtracted
    /// later. The sights are `exits` and `delay_accounting`. `started_ns` is on the clock of
    /// [`sys::clock`]. There is a listener even if ends are not reported: it gives what still runs
    /// at the end. Switch delay accounting on before this.
    pub fn open(started_ns: u64) -> (Option<Self>, Vec<(String, SourceState)>) {
        let (ends, exits) = sights::listen();
        let mut asks = Connection::open().ok();
        let witness = asks.as_mut().map(|asks| asks.ask(sights::WITNESS));
        if matches!(witness, Some(Err(_))) {
            asks = None;
        }
        let since_boot = witness
            .and_then(std::result::Result::ok)
            .flatten()
            .is_some_and(|stats| row::was_charged(&stats));
        let (charging, delays) = sights::delay_accounting(since_boot);
        let listener = Self {
            started_ns,
            opened_ns: sys::clock::now_ns(),
            ends,
            asks,
            charging,
            since_boot: since_boot && charging,
            tree: TaskScope::default(),
            members: TreeMembers::default(),
            before: HashMap::new(),
            watched_ns: None,
            waiting: VecDeque::new(),
            recent_ends: HashMap::new(),
            kept: Kept::default(),
            lives_ns: HashMap::new(),
            unplaced: 0,
            overruns: 0,
        };
        let sights = vec![("exits".to_owned(), exits), ("delay_accounting".to_owned(), delays)];
        (Some(listener), sights)
    }

    /// Notes whose tasks are kept; as soon as the subject is known. Threads of it that have
    /// ended before are left out.
    pub fn watch(&mut self, tree: &TaskScope) {
        self.read_ends();
        self.waiting.clear();
        self.tree = tree.clone();
        self.watched_ns = Some(sys::clock::now_ns());
        let live = parents_in(tree);
        self.members.watch(tree, &live);
        self.note_charges(&self.members.among(&live));
    }

    /// Notes what the threads of these processes were charged before they were watched.
    fn note_charges(&mut self, processes: &[u32]) {
        for pid in processes {
            for tid in proc::threads(*pid) {
                if self.before.len() >= BEFORE_MAX {
                    return;
                }
                if let Some(charges) = self.charges(*pid, tid) {
                    self.before.insert(tid, charges);
                }
            }
        }
    }

    /// Watches processes that joined the subject; what they were charged before is left out, but
    /// not of those that are watched already: they had left its group and came back.
    pub fn join(&mut self, processes: &[u32]) {
        let is_new = |pid: &u32| !self.members.is_alive(*pid);
        let new: Vec<u32> = processes.iter().copied().filter(is_new).collect();
        self.members.adopt(&new);
        self.note_charges(&new);
    }

    /// Notes processes that another reader saw below the tree, so that they stay in it when their
    /// parents end.
    pub fn adopt(&mut self, processes: &[u32]) {
        self.members.adopt(processes);
    }

    /// Takes the ends that were reported until now; never waits.
    pub fn read(&mut self) {
        self.recent_ends = self.read_ends();
    }

    /// Asks about those that still run, and gives everything; `now_ns` is on the clock of
    /// [`sys::clock`].
    #[must_use]
    pub fn finish(mut self, now_ns: u64) -> TaskReport {
        let mut ended = std::mem::take(&mut self.recent_ends);
        ended.extend(self.read_ends());
        let live = self.ask_living(now_ns);
        // A thread that ended while it was read was reported as well: its end is the better row.
        ended.extend(self.read_ends());
        for (charges, task) in live {
            let ended_ns = ended.get(&charges.tid).copied().unwrap_or(0);
            if ended_ns <= charges.began_ns {
                self.kept.add(task);
            }
        }
        let lost = self.lost();
        TaskReport {
            tasks: self.kept.finish(),
            processes: self.members.count(),
            lost,
            lives_ns: self.lives_ns,
        }
    }

    /// Reads and places the ends; returns when the end of each thread was read.
    fn read_ends(&mut self) -> HashMap<u32, u64> {
        let mut ends = HashMap::new();
        let Some(connection) = &mut self.ends else {
            return ends;
        };
        let received_ns = sys::clock::now_ns();
        let waiting = &mut self.waiting;
        let (lives_ns, tops) = (&mut self.lives_ns, self.tree.tops());
        let drained = connection.drain(|stats| {
            if tops.contains(&stats.tid) {
                lives_ns.insert(stats.tid, stats.elapsed_ns);
            }
            ends.insert(stats.tid, received_ns);
            waiting.push_back(ThreadEnd { stats, received_ns });
        });
        // A broken socket gives nothing more; the ends in it are lost.
        if drained.unwrap_or(true) {
            self.overruns += 1;
            self.members.forget_the_gone();
        }
        self.place_waiting();
        self.members.forget_outsiders(received_ns);
        ends
    }

    /// Places the ends that wait: in the tree, out of it, or later.
    fn place_waiting(&mut self) {
        let Some(watched_ns) = self.watched_ns else {
            self.bound();
            return;
        };
        for _ in 0..PASSES {
            let before = self.waiting.len();
            for _ in 0..before {
                let Some(end) = self.waiting.pop_front() else {
                    break;
                };
                match self.members.judge(&end.stats, end.received_ns) {
                    Membership::In => self.keep(&end, watched_ns),
                    Membership::Out => {}
                    Membership::Unknown => self.waiting.push_back(end),
                }
            }
            if self.waiting.is_empty() || self.waiting.len() == before {
                break;
            }
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
            // Before the subject is known, no thread belongs to it.
            self.unplaced += u64::from(self.watched_ns.is_some());
        }
    }

    /// Keeps the row of a thread that has ended within the recording.
    fn keep(&mut self, end: &ThreadEnd, watched_ns: u64) {
        let began_ns = end.received_ns.saturating_sub(end.stats.elapsed_ns);
        let charges = Charges::of_stats(&end.stats, end.received_ns, TaskSource::Exit);
        // Its number may have been another thread's, whose end was lost.
        let before =
            self.before.remove(&end.stats.tid).filter(|before| before.is_same_thread(&charges));
        if before.is_none() && began_ns < watched_ns {
            // It ran before and was not seen then: it had ended, or the table was full.
            self.unplaced += u64::from(self.before.len() >= BEFORE_MAX);
            return;
        }
        let charged = self.is_charged(&charges, before.as_ref());
        let limit_ns = end.received_ns.saturating_sub(self.started_ns);
        self.kept.add(row::task(&charges, before, limit_ns, charged));
    }

    /// The rows of the threads that live now.
    fn ask_living(&mut self, now_ns: u64) -> Vec<(Charges, Task)> {
        let limit_ns = now_ns.saturating_sub(self.started_ns);
        let mut rows = Vec::new();
        if self.watched_ns.is_none() {
            return rows;
        }
        // If orphans have gone elsewhere, the tree is known only from all processes together.
        let live = match self.tree.reaper {
            Some(_) => parents_in(&self.tree),
            None => process_tree::parents(),
        };
        let among = self.members.among(&live);
        self.members.adopt(&among);
        for pid in among {
            for tid in proc::threads(pid) {
                let Some(charges) = self.charges(pid, tid) else {
                    continue;
                };
                let before =
                    self.before.remove(&tid).filter(|before| before.is_same_thread(&charges));
                let charged = self.is_charged(&charges, before.as_ref());
                let task = row::task(&charges, before, limit_ns, charged);
                rows.push((charges, task));
            }
        }
        rows
    }

    /// What one living thread has been charged; `None` if it has ended.
    fn charges(&mut self, pid: u32, tid: u32) -> Option<Charges> {
        let seen = proc::thread(pid, tid)?;
        if seen.has_ended() {
            return None;
        }
        let Some(asks) = &mut self.asks else {
            return Charges::of_proc(&seen, sys::clock::now_ns());
        };
        // Read before asking, so that the beginning that follows is never too late.
        let now_ns = sys::clock::now_ns();
        let mut stats = asks.ask(tid).ok()??;
        stats.tgid = Some(pid);
        stats.ppid = seen.ppid;
        Some(Charges::of_stats(&stats, now_ns, TaskSource::Asked))
    }

    /// Whether zeros of block I/O mean that there was none.
    fn is_charged(&self, charges: &Charges, before: Option<&Charges>) -> bool {
        // Without a look before the watch it began after it.
        let is_young = before.is_none_or(|before| before.began_ns >= self.opened_ns);
        charges.was_charged || self.since_boot || (self.charging && is_young)
    }

    fn lost(&self) -> u64 {
        let dropped = self.ends.as_ref().and_then(Connection::dropped);
        dropped.unwrap_or(self.overruns) + self.unplaced
    }
}

/// All processes that may belong to the tree now, with their parents.
fn parents_in(tree: &TaskScope) -> HashMap<u32, u32> {
    let tops: Vec<u32> = tree.tops().iter().copied().chain(tree.reaper).collect();
    if tops.is_empty() { process_tree::parents() } else { process_tree::parents_around(&tops) }
}

/// Process numbers.
type Pids = HashSet<u32>;

#[cfg(test)]
mod tests;
