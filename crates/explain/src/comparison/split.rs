//! What made a difference in wall time: its slices' differences, which add up to it,
//! each with what lies inside of it.
//!
//! Medians of parts do not add up to the median of the whole. Means do, so the parts are means
//! over the middle half of a side's runs by their wall time, which keeps the few runs
//! out that something else made long.

use super::judge;
use model::compared::{DifferencePart, TimeDifference};
use model::comparison::DifferenceVerdict;
use model::explanation::Explanation;
use model::explanation::{TimePart, TimeSlice};
use model::statistics::bootstrap;

/// A part that moved by less than this share of the wall time is no cause.
pub(super) const LEAST_SHARE: f64 = 0.01;

/// A part of each run of both sides.
struct Lengths {
    name: String,
    within: Option<String>,
    first: Vec<f64>,
    second: Vec<f64>,
}

/// The split of the difference between two sides; `None` where one has no run.
pub(super) fn split(first: &[Explanation], second: &[Explanation]) -> Option<TimeDifference> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let walls = (walls(first), walls(second));
    let clock = Lengths {
        name: String::new(),
        within: None,
        first: walls.0.clone(),
        second: walls.1.clone(),
    };
    let whole = part(&clock, &walls, 0.0);
    let least = LEAST_SHARE * whole.first_ns.max(whole.second_ns);
    let slices = slices(first, second);
    let mut parts: Vec<DifferencePart> =
        slices.iter().map(|slice| part(slice, &walls, least)).collect();
    parts.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
    let inside = inside(first, second);
    let mut all = Vec::new();
    for slice in parts {
        let mut of_it: Vec<DifferencePart> = inside
            .iter()
            .filter(|part| part.within.as_ref() == Some(&slice.name))
            .map(|lengths| part(lengths, &walls, least))
            .collect();
        of_it.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
        all.push(slice);
        all.append(&mut of_it);
    }
    Some(TimeDifference {
        first_ns: whole.first_ns,
        second_ns: whole.second_ns,
        difference_ns: whole.difference_ns,
        low_ns: whole.low_ns,
        high_ns: whole.high_ns,
        parts: all,
    })
}

fn moved(part: &DifferencePart) -> f64 {
    part.difference_ns.abs()
}

fn walls(runs: &[Explanation]) -> Vec<f64> {
    runs.iter().map(|run| run.wall_ns as f64).collect()
}

fn everybody(runs: &[f64]) -> Vec<usize> {
    (0..runs.len()).collect()
}

fn part(lengths: &Lengths, walls: &(Vec<f64>, Vec<f64>), least: f64) -> DifferencePart {
    let difference = |a: &[usize], b: &[usize]| {
        mean_of_middle(&lengths.second, &walls.1, b) - mean_of_middle(&lengths.first, &walls.0, a)
    };
    let (all_first, all_second) = (everybody(&walls.0), everybody(&walls.1));
    let difference_ns = difference(&all_first, &all_second);
    let interval = bootstrap::interval((all_first.len(), all_second.len()), difference);
    let values = (&lengths.first[..], &lengths.second[..]);
    let verdict = judge::proven(values, interval, difference_ns, least);
    DifferencePart {
        name: lengths.name.clone(),
        within: lengths.within.clone(),
        first_ns: mean_of_middle(&lengths.first, &walls.0, &all_first),
        second_ns: mean_of_middle(&lengths.second, &walls.1, &all_second),
        difference_ns,
        low_ns: interval.map(|(low, _)| low),
        high_ns: interval.map(|(_, high)| high),
        verdict,
    }
}

/// The mean of `values` over the middle half of `drawn` runs in the order of their `walls`.
fn mean_of_middle(values: &[f64], walls: &[f64], drawn: &[usize]) -> f64 {
    let mut order = drawn.to_vec();
    order.sort_by(|&a, &b| walls[a].total_cmp(&walls[b]));
    let cut = order.len() / 4;
    let middle = &order[cut..order.len() - cut];
    let sum: f64 = middle.iter().map(|&run| values[run]).sum();
    sum / middle.len() as f64
}

