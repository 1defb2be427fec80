//! How long a probe may still run: a deadline, and the person's Ctrl-C.
//!
//! Nothing in this crate loops without asking a budget, so nothing is unbounded.

use std::time::{Duration, Instant};

/// A deadline that also ends when the process was asked to stop.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    deadline: Instant,
}

impl Budget {
    /// A budget that ends `duration` from now.
    pub fn of(duration: Duration) -> Self {
        Self { deadline: Instant::now() + duration }
    }

    /// A part of this budget: ends `duration` from now, never later than this one.
    pub fn part(&self, duration: Duration) -> Self {
        Self { deadline: self.deadline.min(Instant::now() + duration) }
    }

    /// The time that is left; zero when it is over.
    pub fn left(&self) -> Duration {
        if self.interrupted() {
            return Duration::ZERO;
        }
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether to stop now: the deadline has passed or the person asked.
    pub fn over(&self) -> bool {
        self.left().is_zero()
    }

    /// Whether the deadline has passed; Ctrl-C changes nothing of that.
    pub fn is_past(&self) -> bool {
        self.deadline <= Instant::now()
    }

    /// Whether the process was asked to stop (Ctrl-C, SIGTERM, SIGHUP).
    pub fn interrupted(&self) -> bool {
        sys::interrupt::requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_outlives_the_whole() {
        let whole = Budget::of(Duration::from_millis(5));
        assert!(whole.part(Duration::from_secs(60)).left() <= Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(6));
        assert!(whole.over());
    }
}
