//! One reader per source of counters, below a root directory. Files are held open and read whole
//! with `pread` into one buffer; nothing is allocated for a sample.
//!
//! A source is a file and a `table` of which word is which series. The table is made when the file
//! is first read, and again only when its lines change. Fast sources are read for each sample,
//! steady ones at most ten times a second, slow ones once a second: at 100 Hz a recorder would
//! spend most of its time on levels that change slowly.
//!
//! Nothing here judges a number. What the machine does not have gets no series; what it no longer
//! has is absent.

mod caches;
mod disk;
mod facts;
mod group_files;
mod group_io;
mod groups;
mod keyed;
mod limited;
mod machine_wide;
mod own;
mod pressure;
pub(crate) mod schedstat;
mod table;
mod tree;
mod zones;
mod zram;

use crate::registry::{Registry, Row};
use machine::Root;
use model::recording::{Facts, GroupFacts, SourceState, Span};
use std::fmt::Debug;
use table::{LineTable, Shape};

pub(crate) use limited::LimitedPaths;
pub(crate) use tree::{TREE_FIGURES, TreeTotals, counts_block_waits};

/// How often slow sources are read.
const SLOW_NS: u64 = 1_000_000_000;
/// How often steady sources are read at most; less than a tenth of a second, so that a
/// sample at 10 Hz that follows a late one is not without them.
const STEADY_NS: u64 = 90_000_000;
/// How often the kernel folds its counts by CPU into those of zones and nodes, unless
/// `vm.stat_interval` says otherwise (it is among the settings).
const STAT_INTERVAL_NS: u64 = 1_000_000_000;
/// What says whether the groups of the machine that have a limit were looked for.
const GROUP_LIMITS: &str = "group_limits";
/// Notes that are kept until they are asked for; more is a fault that repeats itself.
const MAX_NOTES: usize = 256;

/// What is collected for whom.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The processes at the top of the subject's tree; empty for the whole machine.
    pub processes: Vec<u32>,
    /// A group whose members are the subject instead of a tree; its directory.
    pub group: Option<std::path::PathBuf>,
    /// Whether all groups of the machine that have a limit are looked for.
    pub limited_groups: bool,
}

/// All sources that this machine has.
#[derive(Debug)]
pub struct Collectors {
    sources: Vec<(Tier, Box<dyn Source>)>,
    tree: tree::SubjectProcesses,
    groups: groups::FollowedGroups,
    limited: limited::LimitedGroups,
    own: own::Own,
    notes: Vec<Span>,
    slow_at_ns: Option<u64>,
    steady_at_ns: Option<u64>,
}

impl Collectors {
    /// Opens every source; what is absent is left out. Fills in the facts that the
    /// sources know: devices, mounts, swaps, groups, settings, and the sight `other_users`.
    pub fn open(root: &Root, scope: &Scope, registry: &mut Registry, facts: &mut Facts) -> Self {
        facts::fill(root, facts);
        let mut sources = machine_wide::open(root);
        let groups = groups::FollowedGroups::open(root, scope);
        facts.groups.extend_from_slice(groups.facts());
        let limited = limited::LimitedGroups::open(root, scope.limited_groups);
        if scope.limited_groups {
            let why = "no hierarchy of control groups is mounted";
            let sight =
                if limited.is_open() { SourceState::Open } else { SourceState::closed(why, None) };
            facts.sights.insert(GROUP_LIMITS.to_owned(), sight);
        }
        for source in schedstat::open(root, &scope.processes, registry) {
            sources.push((Tier::Fast, Box::new(source)));
        }
        Self {
            tree: tree::SubjectProcesses::open(root, scope),
            own: own::open(root, registry),
            groups,
            limited,
            sources,
            notes: Vec::new(),
            slow_at_ns: None,
            steady_at_ns: None,
        }
    }

