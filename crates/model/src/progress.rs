//! Progress and cancellation of a long operation: the one shape that probes, copies, restores and
//! cache fills report with.
//!
//! The operation calls a [`ProgressSink`] after each batch, and stops as soon as it can when the
//! sink answers [`Control::Stop`]. What was done until then is the operation's own report. No time
//! is passed on: the receiver has a clock, computes rates, and decides how often to display them.

/// Receives progress and answers whether the operation goes on.
///
/// ```
/// use model::progress::{Control, Progress, ProgressSink};
///
/// fn copy(batches: &[u64], progress: &mut ProgressSink<'_>) -> u64 {
///     let (mut done, total) = (0, batches.iter().sum());
///     for batch in batches {
///         done += batch;
///         if progress(Progress::bytes("copying", done, Some(total))).is_stop() {
///             break;
///         }
///     }
///     done
/// }
///
/// let copied = copy(&[10, 20, 30], &mut |progress| Control::stop_if(progress.done >= 30));
/// assert_eq!(copied, 30);
/// ```
pub type ProgressSink<'a> = dyn FnMut(Progress<'_>) -> Control + 'a;

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done now, in words for a person: `random reads`.
    pub step: &'a str,
    /// How much of this step is done.
    pub done: u64,
    /// How much there is to do; `None` if unknown.
    pub total: Option<u64>,
    /// What `done` and `total` count.
    pub unit: ProgressUnit,
}

/// What the amounts of a [`Progress`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes moved.
    Bytes,
    /// Files, rounds or trials.
    Items,
}

/// Whether an operation goes on.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// It goes on.
    Continue,
    /// It stops after what is in flight.
    Stop,
}

impl<'a> Progress<'a> {
    /// A step begins, and its amount is unknown.
    #[must_use]
    pub fn step(step: &'a str) -> Self {
        Self::items(step, 0, None)
    }

    /// `done` items of `total`.
    #[must_use]
    pub fn items(step: &'a str, done: u64, total: Option<u64>) -> Self {
        let unit = ProgressUnit::Items;
        Self { step, done, total, unit }
    }

    /// `done` bytes of `total`.
    #[must_use]
    pub fn bytes(step: &'a str, done: u64, total: Option<u64>) -> Self {
        let unit = ProgressUnit::Bytes;
        Self { unit, ..Self::items(step, done, total) }
    }
}

impl Control {
    /// `Stop` if `condition` holds.
    pub fn stop_if(condition: bool) -> Self {
        if condition { Self::Stop } else { Self::Continue }
    }

    /// Whether the operation stops.
    #[must_use]
    pub fn is_stop(self) -> bool {
        self == Self::Stop
    }
}

/// A [`ProgressSink`] that displays nothing and never stops: pass `&mut progress::ignore`.
pub fn ignore(_: Progress<'_>) -> Control {
    Control::Continue
}
