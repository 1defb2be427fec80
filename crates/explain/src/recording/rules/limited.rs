//! What the rules about limits share where a whole machine was recorded: which groups were held
//! back, in a sentence, and what is said where none was.

use super::{RunVerdict, RunView};
use crate::recording::limited::LimitedGroup;
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, list};
use model::Evidence;
use model::recording::SourceState;

/// So many groups are named in a sentence.
const MOST_NAMED: usize = 3;

/// A group that its limit held back.
#[derive(Clone, Debug)]
pub(super) struct HeldGroup<'a> {
    /// Which.
    pub(super) group: LimitedGroup<'a>,
    /// For how long, as far as it is known.
    pub(super) ns: u64,
    /// Whether it is known.
    pub(super) is_timed: bool,
    /// What to say of it: `3.2 s (31 times, 0.2 processors)`.
    pub(super) words: String,
    /// The numbers.
    pub(super) evidence: Vec<Evidence>,
}

impl HeldGroup<'_> {
    /// Not one all of whose time is that of a group inside of it.
    pub(super) fn is_worth_naming(&self) -> bool {
        self.ns > 0 || !self.group.has_inner()
    }
}

/// All groups in one claim, those that were held back longest first: `docker-0123 3.2 s (31 times)
/// and docker-4567 2 s (20 times)`, with how many more there are; how many had no series of their
/// own (`has_others`) is not known.
pub(super) fn in_words(held: &[HeldGroup], has_others: bool) -> String {
    let named = held.iter().take(MOST_NAMED);
    let mut names: Vec<String> =
        named.map(|one| format!("{} {}", one.group.name(), one.words)).collect();
    match held.len().saturating_sub(MOST_NAMED) as u64 {
        _ if has_others => names.push("other groups".to_owned()),
        0 => {}
        1 => names.push("one more group".to_owned()),
        more => names.push(format!("{} more groups", count(more))),
    }
    list(&names)
}

/// The evidence of those that are named, the first one's first.
pub(super) fn evidence(held: &[HeldGroup]) -> Vec<Evidence> {
    held.iter().take(MOST_NAMED).flat_map(|one| one.evidence.clone()).collect()
}

/// What a counter of the groups without series of their own grew by, together.
pub(super) fn others(run: &RunView, what: &str) -> u64 {
    run.growth(&format!("limited.others.{what}")).unwrap_or(0)
}

/// The verdict where no group with series of its own was held back: cleared by the count of groups
/// that were looked at, unless some could not be, or others (by their counter) were held back.
pub(super) fn none_held(run: &RunView, others_by: &str) -> RunVerdict {
    if others(run, others_by) > 0 {
        let why = "groups reached their limit that have no series of their own: there are too many";
        return Err(why.into());
    }
    let groups = match run.facts().sight("group_limits") {
        // An import of another tool, or a recording of before.
        SourceState::NotAsked => return Err(NoFinding::Nothing),
        SourceState::Closed { why, remedy } => {
            return Err(NoFinding::Unseen { why: why.clone(), remedy: remedy.clone() });
        }
        SourceState::Open => run.max("limited.groups"),
    };
    let Some(groups) = groups else {
        return Err("no control group was looked at yet".into());
    };
    let highest = |name: &str| run.max(name).unwrap_or(0);
    let missed = highest("limited.unreadable").saturating_add(highest("limited.unwatched"));
    if missed > 0 {
        let missed = count(missed.unsigned_abs());
        let why = format!("{missed} control groups were not looked at, or could not be read");
        return Err(NoFinding::Unseen { why, remedy: Some("sudo".to_owned()) });
    }
    let looked_at = run.evidence("limited.groups", groups as f64);
    clear_count(Some(looked_at), if groups == 1 { "group looked at" } else { "groups looked at" })
}
