//! The interval of the median of runs that resemble their neighbours: repetitions of one
//! measurement on a machine that has slow spells.
//!
//! A shared machine is slow for seconds to minutes, then fast again. Runs within one spell agree
//! with each other and not with the next command, so n runs are worth fewer independent ones:
//!
//! 1. At most one, and one more for each `SPELL_S` seconds between the first and the last.
//! 2. At most n (1 - r) / (1 + r), where r is the correlation of neighbours (the effective size of
//!    an autoregressive series of the first order), by their sides of the median.
//! 3. The interval reaches `ERRORS` standard errors of the rank of the median of so many. If the
//!    range of the runs is shorter, its ends are moved away from the median by ratio.

use super::{median, sorted};

/// Fewer runs have no interval: the whole range of 5 values holds the median only with 93.75 %.
pub const LEAST_RUNS: usize = 6;

/// Runs that are nearer than this many seconds count as one. Picked: spells of 10 to 40 s were seen
/// in copies and in reads of a disk on a virtual machine.
const SPELL_S: f64 = 20.0;

/// Two standard errors would do for 95 % if it were known how many runs are independent. That is a
/// guess, so there is one more: the ends are those of 99.7 % if the guess is right.
const ERRORS: f64 = 3.0;

/// Neighbours that resemble each other more than this count as if by this.
const MOST_CORRELATION: f64 = 0.95;

/// The 95 % interval of the median of `values`, one of each run in the order of time, the last of
/// which began `span_s` after the first. `None` below [`LEAST_RUNS`] or if the median is not
/// positive.
#[must_use]
pub fn interval_between_runs(values: &[f64], span_s: f64) -> Option<(f64, f64)> {
    let ranked = sorted(values);
    let middle = median(&ranked).filter(|middle| *middle > 0.0)?;
    if ranked.len() < LEAST_RUNS {
        return None;
    }
    let count = ranked.len() as f64;
    // The standard error of the share of values below the true median is a half over the root, so
    // this is the share of the half range that is needed.
    let needed = ERRORS / independent_runs(values, middle, span_s).sqrt();
    if needed >= 1.0 {
        let farther = |end: f64| middle * (end / middle).powf(needed);
        return Some((farther(*ranked.first()?), farther(*ranked.last()?)));
    }
    let rank = (count * (1.0 - needed) / 2.0).max(1.0) as usize;
    Some((*ranked.get(rank - 1)?, *ranked.get(ranked.len() - rank)?))
}

