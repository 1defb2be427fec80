//! How many bytes may be under way: what the target takes in half a second, and no more a second
//! than the user allows.
//!
//! The idea: a queue is counted in time and not in requests. 32 requests of 1 MiB are 13 ms on a
//! fast disk and 4.6 s on a stick that takes 7 MB/s. The rate is that of the target itself, as seen
//! in the last moments; until there is one, a few MiB are under way.

use std::time::{Duration, Instant};

/// The longest time that what is under way may take.
pub const LONGEST_QUEUE: Duration = Duration::from_millis(500);
/// Under way while the rate is unknown, and at least.
const LEAST_BYTES: u64 = 2 << 20;
/// The rate is that of so much time.
const WINDOW: Duration = Duration::from_millis(250);
/// The longest part of a wait for the allowed rate: a stop is seen this soon.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// What may start at once under a limit of the rate, as time at that rate.
const BURST: Duration = Duration::from_millis(100);

/// Decides whether another piece may start.
#[derive(Debug)]
pub struct Pace {
    under_way: u64,
    /// Bytes a second; 0 while unknown.
    rate: f64,
    window_start: Instant,
    window_bytes: u64,
    /// Bytes a second that are allowed, and those that may start now.
    allowed: Option<(f64, f64)>,
    filled_at: Instant,
    most_under_way: u64,
}

impl Pace {
    /// A pace for one target, limited to `allowed` bytes a second if that is given.
    #[must_use]
    pub fn new(allowed: Option<u64>) -> Self {
        let now = Instant::now();
        Self {
            under_way: 0,
            rate: 0.0,
            window_start: now,
            window_bytes: 0,
            allowed: allowed.map(|rate| (rate as f64, rate as f64 * BURST.as_secs_f64())),
            filled_at: now,
            most_under_way: 0,
        }
    }

    /// Whether a piece of `bytes` may start now. One alone always may, as far as the rate allows.
    pub fn may_start(&mut self, bytes: u64) -> bool {
        if !self.is_allowed(bytes) {
            return false;
        }
        self.under_way == 0 || self.under_way + bytes <= self.most()
    }

    /// The most bytes that may be under way now.
    #[must_use]
    pub fn most(&self) -> u64 {
        let queue = self.rate * LONGEST_QUEUE.as_secs_f64();
        LEAST_BYTES.max(queue as u64)
    }

    /// A piece was started.
    pub fn started(&mut self, bytes: u64) {
        self.under_way += bytes;
        self.most_under_way = self.most_under_way.max(self.under_way);
        if let Some((_, now)) = &mut self.allowed {
            *now -= bytes as f64;
        }
    }

    /// A piece is written.
    pub fn written(&mut self, bytes: u64) {
        self.ended(bytes);
        self.window_bytes += bytes;
        let passed = self.window_start.elapsed();
        // The first MiB tell something at once: a fast target is not kept waiting.
        let is_first = self.rate == 0.0 && self.window_bytes >= LEAST_BYTES;
        if passed >= WINDOW || is_first {
            self.rate = self.window_bytes as f64 / passed.as_secs_f64().max(1e-6);
            self.window_bytes = 0;
            self.window_start = Instant::now();
        }
    }

    /// A piece ended without being written.
    pub fn ended(&mut self, bytes: u64) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// Waits a moment for the allowed rate; does nothing without one.
    pub fn wait(&mut self) {
        if self.allowed.is_some() {
            std::thread::sleep(LONGEST_WAIT);
        }
    }

    /// The most bytes that were under way at a time.
    #[must_use]
    pub fn most_under_way(&self) -> u64 {
        self.most_under_way
    }

    /// The target's rate in bytes a second as last seen; 0 while unknown.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    fn is_allowed(&mut self, bytes: u64) -> bool {
        let passed = self.filled_at.elapsed().as_secs_f64();
        let Some((rate, now)) = &mut self.allowed else { return true };
        self.filled_at = Instant::now();
        let most = *rate * BURST.as_secs_f64();
        *now = (*now + *rate * passed).min(most.max(bytes as f64));
        *now >= (bytes as f64).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_under_way_until_the_rate_is_known() {
        let mut pace = Pace::new(None);
        assert!(pace.may_start(8 << 20), "one alone always may");
        pace.started(1 << 20);
        assert!(pace.may_start(1 << 20));
        pace.started(1 << 20);
        assert!(!pace.may_start(1 << 20));
        pace.written(1 << 20);
        pace.written(1 << 20);
        assert!(pace.rate() > 0.0);
        assert!(pace.most() >= LEAST_BYTES);
        assert_eq!(pace.most_under_way(), 2 << 20);
    }

    #[test]
    fn a_limited_rate_is_kept_from_the_first_moment() {
        let mut pace = Pace::new(Some(10 << 20));
        let (start, mut moved) = (Instant::now(), 0u64);
        while start.elapsed() < Duration::from_millis(400) {
            if pace.may_start(64 << 10) {
                pace.started(64 << 10);
                pace.written(64 << 10);
                moved += 64 << 10;
            } else {
                pace.wait();
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let most = (10 << 20) as f64 * (seconds + BURST.as_secs_f64()) + (64 << 10) as f64;
        assert!((moved as f64) <= most, "{moved} bytes in {seconds} s");
        assert!(moved > 1 << 20, "{moved}");
    }
}
