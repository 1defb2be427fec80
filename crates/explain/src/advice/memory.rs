//! What each amount of memory would have spared.
//!
//! A page that came back would have stayed if so much more memory held all that left after it. How
//! much that is was counted in two ways, and the truth was seen between them: what left after it
//! and is still out (the estimate, which was always a little too good), and all that left, as the
//! kernel's own counter has it (the lower end). Seconds are the waits for what came back, by the
//! share that would have stayed. Of each block's wall bar, the same share of block I/O is spared.
//! The upper end takes as kept what came back from a distance that is not known.

use super::blocks::{Distances, KindReturns, Observation, TimeBlock, part_of, total};
use super::{AdviceRequest, GIB, USUAL_SIZES, answer, interval, less};
use model::advice::{AdviceState, MemoryAdvice, MemoryGain, ReturnedBytes, SparedTime};
use std::collections::BTreeSet;

/// Shorter recordings say nothing. Picked.
const SPAN_NS_MIN: u64 = 10_000_000_000;

/// Fewer pages that came back say nothing: one in 16 of them is followed. Picked: the sampling
/// error of so many is a quarter.
pub(super) const RETURNS_MIN: u64 = 1_000;

/// Less of the span is nothing worth buying memory for. Picked.
const LEAST_SHARE: f64 = 0.01;

/// Who ran less than this share of one processor was idle. Picked: an idle server's services stay
/// below.
const IDLE_SHARE: f64 = 0.02;

/// One page in so many is followed.
const FOLLOWED_STEP: f64 = 16.0;

/// The recorder distinguishes distances of so many pages: half a million followed ones.
const REACH_PAGES: u64 = 1 << 23;

/// The share of all that could be spared from which on more memory gains hardly anything.
const KNEE_SHARE: f64 = 0.95;

/// The smallest size that has this share of the best is the one that the answer names.
const NAMED_SHARE: f64 = 0.9;

/// Points of the curve: a drawing shows no more.
const POINTS_MAX: usize = 64;

/// If the distances of more of what came back are not known, neither is where more memory ends to
/// help. Picked.
const UNKNOWN_SHARE: f64 = 0.1;

const DAY_NS: f64 = 86_400e9;

/// Judges all sizes.
pub(super) fn judge(seen: &Observation, request: &AdviceRequest) -> MemoryAdvice {
    let reach_bytes = REACH_PAGES.saturating_mul(seen.page_bytes);
    let [file, swap] = [0, 1].map(|kind| totals(seen, kind));
    let mut advice = MemoryAdvice { file, swap, reach_bytes, ..MemoryAdvice::default() };
    advice.sizes =
        asked(request, reach_bytes).map(|more| of_size(seen, more, reach_bytes)).collect();
    let is_less_alone = advice.sizes.iter().all(|gain| gain.more_bytes < 0);
    if is_less_alone && seen.has_returns && seen.span_ns() >= SPAN_NS_MIN {
        name_less(&mut advice, seen.span_ns());
        advice.text = answer::of_less(&advice.sizes, seen);
        return advice;
    }
    if let Some((state, text)) = without_sizes(seen) {
        advice.sizes.retain(|gain| gain.more_bytes < 0);
        (advice.state, advice.text) = (state, text);
        return advice;
    }
    advice.curve = points(seen, reach_bytes, &advice.sizes)
        .into_iter()
        .filter_map(|bytes| Some(of_size(seen, i64::try_from(bytes).ok()?, reach_bytes)))
        .collect();
    name(&mut advice, seen.span_ns(), unknown_share(seen) <= UNKNOWN_SHARE);
    advice.text = answer::of_memory(&advice, seen);
    advice
}

/// Of less memory alone the most that was asked for is named.
fn name_less(advice: &mut MemoryAdvice, span_ns: u64) {
    let known = advice.sizes.iter().filter_map(|gain| Some((gain.more_bytes, gain.cost?)));
    let named = known.min_by_key(|(more_bytes, _)| *more_bytes);
    advice.named_bytes = named.map(|(more_bytes, _)| more_bytes);
    advice.state = named.map_or(AdviceState::Unproven, |(_, cost)| state_of(&cost, span_ns));
}

/// Names the size of the answer, and if distances `are_known` the one above which hardly anything
/// is gained.
pub(super) fn name(advice: &mut MemoryAdvice, span_ns: u64, are_known: bool) {
    let knee = first_with(&advice.curve, KNEE_SHARE).filter(|_| are_known);
    advice.knee_bytes = knee.and_then(|more| more.try_into().ok());
    advice.named_bytes = first_with(&advice.sizes, NAMED_SHARE);
    let named = advice.sizes.iter().find(|gain| Some(gain.more_bytes) == advice.named_bytes);
    let spared = named.and_then(|gain| gain.spared);
    advice.state = spared.map_or(AdviceState::Unproven, |spared| state_of(&spared, span_ns));
}

