//! The knee of a long write: where a burst ends and the rate falls to what lasts.
//!
//! One change point: of all cuts, the one that leaves the least squared error of the logarithm of
//! the rate on both sides. It is a knee only if the rate falls by a factor and hardly any stretch
//! is on the wrong side; a rate that swings around one value has none.

use model::Estimate;
use model::estimate::Better;
use model::qualification::TransferRate;

/// A fall by less is noise or the outer and inner tracks of a hard disk. Picked: half of
/// what the caches of sticks were seen to make (3 to 10 times).
const LEAST_FALL: f64 = 1.5;
/// The share of stretches that may be on the wrong side of the middle.
const MOST_WRONG: f64 = 0.2;
/// The stretches that must follow: one slow stretch at the end is no rate that lasts.
const LEAST_AFTER: usize = 3;
/// Into how many trials a transfer is divided for its interval: a stall that comes back then
/// weighs in each as it weighs in all.
const TRIALS: usize = 12;

/// The index of the first stretch after the knee; `None` without one.
pub(super) fn find(series: &[TransferRate]) -> Option<usize> {
    let logs: Vec<f64> = series.iter().map(|at| at.bytes_per_s.max(1.0).ln()).collect();
    let last_cut = series.len().checked_sub(LEAST_AFTER)?;
    let best = (1..=last_cut).min_by(|&a, &b| error(&logs, a).total_cmp(&error(&logs, b)))?;
    let (before, after) = series.split_at(best);
    let (fast, slow) = (rate(before)?, rate(after)?);
    if fast < slow * LEAST_FALL {
        return None;
    }
    let middle = (fast * slow).sqrt();
    let wrong_before = before.iter().filter(|at| at.bytes_per_s < middle).count();
    let wrong_after = after.iter().filter(|at| at.bytes_per_s > middle).count();
    let is_clear = wrong_before as f64 <= before.len() as f64 * MOST_WRONG
        && wrong_after as f64 <= after.len() as f64 * MOST_WRONG;
    is_clear.then_some(best)
}

/// The stretches whose rate lasts: what follows the knee, but for the stretch in which it is.
pub(super) fn lasting(series: &[TransferRate], knee: Option<usize>) -> &[TransferRate] {
    let from = knee.map_or(0, |knee| {
        let is_long = series.len() > knee + LEAST_AFTER;
        if is_long { knee + 1 } else { knee }
    });
    series.get(from..).unwrap_or_default()
}

/// Bytes over time of all stretches; `None` without time.
pub(super) fn rate(series: &[TransferRate]) -> Option<f64> {
    let ns: u64 = series.iter().map(|at| at.wall_ns).sum();
    let bytes: f64 = series.iter().map(|at| at.bytes_per_s * at.wall_ns as f64 / 1e9).sum();
    (ns > 0).then(|| bytes * 1e9 / ns as f64)
}

/// The rate with its interval, from a few trials of as many stretches each.
pub(super) fn estimate(series: &[TransferRate]) -> Option<Estimate> {
    let each = series.len().div_ceil(TRIALS).max(1);
    let rates: Vec<f64> = series.chunks(each).filter_map(rate).collect();
    // The last trial may be a single stretch.
    let whole = if rates.len() > 1 && !series.len().is_multiple_of(each) {
        &rates[..rates.len() - 1]
    } else {
        &rates[..]
    };
    let mut estimate = Estimate::from_values(whole, Better::Higher, 0)?;
    // Every byte counts in the figure itself: a median would hide stalls.
    estimate.median = rate(series)?;
    estimate.low = estimate.low.map(|low| low.min(estimate.median));
    estimate.high = estimate.high.map(|high| high.max(estimate.median));
    Some(estimate)
}

/// The squared error of both sides around their means.
fn error(logs: &[f64], cut: usize) -> f64 {
    let (before, after) = logs.split_at(cut);
    squares(before) + squares(after)
}

fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: f64 = 1048576.0;

    fn series(rates: &[f64]) -> Vec<TransferRate> {
        let at = |&bytes_per_s| TransferRate { from_bytes: 0, wall_ns: 100_000_000, bytes_per_s };
        rates.iter().map(at).collect()
    }

    #[test]
    fn a_burst_ends_where_the_rate_falls() {
        let mut rates = vec![40.0 * MIB; 16];
        rates.extend([6.0, 7.0, 6.5, 0.9, 7.0, 6.0, 6.8].map(|rate| rate * MIB));
        let all = series(&rates);
        assert_eq!(find(&all), Some(16));
        assert_eq!(lasting(&all, Some(16)).len(), 6, "without the stretch with the knee in it");
        assert_eq!((lasting(&all, Some(20)).len(), lasting(&all, None).len()), (3, 23));
        let slow = estimate(&all[16..]).unwrap();
        assert!(slow.median > 5.0 * MIB && slow.median < 7.0 * MIB, "{slow:?}");
        assert!(slow.low <= Some(slow.median) && slow.high >= Some(slow.median));
    }

    #[test]
    fn what_swings_drifts_or_gets_faster_has_no_knee() {
        let swings: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 30e6 } else { 5e6 }).collect();
        assert_eq!(find(&series(&swings)), None);
        let drifts: Vec<f64> = (0..40).map(|i| 30e6 - f64::from(i) * 2e5).collect();
        assert_eq!(find(&series(&drifts)), None);
        assert_eq!(find(&series(&[5e6, 5e6, 5e6, 40e6, 40e6, 40e6])), None);
        assert_eq!(find(&series(&[40e6; 10])), None);
        // One slow stretch at the end is a stall.
        assert_eq!(find(&series(&[40e6, 40e6, 40e6, 40e6, 40e6, 5e6])), None);
        assert_eq!(find(&[]), None);
    }

    proptest! {
        #[test]
        fn a_fall_is_found_wherever_it_is(
            before in 2_usize..60,
            after in 4_usize..60,
            factor in 2.0..20.0_f64,
            noise in prop::collection::vec(0.9..1.1_f64, 120),
        ) {
            let rate = |index: usize| {
                let base = if index < before { 30e6 } else { 30e6 / factor };
                base * noise[index]
            };
            let all: Vec<f64> = (0..before + after).map(rate).collect();
            prop_assert_eq!(find(&series(&all)), Some(before));
        }
    }
}
