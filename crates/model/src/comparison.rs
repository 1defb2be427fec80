//! Do two results differ? Judged against the variance *between* runs.
//!
//! Trials inside one run share the run's luck (which host pages, which
//! neighbours), so their interval is far too narrow to compare runs with. The
//! noise of a quantity is therefore learnt from repeated whole runs of one
//! machine, and a difference inside it is called unproven.

use crate::statistics;
use serde::{Deserialize, Serialize};

/// The least difference that is worth naming, as a share. Picked: below 5 %
/// nobody buys or configures anything, and cloud machines drift by as much.
pub const LEAST_DIFFERENCE: f64 = 0.05;

/// How much one quantity varies between runs of one unchanged machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Standard deviation of the logarithm: 0.02 is about 2 %. For the reader; the
    /// judge uses the bound.
    pub log_deviation: f64,
    /// The difference of logarithms that [`EQUAL_SHARE`] of the pairs of equal runs
    /// did not exceed.
    pub log_bound: f64,
    /// How many runs it was learnt from.
    pub runs: u32,
}

/// The share of pairs of equal runs inside the bound. The rule is that at most 5 % of
/// equal pairs are called different; a bound learnt from some 18 runs and applied to
/// others lets 3 % more through than it was made for (measured over 190 pairs of 23
/// quantities: 2 % became 5.0 %).
pub const EQUAL_SHARE: f64 = 0.98;

/// What can be said of a second result beside a first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// The second is larger by more than the noise explains.
    Larger,
    /// The second is smaller by more than the noise explains.
    Smaller,
    /// The noise explains the difference.
    Unproven,
}

impl Noise {
    /// The noise that is taken where none was learnt, for surveys of one machine. Picked: the
    /// bounds of 23 figures over 20 surveys of a shared two-core guest were 5 to 22 % in
    /// memory and 14 to 40 % on the disk (benchmarks/record, 2026-11-20, `aa`).
    #[must_use]
    pub fn usual(is_device: bool) -> Self {
        let bound: f64 = if is_device { 0.5 } else { 0.25 };
        Self { log_deviation: bound.ln_1p() / 2.0, log_bound: bound.ln_1p(), runs: 0 }
    }

    /// Learns the noise from the medians of repeated runs; `None` below 4 runs
    /// or when a value is not positive.
    ///
    /// By rank, over all pairs: the noise of a shared machine has two modes as often as
    /// one (a neighbour is there or not), so a deviation times a factor is no bound. A
    /// median absolute deviation, tried first, called 8.4 % of equal pairs different.
    pub fn learn(medians: &[f64]) -> Option<Self> {
        if medians.len() < 4 || medians.iter().any(|m| m.is_nan() || *m <= 0.0) {
            return None;
        }
        let logs: Vec<f64> = medians.iter().map(|m| m.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>();
        let pairs = (0..logs.len()).flat_map(|i| (0..i).map(move |k| (i, k)));
        let differences: Vec<f64> = pairs.map(|(i, k)| (logs[i] - logs[k]).abs()).collect();
        Some(Self {
            log_deviation: (square / (logs.len() - 1) as f64).sqrt(),
            log_bound: statistics::quantile(&statistics::sorted(&differences), EQUAL_SHARE)?,
            runs: medians.len() as u32,
        })
    }

    /// The smallest difference, as a share, that two single runs can prove.
    pub fn provable(&self) -> f64 {
        self.log_bound.exp_m1().max(LEAST_DIFFERENCE)
    }

    /// Compares two runs' medians of one quantity.
    pub fn judge(&self, first: f64, second: f64) -> DifferenceVerdict {
        let difference = (second / first).ln();
        let bound = self.provable().ln_1p();
        if difference > bound {
            DifferenceVerdict::Larger
        } else if difference < -bound {
            DifferenceVerdict::Smaller
        } else {
            DifferenceVerdict::Unproven
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with a deviation of about `deviation`, from a fixed seed.
    fn runs(deviation: f64, seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed;
        let mut uniform = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count)
            .map(|_| {
                // The sum of 12 uniform values is near normal with deviation 1.
                let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                100.0 * (deviation * normal).exp()
            })
            .collect()
    }

    #[test]
    fn equal_runs_are_rarely_called_different_and_a_slowdown_is_found() {
        let values = runs(0.02, 7, 40);
        let noise = Noise::learn(&values).unwrap();
        let (mut called, mut found, mut pairs) = (0, 0, 0);
        for (i, &a) in values.iter().enumerate() {
            for &b in &values[i + 1..] {
                pairs += 1;
                called += usize::from(noise.judge(a, b) != DifferenceVerdict::Unproven);
                found += usize::from(noise.judge(a, b * 1.15) == DifferenceVerdict::Larger);
            }
        }
        assert!(called * 100 <= pairs * 5, "{called} of {pairs}");
        assert!(found * 100 >= pairs * 90, "{found} of {pairs}");
    }

    #[test]
    fn noise_wins_over_a_difference_inside_it() {
        let noise = Noise { log_deviation: 0.1, log_bound: 0.25, runs: 10 };
        assert_eq!(noise.judge(100.0, 120.0), DifferenceVerdict::Unproven);
        assert_eq!(noise.judge(100.0, 150.0), DifferenceVerdict::Larger);
        assert_eq!(noise.judge(150.0, 100.0), DifferenceVerdict::Smaller);
    }

    /// Half of the runs beside a neighbour, half without: neither is news.
    #[test]
    fn a_quantity_with_two_modes_is_not_called_calm() {
        let mut values = runs(0.01, 3, 10);
        values.extend(runs(0.01, 5, 10).iter().map(|value| value * 1.3));
        let noise = Noise::learn(&values).unwrap();
        assert_eq!(noise.judge(100.0, 130.0), DifferenceVerdict::Unproven);
        assert_eq!(noise.judge(100.0, 150.0), DifferenceVerdict::Larger);
    }

    #[test]
    fn what_was_not_learnt_is_taken_as_usual() {
        assert_eq!(Noise::usual(false).judge(100.0, 124.0), DifferenceVerdict::Unproven);
        assert_eq!(Noise::usual(false).judge(100.0, 126.0), DifferenceVerdict::Larger);
        assert_eq!(Noise::usual(true).judge(100.0, 126.0), DifferenceVerdict::Unproven);
    }

    #[test]
    fn too_few_runs_teach_nothing() {
        assert_eq!(Noise::learn(&[1.0, 1.0, 1.0]), None);
        assert_eq!(Noise::learn(&[1.0, 1.0, 1.0, 0.0]), None);
    }
}
