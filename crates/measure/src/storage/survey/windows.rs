//! Short windows of one activity, repeated in turn with others: their values, kept or thrown away
//! by what disturbed them.

use crate::Result;
use crate::disturbance::{Bracket, Disturbance};
use crate::storage::iolat::Prober;
use crate::storage::per_second;
use crate::storage::stream::TransferResult;
use model::curves::RateAt;
use model::estimate::{Better, Estimate};
use model::probe::DepthRate;
use model::{Histogram, Latency};
use sys::device::FileDevice;

/// A window is disturbed when more than this share of it went to other work or the host. Picked: a
/// thread that waits for a device is woken through the run queue for each request, so the 2 %
/// allowed to memory trials would discard every window of a machine that does anything else.
const SHARE: f64 = 0.1;
/// As many windows as an interval needs: where fewer were quiet, the least disturbed fill up, and
/// the count of the others says that the machine was busy.
const LEAST: usize = 6;

/// The values of one activity's windows, in the order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    windows: Vec<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    start_ns: u64,
    value: f64,
    /// The share of it that other work or the host took.
    lost: f64,
}

impl Windows {
    fn add(&mut self, value: f64, disturbance: &Disturbance, start_ns: u64, wall_ns: u64) {
        let lost = disturbance.waited_ns.unwrap_or(0) + disturbance.stolen_ns.unwrap_or(0);
        self.windows.push(Window { start_ns, value, lost: lost as f64 / wall_ns.max(1) as f64 });
    }

    /// Runs one window, bracketed by the counters. `activity` answers with the window's value and
    /// with what its caller wants to know.
    pub(super) fn window<T>(
        &mut self,
        bracket: &mut Bracket,
        activity: impl FnOnce() -> Result<(Option<f64>, T)>,
    ) -> Result<T> {
        let before = bracket.read();
        let start_ns = sys::clock::now_ns();
        let (value, answer) = activity()?;
        let wall_ns = sys::clock::now_ns() - start_ns;
        let disturbance = Disturbance::between(&before, &bracket.read());
        if let Some(value) = value {
            self.add(value, &disturbance, start_ns, wall_ns);
        }
        Ok(answer)
    }

    /// One window of a transfer, whose value is its rate. One that the budget cut has a rate like
    /// any other.
    pub(super) fn transfer(
        &mut self,
        bracket: &mut Bracket,
        activity: impl FnOnce() -> TransferResult,
    ) -> Result<TransferResult> {
        self.window(bracket, || {
            let moved = activity().checked()?;
            Ok((moved.bytes_per_s().filter(|_| moved.bytes > 0), moved))
        })
    }

    /// The estimate from the quiet windows, filled up to [`LEAST`] with the least disturbed; the
    /// others are counted as discarded. `None` without windows.
    pub(super) fn estimate(&self, better: Better) -> Option<Estimate> {
        let kept = self.kept();
        let discarded = (self.windows.len() - kept.len()) as u32;
        let values: Vec<f64> = kept.iter().map(|&at| self.windows[at].value).collect();
        Estimate::from_values(&values, better, discarded)
    }

    /// The windows' values as rates over time, in seconds since `start_ns`.
    pub(super) fn over_time(&self, start_ns: u64) -> Vec<RateAt> {
        let kept = self.kept();
        let rates = self.windows.iter().enumerate().map(|(at, window)| RateAt {
            at_s: window.start_ns.saturating_sub(start_ns) as f64 / 1e9,
            bytes_per_s: window.value,
            disturbed: !kept.contains(&at),
        });
        rates.collect()
    }

    /// Which windows count.
    fn kept(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.windows.len()).collect();
        order.sort_by(|&a, &b| self.windows[a].lost.total_cmp(&self.windows[b].lost));
        let quiet = self.windows.iter().filter(|w| w.lost <= SHARE).count();
        order.truncate(quiet.max(LEAST));
        order
    }
}

/// Windows of random requests: the rate of each, and the time of every request.
#[derive(Debug, Default)]
pub(super) struct RequestWindows {
    /// Requests a second.
    pub(super) rates: Windows,
    /// The median time of a request, by window; none where several are in flight.
    medians: Windows,
    pub(super) times: Histogram,
}

impl RequestWindows {
    /// One window of single requests, as long as `goes_on` says of their count so far. Gives that
    /// count.
    pub(super) fn one_at_a_time(
        &mut self,
        bracket: &mut Bracket,
        prober: &mut Prober<FileDevice>,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<u64> {
        let mut window = Histogram::new();
        let mut busy_ns = 0;
        let median = self.medians.window(bracket, || {
            while goes_on(window.len()) {
                let ns = prober.request()?;
                window.add(ns);
                self.times.add(ns);
                busy_ns += ns;
            }
            let median = window.quantile_ns(0.5);
            Ok((median, median))
        })?;
        // Judged with the window of the median: the same requests.
        let judged = median.and_then(|_| self.medians.windows.last());
        if let (Some(value), Some(window)) = (per_second(window.len(), busy_ns), judged) {
            self.rates.windows.push(Window { value, ..*window });
        }
        Ok(window.len())
    }

    /// The latency of a tier: the interval from the windows' medians, because requests within one
    /// window share its luck; the percentiles from all requests.
    pub(super) fn latency(&self) -> Option<Latency> {
        let estimate = self.medians.estimate(Better::Lower)?;
        Some(Latency {
            p50: self.times.quantile_ns(0.5),
            p99: self.times.quantile_ns(0.99),
            ..Latency::from(&estimate)
        })
    }

    /// The rate of reads of `block_bytes` at this depth.
    pub(super) fn depth_rate(&self, depth: u32, block_bytes: u64) -> Option<DepthRate> {
        let requests_per_s = self.rates.estimate(Better::Higher)?.median;
        Some(DepthRate {
            depth,
            block_bytes,
            requests_per_s,
            bytes_per_s: requests_per_s * block_bytes as f64,
            p50_ns: self.times.quantile_ns(0.5),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(ns: u64) -> Disturbance {
        Disturbance { waited_ns: Some(ns), ..Disturbance::default() }
    }

    #[test]
    fn disturbed_windows_are_counted_and_not_averaged() {
        let mut windows = Windows::default();
        for value in 0..6 {
            windows.add(100.0 + f64::from(value), &waited(90), 5, 1000);
        }
        windows.add(1.0, &waited(200), 2_000_000_005, 1000);
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (6, 1));
        assert_eq!(estimate.median, 102.5);
        let over_time = windows.over_time(5);
        assert!(over_time[..6].iter().all(|rate| !rate.disturbed));
        let last = over_time[6];
        assert_eq!((last.at_s, last.bytes_per_s, last.disturbed), (2.0, 1.0, true));
    }

    #[test]
    fn the_least_disturbed_fill_up_what_an_interval_needs() {
        let mut windows = Windows::default();
        assert_eq!(windows.estimate(Better::Higher), None);
        windows.add(7.0, &waited(0), 5, 1000);
        for share in 2..9 {
            windows.add(share as f64, &waited(share * 100), 5, 1000);
        }
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (6, 2));
        // 7 and the five least disturbed of 2 to 8.
        assert_eq!((estimate.best, estimate.median), (7.0, 4.5));
        assert!(estimate.low.is_some());
    }
}
