//! Which processes belong to the subject, judged from their ends and, while they live, from their
//! parents in /proc.
//!
//! 1. A process belongs if it is a root, was adopted, is a child of the reaper, or its parent
//!    belongs.
//! 2. An unknown parent is looked up in /proc, and its parents in turn. The end of one that is gone
//!    may be reported later: its membership waits.
//! 3. Numbers are used again: a process that ended keeps its children of before, not those that
//!    began after; outsiders are forgotten after each reading.

use super::{Pids, TaskScope};
use crate::process_tree::{self, CHAIN_MAX};
use std::collections::HashMap;
use sys::taskstats::Stats;

/// What is known about the end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// It belongs to the subject.
    In,
    /// It does not.
    Out,
    /// Its parents are not known yet.
    Unknown,
}

/// The processes of the subject.
#[derive(Debug, Default)]
pub(super) struct TreeMembers {
    everything: bool,
    reaper: Option<u32>,
    alive: Pids,
    /// When the end of each was read.
    ended: HashMap<u32, u64>,
    outsiders: Pids,
    /// Children that the reaper had before the watch: of an earlier tree, or its own.
    strangers: Pids,
    count: u64,
}

/// The kernel's own processes and the first one: they are the parents of all orphans.
const FIRST_PROCESSES: [u32; 3] = [0, 1, 2];

/// Ended processes are kept at least so long, for threads and children that are reported later; a
/// process number is not used again so soon.
const ENDED_KEPT_NS: u64 = 10_000_000_000;

/// Ended processes are only forgotten beyond this many; 16 bytes each.
const ENDED_MAX: usize = 8192;

impl TreeMembers {
    /// Begins with the present tree: the roots and their descendants.
    pub(super) fn watch(&mut self, tree: &TaskScope, live: &HashMap<u32, u32>) {
        self.everything = tree.processes.is_none() && tree.reaper.is_none();
        self.reaper = tree.reaper;
        let roots: Vec<u32> =
            if self.everything { live.keys().copied().collect() } else { tree.tops().to_vec() };
        let children = live.iter().filter(|(_, parent)| Some(**parent) == self.reaper);
        self.strangers = children.map(|(pid, _)| *pid).filter(|pid| !roots.contains(pid)).collect();
        self.adopt(&roots);
        let below = self.among(live);
        self.adopt(&below);
    }

    /// Takes processes in.
    pub(super) fn adopt(&mut self, processes: &[u32]) {
        for &pid in processes {
            self.enter(pid);
        }
    }

    /// Whether a process is in the subject now, as far as ends were reported.
    pub(super) fn is_alive(&self, process: u32) -> bool {
        self.alive.contains(&process)
    }

    /// Those of the living that belong, found over their parents.
    pub(super) fn among(&self, live: &HashMap<u32, u32>) -> Vec<u32> {
        let belongs = |pid: &u32| {
            let mut pid = *pid;
            for _ in 0..CHAIN_MAX {
                if self.is_foreign(pid) {
                    return false;
                }
                if self.everything || self.alive.contains(&pid) {
                    return true;
                }
                match live.get(&pid) {
                    Some(parent) if Some(*parent) == self.reaper => return true,
                    Some(parent) => pid = *parent,
                    None => return false,
                }
            }
            false
        };
        live.keys().copied().filter(belongs).collect()
    }

    /// Whether the end of a thread, read at `received_ns`, is one of the subject's.
    pub(super) fn judge(&mut self, stats: &Stats, received_ns: u64) -> Membership {
        let process = stats.tgid.unwrap_or(stats.tid);
        let began_ns = received_ns.saturating_sub(stats.elapsed_ns);
        let membership = self.membership(process, stats.ppid, began_ns);
        let last = stats.last_of_process || (stats.version < 12 && process == stats.tid);
        match membership {
            Membership::In => {
                // A thread that is told of after its process does not bring it back.
                let ended_ns = self.ended.get(&process);
                if ended_ns.is_none_or(|ended_ns| began_ns > *ended_ns) {
                    self.enter(process);
                }
                if last {
                    self.alive.remove(&process);
                    self.ended.insert(process, received_ns);
                }
            }
            Membership::Out => {
                self.outsiders.insert(process);
                // Its number may come again, for one that belongs.
                if last {
                    self.strangers.remove(&process);
                }
            }
            Membership::Unknown => {}
        }
        membership
    }

