//! What the harness itself costs: one reading of the clock, one bracket around a
//! trial, one call of an empty loop. Stated beside every result, never subtracted.

use crate::disturbance::Bracket;
use serde::{Deserialize, Serialize};

/// The harness's own cost, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// One reading of the clock.
    pub timer_ns: f64,
    /// The smallest difference of two readings that is not 0.
    pub timer_step_ns: f64,
    /// The counters read before and after a trial; outside the timed part.
    pub bracket_ns: f64,
}

/// Measures the harness, in about 2 ms.
pub fn overhead(bracket: &mut Bracket) -> Overhead {
    Overhead {
        timer_ns: best_of(5, 10_000, || {
            std::hint::black_box(sys::clock::now_ns());
        }),
        timer_step_ns: timer_step_ns(),
        bracket_ns: 2.0
            * best_of(5, 8, || {
                std::hint::black_box(bracket.read());
            }),
    }
}

/// The best mean time of one call over `rounds` rounds of `calls` calls.
fn best_of(rounds: u32, calls: u32, mut call: impl FnMut()) -> f64 {
    (0..rounds)
        .map(|_| {
            let start = sys::clock::now_ns();
            (0..calls).for_each(|_| call());
            (sys::clock::now_ns() - start) as f64 / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min)
}

fn timer_step_ns() -> f64 {
    let mut smallest = u64::MAX;
    for _ in 0..1000 {
        let first = sys::clock::now_ns();
        let mut next = sys::clock::now_ns();
        while next == first {
            next = sys::clock::now_ns();
        }
        smallest = smallest.min(next - first);
    }
    smallest as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_costs_something_and_not_much() {
        let mut bracket = Bracket::for_this_thread(&machine::Root::system(), None);
        let overhead = overhead(&mut bracket);
        assert!(overhead.timer_ns > 0.5 && overhead.timer_ns < 100_000.0);
        assert!(overhead.timer_step_ns >= 1.0);
        assert!(overhead.bracket_ns > overhead.timer_ns);
    }
}
