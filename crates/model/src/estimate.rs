//! One measured quantity with its error bars, and how it is made from trials, or from several runs
//! of a probe.
//!
//! [`Estimate`] is for rates and whole-trial times; [`Latency`] adds the
//! percentiles of single requests, which exist only where the timer can see a
//! single request. What cannot be seen is `None`, never another figure. [`Covers`] says what the
//! interval holds.

use crate::statistics;
use crate::statistics::spells::interval_between_runs;
use serde::{Deserialize, Serialize};

/// What an interval holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The trials of one process in one piece of memory. The next process differs by more.
    #[default]
    WithinRun,
    /// Several runs of the probe, each a process of its own.
    BetweenRuns,
}

impl Covers {
    /// The word of results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WithinRun => "within_run",
            Self::BetweenRuns => "between_runs",
        }
    }
}

/// A quantity measured by repeated trials; the unit is in the field's name
/// wherever an estimate is stored (`..._ns`, `..._bytes_per_s`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the trials that were kept; of several runs the median of their medians.
    pub median: f64,
    /// The best trial: the smallest time or the largest rate.
    pub best: f64,
    /// Lower end of the 95 % interval of the median; `None` below 6 trials, or 6 of several runs.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval of the median; `None` as `low`.
    pub high: Option<f64>,
    /// Interquartile range over the median, of trials or of several runs; `None` below 4.
    pub spread: Option<f64>,
    /// How many trials were kept.
    pub trials: u32,
    /// How many trials were thrown away because something disturbed them.
    pub discarded: u32,
    /// What the interval and the spread hold.
    #[serde(default)]
    pub covers: Covers,
    /// How many runs of the probe are in it.
    #[serde(default = "one_run")]
    pub runs: u32,
}

fn one_run() -> u32 {
    1
}

/// Which end of a quantity is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times.
    Lower,
    /// Rates.
    Higher,
}

impl Estimate {
    /// The estimate from the kept trials' values; `None` when there are none.
    pub fn from_values(values: &[f64], better: Better, discarded: u32) -> Option<Self> {
        let sorted = statistics::sorted(values);
        let (&first, &last) = (sorted.first()?, sorted.last()?);
        let interval = statistics::median_interval(&sorted);
        Some(Self {
            median: statistics::median(&sorted)?,
            best: match better {
                Better::Lower => first,
                Better::Higher => last,
            },
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            spread: statistics::spread(&sorted),
            trials: sorted.len() as u32,
            discarded,
            covers: Covers::WithinRun,
            runs: 1,
        })
    }

    /// The estimate from those of several runs, each of another process, in the order of time, the
    /// last of which began `span_s` after the first: that of one alone as it is, `None` for none.
    ///
    /// Its interval is [`interval_between_runs`].
    pub fn between_runs<'e>(
        runs: impl IntoIterator<Item = &'e Self>,
        better: Better,
        span_s: f64,
    ) -> Option<Self> {
        let runs: Vec<&Self> = runs.into_iter().collect();
        if let [only] = runs.as_slice() {
            return Some((*only).clone());
        }
        let medians: Vec<f64> = runs.iter().map(|run| run.median).collect();
        let sorted = statistics::sorted(&medians);
        let median = statistics::median(&sorted)?;
        let interval = interval_between_runs(&medians, span_s);
        let bests = runs.iter().map(|run| run.best);
        Some(Self {
            median,
            best: match better {
                Better::Lower => bests.fold(f64::INFINITY, f64::min),
                Better::Higher => bests.fold(f64::NEG_INFINITY, f64::max),
            },
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            spread: statistics::spread(&sorted),
            trials: runs.iter().map(|run| run.trials).sum(),
            discarded: runs.iter().map(|run| run.discarded).sum(),
            covers: Covers::BetweenRuns,
            runs: sorted.len() as u32,
        })
    }

    /// The estimate of `units / time` where this one is the time in nanoseconds:
    /// a rate a second, with the ends of the interval swapped.
    pub fn rate_of(&self, units: f64) -> Self {
        let rate = |ns: f64| units * 1e9 / ns;
        Self {
            median: rate(self.median),
            best: rate(self.best),
            low: self.high.map(rate),
            high: self.low.map(rate),
            ..self.clone()
        }
    }

    /// The same estimate in another unit, one of which is `factor` of the old ones.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            best: self.best * factor,
            low: self.low.map(|v| v * factor),
            high: self.high.map(|v| v * factor),
            ..self.clone()
        }
    }

    /// Half the width of the interval over the median: "plus or minus this share".
    pub fn relative_error(&self) -> Option<f64> {
        let (low, high) = (self.low?, self.high?);
        (self.median > 0.0).then(|| (high - low) / 2.0 / self.median)
    }
}

