//! Latency of single requests as a report holds it: percentiles where there were
//! enough requests, and the bars of the histogram.

use model::histogram::Bar;
use model::{Histogram, Latency};
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
    /// Lower end of the 95 % interval of the median, requests taken as independent.
    pub p50_low_ns: Option<f64>,
    /// Upper end of that interval.
    pub p50_high_ns: Option<f64>,
    /// `None` below 10 requests.
    pub p90_ns: Option<f64>,
    /// `None` below 100 requests.
    pub p99_ns: Option<f64>,
    /// `None` below 1,000 requests.
    pub p99_9_ns: Option<f64>,
    /// How many requests took how long, on a logarithmic axis.
    pub bars: Vec<Bar>,
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
            bars: histogram.bars(BARS_PER_OCTAVE),
        }
    }
}

impl RequestLatency {
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
}
