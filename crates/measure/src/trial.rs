//! The harness: variants measured in turn, A/B/A/B, until the budget ends.
//!
//! 1. Each variant is called once to learn how many calls fill a trial.
//! 2. In each round every variant has one trial, in an order that rotates, so
//!    that drift of the machine (clocks, neighbours) meets all of them alike.
//! 3. A trial is bracketed by [`Bracket`]; a disturbed one is thrown away.
//!
//! It times, counts and returns; what the times mean is the caller's business.

use crate::Budget;
use crate::disturbance::{Bracket, Disturbance, Tally};
use model::estimate::{Better, Estimate};

/// What is measured: a set of variants that may share buffers.
pub trait Bench {
    /// How many variants there are.
    fn variants(&self) -> usize;

    /// Brings `variant` into the state that is to be measured (fills a cache);
    /// untimed, before each of its trials.
    fn prepare(&mut self, variant: usize);

    /// Does the work of `variant` this many times.
    fn run(&mut self, variant: usize, calls: u64);

    /// Whether [`Bench::prepare`] could not bring `variant` into its state, because
    /// another program holds the cache that it needs.
    fn crowded_out(&self, _variant: usize) -> bool {
        false
    }

    /// What disturbed other threads that took part, since [`Bench::prepare`].
    fn others_disturbed(&mut self) -> Disturbance {
        Disturbance::default()
    }
}

/// How trials are cut.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// A trial lasts at least this long, nanoseconds, however short a call is.
    pub trial_ns: u64,
    /// No more rounds than this.
    pub rounds: u32,
    /// Which variant has the first turn of the first round, as a share of all of them, 0 to 1.
    pub first_share: f64,
}

impl Default for Schedule {
    /// 2 ms: 100,000 times the clock's own cost, and shorter than a scheduler
    /// slice, so that most trials on a busy machine fall between two of them.
    /// 200 rounds: the interval of the median narrows by the root of the rounds.
    fn default() -> Self {
        Self { trial_ns: 2_000_000, rounds: 200, first_share: 0.0 }
    }
}

/// What the trials of one variant gave.
#[derive(Clone, Debug, Default)]
pub struct VariantTrials {
    /// Time of one call in nanoseconds, one value for each kept trial.
    pub kept_ns: Vec<f64>,
    /// Time of one call in the trials that were thrown away.
    pub disturbed_ns: Vec<f64>,
    /// Calls in one trial.
    pub calls: u64,
    /// Kept and thrown away, by cause.
    pub tally: Tally,
}

impl VariantTrials {
    /// The time of one call, from the kept trials; when every trial was disturbed,
    /// from those, and [`VariantTrials::all_disturbed`] says so. `None` without trials.
    pub fn time_ns(&self) -> Option<Estimate> {
        let values = if self.all_disturbed() { &self.disturbed_ns } else { &self.kept_ns };
        Estimate::from_values(values, Better::Lower, self.tally.discarded())
    }

    /// Whether there were trials, and something disturbed each of them.
    pub fn all_disturbed(&self) -> bool {
        self.kept_ns.is_empty() && !self.disturbed_ns.is_empty()
    }

    /// Adds the trials of a later pass over the same variant.
    pub fn merge(&mut self, other: VariantTrials) {
        self.kept_ns.extend(other.kept_ns);
        self.disturbed_ns.extend(other.disturbed_ns);
        self.calls = self.calls.max(other.calls);
        self.tally.merge(&other.tally);
    }
}

