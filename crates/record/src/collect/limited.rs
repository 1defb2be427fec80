//! All control groups of the machine that have a limit of their own, as far as they reach it.
//!
//! A thread (`finder`) finds the groups and looks once a second at what each counts when it is
//! held back. Only groups whose count moved get series (`limited<N>.*`), which are then read like
//! those of a subject's own group; the others, a thousand or more, cost little. A series counts
//! from what its group had counted when it was first looked at.

mod counts;
mod finder;
mod search;

use super::group_files::{FirstTexts, GroupFiles, TieredSources};
use super::{Moment, Tier, groups};
use crate::registry::{ABSENT, Registry, Row};
use finder::{Finder, FinderNews, GroupTotals, ReachedGroup};
use machine::Root;
use machine::cgroup::LimitKind;
use model::recording::{LIMITED, SeriesKind};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// The paths of groups that have a limit of their own, by the controller of their hierarchy, which
/// is empty for version 2.
type PathsByController = HashMap<&'static str, HashSet<String>>;

/// The groups that have a limit of their own, shared with what names the group of a process.
#[derive(Clone, Debug, Default)]
pub struct LimitedPaths(Arc<RwLock<PathsByController>>);

impl LimitedPaths {
    fn replace(&self, paths: impl Iterator<Item = (&'static str, String)>) {
        let mut by_controller = PathsByController::new();
        for (controller, path) in paths {
            by_controller.entry(controller).or_default().insert(path);
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = by_controller;
    }

    /// Those of this list.
    #[cfg(test)]
    pub(crate) fn of(paths: &[(&'static str, &str)]) -> Self {
        let known = Self::default();
        known.replace(paths.iter().map(|(controller, path)| (*controller, (*path).to_owned())));
        known
    }

    /// Whether the group at `path`, or one that it is in, has a limit. `controllers` is the second
    /// field of a line of /proc/PID/cgroup, empty for version 2.
    #[must_use]
    pub fn contain(&self, controllers: &str, path: &str) -> bool {
        let paths = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let above = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
        let has = |of: &str| {
            let limited = paths.get(of)?;
            above.clone().chain([path]).find(|group| limited.contains(*group))
        };
        controllers.split(',').any(|of| has(of).is_some())
    }
}

/// The series of limited groups.
#[derive(Debug)]
pub(super) struct LimitedGroups {
    root: Root,
    finder: Option<Finder>,
    paths: LimitedPaths,
    active: Vec<(u32, TieredSources)>,
    /// What the files say.
    read: Row,
    /// The values that the counters start from.
    base: Row,
    has_begun: bool,
}

impl LimitedGroups {
    /// Begins to look for groups, if they are wanted.
    pub fn open(root: &Root, is_wanted: bool) -> Self {
        let paths = LimitedPaths::default();
        Self {
            root: root.clone(),
            finder: is_wanted.then(|| Finder::start(root, paths.clone())).flatten(),
            paths,
            active: Vec::new(),
            read: Row::default(),
            base: Row::default(),
            has_begun: false,
        }
    }

    /// Whether groups are looked for.
    pub fn is_open(&self) -> bool {
        self.finder.is_some()
    }

    /// The groups with a limit, as they become known.
    pub fn paths(&self) -> LimitedPaths {
        self.paths.clone()
    }

    /// Reads the groups with series; once a second also takes what was found. The last sample has
    /// everything that was counted before it.
    pub fn read(&mut self, moment: &mut Moment<'_>) {
        if moment.slow {
            if let Some(finder) = self.finder.as_ref().filter(|_| moment.all && self.has_begun) {
                finder.look();
            }
            self.has_begun = true;
            self.take_news(moment);
        }
        for (tier, source) in self.active.iter_mut().flat_map(|(_, sources)| sources) {
            if *tier == Tier::Steady || moment.slow {
                source.read(&mut Moment {
                    row: &mut self.read,
                    registry: &mut *moment.registry,
                    notes: &mut *moment.notes,
                    ..*moment
                });
            }
        }
        if !self.active.is_empty() {
            self.fill(moment.registry, moment.row);
        }
    }

    fn take_news(&mut self, moment: &mut Moment<'_>) {
        let news: Vec<FinderNews> = self.finder.iter().flat_map(Finder::news).collect();
        for one in news {
            match one {
                FinderNews::Reached(group) => {
                    let sources = open(&self.root, &group, moment.registry, &mut self.base);
                    self.active.push((group.number, sources));
                }
                FinderNews::Ended(number) => self.end(number, moment),
                FinderNews::Totals(totals) => set_totals(&totals, moment.registry, moment.row),
            }
        }
    }

    /// Reads a group no longer.
    fn end(&mut self, number: u32, moment: &mut Moment<'_>) {
        self.active.retain(|(active, _)| *active != number);
        let prefix = format!("{LIMITED}{number}.");
        for schema in moment.registry.schemas() {
            if schema.name.starts_with(&prefix) {
                self.read.set(schema.id, ABSENT);
                moment.row.set(schema.id, ABSENT);
            }
        }
    }

    /// Puts what was read into the recording's row. What is gone keeps its last count until its
    /// group ends.
    fn fill(&self, registry: &Registry, row: &mut Row) {
        let bases = self.base.values();
        for (id, value) in (0u32..).zip(self.read.values().iter().copied()) {
            if value == ABSENT {
                continue;
            }
            let schema = registry.schemas().get(id as usize);
            let is_counter = schema.is_some_and(|schema| schema.kind == SeriesKind::Counter);
            let base = bases.get(id as usize).copied().filter(|base| *base != ABSENT);
            let counted = base.filter(|_| is_counter).map(|base| value.saturating_sub(base));
            // A group that was made anew begins again below what the one before it had.
            row.set(id, counted.map_or(value, |counted| counted.max(0)));
        }
    }
}

/// Opens the files of a group. What its counters had at first goes into `base`.
fn open(
    root: &Root,
    group: &ReachedGroup,
    registry: &mut Registry,
    base: &mut Row,
) -> TieredSources {
    let mut sources = TieredSources::new();
    let mut files = GroupFiles {
        root,
        prefix: &format!("{LIMITED}{}", group.number),
        directory: Path::new(&group.directory),
        parent: false,
        sources: &mut sources,
        first: Some(FirstTexts { texts: &group.first, registry, base }),
    };
    for kind in &group.kinds {
        groups::open_limited(&mut files, group.version, *kind);
    }
    sources
}

/// Puts the sums over groups into the row.
fn set_totals(totals: &GroupTotals, registry: &mut Registry, row: &mut Row) {
    let mut set = |name: &str, unit: &str, kind, value| {
        let name = format!("{LIMITED}.{name}");
        if let Some(id) = registry.id(&name, unit, kind, "control groups") {
            row.count(id, value);
        }
    };
    set("groups", "count", SeriesKind::Gauge, totals.limited);
    set("unwatched", "count", SeriesKind::Gauge, totals.unwatched);
    set("unreadable", "count", SeriesKind::Gauge, totals.unreadable);
    set("others.groups", "count", SeriesKind::Counter, totals.others);
    let of = |kind: LimitKind| totals.held_others[kind as usize];
    let count = SeriesKind::Counter;
    set("others.cpu.throttled_periods", "count", count, of(LimitKind::Cpu).times);
    set("others.cpu.throttled_ns", "ns", count, of(LimitKind::Cpu).ns);
    set("others.memory.hits", "count", count, of(LimitKind::Memory).times);
    set("others.io.held_ns", "ns", count, of(LimitKind::Io).ns);
    set("others.pids.refused", "count", count, of(LimitKind::Pids).times);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::is_in_group;

    #[test]
    fn a_group_is_limited_by_those_that_it_is_in() {
        let of = [("", "/a.slice"), ("cpu", "/box/one"), ("memory", "/a.slice/b"), ("cpu", "/é")];
        let limited = LimitedPaths::of(&of);
        let paths = "/ /a.slice /a.slices /a.slice/b /a.slice/b/c /box /box/one /box/one/in/it \
                     /box/oneself /é /é/x /éx";
        for controllers in ["", "cpu", "cpu,cpuacct", "memory", "pids,memory", "io"] {
            for path in paths.split_ascii_whitespace() {
                let has = |(controller, outer): &(&str, &str)| {
                    controllers.split(',').any(|one| one == *controller) && is_in_group(path, outer)
                };
                let expected = of.iter().any(has);
                assert_eq!(limited.contain(controllers, path), expected, "{controllers} {path}");
            }
        }
    }

    #[test]
    fn a_counter_below_its_base_is_zero() {
        let mut groups = LimitedGroups::open(&Root::system(), false);
        let mut registry = Registry::new();
        let mut id = |name: &str, kind| registry.id(name, "count", kind, "x").unwrap();
        let counter = id("limited0.cpu.throttled_periods", SeriesKind::Counter);
        let gauge = id("limited0.cpu.quota_us", SeriesKind::Gauge);
        for (id, base, read) in [(counter, 50, 7), (gauge, 50, -1)] {
            groups.base.set(id, base);
            groups.read.set(id, read);
        }
        let mut row = Row::default();
        groups.fill(&registry, &mut row);
        assert_eq!(row.values(), [0, -1]);
    }
}
