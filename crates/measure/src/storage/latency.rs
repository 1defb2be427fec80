//! Latency of single requests as a report holds it: percentiles where there were
//! enough requests, and the bars of the histogram.

use model::histogram::Bar;
use model::statistics::spells::interval_between_runs;
use model::{Covers, Histogram, Latency, statistics};
use serde::{Deserialize, Serialize};

/// Bars for each doubling of time: fine enough to see two modes 1.5 times apart.
const BARS_PER_OCTAVE: u32 = 2;

/// What a histogram of request times says; all times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestLatency {
    /// How many requests were timed.
    pub requests: u64,
    /// The shortest.
    pub min_ns: Option<f64>,
    /// The arithmetic mean.
    pub mean_ns: Option<f64>,
    /// The longest.
    pub max_ns: Option<f64>,
    /// The standard deviation.
    pub deviation_ns: Option<f64>,
    /// The median.
    pub p50_ns: Option<f64>,
    /// Lower end of the 95 % interval of the median; within one run requests are taken as
    /// independent.
    pub p50_low_ns: Option<f64>,
    /// Upper end of that interval.
    pub p50_high_ns: Option<f64>,
    /// What that interval holds.
    #[serde(default)]
    pub covers: Covers,
    /// `None` below 10 requests.
    pub p90_ns: Option<f64>,
    /// `None` below 100 requests.
    pub p99_ns: Option<f64>,
    /// `None` below 1,000 requests.
    pub p99_9_ns: Option<f64>,
    /// How many requests took how long, on a logarithmic axis.
    pub bars: Vec<Bar>,
    /// Every duration with its count, until the runs of a probe are combined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<(u64, u64)>,
}

impl From<&Histogram> for RequestLatency {
    fn from(histogram: &Histogram) -> Self {
        let interval = histogram.median_interval_ns();
        Self {
            requests: histogram.len(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns(),
            max_ns: histogram.max_ns(),
            deviation_ns: histogram.deviation_ns(),
            p50_ns: histogram.quantile_ns(0.5),
            p50_low_ns: interval.map(|(low, _)| low),
            p50_high_ns: interval.map(|(_, high)| high),
            p90_ns: histogram.quantile_ns(0.9),
            p99_ns: histogram.quantile_ns(0.99),
            p99_9_ns: histogram.quantile_ns(0.999),
            covers: Covers::WithinRun,
            bars: histogram.bars(BARS_PER_OCTAVE),
            counts: histogram.counts(),
        }
    }
}

impl RequestLatency {
    /// The latency of several runs in the order of time, the last of which began `span_s` after the
    /// first: percentiles of all requests, the median of the runs' medians with the interval of
    /// [`interval_between_runs`].
    pub fn between_runs(runs: &[&RequestLatency], span_s: f64) -> Self {
        if let [only] = runs {
            return Self { counts: Vec::new(), ..(*only).clone() };
        }
        let mut all = Histogram::new();
        runs.iter().for_each(|run| all.add_counts(&run.counts));
        let medians: Vec<f64> = runs.iter().filter_map(|run| run.p50_ns).collect();
        let median = statistics::median(&statistics::sorted(&medians));
        let interval = interval_between_runs(&medians, span_s);
        Self {
            p50_ns: median,
            p50_low_ns: interval.map(|(low, _)| low),
            p50_high_ns: interval.map(|(_, high)| high),
            covers: Covers::BetweenRuns,
            counts: Vec::new(),
            ..Self::from(&all)
        }
    }

    /// Half the interval of the median over it.
    pub fn relative_error(&self) -> Option<f64> {
        let (low, high) = (self.p50_low_ns?, self.p50_high_ns?);
        Some((high - low) / 2.0 / self.p50_ns.filter(|median| *median > 0.0)?)
    }

    /// The same as a tier's latency; `None` when nothing was timed.
    pub fn latency(&self) -> Option<Latency> {
        Some(Latency {
            median: self.p50_ns?,
            p50: self.p50_ns,
            p99: self.p99_ns,
            low: self.p50_low_ns,
            high: self.p50_high_ns,
            trials: u32::try_from(self.requests).unwrap_or(u32::MAX),
            discarded: 0,
            covers: self.covers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_too_few_requests_are_absent() {
        let mut histogram = Histogram::new();
        (1..=50).for_each(|ns| histogram.add(ns * 1000));
        let latency = RequestLatency::from(&histogram);
        assert_eq!(latency.requests, 50);
        assert!(latency.p90_ns.is_some());
        assert_eq!((latency.p99_ns, latency.p99_9_ns), (None, None));
        assert_eq!(RequestLatency::from(&Histogram::new()).latency(), None);
    }

    #[test]
    fn runs_have_percentiles_of_all_requests_and_an_interval_wider_than_their_medians() {
        let runs: Vec<RequestLatency> = (1..=7_u64)
            .map(|run| {
                let mut histogram = Histogram::new();
                (1..=50).for_each(|i| histogram.add(run * 10_000 + i));
                RequestLatency::from(&histogram)
            })
            .collect();
        let all = RequestLatency::between_runs(&runs.iter().collect::<Vec<_>>(), 0.0);
        assert_eq!((all.requests, all.covers), (350, Covers::BetweenRuns));
        assert!(all.p99_ns.is_some(), "50 requests alone have none");
        let near = |value: Option<f64>, ns: f64| (value.unwrap() / ns - 1.0).abs() < 0.03;
        assert!(near(all.p50_ns, 40_000.0) && near(all.p50_low_ns, 10_000.0 / 16.0));
        assert!(near(all.p50_high_ns, 70_000.0 * 49.0 / 16.0));
        assert_eq!(RequestLatency::between_runs(&[&runs[0]], 0.0).covers, Covers::WithinRun);
    }
}
