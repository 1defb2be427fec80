//! A recording cut into windows of equal length, and what a counter grew in each of them.
//!
//! Growth between two samples counts in the window of the middle between them; windows are at
//! least twice as long as samples are apart. What was not sampled is not watched: a window without
//! samples has no value, and growth over a pause counts nowhere.

use crate::recording::view::begins_at_zero;
use model::recording::{Recording, Series};

const SECOND_NS: u64 = 1_000_000_000;

/// The most windows: of a day each has 5 s, so that a minute has a dozen. Picked.
const MOST_WINDOWS: u64 = 17_280;

/// A window of which less than this was sampled has no value.
const LEAST_SAMPLED: f64 = 0.3;

/// Nothing was watched in a longer interval between two samples. Picked.
const PAUSE_NS: u64 = 10 * SECOND_NS;

/// The windows of a recording.
#[derive(Debug)]
pub struct Windows {
    length_ns: u64,
    end_ns: u64,
    /// When each sample was taken.
    at_ns: Vec<u64>,
    /// How much of each window was sampled.
    sampled_ns: Vec<u64>,
}

impl Windows {
    /// The windows of a recording.
    pub fn of(recording: &Recording) -> Self {
        let at_ns: Vec<u64> = recording.ticks.iter().map(|tick| tick.at_ns).collect();
        let end_ns = at_ns.last().copied().unwrap_or(0);
        let mut periods: Vec<u64> = at_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = periods.len() / 2;
        let usual_ns = match periods.get(middle) {
            Some(_) => *periods.select_nth_unstable(middle).1,
            None => 0,
        };
        // A damaged recording may last for ever.
        let twice_ns = usual_ns.saturating_mul(2);
        let least_ns = (end_ns / MOST_WINDOWS).max(twice_ns).max(SECOND_NS);
        let length_ns = least_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS);
        let count = usize::try_from(end_ns / length_ns + 1).unwrap_or(1);
        let mut windows = Self { length_ns, end_ns, at_ns, sampled_ns: vec![0; count] };
        for sample in 1..windows.at_ns.len() {
            let period_ns = windows.period_ns(sample);
            if let Some(at) = windows.index(sample) {
                windows.sampled_ns[at] += period_ns;
            }
        }
        windows
    }

    /// How many have a value.
    pub fn watched(&self) -> usize {
        (0..self.sampled_ns.len()).filter(|at| self.is_watched(*at)).count()
    }

    /// The length of each.
    pub fn seconds(&self) -> f64 {
        self.length_ns as f64 / SECOND_NS as f64
    }

    /// Since the start: the first instant of one and the last of another.
    pub fn bounds(&self, first: usize, last: usize) -> (u64, u64) {
        let start = self.length_ns.saturating_mul(first as u64);
        let end = self.length_ns.saturating_mul(last as u64 + 1);
        (start.min(self.end_ns), end.min(self.end_ns))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sampled_ns.len()
    }

    /// How much `series` grew a second in each window; added to `rates`. Resets are left out.
    pub fn add_growth(&self, series: &Series, rates: &mut [f64]) {
        let mut before: Option<i64> = begins_at_zero(&series.schema.name).then_some(0);
        for step in &series.steps {
            let (sample, now) = (step.sample as usize, step.value);
            if let (Some(before), Some(now)) = (before, now)
                && now > before
                && let Some(at) = self.index(sample)
            {
                rates[at] += now.saturating_sub(before) as f64;
            }
            before = now.or(before);
        }
    }

    /// Sums of growth as rates a second; `None` for what was not watched.
    pub fn rates(&self, grown: &[f64], scale: f64) -> Vec<Option<f64>> {
        let seconds = |at: usize| self.sampled_ns[at] as f64 / SECOND_NS as f64;
        let rate =
            |(at, grown): (usize, &f64)| self.is_watched(at).then(|| grown / seconds(at) * scale);
        grown.iter().enumerate().map(rate).collect()
    }

    /// Shares out what happened evenly between two instants over the windows; added to `sums`.
    pub fn add_evenly(&self, from_ns: u64, to_ns: u64, amount: f64, sums: &mut [f64]) {
        let to_ns = to_ns.min(self.end_ns);
        let from_ns = from_ns.min(to_ns);
        let whole_ns = (to_ns - from_ns).max(1) as f64;
        let first = from_ns / self.length_ns;
        let last = to_ns.saturating_sub(1).max(from_ns) / self.length_ns;
        for at in first..=last {
            let start = (at * self.length_ns).max(from_ns);
            let end = (at + 1).saturating_mul(self.length_ns).min(to_ns);
            let share = if to_ns > from_ns { (end - start) as f64 / whole_ns } else { 1.0 };
            if let Some(sum) = usize::try_from(at).ok().and_then(|at| sums.get_mut(at)) {
                *sum += amount * share;
            }
        }
    }

    fn is_watched(&self, at: usize) -> bool {
        self.sampled_ns[at] as f64 >= self.length_ns as f64 * LEAST_SAMPLED
    }

    fn period_ns(&self, sample: usize) -> u64 {
        self.at_ns[sample] - self.at_ns[sample - 1]
    }

    /// The window in which the interval before a sample counts; `None` after a pause.
    fn index(&self, sample: usize) -> Option<usize> {
        let before_ns = *self.at_ns.get(sample.checked_sub(1)?)?;
        let now_ns = *self.at_ns.get(sample)?;
        let is_pause = now_ns - before_ns > self.length_ns.max(PAUSE_NS);
        let at = usize::try_from(before_ns.midpoint(now_ns) / self.length_ns).ok()?;
        (!is_pause && at < self.sampled_ns.len()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::Tick;

    #[test]
    fn a_damaged_recording_that_lasts_for_ever_has_windows() {
        let tick = |at_ns| Tick { at_ns, ..Tick::default() };
        let ticks = vec![tick(0), tick(u64::MAX - 1), tick(u64::MAX)];
        let windows = Windows::of(&Recording { ticks, ..Recording::default() });
        assert!(windows.count() <= 2);
        let mut sums = vec![0.0; windows.count()];
        windows.add_evenly(u64::MAX - 9, u64::MAX, 8.0, &mut sums);
        assert_eq!(sums.iter().sum::<f64>(), 8.0);
    }
}
