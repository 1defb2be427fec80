//! Values that a running program keeps of itself: what a recorder samples and a progress line
//! shows.
//!
//! A [`Gauge`] is one atomic number, absent until it is set. The code that does the work changes
//! it without a lock; readers see it at any time, each gauge for itself. A [`GaugeSet`] names
//! gauges, so that a recorder makes a series of each. Nothing here measures or samples.

use crate::recording::SeriesKind;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Set once a gauge has a value; what is left are values below 2^63, all that a series holds.
const PRESENT: u64 = 1 << 63;

/// A counter or a level of a running program; absent until it is set or added to.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Without a value.
    #[must_use]
    pub const fn absent() -> Self {
        Self(AtomicU64::new(0))
    }

    /// With the value 0.
    #[must_use]
    pub const fn zero() -> Self {
        Self(AtomicU64::new(PRESENT))
    }

    /// Gives it this value.
    pub fn set(&self, value: u64) {
        self.0.store(value.min(PRESENT - 1) | PRESENT, Ordering::Relaxed);
    }

    /// Adds to its value; an absent one was 0.
    pub fn add(&self, amount: u64) {
        let before = self.0.fetch_add(amount, Ordering::Relaxed);
        if before & PRESENT == 0 {
            self.0.fetch_or(PRESENT, Ordering::Relaxed);
        }
    }

    /// Takes from its value what was added before.
    pub fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Makes it absent.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Its value; `None` if it is absent.
    #[must_use]
    pub fn get(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Relaxed);
        (word & PRESENT != 0).then_some(word & !PRESENT)
    }
}

/// What a gauge is called, and what its numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeName {
    /// The name of its series: `copy.read_bytes`; docs/counters.md has all.
    pub name: &'static str,
    /// The unit: `bytes`, `ns`, `count`.
    pub unit: &'static str,
    /// Counter or level.
    pub kind: SeriesKind,
}

/// The gauges of a program. Implementations give names and values in the same order, always.
pub trait GaugeSet: Debug + Send + Sync {
    /// The names.
    fn names(&self) -> &[GaugeName];

    /// The value of the gauge at this place of the names; `None` if it is absent.
    fn value(&self, place: usize) -> Option<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_until_set_and_never_a_false_zero() {
        let gauge = Gauge::absent();
        assert_eq!(gauge.get(), None);
        gauge.add(0);
        assert_eq!(gauge.get(), Some(0));
        gauge.add(7);
        gauge.subtract(3);
        assert_eq!(gauge.get(), Some(4));
        gauge.clear();
        assert_eq!(gauge.get(), None);
        gauge.set(u64::MAX);
        assert_eq!(gauge.get(), Some(PRESENT - 1));
        assert_eq!(Gauge::zero().get(), Some(0));
    }

    #[test]
    fn threads_lose_nothing() {
        let gauge = Gauge::absent();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| gauge.add(3)));
            }
        });
        assert_eq!(gauge.get(), Some(120_000));
    }
}
