//! The time of day, read in one place: it dates a recording, and it may be set while one runs.
//!
//! Nothing is measured by it. Tests set their own clock, never the machine's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of the day; its copies are the same clock.
#[derive(Clone, Debug, Default)]
pub struct DayClock {
    /// How far it was set away from the machine's.
    moved_ns: Arc<AtomicI64>,
    /// How long a test suspended the machine.
    suspended_ns: Arc<AtomicU64>,
}

impl DayClock {
    /// Nanoseconds since 1970; 0 before that.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let machine_ns =
            since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        machine_ns.saturating_add_signed(self.moved_ns.load(Ordering::Relaxed))
    }

    /// Sets it forward, or back, against the machine's, which stays as it is.
    pub fn set_by(&self, moved_ns: i64) {
        self.moved_ns.fetch_add(moved_ns, Ordering::Relaxed);
    }

    /// As if the machine had been suspended for so long.
    pub fn suspend_for(&self, ns: u64) {
        self.suspended_ns.fetch_add(ns, Ordering::Relaxed);
        self.set_by(i64::try_from(ns).unwrap_or(i64::MAX));
    }

    /// How long the machine was suspended since it was started.
    pub(super) fn suspended_ns(&self) -> u64 {
        sys::clock::suspended_ns().saturating_add(self.suspended_ns.load(Ordering::Relaxed))
    }

    /// How far it is ahead of the steady clock.
    pub(super) fn offset_ns(&self) -> i128 {
        i128::from(self.now_ns()) - i128::from(sys::clock::now_ns())
    }
}