/// How many independent runs `values` are worth, at least 1.
fn independent_runs(values: &[f64], middle: f64, span_s: f64) -> f64 {
    let sides: Vec<f64> = values
        .iter()
        .filter(|value| !value.is_nan())
        .map(|value| if *value == middle { 0.0 } else { (value - middle).signum() })
        .collect();
    let count = sides.len() as f64;
    let apart: f64 = sides.iter().map(|side| side * side).sum();
    let alike: f64 = sides.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let seen = if apart > 0.0 { alike / apart } else { 0.0 };
    // The values' own median takes 1/n off.
    let correlation = (seen + 1.0 / count).clamp(0.0, MOST_CORRELATION);
    let by_resemblance = count * (1.0 - correlation) / (1.0 + correlation);
    let by_time = 1.0 + span_s.max(0.0) / SPELL_S;
    by_resemblance.min(by_time).clamp(1.0, count.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform in 0 to 1, from a seed.
    struct Draws(u64);

    impl Draws {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -mean * self.uniform().ln()
        }
    }

    /// The value of a machine at each of the times, which ascend, with a true median of about 1.
    type Machine = fn(&mut Draws, &[f64]) -> Vec<f64>;

    /// How an interval is made of values and their span.
    type Interval = fn(&[f64], f64) -> Option<(f64, f64)>;

    /// Independent, nearly normal.
    fn steady(draws: &mut Draws, times: &[f64]) -> Vec<f64> {
        times.iter().map(|_| (0.02 * draws.normal()).exp()).collect()
    }

    /// Independent, with two degrees of freedom: one in fifty is ten deviations away.
    fn heavy_tailed(draws: &mut Draws, times: &[f64]) -> Vec<f64> {
        let draw = |draws: &mut Draws| 0.02 * draws.normal() / draws.exponential(1.0).sqrt();
        times.iter().map(|_| draw(draws).clamp(-4.0, 4.0).exp()).collect()
    }

    /// Independent, three of five fast and the others at three quarters.
    fn two_speeds(draws: &mut Draws, times: &[f64]) -> Vec<f64> {
        let speed = |draws: &mut Draws| if draws.uniform() < 0.6 { 1.0 } else { 0.74 };
        times.iter().map(|_| speed(draws) * (0.02 * draws.normal()).exp()).collect()
    }

    /// Fast for 30 s, slow for 20 s, on average.
    fn spells(draws: &mut Draws, times: &[f64]) -> Vec<f64> {
        let lasts = |draws: &mut Draws, fast| draws.exponential(if fast { 30.0 } else { 20.0 });
        let mut is_fast = draws.uniform() < 0.6;
        let mut until = lasts(draws, is_fast);
        let mut values = Vec::new();
        for time in times {
            while until < *time {
                is_fast = !is_fast;
                until += lasts(draws, is_fast);
            }
            values.push(if is_fast { 1.0 } else { 0.74 } * (0.02 * draws.normal()).exp());
        }
        values
    }

    /// Drifts by 5 % to both sides and comes back, with a time constant of 15 s.
    fn drifting(draws: &mut Draws, times: &[f64]) -> Vec<f64> {
        let mut level = draws.normal();
        let mut before = 0.0;
        let mut values = Vec::new();
        for time in times {
            let kept = (-(time - before) / 15.0_f64).exp();
            level = kept * level + (1.0 - kept * kept).sqrt() * draws.normal();
            before = *time;
            values.push((0.05 * level + 0.01 * draws.normal()).exp());
        }
        values
    }

    const COMMANDS: usize = 1000;

    /// Of so many commands of `runs` runs over `span_s`, which percentage of their intervals holds
    /// the true median, and half their typical width, in percent; of `interval`.
    fn coverage(machine: Machine, runs: usize, span_s: f64, interval: Interval) -> (f64, f64) {
        let mut draws = Draws(1);
        let far: Vec<f64> = (0..20_000).flat_map(|_| machine(&mut draws, &[0.0])).collect();
        let truth = median(&sorted(&far)).unwrap();
        let times: Vec<f64> = (0..runs).map(|k| span_s * k as f64 / (runs - 1) as f64).collect();
        let found: Vec<(f64, f64)> =
            (0..COMMANDS).filter_map(|_| interval(&machine(&mut draws, &times), span_s)).collect();
        assert_eq!(found.len(), COMMANDS);
        let held = found.iter().filter(|(low, high)| (*low..=*high).contains(&truth)).count();
        let widths: Vec<f64> = found.iter().map(|(low, high)| 50.0 * (high - low)).collect();
        (100.0 * held as f64 / COMMANDS as f64, median(&sorted(&widths)).unwrap())
    }

    const MACHINES: [(&str, Machine); 5] = [
        ("steady", steady),
        ("heavy-tailed", heavy_tailed),
        ("two speeds", two_speeds),
        ("spells", spells),
        ("drifting", drifting),
    ];

    #[test]
    fn runs_over_a_minute_hold_the_true_median_of_every_machine() {
        for (name, machine) in MACHINES {
            let (held, width) = coverage(machine, 9, 60.0, interval_between_runs);
            println!("{name}: {held} %, +- {width:.1} %");
            assert!(held >= 95.0, "{name}: {held} %");
            // Half the range of one machine's speeds is 15 %, and three deviations are 6 %.
            assert!(width < 25.0, "{name}: +- {width:.1} %");
        }
    }

    /// Why the runs are spread, and why their own range will not do: both are seen to fail here.
    #[test]
    fn runs_at_once_and_their_plain_ranks_are_too_narrow_for_spells() {
        let by_rank = |values: &[f64], _| super::super::median_interval(&sorted(values));
        for (name, machine) in [("spells", spells as Machine), ("drifting", drifting)] {
            let at_once = coverage(machine, 9, 3.0, interval_between_runs).0;
            assert!(at_once < 85.0, "{name}: {at_once} % of runs within 3 s");
            let plain = coverage(machine, 9, 60.0, by_rank).0;
            assert!(plain < 90.0, "{name}: {plain} % by rank");
            let together = coverage(machine, 9, 3.0, by_rank).0;
            assert!(together < 60.0, "{name}: {together} % by rank within 3 s");
        }
    }

    #[test]
    fn more_runs_and_more_time_narrow_it() {
        let width = |runs, span_s| coverage(steady, runs, span_s, interval_between_runs).1;
        assert!(width(9, 3.0) > 1.3 * width(9, 60.0));
        assert!(width(9, 60.0) > 1.3 * width(9, 600.0));
        assert!(width(9, 600.0) > 1.3 * width(50, 6000.0));
        let (held, _) = coverage(steady, 50, 6000.0, interval_between_runs);
        assert!(held >= 95.0, "{held} %");
    }

    #[test]
    fn the_ends_are_where_they_are_said_to_be() {
        // At once they count as one: three times as far from 13.55 as the runs, as a ratio.
        let values = [13.3, 13.9, 13.6, 13.5, 13.7, 13.4];
        let near = |found: f64, end: f64| (found / end - 1.0).abs() < 1e-9;
        let (low, high) = interval_between_runs(&values, 0.0).unwrap();
        assert!(near(low, 13.55 * (13.3_f64 / 13.55).powi(3)), "{low}");
        assert!(near(high, 13.55 * (13.9_f64 / 13.55).powi(3)), "{high}");
        // Nine in turn, far apart: their range. Those that climb are worth fewer.
        let turns = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0];
        assert_eq!(interval_between_runs(&turns, 1e4), Some((1.0, 9.0)));
        let climbing = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert!(interval_between_runs(&climbing, 1e4).unwrap().0 < 0.5);
        // Of 100 in turn 35 are below it.
        let many: Vec<f64> = (0..100).map(|i| f64::from(1 + i / 2 + 50 * (i % 2))).collect();
        assert_eq!(interval_between_runs(&many, 1e6), Some((35.0, 66.0)));
        assert_eq!(interval_between_runs(&[2.0; 9], 60.0), Some((2.0, 2.0)));
        assert_eq!(interval_between_runs(&values[..5], 60.0), None);
        assert_eq!(interval_between_runs(&[0.0; 9], 60.0), None);
    }
}
