//! A probe repeated in processes of its own, so that an interval holds what changes from run to
//! run: which memory a process gets, where its buffers and its code are, where a file is on its
//! disk.
//!
//! 1. [`repeat`] starts this program again for each run ([`serve`] is the other side) and gives it
//!    its share of the time that is left.
//! 2. A run that fails is left out and named. If none has succeeded yet, the next one gets half of
//!    the time: memory that is new to the machine can take longer to touch than a share lasts.
//! 3. The reports are combined by [`Repeatable::combine`].
//!
//! The runs follow each other without a pause: what the machine does an hour later, they cannot
//! show.

use crate::helper::failed;
use crate::{Budget, Error, ErrorKind, Result};
use model::{Covers, error_chain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};
use sys::helper::{Caller, Helper, HiddenCommand, Received};

/// The runs if none are asked for: their whole range holds the median with 99.6 % if they are
/// independent. What is added because they are not is said in [`model::statistics::spells`].
pub const DEFAULT_RUNS: u32 = 9;

/// The time that runs are spread over if none is asked for: several times the 10 to 40 s of a slow
/// spell, and what a person may wait for a number that is to repeat.
pub const DEFAULT_SPREAD: Duration = Duration::from_secs(60);

/// More runs are refused.
pub const MOST_RUNS: u32 = 100;

/// A shorter share measures nothing but the start of a process.
const LEAST_SHARE: Duration = Duration::from_millis(30);

/// How long a run that was asked to end may take to send what it has.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Between two looks at Ctrl-C.
const NAP: Duration = Duration::from_millis(100);

/// How often, and how long all of it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Runs.
    pub runs: u32,
    /// Time for all of them together, without the waits between them.
    pub budget: Duration,
    /// From the start of the first to the start of the last; zero is one after the other. After a
    /// run that failed no wait follows.
    pub over: Duration,
    /// What the first run needs beside its share, for a part that only the first one has.
    pub first_extra: Duration,
}

/// What one run is asked to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RunOrder {
    /// Which one, from 0.
    pub run: u32,
    /// Of how many.
    pub runs: u32,
    /// Time for all that it does.
    pub budget: Duration,
}

impl RunOrder {
    /// The rounds of one run, where one process alone would make `rounds`.
    #[must_use]
    pub fn rounds(&self, rounds: u32) -> u32 {
        // At least 3, so that a disturbed trial does not stand for the run.
        rounds.div_ceil(self.runs.max(1)).max(3)
    }
}

/// How many runs are in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Asked for.
    pub asked: u32,
    /// In the figures.
    pub counted: u32,
    /// Seconds from the start of the first of these to the start of the last.
    #[serde(default)]
    pub span_s: f64,
    /// What the intervals hold.
    pub covers: Covers,
    /// Why the others are not in the figures.
    pub left_out: Vec<String>,
}

impl Default for Runs {
    /// One process, this one.
    fn default() -> Self {
        let (covers, left_out) = (Covers::WithinRun, Vec::new());
        Self { asked: 1, counted: 1, span_s: 0.0, covers, left_out }
    }
}

/// A report that several runs can be combined to.
pub trait Repeatable: Serialize + DeserializeOwned {
    /// The report of all `reports`, which are of one plan and at least two; `runs` says how many
    /// and goes into it.
    fn combine(reports: Vec<Self>, runs: Runs) -> Self;