/// Helps only if its lower end is worth it, nothing only if its upper end is not.
pub(super) fn state_of(spared: &SparedTime, span_ns: u64) -> AdviceState {
    let least_ns = span_ns as f64 * LEAST_SHARE;
    if spared.high_ns == 0 || (spared.high_ns as f64) < least_ns {
        AdviceState::Nothing
    } else if spared.low_ns as f64 >= least_ns {
        AdviceState::Helps
    } else {
        AdviceState::Unproven
    }
}

/// The share of what came back whose distance is not known.
pub(super) fn unknown_share(seen: &Observation) -> f64 {
    let [unknown, all] =
        [KindReturns::unknown_bytes, KindReturns::all_bytes].map(|of| seen.sum_of_kinds(of));
    unknown as f64 / all.max(1) as f64
}

/// The spared time of a day like the span; `None` unless memory helps.
pub(super) fn per_day_ns(advice: &MemoryAdvice, span_ns: u64) -> Option<u64> {
    let is_named = |gain: &&MemoryGain| Some(gain.more_bytes) == advice.named_bytes;
    let spared = advice.sizes.iter().find(is_named)?.spared?;
    let helps = advice.state == AdviceState::Helps && span_ns > 0;
    helps.then(|| (spared.ns as f64 / span_ns as f64 * DAY_NS) as u64)
}

/// The answer where no size needs to be judged.
fn without_sizes(seen: &Observation) -> Option<(AdviceState, String)> {
    let (span_ns, waited_ns) = (seen.span_ns(), seen.waited_ns());
    let share = |ns: u64| ns as f64 / span_ns.max(1) as f64;
    let unproven = |text| Some((AdviceState::Unproven, text));
    if !seen.has_returns {
        return unproven(answer::no_returns(seen));
    }
    if span_ns < SPAN_NS_MIN {
        return unproven(answer::too_short(seen, SPAN_NS_MIN));
    }
    if share(waited_ns) < LEAST_SHARE {
        return if share(seen.ran_ns()) < IDLE_SHARE {
            unproven(answer::idle(seen))
        } else {
            Some((AdviceState::Nothing, answer::no_wait(seen)))
        };
    }
    (seen.returned_pages() < RETURNS_MIN).then(|| (AdviceState::Unproven, answer::all_cold(seen)))
}

fn asked(request: &AdviceRequest, reach_bytes: u64) -> impl Iterator<Item = i64> {
    let is_reached = move |more: &i64| more.unsigned_abs() <= reach_bytes;
    let usual: Vec<i64> = USUAL_SIZES.into_iter().filter(is_reached).collect();
    let named = request.more_bytes.clone();
    if named.is_empty() { usual.into_iter() } else { named.into_iter() }
}

fn totals(seen: &Observation, kind: usize) -> ReturnedBytes {
    let sum = |of: fn(&KindReturns) -> u64| seen.sum(|block| of(&block.returns[kind]));
    let counted = seen.blocks.iter().filter_map(|block| block.returns[kind].counted_bytes);
    ReturnedBytes {
        left_bytes: sum(|kind| kind.left_bytes),
        came_back_bytes: sum(|kind| kind.seen_bytes),
        counted_bytes: counted.reduce(u64::saturating_add),
        waited_ns: sum(|kind| kind.waited_ns),
    }
}

fn of_size(seen: &Observation, more_bytes: i64, reach_bytes: u64) -> MemoryGain {
    let unproven = |why: &str| MemoryGain {
        more_bytes,
        unproven: Some(why.to_owned()),
        ..MemoryGain::default()
    };
    let Ok(more) = u64::try_from(more_bytes) else {
        return less::of_size(seen, more_bytes.unsigned_abs());
    };
    if more > reach_bytes {
        return unproven(&answer::beyond(reach_bytes));
    }
    let kept = [Count::StillOut, Count::Left].map(|count| {
        let of_block =
            |block: &TimeBlock| total(block.returns.iter().map(|kind| kept_of(kind, count, more)));
        seen.sum(of_block)
    });
    let spared = spared(seen, more, kept);
    MemoryGain {
        more_bytes,
        kept_bytes: Some(kept[0]),
        kept_low_bytes: Some(kept[1]),
        spared,
        threads_ns: Some(seen.sum(|block| threads_ns(block, Count::StillOut, more))),
        unproven: spared.is_none().then(|| answer::FEW_PIECES.to_owned()),
        ..MemoryGain::default()
    }
}

/// Which pages count as those that would have stayed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// By what is still out: the estimate.
    StillOut,
    /// By all that left: the lower end.
    Left,
    /// The first, and all whose distance is not known: the upper end.
    WithUnknown,
}

