//! Where a figure is far above its usual level.
//!
//! The usual level is the median of all windows, and the spread is what the middle half of them
//! has, so a minute of a day changes neither. A window stands out if it is above the median by five
//! spreads and by the least that matters. What stands out more often than a person would look at is
//! the usual course (a job each hour): of it only what is far larger or longer is kept.

/// So many spreads above the median. Picked: of evenly scattered values one in ten million.
const SPREADS: f64 = 5.0;

/// The middle half of values that scatter evenly around their mean is so much of a spread wide.
const QUARTILE: f64 = 0.6745;

/// More runs of one figure than this are its usual course. Picked: a list has ten.
const MOST_RUNS: usize = 8;

/// Of a usual course a run is kept that is so many times as high, or as heavy, as three quarters
/// of the others.
const HIGHER: f64 = 1.5;
/// The same of height times length.
const HEAVIER: f64 = 3.0;

/// Windows below the level between two that are above it belong to the same run, up to so long.
const GAP_S: f64 = 3.0;

/// The least height times length of a run, in floors times seconds: two seconds at twice the
/// floor, or a second at four times. Picked.
const LEAST_WEIGHT: f64 = 4.0;

/// How far above its floor a figure counts: a device that reads a hundred times as much as matters
/// is not a hundred times as bad.
const MOST_FLOORS: f64 = 8.0;

/// Windows in a row in which a figure stood out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unusual {
    /// The first window.
    pub first: usize,
    /// The last window.
    pub last: usize,
    /// The mean of the figure there.
    pub mean: f64,
    /// Its usual level.
    pub usual: f64,
    /// How much it was above the usual level, in floors, times its length in seconds.
    pub weight: f64,
    /// The highest above the usual level.
    height: f64,
}

/// The runs of windows in which `values` stood out by at least `floor`; a window has `seconds`.
pub fn find(values: &[Option<f64>], floor: f64, seconds: f64) -> Vec<Unusual> {
    let mut known: Vec<f64> = values.iter().flatten().copied().collect();
    if known.is_empty() {
        return Vec::new();
    }
    let usual = quantile(&mut known, 0.5);
    let upper = quantile(&mut known, 0.75) - usual;
    let mut distances: Vec<f64> = known.iter().map(|value| (value - usual).abs()).collect();
    let spread = quantile(&mut distances, 0.5).max(upper) / QUARTILE;
    let level = usual + floor.max(spread * SPREADS);
    let mut found = runs(values, level, (usual, floor), seconds);
    found.retain(|run| run.weight >= LEAST_WEIGHT);
    if found.len() > MOST_RUNS {
        let mut heights: Vec<f64> = found.iter().map(|run| run.height).collect();
        let mut weights: Vec<f64> = found.iter().map(|run| run.weight).collect();
        let (height, weight) = (quantile(&mut heights, 0.75), quantile(&mut weights, 0.75));
        found.retain(|run| run.height > height * HIGHER || run.weight > weight * HEAVIER);
    }
    found
}

fn runs(
    values: &[Option<f64>],
    level: f64,
    (usual, floor): (f64, f64),
    seconds: f64,
) -> Vec<Unusual> {
    let most_gap = (GAP_S / seconds) as usize;
    let mut bounds: Vec<(usize, usize)> = Vec::new();
    for (at, _) in values.iter().enumerate().filter(|(_, value)| value.is_some_and(|v| v > level)) {
        match bounds.last_mut().filter(|(_, last)| at - *last <= most_gap + 1) {
            Some((_, last)) => *last = at,
            None => bounds.push((at, at)),
        }
    }
    let run = |(first, last): (usize, usize)| {
        let inside: Vec<f64> = values[first..=last].iter().flatten().copied().collect();
        let above = |value: &f64| (value - usual).max(0.0);
        let height = inside.iter().map(above).fold(0.0, f64::max);
        let floors = inside.iter().map(|value| (above(value) / floor).min(MOST_FLOORS));
        Unusual {
            first,
            last,
            mean: inside.iter().sum::<f64>() / inside.len().max(1) as f64,
            usual,
            weight: floors.sum::<f64>() * seconds,
            height,
        }
    };
    bounds.into_iter().map(run).collect()
}

/// A quantile of values, which are reordered; 0 of none.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    let at = (values.len() as f64 * share) as usize;
    match values.len() {
        0 => 0.0,
        count => *values.select_nth_unstable_by(at.min(count - 1), f64::total_cmp).1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn a_step_above_the_usual_level_is_found_where_it_is() {
        let values = windows((0..600).map(|at| {
            let noise = f64::from(at * 7919 % 100) / 1000.0;
            if (300..312).contains(&at) { 0.9 } else { 0.05 + noise }
        }));
        let found = find(&values, 0.3, 1.0);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].first, found[0].last), (300, 311));
        assert!((found[0].mean - 0.9).abs() < 1e-9);
        assert!(find(&values, 0.95, 1.0).is_empty(), "below the floor");
    }

    #[test]
    fn what_comes_each_hour_is_usual_and_a_longer_one_is_not() {
        let hourly = |at: i32| if at % 720 < 3 { 1.0 } else { 0.01 };
        assert!(find(&windows((0..17_280).map(hourly)), 0.3, 5.0).is_empty());
        let longer = |at: i32| if (1000..1012).contains(&at) { 1.0 } else { hourly(at) };
        let found = find(&windows((0..17_280).map(longer)), 0.3, 5.0);
        assert_eq!(found.iter().map(|run| run.first).collect::<Vec<_>>(), [1000]);
    }

    #[test]
    fn a_day_and_a_night_are_the_usual_course() {
        let values = windows((0..17_280).map(|at| {
            let hour = f64::from(at) / 720.0;
            0.4 - 0.3 * (hour / 24.0 * std::f64::consts::TAU).cos()
        }));
        assert!(find(&values, 0.3, 5.0).is_empty());
    }

    #[test]
    fn windows_without_a_value_are_no_part_of_it() {
        let mut values = windows((0..100).map(|_| 0.0));
        values[40..60].fill(None);
        assert!(find(&values, 0.1, 1.0).is_empty());
        values[70..75].fill(Some(1.0));
        assert_eq!(find(&values, 0.1, 1.0)[0].first, 70);
        assert!(find(&[], 0.1, 1.0).is_empty());
    }
}
