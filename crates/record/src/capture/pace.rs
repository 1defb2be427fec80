//! When samples are due: fixed instants, never a burst to catch up.
//!
//! The deadlines are a grid that starts at the first sample. A late sample is taken at once;
//! deadlines that passed meanwhile are counted as missed. Pure: the caller reads the clock.

/// A sample that begins more than this part of its period after it was due is late.
const LATE_PART: u64 = 10;

/// The grid of deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    period_ns: u64,
    due_ns: u64,
    missed: u64,
}

impl Pace {
    /// A grid of `period_ns` whose first deadline is one period after `now_ns`.
    pub fn new(period_ns: u64, now_ns: u64) -> Self {
        let period_ns = period_ns.max(1);
        Self { period_ns, due_ns: now_ns.saturating_add(period_ns), missed: 0 }
    }

    /// When the next sample is due.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// How long to wait for it.
    pub fn wait_ns(&self, now_ns: u64) -> u64 {
        self.due_ns.saturating_sub(now_ns)
    }

    /// Whether the due sample is late if it begins at `now_ns`.
    pub fn is_late(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.due_ns) > self.period_ns / LATE_PART
    }

    /// Notes that the due sample was done at `done_ns`; the next deadline is the first one
    /// that is not a whole period ago.
    pub fn taken(&mut self, done_ns: u64) {
        let next_ns = self.due_ns.saturating_add(self.period_ns);
        let skipped = done_ns.saturating_sub(next_ns) / self.period_ns;
        self.missed += skipped;
        self.due_ns = next_ns.saturating_add(skipped * self.period_ns);
    }

    /// Counts those that were due until `now_ns`, when no more are taken.
    pub fn end(&mut self, now_ns: u64) {
        if now_ns >= self.due_ns {
            self.missed += (now_ns - self.due_ns) / self.period_ns + 1;
        }
    }

    /// A new distance, from now on; what was counted stays.
    pub fn change(&mut self, period_ns: u64, now_ns: u64) {
        self.period_ns = period_ns.max(1);
        self.due_ns = now_ns.saturating_add(self.period_ns);
    }

    /// Samples that were due and not taken.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_stay_on_the_grid() {
        let mut pace = Pace::new(100, 1000);
        for due in [1100, 1200, 1300] {
            assert_eq!(pace.due_ns(), due);
            assert!(!pace.is_late(due + 10));
            pace.taken(due + 8);
        }
        assert_eq!(pace.missed(), 0);
    }

    #[test]
    fn a_late_sample_is_taken_and_shifts_nothing() {
        let mut pace = Pace::new(100, 0);
        assert!(pace.is_late(150));
        pace.taken(160);
        assert_eq!((pace.due_ns(), pace.missed()), (200, 0));
        // It ended after the next deadline, but not a whole period after it: taken at once.
        pace.taken(350);
        assert_eq!((pace.due_ns(), pace.missed()), (300, 0));
        assert_eq!(pace.wait_ns(350), 0);
    }

    #[test]
    fn a_stall_is_counted_and_never_caught_up() {
        let mut pace = Pace::new(100, 0);
        pace.taken(1050);
        assert_eq!((pace.due_ns(), pace.missed()), (1000, 8));
        pace.taken(1060);
        assert_eq!((pace.due_ns(), pace.missed()), (1100, 8));
    }

    #[test]
    fn what_was_due_at_the_end_is_missed() {
        let mut pace = Pace::new(100, 0);
        pace.end(99);
        assert_eq!(pace.missed(), 0);
        pace.end(300);
        assert_eq!(pace.missed(), 3);
    }

    #[test]
    fn another_rate_begins_now() {
        let mut pace = Pace::new(100, 0);
        pace.change(10, 55);
        assert_eq!(pace.due_ns(), 65);
        pace.taken(66);
        assert_eq!(pace.due_ns(), 75);
    }
}
