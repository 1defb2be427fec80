//! The moments of a long recording that stood out against its own usual level.
//!
//! 1. `windows` cuts the recording into windows of equal length.
//! 2. `figures` gives each watched figure a value in each window: pressure, processors, each
//!    program's processor time, traffic, latency, swap, limits of control groups.
//! 3. `unusual` finds the windows in which a figure is far above its usual level, which is the
//!    median of all windows with a robust spread. What happens often is usual, too.
//! 4. Those of all figures that overlap are one moment; the ten that weigh most are kept.
//!
//! What a moment was about is the verdict of that part: [`describe`] takes it from there. Nothing
//! is judged here but whether something stood out.

mod figures;
mod unusual;
mod windows;

use super::Window;
use crate::wording::percent;
use model::explanation::{
    ActorRole, Cause, Explanation, ProcessUse, ShownMark, StandingOut, UnusualFigure, figure_title,
};
use model::recording::wall_clock::DAY_NS;
use model::recording::{Recording, Subject, WallClock};
use unusual::Unusual;
use windows::Windows;

/// A shorter recording is judged as a whole: it has no usual level. Picked.
const LEAST_WALL_NS: u64 = 45_000_000_000;

/// So many windows at least make a usual level. Picked.
const LEAST_WINDOWS: usize = 30;

/// So many moments are listed.
pub const MOST_MOMENTS: usize = 10;

/// A moment that weighs less than this part of the weightiest is not listed. Picked.
const LEAST_WEIGHT: f64 = 0.02;

/// So many figures of a moment are kept.
const MOST_FIGURES: usize = 4;

/// A moment of up to so long is what `--at HH:MM:SS` shows: the ten seconds around it.
const AT_AN_INSTANT_NS: u64 = 6_000_000_000;
const AROUND_NS: u64 = 10_000_000_000;

/// A finding of a moment is about it if it takes so many times more of its time than of the time
/// before. Picked.
const HEAVIER: f64 = 1.5;

/// So many of those who did it are named, with at least such a share.
const MOST_NAMED: usize = 2;
const LEAST_SHARE: f64 = 0.1;

/// What is compared with a moment is the part before it: at most so long, at least so long. Picked.
const MOST_BEFORE_NS: u64 = 30_000_000_000;
const LEAST_BEFORE_NS: u64 = 3_000_000_000;

/// A kind of span that a user set: a mark.
const MARK: &str = "mark";

/// The most marks that are listed: the last ones.
const MOST_MARKS: usize = 100;

/// The moments of `recording` that stood out, in order of time, without what they were about;
/// empty for a command, which has phases instead of a usual level, and for a short recording.
#[must_use]
pub fn find(recording: &Recording) -> Vec<StandingOut> {
    let is_watched_for_long = match recording.facts.subject {
        Subject::Command { .. } | Subject::Probe { .. } => false,
        Subject::Machine | Subject::Process { .. } | Subject::Group { .. } => true,
    };
    if !is_watched_for_long || recording.wall_ns() < LEAST_WALL_NS {
        return Vec::new();
    }
    let windows = Windows::of(recording);
    if windows.watched() < LEAST_WINDOWS {
        return Vec::new();
    }
    let figures = figures::watched(recording, &windows);
    let mut all: Vec<(usize, Unusual)> = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let found = unusual::find(&figure.values, figure.floor, windows.seconds());
        all.extend(found.into_iter().map(|one| (at, one)));
    }
    let mut groups = merged(all);
    let weight = |group: &[(usize, Unusual)]| -> f64 {
        group.iter().map(|(_, one)| one.weight).fold(0.0, f64::max)
    };
    groups.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let most = groups.first().map_or(0.0, |first| weight(first));
    groups.retain(|group| weight(group) >= most * LEAST_WEIGHT);
    groups.truncate(MOST_MOMENTS);
    groups.sort_by_key(|group| group.iter().map(|(_, one)| one.first).min());
    let clock = WallClock::of(recording);
    groups.iter().map(|group| moment(group, &figures, &windows, &clock)).collect()
}

/// What overlaps is one moment. Sorted by time.
fn merged(mut all: Vec<(usize, Unusual)>) -> Vec<Vec<(usize, Unusual)>> {
    all.sort_by_key(|(_, one)| (one.first, one.last));
    let mut groups: Vec<Vec<(usize, Unusual)>> = Vec::new();
    let mut end = 0;
    for (figure, one) in all {
        let last = one.last;
        match groups.last_mut().filter(|_| one.first <= end + 1) {
            Some(group) => group.push((figure, one)),
            None => groups.push(vec![(figure, one)]),
        }
        end = end.max(last);
    }
    groups
}

