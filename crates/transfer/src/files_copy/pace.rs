//! How many bytes may be under way: what the target takes in half a second, and no more a second
//! than the user allows.
//!
//! The idea: a queue is counted in time and not in requests. 32 requests of 1 MiB are 13 ms on a
//! fast disk and 4.6 s on a stick that takes 7 MB/s. The rate is that of the target itself, as seen
//! in the last moments; until there is one, a few MiB are under way.
//!
//! A ring also has no more under way than keeps both disks busy: what a longer queue adds only
//! waits, and a disk that reads and writes at once moves less with it.

use super::Heads;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that what is under way may take.
pub const LONGEST_QUEUE: Duration = Duration::from_millis(500);
/// Under way while the rate is unknown, and at least.
const LEAST_BYTES: u64 = 2 << 20;
/// A ring keeps both disks busy by so many times what moves while one piece does, were it alone.
const BUSY_TIMES: f64 = 2.0;
/// Under way in a ring at least, where the target is fast: requests that the kernel and the disk
/// have at hand. Of 4, 8, 16 and 32 MiB the first two were 12 % faster than the last.
const LEAST_BUSY_BYTES: u64 = 8 << 20;
/// The same where a disk has a head, for as long as it seeks and is synced: of 8 MiB between two
/// disks of 150 MB/s each sync of the target left both idle for a tenth of a second.
const LEAST_HEAD_BYTES: u64 = 32 << 20;
/// And of a slow target no more than it takes in so much time: a sync waits for what is before it.
const LEAST_BUSY: Duration = Duration::from_millis(20);
/// The rate is that of so much time and bytes, or of [`LONGEST_WINDOW`]: in a short window of a
/// slow stick a piece more or less is half of the rate.
const WINDOW: Duration = Duration::from_millis(250);
const WINDOW_BYTES: u64 = 16 << 20;
const LONGEST_WINDOW: Duration = Duration::from_secs(1);
/// The longest part of a wait for the allowed rate: a stop is seen this soon.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// What may start at once under a limit of the rate, as time at that rate.
const BURST: Duration = Duration::from_millis(100);

/// A rate that all threads of a copy keep together.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_s: f64,
    state: Mutex<RateState>,
}

#[derive(Debug)]
struct RateState {
    /// Bytes that may start now; below 0 after a piece that was larger than that.
    now: f64,
    filled_at: Instant,
}

impl RateLimit {
    /// At most `bytes_per_s` bytes a second.
    #[must_use]
    pub fn new(bytes_per_s: u64) -> Arc<Self> {
        let bytes_per_s = bytes_per_s.max(1) as f64;
        let now = bytes_per_s * BURST.as_secs_f64();
        Arc::new(Self {
            bytes_per_s,
            state: Mutex::new(RateState { now, filled_at: Instant::now() }),
        })
    }

    /// Takes room for `bytes`, if there is any.
    fn take(&self, bytes: u64) -> bool {
        // The state is two numbers; a panic in between breaks nothing.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = state.filled_at.elapsed().as_secs_f64();
        state.filled_at = Instant::now();
        let most = self.bytes_per_s * BURST.as_secs_f64();
        state.now = (state.now + self.bytes_per_s * passed).min(most);
        if state.now < (bytes as f64).min(most) {
            return false;
        }
        state.now -= bytes as f64;
        true
    }
}

/// Decides whether another piece may start.
#[derive(Debug)]
pub struct Pace {
    under_way: u64,
    /// Bytes a second; 0 while unknown.
    rate: f64,
    window_start: Instant,
    window_bytes: u64,
    limit: Option<Arc<RateLimit>>,
    most_under_way: u64,
    held_back: Duration,
    /// The shortest time in which a piece was read and written.
    shortest: Option<Duration>,
    heads: Heads,
}

impl Pace {
    /// A pace for one target, which keeps `limit` if there is one.
    #[must_use]
    pub fn new(limit: Option<Arc<RateLimit>>) -> Self {
        Self {
            under_way: 0,
            rate: 0.0,
            window_start: Instant::now(),
            window_bytes: 0,
            limit,
            most_under_way: 0,
            held_back: Duration::ZERO,
            shortest: None,
            heads: Heads::None,
        }
    }

    /// Whether a piece of `bytes` may start now, and if so takes its room below the limit of the
    /// rate. One alone always may, as far as the rate allows.
    pub fn may_start(&mut self, bytes: u64) -> bool {
        let has_room = self.under_way == 0 || self.under_way + bytes <= self.most();
        has_room && self.limit.as_ref().is_none_or(|limit| limit.take(bytes))
    }

