//! How sure a sum over blocks of time is: the 95 % interval of drawing the blocks anew.
//!
//! The percentile interval of few blocks is too narrow. It is widened by what Student's t is wider
//! than the normal distribution, and by what drawing with replacement loses (`n / (n - 1)`).

use model::statistics::bootstrap;

/// The normal distribution's bound of 95 %.
const NORMAL: f64 = 1.96;

/// The interval of the sum of `values`, one of each block; `None` of fewer than four blocks.
pub(super) fn of_sum(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let sum: f64 = values.iter().sum();
    let (low, high) = bootstrap::interval((count, count), |drawn, _| {
        drawn.iter().map(|&index| values[index]).sum()
    })?;
    let factor = widening(count);
    Some((sum - (sum - low) * factor, sum + (high - sum) * factor))
}

/// By how much an interval of so many blocks is widened.
fn widening(count: usize) -> f64 {
    let freedom = count.saturating_sub(1).max(1) as f64;
    student(freedom) / NORMAL * (count as f64 / freedom).sqrt()
}

/// The bound of 95 % of Student's distribution: the expansion of Cornish and Fisher.
fn student(freedom: f64) -> f64 {
    let z = NORMAL;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_blocks_widen_the_interval() {
        for (freedom, expected) in [(5.0, 2.571), (11.0, 2.201), (100.0, 1.984)] {
            assert!((student(freedom) - expected).abs() < 0.01, "{}", student(freedom));
        }
        assert!(widening(6) > 1.4 && widening(288) < 1.01);
        assert_eq!(of_sum(&[1.0; 3]), None);
        assert_eq!(of_sum(&[2.0; 6]), Some((12.0, 12.0)));
        let (low, high) = of_sum(&[0.0, 10.0, 20.0, 0.0, 10.0, 20.0]).unwrap();
        assert!(low < 25.0 && high > 95.0, "{low} {high}");
    }
}