    /// Reads the sources that are due at `at_ns` into `row`: fast ones always, steady ones ten
    /// times and slow ones once a second; all of them if `all` is set (first and last sample). The
    /// row is the same one each time: a slow source's values stay in it until it is read again.
    pub fn read(&mut self, at_ns: u64, all: bool, registry: &mut Registry, row: &mut Row) {
        let started_ns = sys::clock::now_ns();
        let is_due = |last: Option<u64>, every_ns| {
            all || last.is_none_or(|last| at_ns.saturating_sub(last) >= every_ns)
        };
        let slow = is_due(self.slow_at_ns, SLOW_NS);
        let steady = slow || is_due(self.steady_at_ns, STEADY_NS);
        if slow {
            self.slow_at_ns = Some(at_ns);
        }
        if steady {
            self.steady_at_ns = Some(at_ns);
        }
        let mut moment = Moment { at_ns, steady, slow, all, registry, row, notes: &mut self.notes };
        // What belongs to the subject first: it moves most while the rest is read.
        self.tree.read(&mut moment);
        if steady {
            self.groups.read(&mut moment);
            self.limited.read(&mut moment);
        }
        for (tier, source) in &mut self.sources {
            let is_read = match tier {
                Tier::Fast => true,
                Tier::Steady => steady,
                Tier::Slow => slow,
            };
            if is_read {
                source.read(&mut moment);
            }
        }
        self.own.read(&mut moment);
        let took_ns = sys::clock::now_ns().saturating_sub(started_ns);
        self.own.sample(took_ns, &mut moment);
    }

    /// Leaves the sums of all processes to programs in the kernel.
    pub(crate) fn leave_tree_to_kernel(&mut self) {
        self.tree.leave_to_kernel();
    }

    /// Writes the sums of all processes that programs in the kernel made.
    pub(crate) fn take_tree(
        &mut self,
        totals: &TreeTotals,
        registry: &mut Registry,
        row: &mut Row,
    ) {
        self.tree.take(totals, registry, row);
    }

    /// The groups that the subject is in now; `None` where they are those of the start.
    #[must_use]
    pub fn other_groups(&self) -> Option<&[GroupFacts]> {
        self.groups.has_moved().then(|| self.groups.facts())
    }

    /// What was noticed since the last call: `device_added`, `device_removed`, `group_changed`, and
    /// `rate` if the process tree changed between each sample and once a second.
    pub fn notes(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.notes)
    }

    /// The groups of the machine that have a limit, as they become known.
    #[must_use]
    pub(crate) fn limited_paths(&self) -> LimitedPaths {
        self.limited.paths()
    }

    /// Counts a sample that was taken late, for `own.ticks_late`.
    pub fn late(&mut self) {
        self.own.late();
    }

    /// How many processes were seen to belong to the subject.
    #[must_use]
    pub fn processes(&self) -> u64 {
        self.tree.seen()
    }
}

/// How often a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// For each sample.
    Fast,
    /// For each sample, but at most ten times a second.
    Steady,
    /// Once a second.
    Slow,
}

/// Something that fills columns of a row.
trait Source: Debug + Send {
    /// Reads it. What has gone is [`crate::ABSENT`] from then on.
    fn read(&mut self, moment: &mut Moment<'_>);
}

/// One round of reading.
struct Moment<'a> {
    /// When it began, on the recording's clock.
    at_ns: u64,
    /// Whether steady sources are read too.
    steady: bool,
    /// Whether slow sources are read too.
    slow: bool,
    /// Whether nothing may be left out.
    all: bool,
    registry: &'a mut Registry,
    row: &'a mut Row,
    notes: &'a mut Vec<Span>,
}

impl Moment<'_> {
    /// Keeps something that was noticed.
    fn note(&mut self, kind: &str, text: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Span {
                kind: kind.to_owned(),
                text,
                start_ns: self.at_ns,
                end_ns: self.at_ns,
            });
        }
    }
}

impl<S: Shape> Source for LineTable<S> {
    fn read(&mut self, moment: &mut Moment<'_>) {
        LineTable::read(self, moment.registry, moment.row);
    }
}