    /// How many processes have belonged.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Outsiders' numbers may be given to members, and those of long-ended members to any process.
    pub(super) fn forget_outsiders(&mut self, now_ns: u64) {
        self.outsiders.clear();
        if self.ended.len() > ENDED_MAX {
            let since_ns = now_ns.saturating_sub(ENDED_KEPT_NS);
            self.ended.retain(|_, ended_ns| *ended_ns >= since_ns);
        }
    }

    /// After ends were lost: members that are not there any more have ended.
    pub(super) fn forget_the_gone(&mut self) {
        let now_ns = sys::clock::now_ns();
        let gone: Vec<u32> =
            self.alive.iter().copied().filter(|pid| process_tree::parent(*pid).is_none()).collect();
        for pid in gone {
            self.alive.remove(&pid);
            self.ended.insert(pid, now_ns);
        }
    }

    fn membership(&mut self, process: u32, parent: u32, began_ns: u64) -> Membership {
        if self.everything {
            return Membership::In;
        }
        if self.is_foreign(process) {
            return Membership::Out;
        }
        if self.belongs(process, began_ns) {
            return Membership::In;
        }
        if self.outsiders.contains(&process) {
            return Membership::Out;
        }
        self.climb(parent, began_ns)
    }

    /// The recorder itself is never part of what it watches, nor what it had below it before.
    fn is_foreign(&self, process: u32) -> bool {
        Some(process) == self.reaper || self.strangers.contains(&process)
    }

    /// Whether a process is known to belong, for a thread or child that began at `began_ns`.
    fn belongs(&self, process: u32, began_ns: u64) -> bool {
        let ended_ns = self.ended.get(&process);
        self.alive.contains(&process) || ended_ns.is_some_and(|ended_ns| began_ns <= *ended_ns)
    }

    /// Follows the living parents up to a process that is known.
    fn climb(&mut self, parent: u32, began_ns: u64) -> Membership {
        let mut path = Vec::new();
        let mut pid = parent;
        let membership = loop {
            // A child of the reaper is one of the subject's, the reaper itself is not.
            if Some(pid) == self.reaper || self.belongs(pid, began_ns) {
                break Membership::In;
            }
            let foreign = FIRST_PROCESSES.contains(&pid) || self.strangers.contains(&pid);
            if foreign || self.outsiders.contains(&pid) || path.len() >= CHAIN_MAX {
                break Membership::Out;
            }
            path.push(pid);
            match process_tree::parent(pid) {
                Some(parent) => pid = parent,
                None => break Membership::Unknown,
            }
        };
        match membership {
            Membership::In => self.adopt(&path),
            Membership::Out => self.outsiders.extend(path),
            Membership::Unknown => {}
        }
        membership
    }

