//! The command slept on purpose: its threads waited for a timer.
//!
//! It is nobody's fault but the command's; a wait with a time limit counts where it waited.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "timers",
    within: &[],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "timer_sleep",
    part: "timer",
    on: "on a timer",
    remedy: Some(
        "Look for sleeps and for polling with pauses. Risk: without its pauses it may load what it polls.",
    ),
};
