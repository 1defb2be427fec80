//! Which memory limit the subject's groups reached, from its own group upwards.
//!
//! A limit counts as reached where the kernel counted that it was (failcnt, or max and
//! high events) and the use was near it; either alone also happens by chance.

use super::RunView;
use crate::recording::limited::LimitedGroup;
use model::recording::SeriesStep;
use model::{Bytes, Evidence};

/// Levels that are looked at. Picked: deeper trees were not seen.
pub(super) const MOST_LEVELS: u32 = 32;

/// A path with more parts than this is shortened to its last one. Picked: `/system.slice/app`
/// is shown whole.
const MOST_PARTS: usize = 2;

/// Use from this share of the limit on is near it. Picked: the kernel charges in batches
/// of 64 pages for each processor, and samples miss the peak.
const NEAR: f64 = 0.9;

/// A limit from here on means unlimited: version 1 shows the largest number that it can hold.
const NO_LIMIT_BYTES: i64 = 1 << 60;

/// A limit that was reached.
#[derive(Clone, Debug)]
pub(super) struct LimitHit {
    /// The group's path, or words for it.
    pub(super) group: String,
    /// The limit.
    pub(super) limit_bytes: Option<u64>,
    /// The series of that limit.
    pub(super) limit_series: Option<String>,
    /// How often it was reached.
    pub(super) times: u64,
    /// The counters.
    pub(super) evidence: Vec<Evidence>,
}

impl LimitHit {
    /// `limit 2 GiB of group /app`.
    pub(super) fn description(&self) -> String {
        match self.limit_bytes {
            Some(bytes) => format!("limit {} of {}", Bytes(bytes), self.group),
            None => format!("limit of {}", self.group),
        }
    }
}

/// The innermost limit that was reached.
pub(super) fn reached(run: &RunView) -> Option<LimitHit> {
    (0..MOST_LEVELS).find_map(|level| reached_at(run, level))
}

/// The limit of a group of the machine, if it was reached.
pub(super) fn reached_by(run: &RunView, group: &LimitedGroup) -> Option<LimitHit> {
    reached_below(run, &group.series("memory"), || group.name())
}

/// The number that clears: how often the own group's limit was reached.
pub(super) fn counted(run: &RunView) -> Option<Evidence> {
    (0..MOST_LEVELS).flat_map(names).find_map(|name| run.grown(&name))
}

/// The path of the group of `level` under one of these controllers.
pub(super) fn group_path(run: &RunView, level: u32, controllers: &[&str]) -> String {
    let groups = &run.facts().groups;
    let group = groups.iter().find(|group| group.level == level);
    let path = group.and_then(|group| {
        let mut named = controllers.iter().filter_map(|name| group.paths.get(*name));
        named.next()
    });
    match path {
        Some(path) => format!("group {}", short(path)),
        None if level == 0 => "the own group".to_owned(),
        None => "a group above".to_owned(),
    }
}

/// A deep path by its end: a container's own part of it is long and says nothing.
fn short(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [.., last] if parts.len() > MOST_PARTS => format!(".../{last}"),
        _ => path.to_owned(),
    }
}

fn names(level: u32) -> [String; 3] {
    names_below(&format!("group{level}.memory"))
}

fn names_below(base: &str) -> [String; 3] {
    [format!("{base}.failcnt"), format!("{base}.events.max"), format!("{base}.events.high")]
}

fn reached_at(run: &RunView, level: u32) -> Option<LimitHit> {
    let base = format!("group{level}.memory");
    reached_below(run, &base, || group_path(run, level, &["memory", "unified"]))
}

/// The same of the group whose series begin with `base`.
fn reached_below(run: &RunView, base: &str, group: impl Fn() -> String) -> Option<LimitHit> {
    let counters = names_below(base);
    let names = counters.each_ref().map(String::as_str);
    let times = run.growth_of_all(&names).filter(|times| *times > 0)?;
    let usage_name = format!("{base}.usage_bytes");
    let limit_of = |name: &str| {
        let name = format!("{base}.{name}");
        let limit = run.latest(&name).filter(|bytes| (1..NO_LIMIT_BYTES).contains(bytes))?;
        Some((limit, name))
    };
    let limit = ["high_bytes", "limit_bytes"].into_iter().filter_map(limit_of);
    let (limit, limit_name) = limit.min().unzip();
    let usage = most_below(run, &usage_name, limit_name.as_deref());
    // Who was killed for it gave all its memory back before the next sample.
    let killed = run.growth(&format!("{base}.events.oom_kill")).unwrap_or(0) > 0;
    if let (Some(usage), Some(limit), false) = (usage, limit, killed)
        && (usage as f64) < limit as f64 * NEAR
    {
        return None;
    }
    let mut evidence = run.all_grown(&names);
    evidence.extend(usage.map(|usage| run.evidence(&usage_name, usage as f64)));
    let limit_evidence = limit_name.as_ref().zip(limit);
    evidence.extend(limit_evidence.map(|(name, limit)| run.evidence(name, limit as f64)));
    Some(LimitHit {
        group: group(),
        limit_bytes: limit.and_then(|limit| u64::try_from(limit).ok()),
        limit_series: limit_name,
        times,
        evidence,
    })
}

/// The most that was used since a limit has its last value: before, it was another, or the
/// subject in another group.
fn most_below(run: &RunView, usage: &str, limit: Option<&str>) -> Option<i64> {
    let (first, last) = run.samples();
    let changes = |name| Some(run.series(name)?.within(first, last));
    let is_known = |step: &SeriesStep| step.value.is_some();
    let change = limit.and_then(changes).and_then(|steps| steps.filter(is_known).last());
    let since = change.map_or(first, |change| change.sample);
    run.series(usage)?.max(since, last)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn only_deep_paths_are_shortened() {
        assert_eq!(short("/"), "/");
        assert_eq!(short("/system.slice/app"), "/system.slice/app");
        assert_eq!(short("/a/b/0123456789abcdef/app"), ".../app");
    }
}
