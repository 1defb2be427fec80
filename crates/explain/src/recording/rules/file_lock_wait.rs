//! The command waited for a lock on a file that somebody else held.
//!
//! /proc/locks names the holder while it lasts; a recording does not.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "file locks",
    within: &[],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "file_lock_wait",
    part: "file_lock",
    on: "on a file lock",
    remedy: None,
};