fn moment(
    group: &[(usize, Unusual)],
    figures: &[figures::WatchedFigure],
    windows: &Windows,
    clock: &WallClock,
) -> StandingOut {
    let first = group.iter().map(|(_, one)| one.first).min().unwrap_or(0);
    let last = group.iter().map(|(_, one)| one.last).max().unwrap_or(first);
    let (from_ns, to_ns) = windows.bounds(first, last);
    let mut by_weight: Vec<&(usize, Unusual)> = group.iter().collect();
    by_weight.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
    let mut named: Vec<UnusualFigure> = Vec::new();
    for (at, one) in by_weight {
        let figure = &figures[*at];
        if named.len() < MOST_FIGURES && named.iter().all(|known| known.title != figure.title) {
            named.push(UnusualFigure {
                id: figure.id.to_owned(),
                title: figure.title.clone(),
                value: one.mean,
                usual: one.usual,
                unit: figure.unit.to_owned(),
            });
        }
    }
    StandingOut {
        from_ns,
        to_ns,
        time: clock.time_of_day(from_ns.into()),
        at: at(clock, from_ns, to_ns),
        figures: named,
        ..StandingOut::default()
    }
}

/// What `--at` takes for a part: by the time of day, if that leads there, else since the start.
fn at(clock: &WallClock, from_ns: u64, to_ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    // A time of day is by whole seconds: the part must not become narrower by that.
    let (from, to) = (from_ns / SECOND_NS * SECOND_NS, to_ns.div_ceil(SECOND_NS) * SECOND_NS);
    let middle = from.midpoint(to) / SECOND_NS * SECOND_NS;
    let leads = |ns: u64| {
        let time = clock.time_of_day(ns.into());
        let found = of_day_ns(&time).and_then(|of_day| clock.last(of_day, 0));
        let is_there = found.is_some_and(|found| (found - i128::from(ns)).abs() < 1_000_000_000);
        is_there.then_some(time)
    };
    if to - from <= AT_AN_INSTANT_NS {
        return leads(middle).unwrap_or_else(|| format!("{}s", middle / SECOND_NS));
    }
    match (leads(from), leads(to)) {
        (Some(start), Some(end)) => format!("{start}..{end}"),
        _ => format!("{}s..{}s", from / SECOND_NS, to / SECOND_NS),
    }
}

/// Nanoseconds since midnight of `14:32:05`.
fn of_day_ns(time: &str) -> Option<i128> {
    let mut seconds = 0;
    for field in time.split(':') {
        seconds = seconds * 60 + field.parse::<i128>().ok()?;
    }
    Some(seconds * 1_000_000_000 % DAY_NS)
}

/// The window in which a moment is explained: with what `--at` adds on both sides.
#[must_use]
pub fn window_of(moment: &StandingOut) -> Window {
    let length_ns = moment.to_ns - moment.from_ns;
    let is_instant = length_ns <= AT_AN_INSTANT_NS;
    let missing = if is_instant { (AROUND_NS - length_ns) / 2 } else { 0 };
    Window {
        from_ns: Some(moment.from_ns.saturating_sub(missing)),
        to_ns: Some(moment.to_ns.saturating_add(missing)),
    }
}

/// The quiet part before each of `moments`, as long as it but at most `MOST_BEFORE_NS`; `None` if
/// another moment or the start is too close.
#[must_use]
pub fn windows_before(moments: &[StandingOut]) -> Vec<Option<Window>> {
    let ends = std::iter::once(0).chain(moments.iter().map(|moment| moment.to_ns));
    let before = |(moment, free_ns): (&StandingOut, u64)| {
        let window = window_of(moment);
        let (from_ns, to_ns) = (window.from_ns?, window.to_ns?);
        let length_ns = (to_ns - from_ns).clamp(AT_AN_INSTANT_NS, MOST_BEFORE_NS);
        let start_ns = from_ns.saturating_sub(length_ns).max(free_ns);
        let is_long = from_ns.saturating_sub(start_ns) >= LEAST_BEFORE_NS;
        is_long.then_some(Window { from_ns: Some(start_ns), to_ns: Some(from_ns) })
    };
    moments.iter().zip(ends).map(before).collect()
}

/// Says what `moment` was about, by the verdict of that part, and who it was: the first finding on
/// what stood out that weighs more there than in the verdict `before` it, else the first of any
/// that does. A machine whose processors are always full waits for them at a full disk, too.
pub fn describe(moment: &mut StandingOut, verdict: &Explanation, before: &Explanation) {
    let mut heavier = verdict.findings.iter().filter(|cause| is_heavier(cause, verdict, before));
    let stood_out = |cause: &&Cause| {
        moment.figures.iter().any(|figure| findings_of(&figure.id).contains(&&*cause.finding.id))
    };
    let own = heavier.clone().find(stood_out).or_else(|| heavier.next());
    let Some(cause) = own.or(verdict.findings.first()) else {
        moment.who = users(moment, verdict);
        return;
    };
    moment.finding = Some(cause.finding.id.clone());
    moment.claim.clone_from(&cause.finding.claim);
    moment.who = actors(cause);
    if moment.who.is_empty() {
        moment.who = users(moment, verdict);
    }
}