/// Latency of one access or request, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median over trials (each trial the mean of many dependent accesses)
    /// or, where single requests are timed, the median over requests.
    pub median: f64,
    /// The median of single requests; `None` where the timer cannot see one.
    pub p50: Option<f64>,
    /// The 99th percentile of single requests; `None` where the timer cannot see
    /// one or fewer than 100 were made.
    pub p99: Option<f64>,
    /// Lower end of the 95 % interval of `median`.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval of `median`.
    pub high: Option<f64>,
    /// How many trials (or single requests) were kept.
    pub trials: u32,
    /// How many were thrown away because something disturbed them.
    pub discarded: u32,
    /// What the interval holds.
    #[serde(default)]
    pub covers: Covers,
}

impl From<&Estimate> for Latency {
    /// Of trials that average many accesses: percentiles of single ones are absent.
    fn from(estimate: &Estimate) -> Self {
        Self {
            median: estimate.median,
            p50: None,
            p99: None,
            low: estimate.low,
            high: estimate.high,
            trials: estimate.trials,
            discarded: estimate.discarded,
            covers: estimate.covers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_trials_no_estimate() {
        assert_eq!(Estimate::from_values(&[], Better::Lower, 3), None);
    }

    #[test]
    fn a_rate_swaps_the_ends() {
        let time =
            Estimate::from_values(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0], Better::Lower, 1)
                .unwrap();
        let rate = time.rate_of(26.0);
        assert_eq!(time.best, 10.0);
        assert_eq!(rate.median, 26.0 * 1e9 / 13.0);
        assert_eq!(rate.best, 26.0 * 1e9 / 10.0);
        assert!(rate.low.unwrap() < rate.median && rate.median < rate.high.unwrap());
        assert_eq!(rate.discarded, 1);
    }

    #[test]
    fn few_trials_have_no_interval() {
        let few = Estimate::from_values(&[1.0, 2.0, 3.0], Better::Higher, 0).unwrap();
        assert_eq!((few.low, few.high, few.best), (None, None, 3.0));
    }

    #[test]
    fn an_interval_of_runs_is_that_of_their_medians_and_says_so() {
        let run = |median: f64| {
            let values: Vec<f64> = (0..9).map(|i| median + f64::from(i - 4) / 1000.0).collect();
            Estimate::from_values(&values, Better::Higher, 1).unwrap()
        };
        let runs = [13.3, 13.9, 13.6, 13.5, 13.7, 13.4].map(run);
        let all = Estimate::between_runs(&runs, Better::Higher, 60.0).unwrap();
        let medians = runs.each_ref().map(|run| run.median);
        assert_eq!(all.low.zip(all.high), interval_between_runs(&medians, 60.0));
        assert!(all.low < Some(13.3) && all.high > Some(13.9), "{all:?}");
        let at_once = Estimate::between_runs(&runs, Better::Higher, 1.0).unwrap();
        assert!(at_once.low < all.low && at_once.high > all.high, "{at_once:?}");
        assert_eq!((all.covers, all.runs), (Covers::BetweenRuns, 6));
        assert_eq!((all.median, all.best), (13.55, 13.904));
        assert_eq!((all.trials, all.discarded), (54, 6));
        // Three are too few; one says nothing of the others.
        let few = Estimate::between_runs(&runs[..3], Better::Higher, 60.0).unwrap();
        assert_eq!((few.low, few.covers), (None, Covers::BetweenRuns));
        assert_eq!(Estimate::between_runs(&runs[..1], Better::Higher, 60.0).unwrap(), runs[0]);
        assert_eq!(Estimate::between_runs(&[], Better::Higher, 60.0), None);
    }
}
