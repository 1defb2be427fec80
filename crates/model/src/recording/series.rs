//! One value over time, kept as its changes: most counters are constant most of the time,
//! and an hour of a thousand counters must fit in memory.

use super::{StepIter, Steps};
use serde::{Deserialize, Serialize};

/// What the numbers mean to arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Only grows; its growth is what counts.
    #[default]
    Counter,
    /// A level at an instant.
    Gauge,
}

/// What one series is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Its number in the file, from 0, never used twice.
    pub id: u32,
    /// Its name: `vmstat.pgfault`, `disk.vda.read_bytes`; all are in docs/counters.md.
    pub name: String,
    /// The unit: `ns`, `bytes`, `pages`, `count`.
    pub unit: String,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// Where it comes from: `/proc/vmstat`.
    pub source: String,
    /// How often the kernel refreshes it, where that is slower than the recorder may ask.
    pub refresh_ns: Option<u64>,
}

/// From a sample on, the series has this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStep {
    /// The number of the sample, an index into the recording's ticks.
    pub sample: u32,
    /// The value; `None` where it is absent from here on.
    pub value: Option<i64>,
}

/// One value over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// What it is.
    pub schema: Schema,
    /// Its changes, in order of their sample; before the first one it is absent.
    pub steps: Steps,
}

impl Series {
    /// The value at a sample.
    #[must_use]
    pub fn at(&self, sample: u32) -> Option<i64> {
        self.since(sample).0
    }

    /// Notes the value at a sample; samples come in order, and of several values at one sample
    /// the last one holds.
    pub fn push(&mut self, sample: u32, value: Option<i64>) {
        if self.steps.last().is_some_and(|last| last.sample >= sample) {
            self.steps.pop();
        }
        let before = self.steps.last().and_then(|step| step.value);
        if before != value {
            self.steps.push(SeriesStep { sample, value });
        }
    }

    /// Gives each change another sample, in the same order: of several at one sample the last
    /// one holds.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        let steps = std::mem::take(&mut self.steps);
        for SeriesStep { sample, value } in &steps {
            self.push(number(sample), value);
        }
    }

    /// How much a counter grew from sample `from` to sample `to`, resets left out: the sum
    /// of its increases. `None` if it was never present there.
    #[must_use]
    pub fn growth(&self, from: u32, to: u32) -> Option<u64> {
        let (mut last, changes) = self.since(from);
        let mut seen = last.is_some();
        let mut sum = 0u64;
        for step in changes.take_while(|step| step.sample <= to) {
            if let (Some(before), Some(now)) = (last, step.value) {
                let step = u64::try_from(now.saturating_sub(before)).unwrap_or(0);
                sum = sum.saturating_add(step);
            }
            seen |= step.value.is_some();
            last = step.value.or(last);
        }
        seen.then_some(sum)
    }

    /// The largest value from sample `from` to sample `to`, both included.
    #[must_use]
    pub fn max(&self, from: u32, to: u32) -> Option<i64> {
        let changes = self.within(from, to).filter_map(|step| step.value);
        changes.chain(self.at(from)).max()
    }

    /// The smallest value from sample `from` to sample `to`, both included.
    #[must_use]
    pub fn min(&self, from: u32, to: u32) -> Option<i64> {
        let changes = self.within(from, to).filter_map(|step| step.value);
        changes.chain(self.at(from)).min()
    }

    /// The changes after sample `from`, up to and with sample `to`.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = SeriesStep> + '_ {
        let (_, changes) = self.since(from);
        changes.take_while(move |step| step.sample <= to)
    }

    /// The value at `sample`, and the changes after it.
    fn since(&self, sample: u32) -> (Option<i64>, StepIter<'_>) {
        let (held, changes) = self.steps.split(sample);
        (held.and_then(|step| step.value), changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[Option<i64>]) -> Series {
        let mut series = Series::default();
        for (sample, value) in values.iter().enumerate() {
            series.push(sample as u32, *value);
        }
        series
    }

    #[test]
    fn only_changes_are_kept_and_all_values_are_found() {
        let values = [None, Some(5), Some(5), Some(7), None, Some(9)];
        let series = series(&values);
        assert_eq!(series.steps.len(), 4);
        for (sample, value) in values.iter().enumerate() {
            assert_eq!(series.at(sample as u32), *value, "sample {sample}");
        }
        assert_eq!(series.at(99), Some(9));
    }

    #[test]
    fn of_several_values_at_one_sample_the_last_one_holds() {
        let mut series = series(&[Some(5), Some(7), Some(7), Some(8), Some(7)]);
        series.renumber(|sample| sample.div_ceil(2));
        let steps: Vec<_> = series.steps.iter().map(|s| (s.sample, s.value)).collect();
        assert_eq!(steps, [(0, Some(5)), (1, Some(7))]);
        series.push(1, Some(5));
        assert_eq!((series.steps.len(), series.at(9)), (1, Some(5)));
    }

    #[test]
    fn growth_leaves_resets_out_and_bridges_gaps() {
        let series = series(&[Some(10), Some(15), Some(2), Some(4), None, Some(6)]);
        assert_eq!(series.growth(0, 5), Some(5 + 2 + 2));
        assert_eq!(series.growth(1, 2), Some(0), "a reset is no growth");
        assert_eq!(series.growth(3, 4), Some(0));
        assert_eq!(Series::default().growth(0, 9), None);
    }

    #[test]
    fn extremes_count_the_value_that_held_at_the_start() {
        let series = series(&[Some(3), Some(9), Some(1)]);
        assert_eq!(series.max(0, 2), Some(9));
        assert_eq!(series.min(0, 1), Some(3));
        assert_eq!(series.min(2, 2), Some(1));
        assert_eq!(series.max(7, 7), Some(1));
    }
}
