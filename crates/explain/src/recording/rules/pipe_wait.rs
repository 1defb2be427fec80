//! The command waited for the other end of a pipe.
//!
//! Who is slow at the other end is told by that process's own findings.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "pipes",
    within: &[],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "pipe_wait",
    part: "pipe",
    on: "on a pipe",
    remedy: None,
};
