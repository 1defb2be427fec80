//! The groups of a process wherever it goes: a launcher often joins a group only after its
//! start, and the limits that hold are those of the new one.
//!
//! The series keep their names, since level 0 is the subject's own group at any time. What a
//! new group counted before the subject came is not the subject's: its counters begin at 0,
//! which is a reset and no growth. Processes that the subject starts are not followed.

use super::{TieredSources, membership, open_levels};
use crate::collect::{Moment, Scope, Tier};
use crate::registry::{ABSENT, Registry, Row};
use machine::{ProcFile, Root};
use model::recording::{GroupFacts, SeriesKind};
use std::collections::HashMap;

/// A process that changes its group more often is not followed any further. Picked.
const MOST_MOVES: u32 = 16;

/// So many reads in a row ask where the process is: two seconds at the usual rate, in which a
/// launcher joins. Later only the slow ones do, since asking costs as much as reading a group.
const EAGER_READS: u32 = 20;

/// Flag of a process that is ending (PF_EXITING of linux/sched.h): version 1 shows its groups as
/// `/`.
const EXITING: u64 = 0x4;

/// The groups that are read now, and the values that their series start from.
#[derive(Debug)]
pub(in crate::collect) struct FollowedGroups {
    root: Root,
    /// The process and its /proc/PID/cgroup; `None` if the subject is not a process.
    process: Option<(u32, ProcFile)>,
    membership: String,
    sources: TieredSources,
    /// What the files say.
    read: Row,
    /// The value that each series starts from: 0 in the first groups, later its first value.
    bases: HashMap<u32, i64>,
    moves: u32,
    reads: u32,
    facts: Vec<GroupFacts>,
}

impl FollowedGroups {
    /// Opens the files of the subject's groups.
    pub fn open(root: &Root, scope: &Scope) -> Self {
        let first = scope.processes.first().filter(|_| scope.group.is_none());
        let process = first.and_then(|pid| {
            let membership = ProcFile::open(root, format!("/proc/{pid}/cgroup")).ok()?;
            Some((*pid, membership))
        });
        let mut followed = Self {
            root: root.clone(),
            process,
            membership: membership(root, scope),
            sources: TieredSources::new(),
            read: Row::default(),
            bases: HashMap::new(),
            moves: 0,
            reads: 0,
            facts: Vec::new(),
        };
        followed.reopen();
        followed
    }

    /// The groups at this moment.
    pub fn facts(&self) -> &[GroupFacts] {
        &self.facts
    }

    /// Whether the subject has left its first groups.
    pub fn has_moved(&self) -> bool {
        self.moves > 0
    }

    /// Reads what is due of the groups that the subject is in.
    pub fn read(&mut self, moment: &mut Moment<'_>) {
        self.reads = self.reads.saturating_add(1);
        let is_asked = self.reads <= EAGER_READS || moment.slow;
        let moved = is_asked && self.moved();
        if moved {
            self.moves += 1;
            for id in self.bases.drain().map(|(id, _)| id) {
                moment.row.set(id, ABSENT);
            }
            self.read = Row::default();
            let before = std::mem::take(&mut self.facts);
            self.reopen();
            moment.note("group_changed", describe_move(&before, &self.facts));
        }
        for (tier, source) in &mut self.sources {
            if *tier == Tier::Steady || moment.slow || moved {
                source.read(&mut Moment {
                    row: &mut self.read,
                    registry: &mut *moment.registry,
                    notes: &mut *moment.notes,
                    ..*moment
                });
            }
        }
        self.fill(moment.registry, moment.row);
    }

    fn reopen(&mut self) {
        (self.sources, self.facts) = open_levels(&self.root, &self.membership);
    }

    /// Whether the process is in other groups than before, which are then noted.
    fn moved(&mut self) -> bool {
        let Some((pid, file)) = &mut self.process else {
            return false;
        };
        let Some(text) = file.text().filter(|text| *text != self.membership) else {
            return false;
        };
        if self.moves >= MOST_MOVES || !is_alive(&self.root, *pid) {
            return false;
        }
        text.clone_into(&mut self.membership);
        true
    }

    /// Puts what was read into the recording's row.
    fn fill(&mut self, registry: &Registry, row: &mut Row) {
        for (id, value) in (0u32..).zip(self.read.values().iter().copied()) {
            if value == ABSENT {
                if self.bases.contains_key(&id) {
                    row.set(id, ABSENT);
                }
                continue;
            }
            let base = *self.bases.entry(id).or_insert_with(|| {
                let schema = registry.schemas().get(id as usize);
                let is_counter = schema.is_some_and(|schema| schema.kind == SeriesKind::Counter);
                if self.moves > 0 && is_counter { value } else { 0 }
            });
            row.set(id, value.saturating_sub(base));
        }
    }
}

/// Describes the move, with the path of each hierarchy in which the group is another.
fn describe_move(before: &[GroupFacts], now: &[GroupFacts]) -> String {
    let own = |groups: &[GroupFacts], name: &str| groups.first()?.paths.get(name).cloned();
    let paths = now.first().into_iter().flat_map(|group| &group.paths);
    let others: Vec<String> = paths
        .filter(|(name, path)| own(before, name).as_ref() != Some(path))
        .map(|(name, path)| format!("{name} {path}"))
        .collect();
    format!(
        "the process moved to another group while it ran ({}): limits and counts of groups are \
         those of the new one",
        others.join(", ")
    )
}

/// Whether a process is there and not about to end.
fn is_alive(root: &Root, pid: u32) -> bool {
    let stat = root.read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let flags = behind_name.split_whitespace().nth(6);
    flags.and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING == 0)
}
