//! Recordings of what runs on, whose length the recorder chose: rates, shares, and costs for each
//! unit of work are compared, never lengths.
//!
//! 1. [`steady_run`] cuts a recording into blocks of a second or more, at instants at which the
//!    counter of work was read, and sums each figure in each block.
//! 2. A figure is a ratio of sums: over seconds, over units of work, over wall time. Its interval
//!    comes from how it varies between blocks (`model::statistics::blocks`), or, where both sides
//!    have enough recordings, from the recordings themselves by ranks.
//! 3. [`rates`] judges the figures of both sides.

use super::judge::{Figure, can_prove};
use super::{recordings, sentence};
use crate::recording::accounting::account;
use crate::recording::work::WORK;
use crate::recording::{View, Window};
use model::compared::{
    Basis, ComparedFigure, Comparison, ComparisonSubject, DifferencePart, SCHEMA, TimeDifference,
};
use model::comparison::DifferenceVerdict;
use model::estimate::Better;
use model::explanation::{Explanation, TimeSlice};
use model::recording::{DeviceKind, Ending, Recording, Subject};
use model::statistics::blocks::{Block, RatioEstimate};
use std::collections::BTreeSet;

/// A block has at least this length: servers count about once a second.
const LEAST_BLOCK_NS: u64 = 1_000_000_000;

/// A recording has at most so many blocks.
const MOST_BLOCKS: u64 = 30;

/// A smaller difference is not worth naming, as a share.
const LEAST_CHANGE: f64 = 0.01;

/// What the split shows is a second of each.
const SECOND_NS: f64 = 1e9;

/// The counters of a second: a name, a unit, and the series that are summed.
const COUNTED: [(&str, &str, &[&str]); 4] = [
    ("requests", "count", &["reads", "writes"]),
    ("read_bytes", "bytes", &["read_bytes"]),
    ("write_bytes", "bytes", &["write_bytes"]),
    ("refaults", "count", &["vmstat.workingset_refault_file", "vmstat.workingset_refault_anon"]),
];

/// The slices of thread time that a unit of work costs.
const COSTS: [TimeSlice; 3] = [TimeSlice::Run, TimeSlice::Queue, TimeSlice::BlockIo];

/// A recording that says how what runs on does in a second.
#[derive(Clone, Debug, Default)]
pub struct SteadyRun {
    blocks: Vec<BlockSums>,
    /// The name of its work, if that was counted.
    work: Option<String>,
}

/// What happened in a block of time.
#[derive(Clone, Debug, Default)]
struct BlockSums {
    wall_ns: f64,
    /// By the place in [`COUNTED`].
    counted: [f64; COUNTED.len()],
    /// By the place in [`COSTS`].
    costs: [f64; COSTS.len()],
    work: f64,
    /// The slices of the wall time.
    slices: Vec<(String, f64)>,
}

/// What a figure is of, and what it is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Divisor {
    Seconds,
    Work,
}

/// The blocks of a recording of what ran before and after it; `None` for a command from its start
/// to its end, and where nothing was sampled.
#[must_use]
pub fn steady_run(recording: &Recording) -> Option<SteadyRun> {
    let ended = recording.outcome.as_ref().is_none_or(|outcome| outcome.ending == Ending::Stopped);
    let subject = &recording.facts.subject;
    if !ended || matches!(subject, Subject::Command { .. } | Subject::Probe { .. }) {
        return None;
    }
    let work = recording.series.iter().find(|series| series.schema.name.starts_with(WORK));
    let edges = edges(recording, work.map(|series| series.schema.id));
    let blocks: Vec<BlockSums> = edges
        .windows(2)
        .map(|edge| sums(recording, (edge[0], edge[1]), work.map(|work| work.schema.name.as_str())))
        .collect();
    let name = work.map(|series| series.schema.name.trim_start_matches(WORK).to_owned());
    (!blocks.is_empty()).then_some(SteadyRun { blocks, work: name })
}