    /// The most bytes that may be under way now.
    #[must_use]
    pub fn most(&self) -> u64 {
        let queue = (self.rate * LONGEST_QUEUE.as_secs_f64()) as u64;
        // A turn is as long as may be: its pieces wait for each other anyway.
        let shortest = self.shortest.filter(|_| self.heads != Heads::Shared);
        let of_slow = (self.rate * LEAST_BUSY.as_secs_f64()) as u64;
        let least = match self.heads {
            Heads::Apart => LEAST_HEAD_BYTES,
            _ => LEAST_BUSY_BYTES.min(of_slow),
        };
        let busy = shortest.map_or(u64::MAX, |shortest| {
            least.max((self.rate * shortest.as_secs_f64() * BUSY_TIMES) as u64)
        });
        LEAST_BYTES.max(queue.min(busy))
    }

    /// A piece was started.
    pub fn started(&mut self, bytes: u64) {
        self.under_way += bytes;
        self.most_under_way = self.most_under_way.max(self.under_way);
    }

    /// So many bytes besides are in the cache and not known to be on the target. They are under way
    /// too, but no piece waits for them: who writes them waits by itself.
    pub fn cached(&mut self, bytes: u64) {
        self.most_under_way = self.most_under_way.max(self.under_way + bytes);
    }

    /// A piece is written.
    pub fn written(&mut self, bytes: u64) {
        self.ended(bytes);
        self.window_bytes += bytes;
        if self.heads == Heads::Shared {
            return;
        }
        let passed = self.window_start.elapsed();
        // The first MiB tell something at once: a fast target is not kept waiting.
        let is_first = self.rate == 0.0 && self.window_bytes >= LEAST_BYTES;
        let is_over = passed >= WINDOW && self.window_bytes >= WINDOW_BYTES;
        if is_over || passed >= LONGEST_WINDOW || is_first {
            self.end_window(passed);
        }
    }

    fn end_window(&mut self, passed: Duration) {
        self.rate = self.window_bytes as f64 / passed.as_secs_f64().max(1e-6);
        self.window_bytes = 0;
        self.window_start = Instant::now();
    }

    /// The heads that move from now on. On one disk the rate is that of the turns of its writes.
    pub fn use_heads(&mut self, heads: Heads) {
        self.heads = heads;
        self.turn_begins();
    }

    /// What was read in a turn is written from now on.
    pub fn turn_begins(&mut self) {
        self.window_bytes = 0;
        self.window_start = Instant::now();
    }

    /// All that was read in a turn is written.
    pub fn turn_ended(&mut self) {
        if self.window_bytes > 0 {
            self.end_window(self.window_start.elapsed());
        }
    }

    /// A whole buffer is written that a ring began to read so long ago.
    pub fn written_after(&mut self, bytes: u64, passed: Duration) {
        self.shortest = Some(self.shortest.map_or(passed, |shortest| shortest.min(passed)));
        self.written(bytes);
    }

    /// A piece ended without being written.
    pub fn ended(&mut self, bytes: u64) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// Waits a moment for the allowed rate; does nothing without one.
    pub fn wait(&mut self) {
        if self.limit.is_some() {
            std::thread::sleep(LONGEST_WAIT);
            self.held_back += LONGEST_WAIT;
        }
    }

    /// How long it waited for the allowed rate.
    #[must_use]
    pub fn held_back(&self) -> Duration {
        self.held_back
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
    fn a_ring_has_no_longer_queue_than_keeps_the_disks_busy() {
        let at_1_gb_per_s = |shortest_ms| {
            let mut pace = Pace::new(None);
            pace.rate = 1e9;
            assert_eq!(pace.most(), 500_000_000, "calls know no time of a piece");
            pace.started(1 << 20);
            pace.written_after(1 << 20, Duration::from_millis(shortest_ms));
            pace.rate = 1e9;
            pace.most()
        };
        assert_eq!(at_1_gb_per_s(1), LEAST_BUSY_BYTES);
        // A disk far away.
        assert_eq!(at_1_gb_per_s(20), 40_000_000);
        let mut pace = Pace::new(None);
        pace.started(1 << 20);
        pace.written_after(1 << 20, Duration::from_millis(100));
        pace.rate = 7e6;
        assert_eq!(pace.most(), LEAST_BYTES, "a slow stick is bounded by its time for a piece");
        pace.shortest = Some(Duration::from_secs(1));
        assert_eq!(pace.most(), 3_500_000, "and by half a second");
        pace.shortest = Some(Duration::from_millis(1));
        pace.rate = 1e8;
        assert_eq!(pace.most(), LEAST_BYTES, "a disk of 100 MB/s needs no 8 MiB");
    }

    #[test]
    fn a_limited_rate_is_kept_from_the_first_moment() {
        let mut pace = Pace::new(Some(RateLimit::new(10 << 20)));
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