/// Measures all variants of `bench` in turn until `budget` or `schedule` ends.
///
/// A variant whose first trial the budget did not reach has an outcome without
/// trials. The budget can be overrun by one preparation and one trial, or by the
/// search for the number of calls, of the slowest variant.
pub fn interleave(
    bench: &mut impl Bench,
    schedule: &Schedule,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Vec<VariantTrials> {
    let variants = bench.variants();
    let mut outcomes = vec![VariantTrials::default(); variants];
    let first = (schedule.first_share * variants as f64) as usize;
    for round in 0..schedule.rounds {
        for turn in 0..variants {
            if budget.over() {
                return outcomes;
            }
            let variant = (first + turn + round as usize) % variants;
            let outcome = &mut outcomes[variant];
            if outcome.calls == 0 {
                outcome.calls = calls_for(bench, variant, schedule.trial_ns, budget);
                if budget.over() {
                    return outcomes;
                }
            }
            one_trial(bench, variant, outcome, bracket);
        }
    }
    outcomes
}

/// How many calls fill a trial: doubles until the clock's resolution is far below.
fn calls_for(bench: &mut impl Bench, variant: usize, trial_ns: u64, budget: &Budget) -> u64 {
    bench.prepare(variant);
    let mut calls = 1;
    loop {
        let start = sys::clock::now_ns();
        bench.run(variant, calls);
        let elapsed = sys::clock::now_ns() - start;
        if elapsed >= trial_ns || budget.over() {
            return calls;
        }
        if elapsed >= trial_ns / 16 {
            return (calls * trial_ns).div_ceil(elapsed);
        }
        calls *= 2;
    }
}

fn one_trial(
    bench: &mut impl Bench,
    variant: usize,
    outcome: &mut VariantTrials,
    bracket: &mut Bracket,
) {
    bench.prepare(variant);
    let before = bracket.read();
    let start = sys::clock::now_ns();
    bench.run(variant, outcome.calls);
    slowed_on_purpose(start);
    let elapsed_ns = (sys::clock::now_ns() - start) as f64;
    let disturbance =
        Disturbance::between(&before, &bracket.read()).or_worse(&bench.others_disturbed());
    let call_ns = elapsed_ns / outcome.calls as f64;
    let crowded_out = bench.crowded_out(variant);
    match outcome.tally.add(elapsed_ns, &disturbance, crowded_out) {
        None => outcome.kept_ns.push(call_ns),
        Some(_) => outcome.disturbed_ns.push(call_ns),
    }
}

/// Nothing, unless built for the A/A bench: there `TERRACE_SLOWDOWN=0.15` makes
/// each trial 15 % longer, so that the bench can prove that a slowdown is found.
#[cfg(not(feature = "slowdown"))]
fn slowed_on_purpose(_start_ns: u64) {}

#[cfg(feature = "slowdown")]
fn slowed_on_purpose(start_ns: u64) {
    let share: f64 =
        std::env::var("TERRACE_SLOWDOWN").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let end_ns = sys::clock::now_ns();
    let extra_ns = ((end_ns - start_ns) as f64 * share) as u64;
    while sys::clock::now_ns() - end_ns < extra_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Root;
    use std::time::Duration;

    /// Spins for a fixed time for each call, and remembers the order of trials.
    struct Spin {
        call_ns: Vec<u64>,
        order: Vec<usize>,
    }

    impl Bench for Spin {
        fn variants(&self) -> usize {
            self.call_ns.len()
        }
        fn prepare(&mut self, variant: usize) {
            self.order.push(variant);
        }
        fn run(&mut self, variant: usize, calls: u64) {
            let start = sys::clock::now_ns();
            while sys::clock::now_ns() - start < calls * self.call_ns[variant] {}
        }
    }

    fn bracket() -> Bracket {
        Bracket::for_this_thread(&Root::system(), None)
    }

    #[test]
    fn variants_take_turns_and_differ() {
        let mut bench = Spin { call_ns: vec![10_000, 20_000], order: Vec::new() };
        let schedule = Schedule { trial_ns: 200_000, rounds: 8, ..Schedule::default() };
        let budget = Budget::of(Duration::from_secs(20));
        let outcomes = interleave(&mut bench, &schedule, &budget, &mut bracket());
        let time = |i: usize| outcomes[i].time_ns().unwrap().best;
        assert!(time(1) / time(0) > 1.8 && time(1) / time(0) < 2.2);
        // The first prepare of each is the calibration; then A B, B A, A B, ...
        assert_eq!(bench.order[..6], [0, 0, 1, 1, 1, 0]);
        let tally = outcomes[0].tally;
        assert_eq!(tally.kept + tally.discarded(), 8);
    }

    #[test]
    fn the_budget_ends_it() {
        let mut bench = Spin { call_ns: vec![1_000_000; 4], order: Vec::new() };
        let schedule = Schedule { trial_ns: 1_000_000, rounds: u32::MAX, ..Schedule::default() };
        let started = std::time::Instant::now();
        let budget = Budget::of(Duration::from_millis(50));
        interleave(&mut bench, &schedule, &budget, &mut bracket());
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn no_time_no_trials_no_estimate() {
        let mut bench = Spin { call_ns: vec![1_000], order: Vec::new() };
        let budget = Budget::of(Duration::ZERO);
        let outcomes = interleave(&mut bench, &Schedule::default(), &budget, &mut bracket());
        assert_eq!(outcomes[0].time_ns(), None);
    }
}
