//! Where a rate stops growing with the queue depth.
//!
//! The search starts at the deepest point and walks towards shallow ones as long
//! as the rate stays within a tolerance. A plateau counts when its ends lie far
//! enough apart that a device with free capacity would have shown it.

use crate::numbers::sound;
use model::probe::DepthRate;

/// The deep end must hold this many times the requests of the shallow one: a
/// device that has room serves four requests at once at least half as fast again.
pub(super) const LEAST_REACH: u32 = 4;

/// A range of queue depths over which a rate does not grow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plateau {
    /// The shallow end.
    pub(super) from: DepthRate,
    /// The deep end.
    pub(super) to: DepthRate,
}

/// The plateau of `rate` over `points` of one block size, within `tolerance` (a
/// share of the deepest point's rate); `Err` says why it cannot be judged.
pub(super) fn plateau(
    points: &[&DepthRate],
    rate: fn(&DepthRate) -> f64,
    tolerance: f64,
) -> Result<Option<Plateau>, &'static str> {
    let (points, _, deepest) = by_depth(points, rate)?;
    let top = rate(deepest);
    let from = points
        .iter()
        .rev()
        .take_while(|point| (rate(point) / top - 1.0).abs() <= tolerance)
        .last()
        .copied()
        .unwrap_or(deepest);
    Ok((deepest.depth / from.depth >= LEAST_REACH)
        .then(|| Plateau { from: from.clone(), to: deepest.clone() }))
}

/// How many times `rate` grows from the shallowest to the deepest of `points`;
/// `Err` says why it cannot be judged.
pub(super) fn growth(
    points: &[&DepthRate],
    rate: fn(&DepthRate) -> f64,
) -> Result<f64, &'static str> {
    let (_, shallowest, deepest) = by_depth(points, rate)?;
    Ok(rate(deepest) / rate(shallowest))
}

/// The points that can be judged in ascending order of depth, the first, the last.
fn by_depth<'a>(
    points: &[&'a DepthRate],
    rate: fn(&DepthRate) -> f64,
) -> Result<(Vec<&'a DepthRate>, &'a DepthRate, &'a DepthRate), &'static str> {
    let mut points: Vec<&DepthRate> = points
        .iter()
        .filter(|point| sound(rate(point)).is_some() && point.depth > 0)
        .copied()
        .collect();
    points.sort_by_key(|point| point.depth);
    let (Some(&shallowest), Some(&deepest)) = (points.first(), points.last()) else {
        return Err("reads at several queue depths were not measured");
    };
    if deepest.depth / shallowest.depth < LEAST_REACH {
        return Err("the queue depths that were tried are too near to each other");
    }
    Ok((points, shallowest, deepest))
}

/// The points with the largest blocks of at least `least_bytes`.
pub(super) fn large_blocks(points: &[DepthRate], least_bytes: u64) -> Vec<&DepthRate> {
    let sizes = points.iter().map(|point| point.block_bytes);
    let largest = sizes.filter(|&size| size >= least_bytes).max();
    of_size(points, largest)
}

/// The points with the smallest blocks of at most `most_bytes`.
pub(super) fn small_blocks(points: &[DepthRate], most_bytes: u64) -> Vec<&DepthRate> {
    let sizes = points.iter().map(|point| point.block_bytes);
    let smallest = sizes.filter(|&size| size > 0 && size <= most_bytes).min();
    of_size(points, smallest)
}

fn of_size(points: &[DepthRate], size: Option<u64>) -> Vec<&DepthRate> {
    points.iter().filter(|point| Some(point.block_bytes) == size).collect()
}

impl Plateau {
    /// How many times the requests of the shallow end the deep one holds.
    pub(super) fn reach(&self) -> f64 {
        f64::from(self.to.depth) / f64::from(self.from.depth.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rates: &[(u32, f64)]) -> Vec<DepthRate> {
        rates
            .iter()
            .map(|&(depth, requests_per_s)| DepthRate {
                depth,
                block_bytes: 4096,
                requests_per_s,
                ..DepthRate::default()
            })
            .collect()
    }

    fn of(rates: &[(u32, f64)]) -> Result<Option<(u32, u32)>, &'static str> {
        let points = points(rates);
        let refs: Vec<&DepthRate> = points.iter().collect();
        plateau(&refs, |p| p.requests_per_s, 0.05)
            .map(|found| found.map(|p| (p.from.depth, p.to.depth)))
    }

    #[test]
    fn a_plateau_starts_where_the_rate_stops_growing() {
        let rates = [(1, 800.0), (4, 2990.0), (16, 3001.0), (32, 3000.0)];
        assert_eq!(of(&rates), Ok(Some((4, 32))));
    }

    #[test]
    fn growth_and_a_short_flat_end_are_none() {
        assert_eq!(of(&[(1, 18.6e3), (4, 46.4e3), (32, 78.4e3)]), Ok(None));
        assert_eq!(of(&[(1, 10.0), (16, 100.0), (32, 100.0)]), Ok(None));
    }

    #[test]
    fn too_few_depths_are_no_answer() {
        assert!(of(&[]).is_err());
        assert!(of(&[(1, 10.0), (2, 10.0)]).is_err());
        assert!(of(&[(1, f64::NAN), (32, 10.0)]).is_err());
        assert!(of(&[(1, 10.0), (3, 10.0)]).is_err());
        assert_eq!(of(&[(1, 10.0), (4, 10.0)]), Ok(Some((1, 4))));
    }
}
