//! A latency histogram with three significant digits, in nanoseconds, and the
//! search for a second mode in it.
//!
//! Percentiles come only where enough values were counted: a p99 of 50 values
//! would be a maximum under another name.

use serde::{Deserialize, Serialize};

/// The largest value that is kept apart; longer ones are counted as this one.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Counts of durations in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

/// One bar of a histogram for print and JSON: how many values are in
/// `[from_ns, to_ns)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Lower edge, in nanoseconds, inclusive.
    pub from_ns: f64,
    /// Upper edge, in nanoseconds, exclusive.
    pub to_ns: f64,
    /// How many values.
    pub count: u64,
}

/// Two modes of one distribution, parted at a valley.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    /// Median of the values below the valley, in nanoseconds.
    pub fast_ns: f64,
    /// Median of the values above it, in nanoseconds.
    pub slow_ns: f64,
    /// The share of values above the valley, 0 to 1.
    pub slow_share: f64,
    /// Where the two are parted, in nanoseconds.
    pub valley_ns: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("1 ns to 1 h at 3 digits are bounds that the library documents as valid");
        Self { counts }
    }

    /// Counts one duration of `ns` nanoseconds; 0 is counted as 1.
    pub fn add(&mut self, ns: u64) {
        self.counts.saturating_record(ns.max(1));
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so there is nothing that cannot be added.
        let _ = self.counts.add(&other.counts);
    }

    /// The durations that were counted, ascending, each with its count. [`Histogram::add_counts`]
    /// makes the same histogram of them.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let recorded = self.counts.iter_recorded();
        recorded.map(|at| (at.value_iterated_to(), at.count_since_last_iteration())).collect()
    }

    /// Counts durations, each as often as is said beside it.
    pub fn add_counts(&mut self, counts: &[(u64, u64)]) {
        for &(ns, count) in counts {
            self.counts.saturating_record_n(ns.max(1), count);
        }
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The `q` quantile in nanoseconds, or `None` when fewer than `1 / (1 - q)`
    /// values were counted (100 for the p99, 1,000 for the p99.9).
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        let needed = if q >= 1.0 { 1.0 } else { 1.0 / (1.0 - q) };
        (self.len() as f64 + 1e-6 >= needed.max(1.0))
            .then(|| self.counts.value_at_quantile(q) as f64)
    }

    /// The 95 % interval of the median by the ranks of order statistics;
    /// `None` below 6 values.
    pub fn median_interval_ns(&self) -> Option<(f64, f64)> {
        let n = self.len() as f64;
        if n < 6.0 {
            return None;
        }
        let half = 0.98 / n.sqrt();
        let at = |q: f64| self.counts.value_at_quantile(q.clamp(0.0, 1.0)) as f64;
        Some((at(0.5 - half), at(0.5 + half)))
    }

    /// The smallest value, in nanoseconds.
    pub fn min_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.min() as f64)
    }

    /// The largest value, in nanoseconds.
    pub fn max_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.max() as f64)
    }

    /// The arithmetic mean, in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.mean())
    }

    /// The standard deviation, in nanoseconds.
    pub fn deviation_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.stdev())
    }

    /// Bars on a logarithmic axis, `per_octave` for each doubling, from the first
    /// that holds a value to the last.
    pub fn bars(&self, per_octave: u32) -> Vec<Bar> {
        let step = f64::from(per_octave.max(1));
        let edge = |index: i64| (index as f64 / step).exp2();
        let mut bars: Vec<Bar> = Vec::new();
        let mut first = 0;
        for recorded in self.counts.iter_recorded() {
            let value = recorded.value_iterated_to() as f64;
            let index = (value.log2() * step + 1e-9).floor() as i64;
            if bars.is_empty() {
                first = index;
            }
            let place = (index - first) as usize;
            while bars.len() <= place {
                let next = first + bars.len() as i64;
                bars.push(Bar { from_ns: edge(next), to_ns: edge(next + 1), count: 0 });
            }
            bars[place].count += recorded.count_since_last_iteration();
        }
        bars
    }

    /// The two modes of a distribution that has two, else `None`.
    ///
    /// Two modes are claimed when some valley of at least half an octave parts
    /// the values so that each side holds at least `least_share` of them, its
    /// median lies at least `apart` times from the other's, and the valley holds
    /// less than a quarter of the smaller side's values. These numbers were
    /// picked on page-fault times, where the modes are 1.1 us and 10 us.
    pub fn modes(&self, apart: f64, least_share: f64) -> Option<Modes> {
        let bars = self.bars(2);
        let total = self.len() as f64;
        let mut best: Option<(f64, Modes)> = None;
        let mut below = 0;
        for (i, bar) in bars.iter().enumerate() {
            let above = self.len() - below - bar.count;
            let smaller = below.min(above) as f64;
            if smaller / total >= least_share && (bar.count as f64) < smaller / 4.0 {
                let modes = self.split_at(below, below + bar.count, bars[i].from_ns)?;
                // Of all valleys the emptiest relative to its sides parts best.
                let depth = bar.count as f64 / smaller;
                let wide = modes.slow_ns >= apart * modes.fast_ns;
                if wide && best.as_ref().is_none_or(|(d, _)| depth < *d) {
                    best = Some((depth, modes));
                }
            }
            below += bar.count;
        }
        best.map(|(_, modes)| modes)
    }

    fn split_at(&self, below: u64, from: u64, valley_ns: f64) -> Option<Modes> {
        let total = self.len() as f64;
        let at = |rank: f64| self.counts.value_at_quantile(rank / total) as f64;
        let above = total - from as f64;
        (total > 0.0).then(|| Modes {
            fast_ns: at(below as f64 / 2.0),
            slow_ns: at(from as f64 + above / 2.0),
            slow_share: above / total,
            valley_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(groups: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for &(centre, count) in groups {
            for i in 0..count {
                histogram.add(centre + centre * (i % 21) / 100);
            }
        }
        histogram
    }

    #[test]
    fn a_percentile_needs_enough_values() {
        assert_eq!(of(&[(1000, 99)]).quantile_ns(0.99), None);
        assert!(of(&[(1000, 100)]).quantile_ns(0.99).is_some());
        assert_eq!(Histogram::new().quantile_ns(0.5), None);
    }

    #[test]
    fn two_modes_of_page_faults_are_found() {
        let modes = of(&[(1_100, 5000), (10_200, 4000), (90_000, 30)]).modes(3.0, 0.01).unwrap();
        assert!((1_000.0..1_400.0).contains(&modes.fast_ns), "{modes:?}");
        assert!((10_000.0..12_500.0).contains(&modes.slow_ns), "{modes:?}");
        assert!((0.42..0.47).contains(&modes.slow_share), "{modes:?}");
    }

    #[test]
    fn one_mode_with_a_tail_is_one_mode() {
        assert_eq!(of(&[(1_100, 5000)]).modes(3.0, 0.01), None);
        assert_eq!(of(&[(1_100, 5000), (20_000, 20)]).modes(3.0, 0.01), None);
        assert_eq!(Histogram::new().modes(3.0, 0.01), None);
    }

    #[test]
    fn modes_too_near_are_one() {
        assert_eq!(of(&[(1_000, 500), (2_000, 500)]).modes(3.0, 0.01), None);
    }

    proptest! {
        #[test]
        fn bars_hold_every_value(values in prop::collection::vec(1_u64..10_000_000_000, 1..200)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.add(v));
            let bars = histogram.bars(4);
            prop_assert_eq!(bars.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(bars.first().unwrap().count > 0 && bars.last().unwrap().count > 0);
        }
    }
}
