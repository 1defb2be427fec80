//! Short windows of one activity, repeated in turn with others: their values, kept
//! or thrown away by what disturbed them.

use crate::disturbance::{Bracket, Disturbance};
use model::estimate::{Better, Estimate};

/// A window is disturbed when more than this share of it went to other work or the
/// host. Picked: a thread that waits for a device is woken through the run queue for
/// each request, so the 2 % allowed to memory trials would discard every window of a
/// machine that does anything else.
const SHARE: f64 = 0.1;

/// The values of one activity's windows.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    kept: Vec<f64>,
    disturbed: Vec<f64>,
}

impl Windows {
    fn add(&mut self, value: f64, disturbance: &Disturbance, wall_ns: u64) {
        let lost = disturbance.waited_ns.unwrap_or(0) + disturbance.stolen_ns.unwrap_or(0);
        if lost as f64 > wall_ns as f64 * SHARE {
            self.disturbed.push(value);
        } else {
            self.kept.push(value);
        }
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
        let Some(value) = value else { return };
        if judged.disturbed.len() > self.disturbed.len() {
            self.disturbed.push(value);
        } else {
            self.kept.push(value);
        }
    }

    /// The estimate from the kept windows; from the disturbed ones when there are no
    /// others, with all of them counted as discarded; `None` without windows.
    pub(super) fn estimate(&self, better: Better) -> Option<Estimate> {
        let values = if self.kept.is_empty() {
            &self.disturbed
        } else {
            &self.kept
        };
        Estimate::from_values(values, better, self.disturbed.len() as u32)
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
        windows.add(100.0, &waited(0), 1000);
        windows.add(1.0, &waited(200), 1000);
        windows.add(102.0, &waited(90), 1000);
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (2, 1));
        assert_eq!(estimate.median, 101.0);
    }

    #[test]
    fn disturbed_windows_are_better_than_none() {
        let mut windows = Windows::default();
        assert_eq!(windows.estimate(Better::Higher), None);
        windows.add(1.0, &waited(200), 1000);
        let estimate = windows.estimate(Better::Higher).unwrap();
        assert_eq!((estimate.trials, estimate.discarded), (1, 1));
    }
}
