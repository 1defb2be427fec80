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
    /// Standard deviation of the logarithm, estimated robustly: 0.02 is about 2 %.
    pub log_deviation: f64,
    /// How many runs it was learnt from.
    pub runs: u32,
}

/// What can be said of a second result beside a first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is larger by more than the noise explains.
    Larger,
    /// The second is smaller by more than the noise explains.
    Smaller,
    /// The noise explains the difference.
    Unproven,
}

impl Noise {
    /// Learns the noise from the medians of repeated runs; `None` below 4 runs
    /// or when a value is not positive.
    ///
    /// The deviation is the larger of two estimates: the median absolute
    /// deviation, which one odd run cannot inflate, and a third of the plain
    /// standard deviation, so that a quantity with two modes is not called calm.
    pub fn learn(medians: &[f64]) -> Option<Self> {
        if medians.len() < 4 || medians.iter().any(|m| m.is_nan() || *m <= 0.0) {
            return None;
        }
        let logs = statistics::sorted(&medians.iter().map(|m| m.ln()).collect::<Vec<_>>());
        let middle = statistics::median(&logs)?;
        let distances =
            statistics::sorted(&logs.iter().map(|l| (l - middle).abs()).collect::<Vec<_>>());
        // 1.4826 makes the median absolute deviation of a normal distribution its deviation.
        let robust = 1.4826 * statistics::median(&distances)?;
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>();
        let plain = (square / (logs.len() - 1) as f64).sqrt();
        Some(Self {
            log_deviation: robust.max(plain / 3.0),
            runs: medians.len() as u32,
        })
    }

    /// The smallest difference, as a share, that two single runs can prove.
    ///
    /// 2.6 deviations of a difference of two runs (root 2 each): 1 % of equal pairs
    /// lie beyond when the noise is normal and well known; the rest of the 5 % that
    /// the A/A rule allows is for heavier tails and a deviation learnt from few runs.
    pub fn provable(&self) -> f64 {
        (2.6 * std::f64::consts::SQRT_2 * self.log_deviation)
            .exp_m1()
            .max(LEAST_DIFFERENCE)
    }

    /// Compares two runs' medians of one quantity.
    pub fn judge(&self, first: f64, second: f64) -> Verdict {
        let difference = (second / first).ln();
        let bound = self.provable().ln_1p();
        if difference > bound {
            Verdict::Larger
        } else if difference < -bound {
            Verdict::Smaller
        } else {
            Verdict::Unproven
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
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
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
                called += usize::from(noise.judge(a, b) != Verdict::Unproven);
                found += usize::from(noise.judge(a, b * 1.15) == Verdict::Larger);
            }
        }
        assert!(called * 100 <= pairs * 5, "{called} of {pairs}");
        assert!(found * 100 >= pairs * 90, "{found} of {pairs}");
    }

    #[test]
    fn noise_wins_over_a_difference_inside_it() {
        let noise = Noise {
            log_deviation: 0.1,
            runs: 10,
        };
        assert_eq!(noise.judge(100.0, 120.0), Verdict::Unproven);
        assert_eq!(noise.judge(100.0, 150.0), Verdict::Larger);
        assert_eq!(noise.judge(150.0, 100.0), Verdict::Smaller);
    }

    #[test]
    fn one_odd_run_does_not_hide_a_slowdown() {
        let mut values = runs(0.01, 3, 19);
        values.push(180.0);
        let noise = Noise::learn(&values).unwrap();
        assert!(noise.provable() < 0.2, "{noise:?}");
    }

    #[test]
    fn too_few_runs_teach_nothing() {
        assert_eq!(Noise::learn(&[1.0, 1.0, 1.0]), None);
        assert_eq!(Noise::learn(&[1.0, 1.0, 1.0, 0.0]), None);
    }
}
