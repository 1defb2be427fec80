//! How fast bytes moved over time: counted in ticks of 100 ms while they move, turned
//! into rates afterwards.

use super::per_second;
use serde::{Deserialize, Serialize};

/// The grain of the rate over time, in nanoseconds.
const TICK_NS: u64 = 100_000_000;

/// A last tick shorter than this is counted into the one before: a rate over less
/// time is mostly chance.
const LEAST_TICK_NS: u64 = 20_000_000;

/// Room for the ticks of a budget of 10 minutes; longer ones make it grow.
const TICKS: usize = 6_000;

/// The rate in one stretch of about 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateAt {
    /// When the stretch began, seconds since the phase began.
    pub t_s: f64,
    /// Bytes a second in it.
    pub bytes_per_s: f64,
}

/// Bytes over time.
pub(super) struct Pace {
    start_ns: u64,
    pub(super) bytes: u64,
    ticks: Vec<u64>,
}

impl Pace {
    pub(super) fn start() -> Self {
        Self { ticks: Vec::with_capacity(TICKS), bytes: 0, start_ns: sys::clock::now_ns() }
    }

    pub(super) fn add(&mut self, bytes: u64, at_ns: u64) {
        let tick = (at_ns.saturating_sub(self.start_ns) / TICK_NS) as usize;
        if tick >= self.ticks.len() {
            self.ticks.resize(tick + 1, 0);
        }
        self.ticks[tick] += bytes;
        self.bytes += bytes;
    }

    pub(super) fn elapsed_ns(&self) -> u64 {
        sys::clock::now_ns() - self.start_ns
    }

    /// The rates of a transfer that took `wall_ns`; the last stretch is as long as
    /// what was left of the time.
    pub(super) fn series(mut self, wall_ns: u64) -> Vec<RateAt> {
        let last = (wall_ns.saturating_sub(1) / TICK_NS) as usize;
        self.ticks.resize(last + 1, 0);
        let mut rest_ns = wall_ns - last as u64 * TICK_NS;
        if rest_ns < LEAST_TICK_NS && last > 0 {
            let bytes = self.ticks.pop().unwrap_or_default();
            self.ticks[last - 1] += bytes;
            rest_ns += TICK_NS;
        }
        let end = self.ticks.len() - 1;
        let length = |tick: usize| if tick == end { rest_ns } else { TICK_NS };
        self.ticks
            .iter()
            .enumerate()
            .filter_map(|(tick, &bytes)| {
                Some(RateAt {
                    t_s: super::seconds(tick as u64 * TICK_NS),
                    bytes_per_s: per_second(bytes, length(tick))?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(wall_ns: u64, adds: &[(u64, u64)]) -> Vec<RateAt> {
        let mut pace = Pace::start();
        for &(bytes, at_ns) in adds {
            pace.add(bytes, pace.start_ns + at_ns);
        }
        pace.series(wall_ns)
    }

    #[test]
    fn each_stretch_is_divided_by_its_own_length() {
        let series = pace(150_000_000, &[(100, 50_000_000), (100, 149_000_000)]);
        let rates: Vec<f64> = series.iter().map(|r| r.bytes_per_s).collect();
        assert_eq!(rates, [1000.0, 2000.0]);
        // A stump of 1 ms would show any rate at all.
        let series = pace(101_000_000, &[(101, 100_900_000)]);
        assert_eq!(series.len(), 1);
        assert!((series[0].bytes_per_s - 1000.0).abs() < 1e-6);
        assert!(pace(0, &[]).is_empty());
    }
}