    /// Whether a failure ended the run before its plan did, though it has a report.
    fn has_failed(&self) -> bool {
        false
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunReply<R> {
    Report(R),
    Refused { kind: ErrorKind, operation: String, path: Option<String>, reason: String },
}

/// Runs `command`, which calls [`serve`], as often as `repeats` says, and combines the reports.
/// Ctrl-C ends it with what there is.
///
/// # Errors
/// That of the first run if none succeeded.
pub fn repeat<R: Repeatable>(repeats: &Repeats, command: &HiddenCommand) -> Result<R> {
    let first_start = Instant::now();
    let mut left = repeats.budget.saturating_add(repeats.first_extra);
    let mut reports: Vec<R> = Vec::new();
    let mut starts = Vec::new();
    let mut first_error = None;
    let mut left_out = Vec::new();
    let mut waits = false;
    for run in 0..repeats.runs {
        if waits {
            wait_until(first_start + repeats.due(run));
        }
        let share = share(repeats, run, left, reports.is_empty());
        if run > 0 && (sys::interrupt::requested() || share < LEAST_SHARE) {
            left_out.push(format!("no time was left for {} of them", repeats.runs - run));
            break;
        }
        let order = RunOrder { run, runs: repeats.runs, budget: share };
        let start = Instant::now();
        let outcome = one_run(command, &order);
        left = left.saturating_sub(start.elapsed());
        waits = outcome.as_ref().is_ok_and(|report: &R| !report.has_failed());
        match outcome {
            Ok(report) => {
                reports.push(report);
                starts.push(start);
            }
            // A share that is too short for one figure, after others were enough.
            Err(error) if error.kind == ErrorKind::Impossible && !reports.is_empty() => {
                left_out.push(format!("run {}: {}", run + 1, error_chain(&error)));
            }
            Err(error) if error.kind == ErrorKind::Usage => return Err(error),
            Err(error) => {
                left_out.push(format!("run {}: {}", run + 1, error_chain(&error)));
                first_error.get_or_insert(error);
            }
        }
    }
    let counted = reports.len() as u32;
    let covers = if counted > 1 { Covers::BetweenRuns } else { Covers::WithinRun };
    let span = starts.first().zip(starts.last()).map(|(first, last)| *last - *first);
    let span_s = span.unwrap_or_default().as_secs_f64();
    let runs = Runs { asked: repeats.runs, counted, span_s, covers, left_out };
    match first_error {
        Some(error) if reports.is_empty() => Err(error),
        _ => Ok(R::combine(reports, runs)),
    }
}

impl Repeats {
    /// When `run` is to start, after the start of the first.
    fn due(&self, run: u32) -> Duration {
        self.over.mul_f64(f64::from(run) / f64::from(self.runs.saturating_sub(1).max(1)))
    }
}

/// Sleeps until `due`, or until Ctrl-C.
fn wait_until(due: Instant) {
    while !sys::interrupt::requested() {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(NAP));
    }
}

/// The time of `run` when `left` is left.
fn share(repeats: &Repeats, run: u32, left: Duration, has_failed: bool) -> Duration {
    match run {
        0 => left.saturating_sub(repeats.first_extra) / repeats.runs.max(1) + repeats.first_extra,
        _ if has_failed => left / 2,
        _ => left / (repeats.runs - run),
    }
}

/// One run, to its end.
fn one_run<R: Repeatable>(command: &HiddenCommand, order: &RunOrder) -> Result<R> {
    let fail = failed("run the probe in a process of its own");
    let mut helper = Helper::start(command).map_err(&fail)?;
    helper.send(order).map_err(&fail)?;
    let mut last_words: Option<Budget> = None;
    loop {
        match helper.receive::<RunReply<R>>(NAP).map_err(&fail)? {
            Received::Message(RunReply::Report(report)) => return Ok(report),
            Received::Message(RunReply::Refused { kind, operation, path, reason }) => {
                let error = Error::new(kind, operation, reason);
                return Err(match path {
                    Some(path) => error.at(path.as_ref()),
                    None => error,
                });
            }
            Received::Ended => {
                let ending = helper.wait().map_err(&fail)?;
                let reason = ending.error_text.unwrap_or_else(|| ending.status.to_string());
                let operation = "run the probe in a process of its own";
                return Err(Error::new(ErrorKind::Failed, operation, reason));
            }
            Received::Pending if sys::interrupt::requested() => match &last_words {
                None => {
                    helper.interrupt().map_err(&fail)?;
                    last_words = Some(Budget::of(LAST_WORDS));
                }
                Some(limit) if limit.is_past() => {
                    let reason = "it did not end when it was asked to";
                    return Err(Error::new(ErrorKind::Failed, "end a run of the probe", reason));
                }
                Some(_) => {}
            },
            Received::Pending => {}
        }
    }
}

/// The other side of [`repeat`]: measures what the caller orders and sends the report. The whole
/// life of the process.
///
/// # Errors
/// `Failed` if the caller is gone. What `measure` fails with is sent to the caller.
pub fn serve<R: Repeatable, I: BufRead, W: Write>(
    caller: &mut Caller<I, W>,
    measure: impl FnOnce(&RunOrder) -> Result<R>,
) -> Result<()> {
    let Some(order) = caller.receive().map_err(failed("read which run this is"))? else {
        return Ok(());
    };
    let reply = match measure(&order) {
        Ok(report) => RunReply::Report(report),
        Err(error) => RunReply::Refused {
            kind: error.kind,
            operation: error.operation.clone(),
            path: error.path.as_ref().map(|path| path.display().to_string()),
            reason: reason(&error),
        },
    };
    caller.send(&reply).map_err(failed("send the report of a run"))
}

/// Why, with all causes.
fn reason(error: &Error) -> String {
    let source = error.source.as_ref().map(|source| error_chain(source.as_ref()));
    error.reason.iter().cloned().chain(source).collect::<Vec<_>>().join(": ")
}

/// The estimates of the same quantity in all `reports`, which are of `runs`, combined.
pub(crate) fn between<'r, R>(
    reports: &'r [R],
    better: model::estimate::Better,
    runs: &Runs,
    of: impl Fn(&'r R) -> Option<&'r model::Estimate>,
) -> Option<model::Estimate> {
    model::Estimate::between_runs(reports.iter().filter_map(of), better, runs.span_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_its_share_and_the_first_what_only_it_needs() {
        let s = Duration::from_secs;
        let over = Duration::ZERO;
        let repeats = Repeats { runs: 9, budget: s(18), over, first_extra: s(3) };
        assert_eq!(share(&repeats, 0, s(21), true), s(5));
        assert_eq!(share(&repeats, 1, s(16), false), s(2));
        assert_eq!(share(&repeats, 8, s(7), false), s(7));
        // The first failed: its share was too short.
        assert_eq!(share(&repeats, 1, s(16), true), s(8));
    }

    #[test]
    fn the_starts_of_runs_are_spread_evenly() {
        let of = |runs, over| Repeats {
            runs,
            budget: Duration::MAX,
            over: Duration::from_secs(over),
            first_extra: Duration::ZERO,
        };
        let due = |run| of(9, 60).due(run).as_secs_f64();
        assert_eq!((due(0), due(1), due(8)), (0.0, 7.5, 60.0));
        assert_eq!((of(1, 60).due(0), of(9, 0).due(8)), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn rounds_are_divided_but_never_one() {
        let order = RunOrder { run: 0, runs: 9, budget: Duration::ZERO };
        assert_eq!((order.rounds(200), order.rounds(9)), (23, 3));
    }

    #[test]
    fn a_refusal_arrives_with_its_cause() {
        let inner = Error::new(ErrorKind::Impossible, "map memory", "too much");
        let error = Error::caused(ErrorKind::Impossible, "touch memory", inner);
        assert_eq!(reason(&error), "cannot map memory: too much");
    }
}
