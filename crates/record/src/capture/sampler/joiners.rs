//! Processes that join a watched group while it is recorded, found in the lists of its members.
//!
//! The kernel reports no such event for each way to join (`clone` can start a process in another
//! group), so the lists are read before each sample, but for no more than a hundredth of the time.
//! What a process did before it was found is not the group's.

use machine::cgroup;
use std::collections::HashSet;
use std::path::PathBuf;

/// Groups below the watched one that are looked into. Picked: more than a machine has units.
const MOST_GROUPS: usize = 10_000;

/// Of so many parts of the time one is for reading the lists.
const TIME_PARTS: u64 = 100;

/// The members of a group that are known.
#[derive(Debug)]
pub(super) struct Joiners {
    directory: PathBuf,
    known: HashSet<u32>,
    next_ns: u64,
}

impl Joiners {
    /// Knows these processes.
    pub fn new(directory: PathBuf, known: &[u32]) -> Self {
        Self { directory, known: known.iter().copied().collect(), next_ns: 0 }
    }

    /// The processes that were not members when this was called last.
    pub fn new_members(&mut self) -> Vec<u32> {
        let begun_ns = sys::clock::now_ns();
        if begun_ns < self.next_ns {
            return Vec::new();
        }
        let members = cgroup::members(&self.directory, MOST_GROUPS);
        let new = members.iter().copied().filter(|pid| !self.known.contains(pid)).collect();
        // Those that left may come back, and numbers are used again.
        self.known = members.into_iter().collect();
        let took_ns = sys::clock::now_ns().saturating_sub(begun_ns);
        self.next_ns = begun_ns.saturating_add(took_ns.saturating_mul(TIME_PARTS));
        new
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
            joiners.new_members()
        };
        set("7\n8\n");
        assert_eq!(look(), [8]);
        assert!(look().is_empty());
        set("8\n");
        assert!(look().is_empty());
        set("8\n7\n");
        assert_eq!(look(), [7], "it left and came back");
    }
}