/// The findings that are on a figure.
fn findings_of(figure: &str) -> &'static [&'static str] {
    match figure {
        "cpu_pressure" | "processors" | "run_queue" | "process_cpu" => {
            &["cpu_contention", "cpu_limit", "cpu_bound", "kernel_time"]
        }
        "steal" => &["processor_stolen"],
        "memory_pressure" | "memory_limits" | "direct_reclaim" => {
            &["memory_limit", "swapping", "cache_too_small", "reclaim_direct", "reclaim_throttled"]
        }
        "refaulted" => &["memory_limit", "cache_too_small", "cache_evicted_by_stream"],
        "swapped_in" | "swapped_out" => &["memory_limit", "swapping", "zero_pages_swapped"],
        "io_pressure" | "read" | "written" | "latency" | "major_faults" => &[
            "memory_limit",
            "swapping",
            "cache_too_small",
            "cache_evicted_by_stream",
            "reads_from_device",
            "writes_to_device",
            "small_sync_writes",
            "dirty_throttle",
            "writeback_burst",
            "io_limit",
        ],
        "cpu_limits" => &["cpu_limit"],
        "killed" | "refused" => &["out_of_memory", "process_limit", "memory_limit"],
        _ => &[],
    }
}

/// Whether a finding takes much more of the time of a part than of the part before it.
fn is_heavier(cause: &Cause, verdict: &Explanation, before: &Explanation) -> bool {
    let share = |cause: &Cause, wall_ns: u64| Some(cause.ns? as f64 / wall_ns.max(1) as f64);
    let same = before.findings.iter().find(|other| other.finding.id == cause.finding.id);
    let Some(same) = same else { return true };
    match (share(cause, verdict.wall_ns), share(same, before.wall_ns)) {
        (Some(here), Some(usual)) => here > usual * HEAVIER,
        _ => false,
    }
}

/// `tar (pid 812) 88 % of read`: the culprits of a finding, else its victims.
fn actors(cause: &Cause) -> Vec<String> {
    let of = |role| cause.actors.iter().filter(move |actor| actor.role == role);
    let named = |role| -> Vec<String> {
        let much = of(role).filter(|actor| actor.used.share >= LEAST_SHARE);
        much.take(MOST_NAMED).map(|actor| named_use(&actor.used)).collect()
    };
    let culprits = named(ActorRole::Culprit);
    if culprits.is_empty() { named(ActorRole::Victim) } else { culprits }
}

/// Who used most of the figure that stood out furthest and that has users.
fn users(moment: &StandingOut, verdict: &Explanation) -> Vec<String> {
    let of_figure = |figure: &UnusualFigure| {
        let used = match figure.id.as_str() {
            "cpu_pressure" | "processors" | "run_queue" | "process_cpu" => "cpu",
            "read" | "refaulted" | "major_faults" | "io_pressure" | "latency" => "read_bytes",
            "written" => "written_bytes",
            "swapped_in" | "swapped_out" | "memory_pressure" | "direct_reclaim" => "memory_growth",
            _ => return None,
        };
        verdict.usage.iter().find(|usage| usage.figure == used)
    };
    let usage = moment.figures.iter().find_map(of_figure);
    let first = usage.into_iter().flat_map(|usage| &usage.first);
    first.filter(|user| user.share >= LEAST_SHARE).take(MOST_NAMED).map(named_use).collect()
}

fn named_use(used: &ProcessUse) -> String {
    format!("{} {} of {}", used.label, percent(used.share), figure_title(&used.figure))
}

/// The marks of the part between two instants.
pub(super) fn marks(recording: &Recording, from_ns: u64, to_ns: u64) -> Vec<ShownMark> {
    let spans = recording.spans.iter().filter(|span| span.kind == MARK);
    let inside: Vec<_> = spans.filter(|span| (from_ns..=to_ns).contains(&span.start_ns)).collect();
    if inside.is_empty() {
        return Vec::new();
    }
    let clock = WallClock::of(recording);
    let last = &inside[inside.len().saturating_sub(MOST_MARKS)..];
    let shown = last.iter().map(|span| ShownMark {
        at_ns: span.start_ns,
        time: clock.time_of_day(span.start_ns.into()),
        text: span.text.clone(),
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
