//! The command waited inside the file system: for its locks, for room in its journal, for
//! the server behind it.
//!
//! What lies under such a wait is mostly somebody else's write; block I/O that the command
//! waited for itself is told apart.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "the file system",
    within: &["dirty_throttle", "small_sync_writes", "writes_to_device"],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "file_system_wait",
    part: "file_system",
    on: "inside the file system",
    remedy: None,
};
