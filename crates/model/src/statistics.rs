//! Statistics of repeated trials: quantiles and the interval of the median. Two sets of
//! runs are compared by [`ranks`] and [`bootstrap`]; blocks of time within one run by [`blocks`];
//! runs that follow each other on a machine with slow spells have the interval of [`spells`].
//!
//! Everything is by rank, nothing assumes a normal distribution: times on a
//! shared machine have one hard floor and a long tail. The interval of the
//! median is the classic one by order statistics (Conover, *Practical
//! Nonparametric Statistics*, 3.2): exact for any continuous distribution.

pub mod blocks;
pub mod bootstrap;
pub mod ranks;
pub mod spells;

/// The `q` quantile (0 to 1) of `sorted` with linear interpolation; `None` when empty.
///
/// `sorted` must be in ascending order.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    let share = position - below as f64;
    Some(sorted[below] + (sorted[above] - sorted[below]) * share)
}

/// The median of `sorted`; `None` when empty.
pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile(sorted, 0.5)
}

/// A copy of `values` in ascending order, without the ones that are not numbers.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The 95 % interval of the median, by order statistics.
///
/// `None` below 6 values: the whole range of 5 values covers the median only
/// with 93.75 % probability, so no honest 95 % interval exists.
pub fn median_interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    // The largest rank k with P(X < k) <= 2.5 %, X binomial(n, 1/2); the interval
    // is then (x_k, x_{n+1-k}) counted from 1.
    let mut below = 0.0;
    let mut rank = 0;
    for k in 0..n / 2 {
        below += binomial_half(n, k);
        if below > 0.025 {
            break;
        }
        rank = k + 1;
    }
    (rank > 0).then(|| (sorted[rank - 1], sorted[n - rank]))
}

/// The probability of exactly `k` heads in `n` fair throws, by logarithms so that
/// large `n` does not underflow.
fn binomial_half(n: usize, k: usize) -> f64 {
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    for i in 0..k {
        log += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    log.exp()
}

/// The relative spread of `sorted`: interquartile range over the median.
///
/// `None` when there are fewer than 4 values or the median is 0.
pub fn spread(sorted: &[f64]) -> Option<f64> {
    let middle = median(sorted)?;
    if sorted.len() < 4 || middle == 0.0 {
        return None;
    }
    Some((quantile(sorted, 0.75)? - quantile(sorted, 0.25)?) / middle.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
    }

    #[test]
    fn the_interval_has_the_ranks_of_the_published_tables() {
        let ranks = |n: usize| {
            let values: Vec<f64> = (1..=n).map(|v| v as f64).collect();
            median_interval(&values)
        };
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(9), Some((2.0, 8.0)));
        assert_eq!(ranks(20), Some((6.0, 15.0)));
        assert_eq!(ranks(100), Some((40.0, 61.0)));
    }

    /// Coverage, counted: the interval of 15 draws holds the true median in at
    /// least 95 % of 2,000 experiments (96.5 % in theory at
    /// n = 15), and it is not the whole range.
    #[test]
    fn the_interval_covers_the_true_median() {
        let mut state = 12345_u64;
        let mut draw = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Skewed on purpose: the square has its median at 0.25.
            let u = (state >> 11) as f64 / (1_u64 << 53) as f64;
            u * u
        };
        let mut held = 0;
        for _ in 0..2000 {
            let values = sorted(&(0..15).map(|_| draw()).collect::<Vec<_>>());
            let (low, high) = median_interval(&values).unwrap();
            assert!(low > values[0] && high < values[14]);
            held += usize::from(low <= 0.25 && 0.25 <= high);
        }
        assert!(held >= 1890, "{held} of 2000");
    }

    proptest! {
        #[test]
        fn quantiles_are_monotonic_and_inside(mut values in prop::collection::vec(0.0..1e9_f64, 1..60), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
            values.sort_by(f64::total_cmp);
            let (a, b) = (a.min(b), a.max(b));
            let (qa, qb) = (quantile(&values, a).unwrap(), quantile(&values, b).unwrap());
            prop_assert!(qa <= qb);
            prop_assert!(values[0] <= qa && qb <= values[values.len() - 1]);
        }
    }
}
