//! Which samples of a recording are kept. All, as long as they fit; then every second, every
//! fourth and so on, and always the first and the last one.
//!
//! A change at a sample that goes counts from the next one that is kept. So every kept sample
//! has all its values, and a counter grows by the same between any two of them.

use model::recording::{Recording, Tick};

/// The samples that were seen, and which of them are kept.
#[derive(Debug)]
pub(in crate::file) struct Thinning {
    /// One of so many is kept.
    every: u64,
    seen: u64,
    last: Tick,
}

impl Thinning {
    /// None seen, and all are kept.
    pub(in crate::file) fn new() -> Self {
        Self { every: 1, seen: 0, last: Tick::default() }
    }

    /// How many samples were seen.
    pub(in crate::file) fn seen(&self) -> u64 {
        self.seen
    }

    /// The last sample that was seen.
    pub(in crate::file) fn last(&self) -> Tick {
        self.last
    }

    /// Takes the next sample.
    pub(in crate::file) fn take(&mut self, tick: Tick, ticks: &mut Vec<Tick>) {
        if self.seen.is_multiple_of(self.every) {
            ticks.push(tick);
        }
        self.seen += 1;
        self.last = tick;
    }

    /// From which kept sample on a change at sample `number` counts; `None` if that is too many.
    pub(in crate::file) fn place(&self, number: u64) -> Option<u32> {
        u32::try_from(number.div_ceil(self.every)).ok()
    }

    /// Removes every second sample; the first one stays.
    pub(in crate::file) fn halve(&mut self, recording: &mut Recording) {
        self.every *= 2;
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

    /// Adds the last sample if it was not kept, and says what is missing.
    pub(in crate::file) fn finish(&self, recording: &mut Recording) {
        if self.seen > 0 && !(self.seen - 1).is_multiple_of(self.every) {
            recording.ticks.push(self.last);
        }
        if self.every > 1 {
            recording.damage.push(format!(
                "the recording is longer than fits in memory: 1 of {} samples is used, so short \
                 peaks may be missing; `--from` and `--to` read a part of it",
                self.every
            ));
        }
    }
}

/// Bytes that ticks and values take.
pub(crate) fn bytes_of_values(recording: &Recording) -> usize {
    let series = recording.series.iter().map(|series| series.steps.bytes());
    series.sum::<usize>() + recording.ticks.len() * size_of::<Tick>()
}
