//! Which numbers a rule may lean on, and when two of them differ.
//!
//! Rules judge whatever they are handed, so every figure passes through here
//! first: what is no number, not positive or beyond any unit is treated as
//! absent. Two measured quantities differ only where their intervals do not meet.

use model::{Estimate, Latency};

/// Beyond this no figure of a survey makes sense: 10^18 ns are 30 years, 10^18
/// bytes more than any machine holds. It keeps products of two figures finite.
const LARGEST: f64 = 1e18;

/// The other end: a billionth of a nanosecond or of a byte a second.
const SMALLEST: f64 = 1e-9;

/// The most that a share can be: one hundred threads' worth of one thread's time.
const LARGEST_SHARE: f64 = 100.0;

/// `value` where it is a positive number of a sane size.
pub(crate) fn sound(value: f64) -> Option<f64> {
    (SMALLEST..=LARGEST).contains(&value).then_some(value)
}

/// `share` where it is a number of at least 0 that a share can be.
pub(crate) fn share(share: f64) -> Option<f64> {
    // Adding 0 turns the negative zero, which would print as `-0 %`, into a plain one.
    (0.0..=LARGEST_SHARE).contains(&share).then_some(share + 0.0)
}

/// A count of bytes where it is there and more than nothing.
pub(crate) fn bytes(bytes: Option<u64>) -> Option<u64> {
    bytes.filter(|&b| sound(b as f64).is_some())
}

/// A measured quantity with error bars that are known to be in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBars {
    /// Lower end of the 95 % interval of the median.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// Upper end of the 95 % interval of the median.
    pub high: f64,
}

impl ErrorBars {
    /// Whether this one is larger by more than the error bars allow.
    pub fn above(&self, other: &ErrorBars) -> bool {
        self.low > other.high
    }

    fn new(low: Option<f64>, median: f64, high: Option<f64>) -> Option<Self> {
        let (low, median, high) = (sound(low?)?, sound(median)?, sound(high?)?);
        (low <= median && median <= high).then_some(Self { low, median, high })
    }
}

/// The interval of an estimate; `None` where it has none that can be used.
pub(crate) fn interval(estimate: &Estimate) -> Option<ErrorBars> {
    ErrorBars::new(estimate.low, estimate.median, estimate.high)
}

/// The interval of a latency; `None` where it has none that can be used.
pub(crate) fn latency_interval(latency: &Latency) -> Option<ErrorBars> {
    ErrorBars::new(latency.low, latency.median, latency.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_absent() {
        for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            assert_eq!(sound(bad), None, "{bad}");
        }
        assert_eq!(share(0.0), Some(0.0));
        assert_eq!(share(f64::NAN), None);
        assert_eq!(bytes(Some(0)), None);
        assert_eq!(bytes(Some(u64::MAX)), None);
    }

    #[test]
    fn an_interval_out_of_order_is_none() {
        assert_eq!(ErrorBars::new(Some(3.0), 2.0, Some(4.0)), None);
        assert_eq!(ErrorBars::new(None, 2.0, Some(4.0)), None);
        let two = ErrorBars::new(Some(1.0), 2.0, Some(3.0)).unwrap();
        let four = ErrorBars::new(Some(3.0), 4.0, Some(5.0)).unwrap();
        let five = ErrorBars::new(Some(3.1), 5.0, Some(6.0)).unwrap();
        assert!(!four.above(&two), "they meet at 3");
        assert!(five.above(&two));
    }
}