/// The slices of the wall time. One that a run lacks has no time in its bar: what it
/// would be is in another slice of it.
fn slices(first: &[Explanation], second: &[Explanation]) -> Vec<Lengths> {
    let named = |run: &Explanation| -> Vec<(String, Option<String>, u64)> {
        let slices = run.bars.wall.iter();
        slices.map(|slice| (slice.name.clone(), None, slice.ns)).collect()
    };
    gathered(first, second, named)
}

/// What lies inside of the slices. A part of nothing is left out of an explanation.
fn inside(first: &[Explanation], second: &[Explanation]) -> Vec<Lengths> {
    let named = |run: &Explanation| -> Vec<(String, Option<String>, u64)> {
        let parts = run.of_which.iter();
        parts.map(|part| (part.name.clone(), Some(on_the_clock(&part.within)), part.ns)).collect()
    };
    gathered(first, second, named)
}

/// The slice of the wall time where thread time of this slice is spent.
fn on_the_clock(slice: &str) -> String {
    match slice {
        // Who waits for a child is asleep by the clock, unless the child does something.
        children if children == TimeSlice::Children.id() => TimeSlice::Sleep.into(),
        other => other.to_owned(),
    }
}

/// Each named length of each run; 0 where a run has none of that name.
fn gathered(
    first: &[Explanation],
    second: &[Explanation],
    named: impl Fn(&Explanation) -> Vec<(String, Option<String>, u64)>,
) -> Vec<Lengths> {
    let mut all: Vec<Lengths> = Vec::new();
    for (run, explanation) in first.iter().chain(second).enumerate() {
        for (name, within, ns) in named(explanation) {
            let known = all.iter().position(|it| it.name == name && it.within == within);
            let place = known.unwrap_or(all.len());
            if known.is_none() {
                all.push(Lengths {
                    name,
                    within,
                    first: vec![0.0; first.len()],
                    second: vec![0.0; second.len()],
                });
            }
            let lengths = &mut all[place];
            match run.checked_sub(first.len()) {
                None => lengths.first[run] += ns as f64,
                Some(run) => lengths.second[run] += ns as f64,
            }
        }
    }
    all
}

/// A slice that moved by less than this share of the difference is not named.
const NAMED_SHARE: f64 = 0.1;

/// The slices that made the difference: those that moved the same way, largest first.
pub(super) fn causes(split: &TimeDifference) -> Vec<&DifferencePart> {
    by_share(split, |share| share >= NAMED_SHARE)
}

/// The slices that moved the other way, largest first.
pub(super) fn gains(split: &TimeDifference) -> Vec<&DifferencePart> {
    by_share(split, |share| share <= -NAMED_SHARE)
}

fn by_share(split: &TimeDifference, is_meant: impl Fn(f64) -> bool) -> Vec<&DifferencePart> {
    let slices = split.parts.iter().filter(|part| part.within.is_none());
    let meant = slices.filter(|part| is_meant(part.difference_ns / split.difference_ns));
    meant.collect()
}

/// What lies inside of `slice` and is most of its difference.
pub(super) fn most_inside<'a>(
    split: &'a TimeDifference,
    slice: &DifferencePart,
) -> Option<&'a DifferencePart> {
    let mut inside = split.parts.iter().filter(|part| part.within.as_ref() == Some(&slice.name));
    // How the time of a processor is split says nothing of a cause.
    inside.find(|part| {
        part.name != TimePart::User
            && part.name != TimePart::Kernel
            && part.difference_ns / slice.difference_ns >= 0.5
    })
}

/// Whether a cause is certain enough to be named beside a proven difference.
pub(super) fn is_proven(part: &DifferencePart) -> bool {
    part.verdict != DifferenceVerdict::Unproven
}
