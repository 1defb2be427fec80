//! One figure of both sides becomes an item with a verdict.
//!
//! By ranks a difference is proven where the test of Mann and Whitney says so, the interval of
//! the median difference agrees, and it is large enough to be worth naming. By noise it is proven
//! where it is larger than unchanged machines were seen to differ.

use model::compared::{Basis, ComparedFigure};
use model::comparison::{DifferenceVerdict, Noise};
use model::estimate::Better;
use model::statistics::{self, bootstrap, ranks};

/// Samples of equal things are called different as often as this at most.
const LEVEL: f64 = 0.05;

/// One figure with the values that the runs of both sides gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    pub(super) of: String,
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) better: Option<Better>,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
}

/// The median of values that are in no order.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    statistics::median(&statistics::sorted(values))
}

/// Whether so many runs can prove anything by their ranks.
pub(super) fn can_prove(first: usize, second: usize) -> bool {
    first.min(second) >= bootstrap::LEAST_RUNS && ranks::least_p(first, second) < LEVEL
}

/// What the values of both sides prove, given the interval of their difference: at least
/// `least` must lie between them.
pub(super) fn proven(
    (first, second): (&[f64], &[f64]),
    interval: Option<(f64, f64)>,
    difference: f64,
    least: f64,
) -> DifferenceVerdict {
    let Some((low, high)) = interval.filter(|_| can_prove(first.len(), second.len())) else {
        return DifferenceVerdict::Unproven;
    };
    let is_rare = ranks::mann_whitney(first, second).is_some_and(|test| test.p < LEVEL);
    match is_rare && difference.abs() >= least {
        true if low > 0.0 && difference > 0.0 => DifferenceVerdict::Larger,
        true if high < 0.0 && difference < 0.0 => DifferenceVerdict::Smaller,
        _ => DifferenceVerdict::Unproven,
    }
}

impl Figure {
    /// The figure with its medians, and nothing proven.
    pub(super) fn plain(&self) -> ComparedFigure {
        let (first, second) = (median(&self.first), median(&self.second));
        ComparedFigure {
            of: self.of.clone(),
            name: self.name.clone(),
            unit: self.unit.to_owned(),
            better: self.better,
            first,
            second,
            difference: first.zip(second).map(|(first, second)| second - first),
            low: None,
            high: None,
            p: None,
            provable: None,
            first_runs: self.first.len() as u32,
            second_runs: self.second.len() as u32,
            verdict: DifferenceVerdict::Unproven,
            basis: Basis::Nothing,
        }
    }

    /// Judged by the runs themselves, where there are enough.
    pub(super) fn by_ranks(&self, least: f64) -> ComparedFigure {
        let item = self.plain();
        if !can_prove(self.first.len(), self.second.len()) {
            return item;
        }
        let Some(difference) = ranks::median_difference(&self.first, &self.second) else {
            return item;
        };
        let interval = bootstrap::of_median_difference(&self.first, &self.second);
        let test = ranks::mann_whitney(&self.first, &self.second);
        let values = (&self.first[..], &self.second[..]);
        let first = item.first.filter(|first| *first > 0.0);
        ComparedFigure {
            difference: Some(difference),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            p: test.map(|test| test.p),
            provable: first
                .zip(interval)
                .map(|(first, (low, high))| ((high - low) / 2.0).max(least) / first),
            verdict: proven(values, interval, difference, least),
            basis: Basis::Ranks,
            ..item
        }
    }

    /// Judged by the noise of this figure between runs; the interval is what the noise
    /// leaves open.
    pub(super) fn by_noise(&self, noise: &Noise, basis: Basis) -> ComparedFigure {
        let item = self.plain();
        let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let Some((first, second)) = positive(item.first).zip(positive(item.second)) else {
            return item;
        };
        let bound = noise.log_bound.exp();
        ComparedFigure {
            low: Some(second / bound - first),
            high: Some(second * bound - first),
            provable: Some(noise.provable()),
            verdict: noise.judge(first, second),
            basis,
            ..item
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(first: &[f64], second: &[f64]) -> Figure {
        Figure { unit: "ns", first: first.to_vec(), second: second.to_vec(), ..Figure::default() }
    }

    const CALM: [f64; 8] = [100.0, 101.0, 99.0, 100.5, 99.5, 102.0, 98.0, 100.2];

    #[test]
    fn a_clear_difference_is_proven_with_its_interval() {
        let item = figure(&CALM, &CALM.map(|value| value + 15.0)).by_ranks(1.0);
        assert_eq!((item.verdict, item.basis), (DifferenceVerdict::Larger, Basis::Ranks));
        let (low, high) = (item.low.unwrap(), item.high.unwrap());
        assert!(low > 12.0 && low < 15.0 && high > 15.0 && high < 18.0, "{low} {high}");
        assert!(item.p.unwrap() < 0.001);
        let less = figure(&CALM.map(|value| value + 15.0), &CALM).by_ranks(1.0);
        assert_eq!(less.verdict, DifferenceVerdict::Smaller);
    }

    #[test]
    fn a_difference_not_worth_naming_and_one_inside_of_the_noise_are_unproven() {
        let item = figure(&CALM, &CALM.map(|value| value + 15.0)).by_ranks(20.0);
        assert_eq!(item.verdict, DifferenceVerdict::Unproven);
        let mut other = CALM;
        other.reverse();
        other[0] += 30.0;
        let item = figure(&CALM, &other).by_ranks(0.0);
        assert_eq!(item.verdict, DifferenceVerdict::Unproven);
    }

    #[test]
    fn few_runs_prove_nothing_and_a_missing_side_has_no_difference() {
        let item = figure(&CALM[..3], &[500.0; 8]).by_ranks(1.0);
        assert_eq!((item.verdict, item.basis), (DifferenceVerdict::Unproven, Basis::Nothing));
        assert!(item.difference.unwrap() > 300.0 && item.p.is_none());
        let item = figure(&[], &CALM).by_ranks(1.0);
        assert_eq!((item.first, item.difference), (None, None));
    }

    #[test]
    fn noise_leaves_open_what_it_explains() {
        let noise = Noise { log_deviation: 0.05, log_bound: 0.1, runs: 9 };
        let item = figure(&[100.0], &[105.0]).by_noise(&noise, Basis::KeptRuns);
        assert_eq!(item.verdict, DifferenceVerdict::Unproven);
        assert!(item.low.unwrap() < 0.0 && item.high.unwrap() > 0.0);
        let item = figure(&[100.0], &[115.0]).by_noise(&noise, Basis::KeptRuns);
        assert_eq!(item.verdict, DifferenceVerdict::Larger);
        assert!(item.low.unwrap() > 0.0);
    }
}
