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

/// All groups in one claim, those that were held back longest first: `docker-0123 3.2 s (31 times)
/// and docker-4567 2 s (20 times)`, with how many more there are.
pub(super) fn in_words(held: &[HeldGroup], others: u64) -> String {
    let named = held.iter().take(MOST_NAMED);
    let mut names: Vec<String> =
        named.map(|one| format!("{} {}", one.group.name(), one.words)).collect();
    let more = (held.len() as u64).saturating_sub(MOST_NAMED as u64).saturating_add(others);
    match more {
        0 => {}
        1 => names.push("one more group".to_owned()),
        _ => names.push(format!("{} more groups", count(more))),
    }
    list(&names)
}

/// The evidence of those that are named, the first one's first.
pub(super) fn evidence(held: &[HeldGroup]) -> Vec<Evidence> {
    held.iter().take(MOST_NAMED).flat_map(|one| one.evidence.clone()).collect()
}

/// How many groups reached a limit of this kind and had no series of their own: their sum.
pub(super) fn others(run: &RunView, what: &str) -> u64 {
    run.growth(&format!("limited.others.{what}")).unwrap_or(0)
}

/// The verdict where no group of the machine was held back: cleared by the count of groups that
/// were looked at, unless some could not be.
pub(super) fn none_held(run: &RunView) -> RunVerdict {
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