/// The samples at which blocks begin and end: where the counter of work moved, if there is one.
fn edges(recording: &Recording, work: Option<u32>) -> Vec<u32> {
    let ticks = &recording.ticks;
    let least_ns = LEAST_BLOCK_NS.max(recording.wall_ns() / MOST_BLOCKS);
    let series = work.and_then(|id| recording.series.iter().find(|it| it.schema.id == id));
    let is_fresh = |sample: u32| {
        series.is_none_or(|series| series.at(sample) != series.at(sample.saturating_sub(1)))
    };
    let last = u32::try_from(ticks.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let at_ns = |sample: u32| ticks.get(sample as usize).map_or(0, |tick| tick.at_ns);
    let mut edges = vec![0];
    for sample in 1..=last {
        let lasted_ns = at_ns(sample).saturating_sub(at_ns(*edges.last().unwrap_or(&0)));
        // A tick is never taken early, a reading of work perhaps by a moment. A counter that
        // stands still makes a block too.
        let is_long = lasted_ns >= least_ns * 9 / 10;
        if is_long && (is_fresh(sample) || lasted_ns >= 2 * least_ns) {
            edges.push(sample);
        }
    }
    let rest_ns = at_ns(last).saturating_sub(at_ns(*edges.last().unwrap_or(&0)));
    if edges.len() > 1 && rest_ns > 0 {
        // What is left is too short to stand alone.
        edges.pop();
    }
    if *edges.last().unwrap_or(&0) < last {
        edges.push(last);
    }
    edges
}

fn sums(recording: &Recording, (from, to): (u32, u32), work: Option<&str>) -> BlockSums {
    let at_ns = |sample: u32| recording.ticks.get(sample as usize).map_or(0, |tick| tick.at_ns);
    let window = Window { from_ns: Some(at_ns(from)), to_ns: Some(at_ns(to)) };
    let accounts = account(&View::new(recording, window));
    let grown = |name: &str| {
        let series = recording.series(name);
        series.and_then(|series| series.growth(from, to)).unwrap_or(0) as f64
    };
    let of_disks = |what: &str| -> f64 {
        let disks = recording.facts.devices.iter().filter(|it| it.kind == DeviceKind::Disk);
        disks.map(|disk| grown(&format!("disk.{}.{what}", disk.name))).sum()
    };
    let counted = COUNTED.map(|(_, _, series)| -> f64 {
        let of = |name: &&str| if name.contains('.') { grown(name) } else { of_disks(name) };
        series.iter().map(of).sum()
    });
    BlockSums {
        wall_ns: at_ns(to).saturating_sub(at_ns(from)) as f64,
        counted,
        costs: COSTS.map(|slice| accounts.thread(slice) as f64),
        work: work.map_or(0.0, grown),
        slices: accounts.bars.wall.iter().map(|it| (it.name.clone(), it.ns as f64)).collect(),
    }
}

/// Compares the recordings of two sides, each with its explanation.
#[must_use]
pub fn rates(
    first: (&[Explanation], &[SteadyRun]),
    second: (&[Explanation], &[SteadyRun]),
) -> Comparison {
    let work = common_work(first.1, second.1);
    let runs = [first.1, second.1];
    let mut items = Vec::new();
    if let Some(name) = work {
        let figure = judged(runs, ("rate", name, "a second"), Divisor::Seconds, |block| block.work);
        items.push(ComparedFigure { better: Some(Better::Higher), ..figure });
    }
    for (place, (name, unit, _)) in COUNTED.into_iter().enumerate() {
        let unit = if unit == "bytes" { "bytes_per_s" } else { "a second" };
        let of = |block: &BlockSums| block.counted[place];
        items.push(judged(runs, ("rate", name, unit), Divisor::Seconds, of));
    }
    if work.is_some() {
        for (place, slice) in COSTS.into_iter().enumerate() {
            let of = |block: &BlockSums| block.costs[place];
            items.push(judged(runs, ("per_work", slice.id(), "ns"), Divisor::Work, of));
        }
        for (place, (name, unit, _)) in COUNTED.into_iter().enumerate() {
            let of = |block: &BlockSums| block.counted[place];
            items.push(judged(runs, ("per_work", name, unit), Divisor::Work, of));
        }
    }
    let (explained, blocks) = ([first.0, second.0], runs.map(count_blocks));
    Comparison {
        schema: SCHEMA.to_owned(),
        what: ComparisonSubject::Recordings,
        first: recordings::side(first.0),
        second: recordings::side(second.0),
        sentence: sentence::of_rates(&items, work),
        items,
        split: Some(split(runs)),
        aligned: None,
        tried: None,
        notes: notes(explained, blocks, runs),
    }
}

/// The work that all recordings count by the same name.
fn common_work<'a>(first: &'a [SteadyRun], second: &[SteadyRun]) -> Option<&'a str> {
    let name = first.first()?.work.as_deref()?;
    let is_same = |run: &SteadyRun| run.work.as_deref() == Some(name);
    (first.iter().all(is_same) && second.iter().all(is_same)).then_some(name)
}

fn count_blocks(runs: &[SteadyRun]) -> usize {
    runs.iter().map(|run| run.blocks.len()).sum()
}

/// The blocks of a figure, by recording.
fn blocks_of(
    runs: &[SteadyRun],
    divisor: Divisor,
    of: &impl Fn(&BlockSums) -> f64,
) -> Vec<Vec<Block>> {
    let by = |block: &BlockSums| match divisor {
        Divisor::Seconds => block.wall_ns / 1e9,
        Divisor::Work => block.work,
    };
    let of_run = |run: &SteadyRun| run.blocks.iter().map(|block| (of(block), by(block))).collect();
    runs.iter().map(of_run).collect()
}