/// The wall time, with its range: what differs between blocks, between the ways of counting, what
/// sampling pages may miss, and what events were lost.
fn spared(seen: &Observation, more: u64, kept: [u64; 2]) -> Option<SparedTime> {
    let walls = |count| -> Vec<f64> {
        let of_block = |block: &TimeBlock| {
            let threads_ns = threads_ns(block, count, more);
            part_of(block.waited_ns.min(block.disk_ns), threads_ns, block.waited_ns) as f64
        };
        seen.blocks.iter().map(of_block).collect()
    };
    let most = seen.disk_ns();
    let ns = walls(Count::StillOut).iter().sum::<f64>().min(most as f64);
    let error = |bytes: u64| sampling_error(bytes, seen.page_bytes) + seen.lost_share();
    let (low, _) = interval::of_sum(&walls(Count::Left))?;
    let (_, high) = interval::of_sum(&walls(Count::WithUnknown))?;
    let low = (low * (1.0 - error(kept[1]))).clamp(0.0, ns);
    let high = (high * (1.0 + error(kept[0]))).max(ns);
    let [ns, low_ns, high_ns] = [ns, low, high].map(|ns| (ns as u64).min(most));
    Some(SparedTime { ns, low_ns, high_ns })
}

/// The half of the 95 % interval of a count of pages of which one in 16 was followed, as a share.
pub(super) fn sampling_error(bytes: u64, page_bytes: u64) -> f64 {
    let followed = bytes as f64 / page_bytes.max(1) as f64 / FOLLOWED_STEP;
    if followed <= 0.0 { 0.0 } else { (1.96 / followed.sqrt()).min(1.0) }
}

/// The waits of threads in a block that so much more memory would have spared.
fn threads_ns(block: &TimeBlock, count: Count, more: u64) -> u64 {
    let kinds = block.returns.iter().enumerate().filter(|(kind, _)| block.is_priced(*kind));
    let spared = kinds
        .map(|(_, kind)| part_of(kind.waited_ns, kept_of(kind, count, more), kind.all_bytes()));
    total(spared)
}

fn kept_of(kind: &KindReturns, count: Count, more: u64) -> u64 {
    let distances = &kind.distances[usize::from(count == Count::Left)];
    let kept = kept(distances, more).min(kind.seen_bytes);
    match count {
        Count::WithUnknown => kept.saturating_add(kind.unknown_bytes()),
        Count::StillOut | Count::Left => kept,
    }
}

/// What would have stayed with `more` bytes: the classes below, and a part of the class around it.
pub(super) fn kept(distances: &Distances, more: u64) -> u64 {
    let mut sum = 0_u64;
    for (&bound, &bytes) in distances {
        if bound <= more {
            sum = sum.saturating_add(bytes);
        } else if bound < u64::MAX {
            let width = class_width(bound);
            sum = sum.saturating_add(part_of(bytes, (more + width).saturating_sub(bound), width));
        }
    }
    sum
}

/// Four classes share each power of two.
fn class_width(bound: u64) -> u64 {
    let power = bound.saturating_sub(1).max(1).ilog2();
    ((1_u64 << power) / 4).max(1)
}

/// The sizes of the curve: the bounds of the classes that something fell into, up to where nothing
/// more comes and to the sizes that were asked for.
fn points(seen: &Observation, reach_bytes: u64, sizes: &[MemoryGain]) -> Vec<u64> {
    let mut bounds: BTreeSet<u64> = BTreeSet::from([0]);
    for kind in seen.blocks.iter().flat_map(|block| &block.returns) {
        let distances = kind.distances.iter().flat_map(|of_order| of_order.keys());
        bounds.extend(distances.filter(|bound| **bound <= reach_bytes));
    }
    let largest = bounds.last().copied().unwrap_or(0);
    // Where the curve is flat already, a size further out says how far.
    let asked = sizes.iter().filter_map(|gain| u64::try_from(gain.more_bytes).ok());
    let near = |bytes: &u64| *bytes <= largest.saturating_mul(2).max(GIB);
    bounds.extend(asked.filter(|bytes| *bytes <= reach_bytes).filter(near));
    let step = bounds.len().div_ceil(POINTS_MAX).max(1);
    let last = bounds.last().copied();
    let mut points: Vec<u64> = bounds.into_iter().step_by(step).collect();
    points.extend(last.filter(|last| points.last() != Some(last)));
    points
}

/// The smallest size that spares this share of what the best one spares.
fn first_with(gains: &[MemoryGain], share: f64) -> Option<i64> {
    let ns = |gain: &MemoryGain| gain.spared.map(|spared| spared.ns as f64);
    let most = gains.iter().filter_map(ns).fold(0.0, f64::max);
    let enough = |gain: &&MemoryGain| ns(gain).is_some_and(|ns| ns >= most * share);
    gains.iter().filter(enough).map(|gain| gain.more_bytes).min()
}
