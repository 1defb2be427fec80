//! The command waited for a process of its own that was not watched.
//!
//! Waiting for watched children is no cause: their own time is accounted for. What is left
//! are instants at which every thread slept and no class of sleep explains it.

use super::accused::Accused;
use super::asleep::asleep_ns;
use super::case::clear;
use super::{Case, Rank, Rule, Verdict};
use crate::wording::long_time;
use model::Evidence;
use model::recording::Subject;

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "children_wait",
    suspect: "own children",
    within: &[],
    rank: Rank::Timed,
    check,
};

/// Sleep of any class up to this share of the waiting says that the children slept.
const SLEEP_SHARE: u64 = 10;

fn check(case: &Case) -> Verdict {
    let children = case.accounts.thread("children");
    if children == 0 || case.is_machine() {
        return Verdict::Silent;
    }
    let told = Evidence::new("waited for own children", children as f64, "ns", "events")
        .seen_in(case.slice_series("children"));
    let asleep = case.accounts.wall("sleep").min(children);
    let is_explained =
        asleep_ns(case, u64::MAX) > 0 && case.accounts.thread("sleep") >= asleep / SLEEP_SHARE;
    // All children of a command are watched from their birth: what is left of it are the
    // moments between the end of one and the waking of who waits for it.
    let is_command = matches!(case.view.facts().subject, Subject::Command { .. });
    if is_explained || is_command || !case.hurts_asleep(asleep) {
        // The waiting itself is accounted for in the children.
        return clear(Some(told));
    }
    let claim = format!(
        "Waited {} for children that were not watched",
        long_time(asleep as f64),
    );
    let grade = case.slice_grade("children");
    Accused::new(RULE.id, Some(asleep), grade, claim, vec![told]).blame()
}
