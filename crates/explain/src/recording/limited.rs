//! The control groups of a machine that have a limit of their own and reached it, as a recording of
//! the machine has them (`limited<N>.*`), and the processes in them.
//!
//! A process is in a group if the path that was recorded for it is the group's or below it.

use super::View;
use super::accounting::PROCESSORS_RUN;
use super::who::quantity::Quantity;
use super::who::sums::ProcessSum;
use model::Evidence;
use model::recording::{
    GroupKind, GroupName, LIMITED, ProcessFigure as Figure, is_in_group, limited_group,
    path_in_source,
};
use std::collections::BTreeMap;

/// The processors are what threads waited for only if they worked for this share of the time.
/// Picked: a quota holds threads in the queue of processors that are idle.
const BUSY_SHARE: f64 = 0.75;

/// A group with series of its own.
#[derive(Clone, Debug)]
pub struct LimitedGroup<'a> {
    /// `limited7`.
    prefix: String,
    /// Its path in its hierarchy.
    pub path: &'a str,
    /// The paths of groups below it that were held back themselves: their processes are theirs.
    inner: Vec<&'a str>,
}

impl<'a> LimitedGroup<'a> {
    /// What its series begin with: `limited7`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The name of one of its series.
    pub fn series(&self, rest: &str) -> String {
        format!("{}.{rest}", self.prefix)
    }

    /// How much a counter of it grew.
    pub fn growth(&self, view: &View, rest: &str) -> Option<u64> {
        view.growth(&self.series(rest))
    }

    /// A service, a container or a pod by its name, any other group by its path.
    pub fn name(&self) -> String {
        match GroupName::of(self.path) {
            Some(name) if name.kind == GroupKind::Folder => format!("group {}", name.text),
            Some(name) => name.text,
            None => "a group".to_owned(),
        }
    }

    /// The processes in it that are in no inner group; `None` if none of all in it was watched.
    pub fn own_processes(&self, view: &View<'a>) -> Option<Vec<ProcessSum<'a>>> {
        let inside = processes_in(view.process_sums(), &[self.path]);
        let is_inner = |group: &str| self.inner.iter().any(|path| is_in_group(group, path));
        let is_own = |sum: &ProcessSum| !is_inner(&sum.process.group);
        (!inside.is_empty()).then(|| inside.into_iter().filter(is_own).collect())
    }

    /// How much of a quantity its own processes have; `None` if none in it was watched.
    pub fn used(&self, view: &View<'a>, quantity: Quantity) -> Option<u64> {
        let own = self.own_processes(view)?;
        Some(own.iter().fold(0, |all, sum| all.saturating_add(quantity.of(sum).value)))
    }

    /// Whether it holds another one that was held back.
    pub fn has_inner(&self) -> bool {
        !self.inner.is_empty()
    }

    /// For how long its CPU limit stopped its threads. The kernel counts once for each processor,
    /// however many threads wait on it. While processors were idle nothing else kept its threads
    /// in the queue, so their wait is the answer where it was stopped in most periods.
    pub fn stopped_ns(&self, view: &View<'a>) -> u64 {
        let counted = self.growth(view, "cpu.throttled_ns").unwrap_or(0);
        let grown = |rest| self.growth(view, rest).unwrap_or(0);
        let is_often = grown("cpu.throttled_periods") >= grown("cpu.periods").div_ceil(2);
        match self.used(view, Quantity::Figure(Figure::Queue)) {
            Some(queued) if counted > 0 && is_often && !are_processors_busy(view) => queued,
            Some(queued) => queued.min(counted),
            None => counted,
        }
    }
}

/// Whether the processors worked for most of the time.
pub fn are_processors_busy(view: &View) -> bool {
    let whole = view.wall_ns() as f64 * f64::from(view.facts().processors.max(1));
    view.growth_of_all(&PROCESSORS_RUN).is_some_and(|ran| ran as f64 >= whole * BUSY_SHARE)
}

/// All of them, by their numbers.
pub fn groups<'a>(view: &View<'a>) -> Vec<LimitedGroup<'a>> {
    let mut found = BTreeMap::new();
    for series in view.starting_with(LIMITED) {
        if let Some((number, _)) = limited_group(&series.schema.name)
            && let Some(path) = path_in_source(&series.schema.source)
        {
            found.entry(number).or_insert(path);
        }
    }
    let group = |(number, path)| {
        let prefix = format!("{LIMITED}{number}");
        LimitedGroup { prefix, path, inner: Vec::new() }
    };
    found.into_iter().map(group).collect()
}

/// Those that `is_held` says were held back. Of two of which one holds the other, the processes of
/// the inner one are its own alone, so that none counts twice.
pub fn held<'a>(
    view: &View<'a>,
    is_held: impl Fn(&LimitedGroup<'a>) -> bool,
) -> Vec<LimitedGroup<'a>> {
    let mut held: Vec<LimitedGroup> = groups(view).into_iter().filter(is_held).collect();
    let paths: Vec<&str> = held.iter().map(|group| group.path).collect();
    for group in &mut held {
        let is_below = |path: &&&str| **path != group.path && is_in_group(path, group.path);
        group.inner = paths.iter().filter(is_below).copied().collect();
    }
    held
}

/// Those that a CPU limit stopped.
pub fn stopped<'a>(view: &View<'a>) -> Vec<LimitedGroup<'a>> {
    let grew = |group: &LimitedGroup, rest| group.growth(view, rest).is_some_and(|n| n > 0);
    held(view, |group| grew(group, "cpu.throttled_ns") || grew(group, "cpu.throttled_periods"))
}

/// The paths of the groups that these numbers are of.
pub fn paths_in<'a>(view: &View<'a>, evidence: &[Evidence]) -> Vec<&'a str> {
    let series = evidence.iter().flat_map(|number| &number.series);
    let numbers: Vec<u32> = series.filter_map(|name| Some(limited_group(name)?.0)).collect();
    let is_named = |group: &LimitedGroup| {
        numbers.iter().any(|number| group.prefix == format!("{LIMITED}{number}"))
    };
    let groups = groups(view);
    let named: Vec<&str> = groups.iter().filter(|one| is_named(one)).map(|one| one.path).collect();
    // One inside of another is part of it.
    let is_inner =
        |path: &&str| named.iter().any(|outer| outer != path && is_in_group(path, outer));
    named.iter().filter(|path| !is_inner(path)).copied().collect()
}

/// The processes in one of these groups; all where there are none.
pub fn processes_in<'a>(sums: &[ProcessSum<'a>], paths: &[&str]) -> Vec<ProcessSum<'a>> {
    let is_in = |sum: &&ProcessSum| {
        paths.is_empty() || paths.iter().any(|path| is_in_group(&sum.process.group, path))
    };
    sums.iter().filter(is_in).cloned().collect()
}
