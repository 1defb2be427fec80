//! Which processes belong to the subject, and which of them are new.
//!
//! Looking through all of /proc costs more than everything else together, so it is done
//! only when the number that the kernel gave out last says that something was started, and
//! where only few were started those are looked up alone. A child whose parent ended before
//! it was seen still belongs if its process group or session is one of the subject's.

use super::text::{self, FILE_BYTES, Stat};
use crate::collect::Scope;
use crate::process_tree::numbers;
use machine::{ProcFile, Root, cgroup};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Up to so many new numbers are looked up one by one; beyond, listing all is cheaper.
const FEW: u64 = 64;
/// Numbers of ended processes that are remembered.
const MAX_EVER: usize = 8_192;
/// Groups below a group that are looked into.
const MAX_GROUPS: usize = 1_024;

/// Which processes belong to the subject.
#[derive(Debug)]
enum Rule {
    /// All processes.
    All,
    /// These and their descendants.
    Descendants,
    /// The members of a group and the groups below it.
    Group(PathBuf),
    /// Either.
    Both(PathBuf),
}

/// The processes that are known to belong, and those known not to.
#[derive(Debug)]
pub(super) struct ProcessFinder {
    root: Root,
    rule: Rule,
    /// All that ever belonged: their groups and sessions are the subject's.
    ever: HashSet<u32>,
    /// Seen in a listing, and not the subject's.
    strangers: HashSet<u32>,
    last: Option<ProcFile>,
    last_number: Option<u64>,
}

impl ProcessFinder {
    pub fn new(root: &Root, scope: &Scope) -> Self {
        let rule = match (&scope.group, scope.processes.is_empty()) {
            (None, true) => Rule::All,
            (None, false) => Rule::Descendants,
            (Some(group), true) => Rule::Group(group.clone()),
            (Some(group), false) => Rule::Both(group.clone()),
        };
        Self {
            last: is_own_proc(root).then(|| ProcFile::open(root, "/proc/loadavg").ok()).flatten(),
            root: root.clone(),
            rule,
            ever: scope.processes.iter().copied().collect(),
            strangers: HashSet::new(),
            last_number: None,
        }
    }

    /// The processes that belong and that `known` does not have, parents first. `full` asks
    /// for a look also where nothing seems to have been started.
    pub fn newcomers(&mut self, known: &dyn Fn(u32) -> bool, full: bool) -> Vec<u32> {
        let now = self.last_number_now();
        let before = std::mem::replace(&mut self.last_number, now);
        let started = now.is_none() || before != now;
        // The group's list also changes when a process is moved into the group.
        let listed = matches!(self.rule, Rule::Group(_) | Rule::Both(_));
        if !started && !(full && (listed || before.is_none())) {
            return Vec::new();
        }
        if now.is_none() && !full {
            return Vec::new();
        }
        let mut found = match self.rule.group() {
            Some(group) => cgroup::members(&self.root.path(group), MAX_GROUPS),
            None => Vec::new(),
        };
        if !matches!(self.rule, Rule::Group(_)) {
            found.extend(self.relatives(known, before, now));
        }
        found.retain(|number| !known(*number));
        found.sort_unstable();
        found.dedup();
        if !matches!(self.rule, Rule::All) {
            self.remember(known, &found);
        }
        found
    }

    /// Numbers are given out again one day, so those of long ago are forgotten.
    fn remember(&mut self, known: &dyn Fn(u32) -> bool, found: &[u32]) {
        if self.ever.len() > MAX_EVER {
            self.ever.retain(|number| known(*number));
        }
        self.ever.extend(found);
    }

    fn relatives(
        &mut self,
        known: &dyn Fn(u32) -> bool,
        before: Option<u64>,
        now: Option<u64>,
    ) -> Vec<u32> {
        let few = match (before, now) {
            (Some(before), Some(now)) if now >= before && now - before <= FEW => {
                let numbers = (before + 1..=now).filter_map(|number| u32::try_from(number).ok());
                Some(numbers.collect::<Vec<u32>>())
            }
            _ => None,
        };
        let listed = few.is_none();
        let mut candidates = few.unwrap_or_else(|| self.all());
        if listed {
            let all: HashSet<u32> = candidates.iter().copied().collect();
            self.strangers.retain(|number| all.contains(number));
            // Numbers above the last one are new processes, even if an earlier process had the
            // number.
            let fresh = |number: u32| before.is_none_or(|before| u64::from(number) > before);
            candidates.retain(|number| fresh(*number) || !self.strangers.contains(number));
        }
        candidates.retain(|number| !known(*number));
        if matches!(self.rule, Rule::All) {
            candidates.retain(|number| listed || self.is_leader(*number));
            return candidates;
        }
        let (found, rest) = self.sort_out(candidates);
        if listed {
            self.strangers.extend(rest);
        }
        found
    }

    /// The processes that belong, and the rest. Repeated until no more are found, since a child may
    /// have the smaller number.
    fn sort_out(&mut self, candidates: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        let stat_of = |number: u32| Some((number, self.stat(number)?));
        let mut open: Vec<(u32, Stat)> = candidates.into_iter().filter_map(stat_of).collect();
        let mut found = Vec::new();
        loop {
            let before = found.len();
            open.retain(|(number, stat)| {
                let ours = self.ever.contains(number)
                    || [stat.parent, stat.group, stat.session]
                        .iter()
                        .any(|other| self.ever.contains(other));
                if ours && self.is_leader(*number) {
                    found.push(*number);
                }
                !ours
            });
            self.ever.extend(&found);
            if found.len() == before {
                let rest = open.into_iter().map(|(number, _)| number);
                return (found, rest.collect());
            }
        }
    }

    fn stat(&self, number: u32) -> Option<Stat> {
        let mut buffer = [0; FILE_BYTES];
        text::stat(self.small_file(number, "stat", &mut buffer)?)
    }

    /// Threads other than the main one can be looked up too, though they are not listed.
    fn is_leader(&self, number: u32) -> bool {
        let mut buffer = [0; FILE_BYTES];
        let status = self.small_file(number, "status", &mut buffer);
        status.and_then(text::leader).is_none_or(|leader| leader == number)
    }

    fn small_file<'a>(&self, number: u32, name: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let path = self.root.path(format!("/proc/{number}/{name}"));
        let bytes = File::open(path).ok()?.read_at(buffer, 0).ok()?;
        Some(&buffer[..bytes])
    }

    fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = numbers(&self.root.path("/proc")).collect();
        all.sort_unstable();
        all
    }

    /// "0.65 0.53 0.46 2/95 18373": the number that was given out last.
    fn last_number_now(&mut self) -> Option<u64> {
        let text = std::str::from_utf8(self.last.as_mut()?.short_lines()?).ok()?;
        text.split_ascii_whitespace().nth(4)?.parse().ok()
    }
}

impl Rule {
    fn group(&self) -> Option<&Path> {
        match self {
            Rule::Group(group) | Rule::Both(group) => Some(group),
            Rule::All | Rule::Descendants => None,
        }
    }
}

/// Whether /proc shows the numbers of this process's own namespace: only then the last
/// number given out is one of those that it lists.
fn is_own_proc(root: &Root) -> bool {
    let own = std::fs::read_link(root.path("/proc/self"));
    own.is_ok_and(|own| own == Path::new(&std::process::id().to_string()))
}
