//! `measure compute`: the fractal control of 2001, "is it the memory or the processor?"
//!
//! One Mandelbrot point in double precision is iterated until it escapes or the count is reached.
//! Everything stays in registers and each step depends on the last, so no memory, no cache and no
//! vector unit can help: what changes beside it changed because of the memory.

use crate::calibrate::{self, Overhead};
use crate::disturbance::{Bracket, Tally};
use crate::runs::{self, Repeatable, RunOrder, Runs};
use crate::trial::{self, Bench, Schedule};
use crate::{Budget, Error, ErrorKind, Result, team};
use machine::Root;
use model::Estimate;
use model::estimate::Better;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point inside the set, so that it never escapes.
const POINT: (f64, f64) = (-0.2, 0.3);

/// The largest count that is accepted: 100 times that of 2001.
pub const MOST_ITERATIONS: u64 = 10_000_000_000;

/// What is to be computed.
#[derive(Clone, Debug)]
pub struct ComputePlan {
    /// Steps of the control run that is reported beside the article's 100,000,000.
    pub iterations: u64,
    /// Time for everything.
    pub budget: Duration,
    /// The processor; `None` takes the first allowed.
    pub cpu: Option<usize>,
}

impl Default for ComputePlan {
    fn default() -> Self {
        Self { iterations: 100_000_000, budget: Duration::from_secs(5), cpu: None }
    }
}

/// The result of [`measure`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComputeReport {
    /// Time of one step, nanoseconds.
    pub step_ns: Estimate,
    /// The count asked for.
    pub iterations: u64,
    /// What that many steps take at the median step time, seconds.
    pub seconds: f64,
    /// The three times of 2001 for 100,000,000 steps, seconds, for the reader.
    pub seconds_2001: [f64; 3],
    /// Trials kept and thrown away.
    pub tally: Tally,
    /// The harness's own cost.
    pub overhead: Overhead,
    /// Whether it was stopped early.
    pub interrupted: bool,
    /// How many runs of the probe are in it.
    pub runs: Runs,
}

impl ComputePlan {
    /// The plan of one run of several.
    #[must_use]
    pub fn of_run(self, order: &RunOrder) -> Self {
        Self { budget: order.budget, ..self }
    }
}

impl Repeatable for ComputeReport {
    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let step_ns = runs::between(&reports, Better::Lower, &runs, |report| Some(&report.step_ns));
        let mut tally = Tally::default();
        reports.iter().for_each(|report| tally.merge(&report.tally));
        let interrupted = reports.iter().any(|report| report.interrupted);
        let first = reports.swap_remove(0);
        let step_ns = step_ns.unwrap_or(first.step_ns);
        let seconds = step_ns.median * first.iterations as f64 / 1e9;
        Self { step_ns, seconds, tally, interrupted, runs, ..first }
    }
}

/// Iterates the point and returns the steps that were made: fewer than `most` only if it escapes.
pub fn iterate(point: (f64, f64), most: u64) -> u64 {
    let (cx, cy) = std::hint::black_box(point);
    let (mut x, mut y) = (0.0_f64, 0.0_f64);
    for step in 0..most {
        let (x2, y2) = (x * x, y * y);
        if x2 + y2 > 4.0 {
            return step;
        }
        y = 2.0 * x * y + cy;
        x = x2 - y2 + cx;
    }
    most
}

/// Measures the step time within the plan's budget.
pub fn measure(plan: &ComputePlan, root: &Root, stop: &Budget) -> Result<ComputeReport> {
    if plan.iterations == 0 || plan.iterations > MOST_ITERATIONS {
        let what = format!("iterate {} times", plan.iterations);
        return Err(Error::new(ErrorKind::Usage, what, "give 1 to 10,000,000,000"));
    }
    let budget = stop.part(plan.budget);
    team::alone(plan.cpu, root, |bracket| {
        let overhead = calibrate::overhead(bracket);
        // One variant alone: as many rounds as the budget has time for.
        let schedule = Schedule { rounds: u32::MAX, ..Schedule::default() };
        let mut outcomes = trial::interleave(&mut Fractal, &schedule, &budget, bracket);
        let outcome = outcomes.remove(0);
        let Some(call_ns) = outcome.time_ns() else {
            let reason = "the budget ended before the first trial";
            return Err(Error::new(ErrorKind::Impossible, "measure the processor", reason));
        };
        let step_ns = call_ns.scaled(1.0 / CALL_STEPS as f64);
        Ok(ComputeReport {
            seconds: step_ns.median * plan.iterations as f64 / 1e9,
            step_ns,
            iterations: plan.iterations,
            seconds_2001: [4.065, 4.087, 4.300],
            tally: outcome.tally,
            overhead,
            interrupted: stop.over(),
            runs: Runs::default(),
        })
    })
}

/// One step of the control in nanoseconds, in about 100 ms: what stands beside every
/// figure of memory, so that a slower processor is not taken for slower memory.
/// `None` when the budget is over.
pub fn control(budget: &Budget, bracket: &mut Bracket) -> Option<Estimate> {
    let part = budget.part(CONTROL_TIME);
    let outcomes = trial::interleave(&mut Fractal, &Schedule::default(), &part, bracket);
    let call_ns = outcomes.first()?.time_ns()?;
    Some(call_ns.scaled(1.0 / CALL_STEPS as f64))
}

/// The time of [`control`]: 50 trials of 2 ms.
const CONTROL_TIME: Duration = Duration::from_millis(100);

/// Steps in one call: some microseconds, so that the call itself is nothing.
const CALL_STEPS: u64 = 10_000;

struct Fractal;

impl Bench for Fractal {
    fn variants(&self) -> usize {
        1
    }

    fn prepare(&mut self, _: usize) {}

    fn run(&mut self, _: usize, calls: u64) {
        for _ in 0..calls {
            std::hint::black_box(iterate(POINT, CALL_STEPS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_escape_as_they_should() {
        assert_eq!(iterate(POINT, 100_000), 100_000);
        // c = 1: 0, 1, 2, 5: the square of 5 is over 4 at the fourth look.
        assert_eq!(iterate((1.0, 0.0), 100), 3);
        assert_eq!(iterate((2.0, 2.0), 100), 1);
    }

    #[test]
    fn a_step_takes_the_time_of_dependent_arithmetic() {
        let plan = ComputePlan { budget: Duration::from_millis(300), ..ComputePlan::default() };
        let budget = Budget::of(Duration::from_secs(60));
        let report = measure(&plan, &Root::system(), &budget).unwrap();
        // Three dependent operations of at least 2 cycles at no more than 8 GHz.
        assert!(report.step_ns.best > 0.7, "{:?}", report.step_ns);
        assert!(report.step_ns.best < 500.0, "{:?}", report.step_ns);
        let none = ComputePlan { iterations: 0, ..plan };
        assert_eq!(measure(&none, &Root::system(), &budget).unwrap_err().kind, ErrorKind::Usage);
    }
}
