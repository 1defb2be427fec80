//! The size of the next batch: so many bytes as take 50 ms. Two batches are on their way at
//! most, and an end within 200 ms was promised. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a batch is to take.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// How many bytes would have taken [`BATCH_TIME`] where `bytes` took `took`, within `limits`
/// and at most twice as many: one quick batch may have met what was in a cache of the disk.
pub(super) fn next(bytes: u64, took: Duration, limits: RangeInclusive<u64>) -> u64 {
    let share = BATCH_TIME.as_secs_f64() / took.as_secs_f64().max(1e-6);
    let wanted = (bytes as f64 * share.min(2.0)) as u64;
    wanted.clamp(*limits.start(), *limits.end())
}

#[cfg(test)]
mod tests {
    use super::next;
    use std::time::Duration;

    #[test]
    fn a_batch_is_sized_by_the_time_that_the_last_one_took() {
        let size = |bytes, ms| next(bytes, Duration::from_millis(ms), 10..=6400);
        assert_eq!(size(800, 50), 800);
        assert_eq!(size(800, 100), 400);
        assert_eq!(size(100, 1), 200, "at most twice as many");
        assert_eq!((size(100, 5000), size(0, 0)), (10, 10));
        assert_eq!(size(6400, 1), 6400);
    }
}