    fn enter(&mut self, process: u32) {
        if Some(process) == self.reaper && !self.everything {
            return;
        }
        self.count += u64::from(self.alive.insert(process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far above the numbers that Linux gives, so that /proc knows none of them.
    const BASE: u32 = 1 << 30;
    const ROOT: u32 = BASE + 1;

    fn members() -> TreeMembers {
        let mut members = TreeMembers::default();
        let tree = TaskScope { processes: Some(vec![ROOT]), reaper: Some(BASE) };
        members.watch(&tree, &HashMap::from([(ROOT, BASE)]));
        members
    }

    /// The end of a process that began at `began_ns` and ended just before it was read.
    fn end(
        members: &mut TreeMembers,
        pid: u32,
        ppid: u32,
        began_ns: u64,
        now_ns: u64,
    ) -> Membership {
        let stats = Stats {
            version: 16,
            tid: pid,
            tgid: Some(pid),
            ppid,
            elapsed_ns: now_ns - began_ns,
            last_of_process: true,
            ..Stats::default()
        };
        members.judge(&stats, now_ns)
    }

    #[test]
    fn children_orphans_and_strangers() {
        let mut members = members();
        assert_eq!(end(&mut members, BASE + 2, ROOT, 10, 20), Membership::In);
        assert_eq!(end(&mut members, BASE + 3, BASE, 10, 20), Membership::In);
        assert_eq!(end(&mut members, BASE + 4, 1, 10, 20), Membership::Out);
        assert_eq!(end(&mut members, BASE, 1, 10, 20), Membership::Out);
        assert_eq!(end(&mut members, ROOT, BASE, 5, 30), Membership::In);
        assert_eq!(members.count(), 3);
    }

    #[test]
    fn a_grandchild_waits_for_its_parents_end() {
        let mut members = members();
        let (child, grandchild) = (BASE + 2, BASE + 3);
        assert_eq!(end(&mut members, grandchild, child, 12, 20), Membership::Unknown);
        assert_eq!(end(&mut members, child, ROOT, 10, 21), Membership::In);
        assert_eq!(end(&mut members, grandchild, child, 12, 20), Membership::In);
        assert_eq!(members.count(), 3);
    }

    /// Regression: what an earlier run left below the recorder was counted for the next one.
    #[test]
    fn what_the_reaper_had_before_is_no_member_nor_what_is_below_it() {
        let mut members = TreeMembers::default();
        let (left, below) = (BASE + 7, BASE + 8);
        let live = HashMap::from([(ROOT, BASE), (left, BASE), (below, left)]);
        let tree = TaskScope { processes: Some(vec![ROOT]), reaper: Some(BASE) };
        members.watch(&tree, &live);
        assert_eq!(members.among(&live), [ROOT]);
        assert_eq!(end(&mut members, below, left, 12, 20), Membership::Out);
        members.forget_outsiders(20);
        assert_eq!(end(&mut members, left, BASE, 10, 20), Membership::Out);
        members.forget_outsiders(30);
        // Its number is given to a child of the command that is orphaned.
        assert_eq!(end(&mut members, left, BASE, 30, 40), Membership::In);
        assert_eq!(members.count(), 2);
    }

    #[test]
    fn a_number_that_is_used_again_is_a_stranger() {
        let mut members = members();
        let number = BASE + 2;
        assert_eq!(end(&mut members, number, ROOT, 10, 20), Membership::In);
        assert_eq!(end(&mut members, number, 1, 30, 40), Membership::Out);
        // Nor are the children of its second user members.
        assert_eq!(end(&mut members, BASE + 3, number, 31, 40), Membership::Out);
        members.forget_outsiders(50);
        // A thread that is told of after its process is one.
        assert_eq!(end(&mut members, number, ROOT, 10, 20), Membership::In);
        assert_eq!(members.count(), 2);
    }

    #[test]
    fn a_number_that_a_member_gets_after_an_end_counts_again() {
        let mut members = members();
        let number = BASE + 2;
        assert_eq!(end(&mut members, number, ROOT, 10, 20), Membership::In);
        assert_eq!(end(&mut members, number, ROOT, 30, 40), Membership::In);
        assert_eq!(members.count(), 3);
    }

    #[test]
    fn everything_is_everything() {
        let mut members = TreeMembers::default();
        members.watch(&TaskScope::default(), &HashMap::from([(1, 0), (7, 1)]));
        assert_eq!(members.count(), 2);
        assert_eq!(end(&mut members, BASE + 4, 1, 10, 20), Membership::In);
        assert_eq!(members.count(), 3);
    }

    #[test]
    fn what_lives_below_a_root_was_found_at_the_start() {
        let mut members = TreeMembers::default();
        let live = HashMap::from([(ROOT, 1), (BASE + 2, ROOT), (BASE + 3, BASE + 2), (9, 1)]);
        let tree = TaskScope { processes: Some(vec![ROOT]), reaper: None };
        members.watch(&tree, &live);
        let mut found = members.among(&live);
        found.sort_unstable();
        assert_eq!(found, [ROOT, BASE + 2, BASE + 3]);
        assert_eq!(members.count(), 3);
        // Its parents may be gone by now.
        assert_eq!(end(&mut members, BASE + 3, 1, 10, 20), Membership::In);
    }
}
