//! The command waited for one of several descriptors: poll, select, epoll.
//!
//! Which of them it waited for is not told by the stack.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "polling",
    within: &[],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "poll_wait",
    part: "poll",
    on: "in poll or epoll",
    remedy: None,
};
