//! The command waited for a peer on a socket.
//!
//! Whether the peer or the network between is slow cannot be told from here.

use super::asleep::{Sleeper, judge};
use super::{Rank, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: SLEEPER.id,
    suspect: "sockets",
    within: &[],
    rank: Rank::Timed,
    check: |case| judge(case, &SLEEPER),
};

const SLEEPER: Sleeper = Sleeper {
    id: "socket_wait",
    part: "socket",
    on: "on a socket",
    remedy: None,
};
