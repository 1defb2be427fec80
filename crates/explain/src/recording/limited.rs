//! The control groups of a machine that have a limit of their own and reached it, as a recording of
//! the machine has them (`limited<N>.*`), and the processes in them.
//!
//! A process is in a group if the path that was recorded for it is the group's or below it.

use super::View;
use super::accounting::PROCESSORS_RUN;
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

    /// What the processes in it used of a figure; `None` if none of them was watched.
    pub fn used(&self, view: &View, figure: Figure) -> Option<u64> {
        let sums = view.process_sums().iter();
        let own = sums.filter(|sum| is_in_group(&sum.process.group, self.path));
        own.map(|sum| sum.get(figure).value).reduce(u64::saturating_add)
    }

    /// For how long its CPU limit stopped its threads. The kernel counts once for each processor,
    /// however many threads wait on it. While processors were idle nothing else kept its threads
    /// in the queue, so their wait is the answer.
    pub fn stopped_ns(&self, view: &View) -> u64 {
        let counted = self.growth(view, "cpu.throttled_ns").unwrap_or(0);
        match self.used(view, Figure::Queue) {
            Some(queued) if counted > 0 && !are_processors_busy(view) => queued,
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
    let group = |(number, path)| LimitedGroup { prefix: format!("{LIMITED}{number}"), path };
    found.into_iter().map(group).collect()
}

/// The paths of the groups that these numbers are of.
pub fn paths_in<'a>(view: &View<'a>, evidence: &[Evidence]) -> Vec<&'a str> {
    let series = evidence.iter().flat_map(|number| &number.series);
    let numbers: Vec<u32> = series.filter_map(|name| Some(limited_group(name)?.0)).collect();
    let is_named = |group: &LimitedGroup| {
        numbers.iter().any(|number| group.prefix == format!("{LIMITED}{number}"))
    };
    groups(view).iter().filter(|group| is_named(group)).map(|group| group.path).collect()
}

/// The processes in one of these groups; all where there are none.
pub fn processes_in<'a>(sums: &[ProcessSum<'a>], paths: &[&str]) -> Vec<ProcessSum<'a>> {
    let is_in = |sum: &&ProcessSum| {
        paths.is_empty() || paths.iter().any(|path| is_in_group(&sum.process.group, path))
    };
    sums.iter().filter(is_in).cloned().collect()
}
