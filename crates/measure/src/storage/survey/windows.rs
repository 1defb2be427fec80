//! Short windows of one activity, repeated in turn with others: their values, kept
//! or thrown away by what disturbed them.

use crate::disturbance::{Bracket, Disturbance};
use model::estimate::{Better, Estimate};

/// A window is disturbed when more than this share of it went to other work or the
/// host. Picked: a thread that waits for a device is woken through the run queue for
/// each request, so the 2 % allowed to memory trials would discard every window of a
/// machine that does anything else.
const SHARE: f64 = 0.1;

/// As many windows as an interval needs: where fewer were quiet, the least disturbed
/// fill up, and the count of the others says that the machine was busy.
const LEAST: usize = 6;

/// The values of one activity's windows, each with the share of it that was lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    values: Vec<(f64, f64)>,
}

impl Windows {
    fn add(&mut self, value: f64, disturbance: &Disturbance, wall_ns: u64) {
        let lost = disturbance.waited_ns.unwrap_or(0) + disturbance.stolen_ns.unwrap_or(0);
        let share = lost as f64 / wall_ns.max(1) as f64;
        self.values.push((share, value));
    }

    /// Runs one window, which answers with its value, bracketed by the counters.
    pub(super) fn window<E>(
        &mut self,
        bracket: &mut Bracket,
        activity: impl FnOnce() -> Result<Option<f64>, E>,
    ) -> Result<(), E> {
        let before = bracket.read();
        let start_ns = sys::clock::now_ns();
        let value = activity()?;
        let wall_ns = sys::clock::now_ns() - start_ns;
        let disturbance = Disturbance::between(&before, &bracket.read());
        if let Some(value) = value {
            self.add(value, &disturbance, wall_ns);
        }
        Ok(())
    }

    /// Adds another value of the window that `judged` has just had, if it has one.
    pub(super) fn same_as(&mut self, judged: &Windows, value: Option<f64>) {
        if let (Some(value), Some((share, _))) = (value, judged.values.last()) {
            self.values.push((*share, value));
        }
    }

    /// The estimate from the quiet windows, filled up to [`LEAST`] with the least
    /// disturbed; the others are counted as discarded. `None` without windows.
    pub(super) fn estimate(&self, better: Better) -> Option<Estimate> {
        let mut values = self.values.clone();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quiet = values.iter().filter(|(share, _)| *share <= SHARE).count();
        let kept = quiet.max(LEAST.min(values.len()));
        let discarded = (values.len() - kept) as u32;
        let kept: Vec<f64> = values[..kept].iter().map(|(_, value)| *value).collect();
        Estimate::from_values(&kept, better, discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(ns: u64) -> Disturbance {
        Disturbance {
            waited_ns: Some(ns),
            ..Disturbance::default()
        }
    }

    #[test]
    fn disturbed_windows_are_counted_and_not_averaged() {
        let mut windows = Windows::default();
        for value in 0..6 {
            windows.add(100.0 + f64::from(value), &waited(90), 1000);
        }
        windows.add(1.0, &waited(200), 1000);
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (6, 1));
        assert_eq!(estimate.median, 102.5);
    }

    #[test]
    fn the_least_disturbed_fill_up_what_an_interval_needs() {
        let mut windows = Windows::default();
        assert_eq!(windows.estimate(Better::Higher), None);
        windows.add(7.0, &waited(0), 1000);
        for share in 2..9 {
            windows.add(share as f64, &waited(share * 100), 1000);
        }
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (6, 2));
        // 7 and the five least disturbed of 2 to 8.
        assert_eq!((estimate.best, estimate.median), (7.0, 4.5));
        assert!(estimate.low.is_some());
    }
}
