//! Processes that join a watched group while it is recorded, found in the lists of its members.
//!
//! The kernel reports no such event for each way to join (`clone` can start a process in another
//! group), so the lists are read before each sample, but for no more than a hundredth of the time.
//! What a process did before it was found is not the group's. One that a member has begun did not
//! join: it is followed from its beginning, as its parent is.

use crate::process_tree::{self, CHAIN_MAX};
use machine::cgroup;
use std::collections::HashMap;
use std::path::PathBuf;
use sys::clock::since_boot_ns;

/// Groups below the watched one that are looked into. Picked: more than a machine has units.
const MOST_GROUPS: usize = 10_000;

/// Of so many parts of the time one is for reading the lists.
const TIME_PARTS: u64 = 100;

/// The members of a group that are known.
#[derive(Debug)]
pub(super) struct Joiners {
    directory: PathBuf,
    /// Since when, on the clock of [`since_boot_ns`].
    known: HashMap<u32, u64>,
    next_ns: u64,
    /// Whether some were new to the tracer when it was called last.
    has_joined: bool,
}

/// Members that were not there before.
#[derive(Debug, Default)]
pub(super) struct NewMembers {
    /// Those that came from outside.
    pub joined: Vec<u32>,
    /// Those that are below a member and began when it was known.
    pub born: Vec<u32>,
    /// Whether the tracer may not follow the parents of `born` since those were begun: they had
    /// only just joined.
    pub is_after_joining: bool,
}

impl Joiners {
    /// Knows these processes.
    pub fn new(directory: PathBuf, known: &[u32]) -> Self {
        let since_ns = since_boot_ns();
        let known = known.iter().map(|pid| (*pid, since_ns)).collect();
        Self { directory, known, next_ns: 0, has_joined: true }
    }

    /// The processes that were not members when this was called last.
    pub fn new_members(&mut self) -> NewMembers {
        let begun_ns = sys::clock::now_ns();
        if begun_ns < self.next_ns {
            return NewMembers::default();
        }
        let members = cgroup::members(&self.directory, MOST_GROUPS);
        let look_ns = since_boot_ns();
        let unknown = members.iter().copied().filter(|pid| !self.known.contains_key(pid));
        let (born, joined): (Vec<u32>, Vec<u32>) = unknown.partition(|pid| self.was_born(*pid));
        let is_after_joining = std::mem::replace(&mut self.has_joined, !joined.is_empty());
        // Those that left may come back, and numbers are used again.
        let before = std::mem::take(&mut self.known);
        let still = members.iter().filter_map(|pid| Some((*pid, *before.get(pid)?)));
        let new = joined.iter().map(|pid| (*pid, look_ns));
        // Followed from their beginning.
        let followed = born.iter().map(|pid| (*pid, 0));
        self.known = still.chain(new).chain(followed).collect();
        let took_ns = sys::clock::now_ns().saturating_sub(begun_ns);
        self.next_ns = begun_ns.saturating_add(took_ns.saturating_mul(TIME_PARTS));
        NewMembers { joined, born, is_after_joining }
    }

    /// Whether a new member, or one above it, is a child that a known one had since it is known.
    /// Its children of before can have been elsewhere.
    fn was_born(&self, mut process: u32) -> bool {
        for _ in 0..CHAIN_MAX {
            let Some((parent, began_ns)) = process_tree::parent_and_beginning(process) else {
                return false;
            };
            if let Some(since_ns) = self.known.get(&parent) {
                return began_ns >= *since_ns;
            }
            process = parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn only_those_that_came_since_are_new() {
        let directory = TempDir::new();
        let set = |text: &str| std::fs::write(directory.join("cgroup.procs"), text).unwrap();
        let mut joiners = Joiners::new(directory.path().to_owned(), &[7]);
        let mut look = || {
            joiners.next_ns = 0;
            joiners.new_members().joined
        };
        set("7\n8\n");
        assert_eq!(look(), [8]);
        assert!(look().is_empty());
        set("8\n");
        assert!(look().is_empty());
        set("8\n7\n");
        assert_eq!(look(), [7], "it left and came back");
    }

    #[test]
    fn what_a_member_has_begun_did_not_join() {
        let (first, own) = (1, std::process::id());
        if own == first {
            return testkit::skip("a process that is not the first one");
        }
        let directory = TempDir::new();
        let set = |pids: &[u32]| {
            let lines: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
            std::fs::write(directory.join("cgroup.procs"), lines).unwrap();
        };
        let mut earlier = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // The kernel says to a hundredth of a second when a process began.
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        pause();
        let mut joiners = Joiners::new(directory.path().to_owned(), &[own]);
        pause();
        // It begins another one.
        let script = "sleep 60 & echo $!; wait";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let (below, grandchild) = (child.id(), line.trim().parse().unwrap());
        let mut look = |pids: &[u32]| {
            set(pids);
            joiners.next_ns = 0;
            joiners.new_members()
        };
        let new = look(&[own, grandchild, first]);
        let end = std::process::Command::new("kill").arg(grandchild.to_string()).status();
        assert_eq!((new.joined, new.born), (vec![first], vec![grandchild]), "over its parent");
        assert!(new.is_after_joining, "nothing was looked at before");
        let new = look(&[own, first, below]);
        assert_eq!((new.joined, new.born), (vec![], vec![below]));
        assert!(new.is_after_joining, "the tracer may have met their parent later");
        let new = look(&[own, earlier.id()]);
        earlier.kill().unwrap();
        assert_eq!((new.joined, new.born), (vec![earlier.id()], vec![]), "it was elsewhere");
        assert!(!new.is_after_joining);
        end.unwrap();
        earlier.wait().unwrap();
        child.wait().unwrap();
    }
}