fn judged(
    runs: [&[SteadyRun]; 2],
    (of, name, unit): (&str, &str, &'static str),
    divisor: Divisor,
    value: impl Fn(&BlockSums) -> f64,
) -> ComparedFigure {
    let blocks = runs.map(|runs| blocks_of(runs, divisor, &value));
    let of_each = |side: &Vec<Vec<Block>>| -> Vec<f64> {
        let one = |blocks: &Vec<Block>| RatioEstimate::of(std::slice::from_ref(blocks));
        side.iter().filter_map(one).map(|estimate| estimate.value).collect()
    };
    let [first, second] = [of_each(&blocks[0]), of_each(&blocks[1])];
    let least = LEAST_CHANGE * super::judge::median(&first).unwrap_or(0.0);
    let figure =
        Figure { of: of.to_owned(), name: name.to_owned(), unit, better: None, first, second };
    if can_prove(runs[0].len(), runs[1].len()) {
        return figure.by_ranks(least);
    }
    by_blocks(figure.plain(), RatioEstimate::of(&blocks[0]), RatioEstimate::of(&blocks[1]))
}

/// The figure judged by the blocks within its recordings. Of a rate the interval is one of
/// quotients, as its sentence is.
fn by_blocks(
    figure: ComparedFigure,
    first: Option<RatioEstimate>,
    second: Option<RatioEstimate>,
) -> ComparedFigure {
    let Some((first, second)) = first.zip(second) else {
        return figure;
    };
    let difference = second.value - first.value;
    let known = ComparedFigure {
        first: Some(first.value),
        second: Some(second.value),
        difference: Some(difference),
        ..figure
    };
    let quotient = first
        .quotient(&second)
        .map(|(low, high)| ((low - 1.0) * first.value, (high - 1.0) * first.value));
    let Some((low, high)) = quotient.or_else(|| first.difference(&second)) else {
        return known;
    };
    ComparedFigure {
        low: Some(low),
        high: Some(high),
        provable: (first.value > 0.0).then(|| (high - low) / 2.0 / first.value),
        verdict: verdict(difference, (low, high), LEAST_CHANGE * first.value),
        basis: Basis::Blocks,
        ..known
    }
}

fn verdict(difference: f64, (low, high): (f64, f64), least: f64) -> DifferenceVerdict {
    if low > 0.0 && difference > least {
        DifferenceVerdict::Larger
    } else if high < 0.0 && difference < -least {
        DifferenceVerdict::Smaller
    } else {
        DifferenceVerdict::Unproven
    }
}

/// Where a second of each side goes; the parts of each add up to it.
fn split(runs: [&[SteadyRun]; 2]) -> TimeDifference {
    let mut seen = BTreeSet::new();
    let blocks = || runs.iter().flat_map(|runs| runs.iter()).flat_map(|run| &run.blocks);
    let all = blocks().flat_map(|block| block.slices.iter().map(|(name, _)| name.clone()));
    let names: Vec<String> = all.filter(|name| seen.insert(name.clone())).collect();
    let mut parts: Vec<DifferencePart> = names.iter().map(|name| share(runs, name)).collect();
    parts.sort_by(|a, b| b.difference_ns.abs().total_cmp(&a.difference_ns.abs()));
    TimeDifference {
        first_ns: SECOND_NS,
        second_ns: SECOND_NS,
        difference_ns: 0.0,
        low_ns: None,
        high_ns: None,
        parts,
    }
}

fn share(runs: [&[SteadyRun]; 2], name: &str) -> DifferencePart {
    let length = |block: &BlockSums| {
        let of_name = block.slices.iter().filter(|(slice, _)| slice == name);
        of_name.map(|(_, ns)| ns).sum::<f64>()
    };
    let figure = judged(runs, ("slice", name, "ns"), Divisor::Seconds, length);
    let first = figure.first.unwrap_or(0.0);
    let second = figure.second.unwrap_or(0.0);
    // As shares of a second the errors do not depend on the size of the slice.
    let estimates = runs.map(|runs| RatioEstimate::of(&blocks_of(runs, Divisor::Seconds, &length)));
    let interval = match estimates {
        [Some(first), Some(second)] if figure.basis == Basis::Blocks => first.difference(&second),
        _ => figure.low.zip(figure.high),
    };
    let least = LEAST_CHANGE * SECOND_NS;
    DifferencePart {
        name: name.to_owned(),
        within: None,
        first_ns: first,
        second_ns: second,
        difference_ns: second - first,
        low_ns: interval.map(|(low, _)| low),
        high_ns: interval.map(|(_, high)| high),
        verdict: interval.map_or(DifferenceVerdict::Unproven, |interval| {
            verdict(second - first, interval, least)
        }),
    }
}

fn notes(
    explained: [&[Explanation]; 2],
    blocks: [usize; 2],
    runs: [&[SteadyRun]; 2],
) -> Vec<String> {
    let mut notes = recordings::watched_differently(explained[0], explained[1]);
    let has_work = |runs: &[SteadyRun]| runs.iter().any(|run| run.work.is_some());
    if common_work(runs[0], runs[1]).is_none() && runs.iter().any(|runs| has_work(runs)) {
        notes.push("The work was not counted alike on both sides (--work).".to_owned());
    }
    if !can_prove(runs[0].len(), runs[1].len()) {
        let [first, second] = blocks;
        notes.push(format!(
            "Intervals come from {first} and {second} blocks of time within the recordings, and \
             from how much neighbours resemble each other. What changes from one start of the \
             server to the next is not in them; at least 4 recordings of each side show that."
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
