//! The size of the next batch, learnt from how long the last one took. Pure.
//! Used by every loop that reads, so that all of them end soon after a reason to stop.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a batch takes. Two are in flight at most, and the end is promised within 200 ms.
pub const BATCH_TIME: Duration = Duration::from_millis(50);

/// How much fits into [`BATCH_TIME`] if `amount` took `took`: within `limits` and at most twice as
/// much, because one quick batch may have been served by a cache of the disk.
#[must_use]
pub fn next_size(amount: u64, took: Duration, limits: RangeInclusive<u64>) -> u64 {
    let largest = (2 * amount).clamp(*limits.start(), *limits.end());
    fitting(amount, took, BATCH_TIME, *limits.start()..=largest)
}

/// How much fits into `time` if `amount` took `took`, within `limits`.
#[must_use]
pub fn fitting(amount: u64, took: Duration, time: Duration, limits: RangeInclusive<u64>) -> u64 {
    let fit = u128::from(amount) * time.as_nanos() / took.as_nanos().max(1);
    u64::try_from(fit).unwrap_or(u64::MAX).clamp(*limits.start(), *limits.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_sized_by_the_time_that_the_last_one_took() {
        let size = |amount, ms| next_size(amount, Duration::from_millis(ms), 10..=6400);
        assert_eq!(size(800, 50), 800);
        assert_eq!(size(800, 100), 400);
        assert_eq!(size(100, 1), 200, "at most twice as many");
        assert_eq!((size(100, 5000), size(0, 0)), (10, 10));
        assert_eq!(size(6400, 1), 6400);
    }

    #[test]
    fn what_fits_is_proportional_to_the_time() {
        let fit = |amount, ms| {
            let took = Duration::from_millis(ms);
            fitting(amount, took, Duration::from_millis(100), 64..=1024)
        };
        assert_eq!((fit(64, 25), fit(64, 2000), fit(64, 0)), (256, 64, 1024));
    }
}
