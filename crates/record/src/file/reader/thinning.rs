//! Which samples of a recording are kept. All, as long as they fit; then every second, every
//! fourth and so on, and always the first and the last one.
//!
//! A change at a sample that goes counts from the next one that is kept. So every kept sample
//! has all its values, and a counter grows by the same between any two of them.

use super::Limits;
use crate::file::columns::Sink;
use crate::registry::ABSENT;
use model::duration::show_ns;
use model::recording::{Recording, Series, Tick};

/// Memory is counted again after so many changes and samples.
const COUNT_EVERY: usize = 1 << 20;

/// And after this part of what fits.
const COUNT_SHARE: usize = 64;

/// Fewer samples are not thinned: the memory is not theirs then.
const MIN_SAMPLES: usize = 16;

/// The samples that were seen, and which of them are kept.
#[derive(Debug)]
pub(super) struct KeptSamples {
    limits: Limits,
    /// One of so many is kept.
    every: u64,
    seen: u64,
    last: Tick,
    changes: u64,
    /// Changes and samples since memory was counted.
    uncounted: usize,
    /// Whether no more samples are taken.
    pub(super) is_over: bool,
}

impl KeptSamples {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            every: 1,
            seen: 0,
            last: Tick::default(),
            changes: 0,
            uncounted: 0,
            is_over: false,
        }
    }

    /// Takes the rows that come now into `recording`.
    pub(super) fn sink<'a>(&'a mut self, recording: &'a mut Recording) -> Rows<'a> {
        Rows {
            first: self.seen,
            samples: self,
            ticks: &mut recording.ticks,
            series: &mut recording.series,
        }
    }

    /// Makes the samples of `recording` fit into `bytes`, as far as they may go.
    ///
    /// # Errors
    /// When they do not fit and may not go, in words.
    pub(super) fn fit(&mut self, recording: &mut Recording, bytes: usize) -> Result<(), String> {
        let is_full = self.changes > self.limits.changes;
        let count_every = COUNT_EVERY.min(self.limits.bytes / COUNT_SHARE);
        if !is_full && self.uncounted < count_every {
            return Ok(());
        }
        self.uncounted = 0;
        let is_large = || bytes_of_values(recording) > bytes;
        if !self.limits.may_thin && (is_full || is_large()) {
            return Err("it has more values than a reader takes".to_owned());
        }
        self.is_over = is_full;
        while recording.ticks.len() > MIN_SAMPLES && bytes_of_values(recording) > bytes {
            self.every *= 2;
            thin(recording);
        }
        Ok(())
    }

    /// Adds the last sample if it was not kept, and says what is missing.
    pub(super) fn finish(&mut self, recording: &mut Recording) {
        if self.seen > 0 && !(self.seen - 1).is_multiple_of(self.every) {
            recording.ticks.push(self.last);
        }
        if self.every > 1 {
            recording.damage.push(thinned(self.every));
        }
        if self.is_over {
            let until = show_ns(self.last.at_ns as f64);
            recording
                .damage
                .push(format!("the samples after {until} were left out: more than a reader takes"));
        }
    }
}

/// What is said of a recording of which one of `every` samples is kept.
pub(in crate::file) fn thinned(every: u64) -> String {
    format!(
        "the recording is longer than fits in memory: 1 of {every} samples is used, so short \
         peaks may be missing; `--from` and `--to` read a part of it"
    )
}

/// Bytes that ticks and values take.
pub(crate) fn bytes_of_values(recording: &Recording) -> usize {
    let series = recording.series.iter().map(|series| series.steps.bytes());
    series.sum::<usize>() + recording.ticks.len() * size_of::<Tick>()
}

/// Removes every second sample; the first one stays.
pub(in crate::file) fn thin(recording: &mut Recording) {
    let mut is_kept = false;
    recording.ticks.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
    recording.ticks.shrink_to_fit();
    for series in &mut recording.series {
        series.renumber(|sample| sample.div_ceil(2));
    }
}

/// Where the rows of one chunk go.
pub(super) struct Rows<'a> {
    /// The number of the chunk's first sample.
    first: u64,
    samples: &'a mut KeptSamples,
    ticks: &'a mut Vec<Tick>,
    series: &'a mut [Series],
}

impl Sink for Rows<'_> {
    fn tick(&mut self, tick: Tick) -> Result<(), String> {
        let samples = &mut *self.samples;
        if samples.seen.is_multiple_of(samples.every) {
            self.ticks.push(tick);
        }
        samples.seen += 1;
        samples.uncounted += 1;
        samples.last = tick;
        Ok(())
    }

    fn step(&mut self, column: usize, row: usize, value: i64) -> Result<(), String> {
        self.samples.changes += 1;
        self.samples.uncounted += 1;
        let number = (self.first + row as u64).div_ceil(self.samples.every);
        let sample = u32::try_from(number).map_err(|_| "it has too many samples".to_owned())?;
        let value = (value != ABSENT).then_some(value);
        if let Some(series) = self.series.get_mut(column) {
            series.push(sample, value);
        }
        Ok(())
    }
}
