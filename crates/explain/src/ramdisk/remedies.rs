//! Whether a remedy helps: its figures against those without it, outside of their noise.
//!
//! - Huge pages alternate with base pages, over memory that was touched before. The two samples
//!   are compared by rank.
//! - New memory can be had only once. Its one figure is compared by the noise between the runs of
//!   touched memory, as `model::comparison` does with single surveys.

use super::ramdisk_view::RamDiskView;
use model::Bytes;
use model::comparison::{DifferenceVerdict, Noise};
use model::ramdisk::{Effect, Pass, PassEnd, Round, RunRange, TriedRemedy};
use model::statistics::ranks::mann_whitney;
use model::statistics::{median, sorted};

/// The part of huge pages that must have been granted for their figure to be theirs.
const LEAST_GRANTED: f64 = 0.9;
/// A huge page.
const HUGE_BYTES: u64 = 2 << 20;
/// Fewer runs say nothing of their noise.
const LEAST_RUNS: usize = 4;
/// A smaller change of a page's time is not worth a remedy.
const LEAST_CHANGE: f64 = 0.1;
/// Equal samples differ as much in at most this share of cases.
const MOST_CHANCE: f64 = 0.05;

/// The remedies that were tried, each with its effect.
pub(super) fn judge(view: &RamDiskView) -> Vec<TriedRemedy> {
    let mean = |round| view.seen.pass(round)?.mean_ns();
    let touched = repeated(view, Round::Again);
    let huge = repeated(view, Round::Huge);
    let mut tried = Vec::new();
    if let Some((new, again)) = mean(Round::First).zip(mean(Round::Again)) {
        let mut runs = touched.clone();
        runs.push(again);
        tried.push(touched_before(new, again, &runs));
    }
    let granted = view.seen.pass(Round::Huge).filter(|pass| is_granted(pass));
    if let Some((before_ns, after_ns)) = mean(Round::Again).zip(granted.and_then(Pass::mean_ns)) {
        let what = format!("huge pages of {} (mount -o huge=always)", Bytes(HUGE_BYTES));
        tried.push(huge_pages(what, (before_ns, after_ns), &touched, &huge));
    }
    tried
}

/// One run of new memory against several of touched memory.
fn touched_before(new_ns: f64, again_ns: f64, touched: &[f64]) -> TriedRemedy {
    let single = TriedRemedy {
        what: "the memory touched before".to_owned(),
        before_ns: new_ns,
        after_ns: again_ns,
        before_range: None,
        after_range: None,
        effect: Effect::Unproven,
    };
    let noise = (touched.len() >= LEAST_RUNS).then(|| Noise::learn(touched));
    let Some(noise) = noise.flatten().filter(|_| new_ns > 0.0) else {
        return single;
    };
    let after_ns = median_of(touched);
    let is_proven = noise.judge(new_ns, after_ns) != DifferenceVerdict::Unproven;
    let factor = noise.log_bound.exp();
    TriedRemedy {
        after_ns,
        before_range: Some(RunRange { low_ns: new_ns / factor, high_ns: new_ns * factor, runs: 1 }),
        after_range: Some(range(touched)),
        effect: effect(is_proven, new_ns, after_ns),
        ..single
    }
}

/// Base pages and huge pages in turn; `single_ns` are the figures of one long run of each.
fn huge_pages(what: String, single_ns: (f64, f64), base: &[f64], huge: &[f64]) -> TriedRemedy {
    let is_enough = base.len() >= LEAST_RUNS && huge.len() >= LEAST_RUNS;
    if !is_enough {
        return TriedRemedy {
            what,
            before_ns: single_ns.0,
            after_ns: single_ns.1,
            before_range: None,
            after_range: None,
            effect: Effect::Unproven,
        };
    }
    let (before_ns, after_ns) = (median_of(base), median_of(huge));
    let is_proven = mann_whitney(base, huge).is_some_and(|test| test.p <= MOST_CHANCE);
    TriedRemedy {
        what,
        before_ns,
        after_ns,
        before_range: Some(range(base)),
        after_range: Some(range(huge)),
        effect: effect(is_proven, before_ns, after_ns),
    }
}

fn effect(is_proven: bool, before_ns: f64, after_ns: f64) -> Effect {
    let change = after_ns / before_ns.max(1.0) - 1.0;
    if !is_proven || change.abs() < LEAST_CHANGE {
        Effect::Unproven
    } else if change < 0.0 {
        Effect::Helps
    } else {
        Effect::Harms
    }
}

/// The means of the whole repeats of `round`; of huge pages only those that were granted.
fn repeated(view: &RamDiskView, round: Round) -> Vec<f64> {
    let repeats = view.seen.repeats.iter();
    repeats
        .filter(|pass| pass.round == round && pass.end == Some(PassEnd::Whole))
        .filter(|pass| round != Round::Huge || is_granted(pass))
        .filter_map(Pass::mean_ns)
        .collect()
}

fn is_granted(huge: &Pass) -> bool {
    let pages = huge.grew.get("vmstat.thp_file_alloc").copied();
    let bytes = pages.unwrap_or(0).saturating_mul(HUGE_BYTES);
    bytes as f64 >= huge.bytes as f64 * LEAST_GRANTED
}

fn median_of(values: &[f64]) -> f64 {
    median(&sorted(values)).unwrap_or(0.0)
}

fn range(values: &[f64]) -> RunRange {
    RunRange {
        low_ns: values.iter().copied().fold(f64::INFINITY, f64::min),
        high_ns: values.iter().copied().fold(0.0, f64::max),
        runs: values.len() as u32,
    }
}
