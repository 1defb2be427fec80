//! Samples between which sums grew: how much of each interval, and how many threads lived.
//!
//! A sum says how much its threads ran between two samples, not whether they did so one
//! after the other; so all that is made of it here is inferred. A source that is read less
//! often than others holds its value for several samples; its growth then belongs to all
//! of them.

use super::bar::tolerance_ns;
use crate::recording::View;
use model::recording::Series;

/// Above so many processes the recorder reads them once a second, whatever its rate.
const FAST_PROCESSES: i64 = 20;

/// Time between two samples, and how much sums grew in it, in the order they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleInterval<const N: usize> {
    pub length_ns: u64,
    pub grown_ns: [u64; N],
}

/// The intervals of `view` with the growth of `names`; a series that is absent grows by 0.
/// `None` where all are absent.
pub(super) fn intervals<const N: usize>(
    view: &View,
    names: [&str; N],
) -> Option<Vec<SampleInterval<N>>> {
    let series = names.map(|name| view.series(name));
    if series.iter().all(Option::is_none) {
        return None;
    }
    let processes = view.series("tree.processes");
    let most = u64::from(view.facts().processors.max(1));
    let (first, last) = view.samples();
    let mut intervals: Vec<SampleInterval<N>> = Vec::new();
    // Intervals since the last one in which anything grew; they may be taken together.
    let mut still_ns = 0u64;
    for sample in first..last {
        let length_ns = length_ns(view, sample);
        let grown_ns =
            series.map(|series| series.and_then(|s| s.growth(sample, sample + 1)).unwrap_or(0));
        if grown_ns == [0; N] {
            still_ns = still_ns.saturating_add(length_ns);
            continue;
        }
        let held = processes.and_then(|series| series.at(sample + 1)) > Some(FAST_PROCESSES);
        let beyond = grown_ns[0] > length_ns.saturating_mul(most);
        let joined_ns = if held || beyond { still_ns } else { 0 };
        push(&mut intervals, still_ns - joined_ns, [0; N]);
        push(&mut intervals, length_ns.saturating_add(joined_ns), grown_ns);
        still_ns = 0;
    }
    push(&mut intervals, still_ns, [0; N]);
    Some(intervals)
}

fn push<const N: usize>(
    intervals: &mut Vec<SampleInterval<N>>,
    length_ns: u64,
    grown_ns: [u64; N],
) {
    if length_ns > 0 {
        intervals.push(SampleInterval { length_ns, grown_ns });
    }
}

/// Samples at whose end a sum grew, after the last one at whose end it did.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleStep {
    pub first: u32,
    pub last: u32,
    pub length_ns: u64,
    /// Threads that lived at its begin or its end.
    pub threads: u64,
}

impl SampleStep {
    /// How long its threads lived.
    pub(super) fn lived_ns(&self) -> u64 {
        self.length_ns.saturating_mul(self.threads)
    }

    /// Whether a time of its threads can be, of which there can be `most_ns`.
    pub(super) fn can_hold(&self, ns: u64, most_ns: u64) -> bool {
        ns <= most_ns.saturating_add(tolerance_ns(self.lived_ns()))
    }
}

/// How much the sum `name` grew, and how much of that cannot be: more than `most_ns` of the
/// step. All of such a step is left out, because nobody tells how much of it was real.
pub(super) fn plausible_ns(
    view: &View,
    name: &str,
    most_ns: impl Fn(&SampleStep) -> u64,
) -> Option<(u64, u64)> {
    let series = view.series(name)?;
    view.growth(name)?;
    let threads = threads(view);
    let (first, last) = view.samples();
    let (mut kept, mut left_out, mut since, mut begin) = (0u64, 0u64, 0u64, first);
    for sample in first..last {
        since = since.saturating_add(length_ns(view, sample));
        let grown = series.growth(sample, sample + 1).unwrap_or(0);
        if grown == 0 {
            continue;
        }
        let at = |sample| threads.and_then(|series| series.at(sample)).unwrap_or(1);
        let step = SampleStep {
            first: begin,
            last: sample + 1,
            length_ns: since,
            threads: u64::try_from(at(sample).max(at(sample + 1)).max(1)).unwrap_or(1),
        };
        let side = if step.can_hold(grown, most_ns(&step)) { &mut kept } else { &mut left_out };
        *side = side.saturating_add(grown);
        (since, begin) = (0, sample + 1);
    }
    Some((kept, left_out))
}

/// From a sample to the next; 0 where a file claims that time went back.
fn length_ns(view: &View, sample: u32) -> u64 {
    let ends = view.at_ns(sample).zip(view.at_ns(sample.saturating_add(1)));
    ends.map_or(0, |(start, end)| end.saturating_sub(start))
}

/// How many threads lived, or processes where threads were not counted.
fn threads<'a>(view: &View<'a>) -> Option<&'a Series> {
    view.series("tree.threads").or_else(|| view.series("tree.processes"))
}

/// How long all threads lived, as the samples saw them: between two samples as many as the
/// mean of both. A command has at least one thread from its start to its end.
pub(super) fn lives_ns(view: &View) -> u64 {
    let wall = view.wall_ns();
    let least = if view.is_command() { wall } else { 0 };
    let Some(threads) = threads(view) else {
        return wall;
    };
    let (first, last) = view.samples();
    let mut lives = 0u128;
    for sample in first..last {
        let at = |sample| u128::try_from(threads.at(sample).unwrap_or(0)).unwrap_or(0);
        let both = at(sample) + at(sample + 1);
        lives = lives.saturating_add(both * u128::from(length_ns(view, sample)) / 2);
    }
    u64::try_from(lives).unwrap_or(u64::MAX).max(least)
}
