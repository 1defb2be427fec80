//! A limit on the number of processes and threads of a control group refused new ones.
//!
//! The kernel counts each refusal. It takes no time: the program fails, or tries again, so the
//! finding comes before everything that is counted in time.

use super::limited::{HeldGroup, evidence, in_words, none_held, others};
use super::limits::{MOST_LEVELS, group_path};
use super::{RunVerdict, RunView};
use crate::recording::limited::{self, LimitedGroup};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, often};
use model::explanation::Cause;
use model::{Evidence, Finding, Grade};
use std::cmp::Reverse;

/// Of groups without series of their own.
const OTHERS: &str = "pids.refused";

/// The level that no limit has: what version 2 shows for `max` is not a number.
const NO_LIMIT: i64 = 0;

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return of_machine(run);
    }
    let refused = |level: u32| run.growth(&format!("group{level}.pids.refused"));
    let known = |level: &u32| refused(*level).is_some();
    let first = (0..MOST_LEVELS).find(known).ok_or(NoFinding::Nothing)?;
    // The innermost group that refused: the same refusal may count in those above it.
    let mut levels = (0..MOST_LEVELS).filter(known);
    let Some(level) = levels.find(|level| refused(*level) > Some(0)) else {
        return clear_count(run.grown(&format!("group{first}.pids.refused")), "refusals");
    };
    let base = format!("group{level}.pids");
    let group = group_path(run, level, &["pids", "unified"]);
    let times = refused(level).unwrap_or(0);
    let claim = format!("{} in {group}{}", refusals(times), limit_in_words(run, &base));
    Ok(cause(claim, numbers(run, &base)))
}

/// Of the whole machine: every group that refused, most refusals first.
fn of_machine(run: &RunView) -> RunVerdict {
    let mut groups = limited::held(run, |group| refused_by(run, group) > 0);
    groups.sort_by_key(|group| Reverse(refused_by(run, group)));
    let sum = groups.iter().fold(0u64, |sum, group| sum.saturating_add(refused_by(run, group)));
    let held: Vec<HeldGroup> = groups.into_iter().map(|group| refusing(run, group)).collect();
    if held.is_empty() {
        return none_held(run, OTHERS);
    }
    let has_others = others(run, OTHERS) > 0;
    let claim = format!("{} by process limits: {}", refusals(sum), in_words(&held, has_others));
    Ok(cause(claim, evidence(&held)))
}

/// A group that refused, as `(31 times, limit 64)`.
fn refusing<'a>(run: &RunView<'a>, group: LimitedGroup<'a>) -> HeldGroup<'a> {
    let base = group.series("pids");
    let limit = limit(run, &base).map(|limit| format!(", limit {}", count(limit)));
    let words = format!("({}{})", often(refused_by(run, &group)), limit.unwrap_or_default());
    HeldGroup { evidence: numbers(run, &base), group, ns: 0, is_timed: false, words }
}

fn cause(claim: String, evidence: Vec<Evidence>) -> Cause {
    let finding = Finding::new(Grade::Measured, claim, evidence).remedy(
        "Raise the limit (pids.max of the group, TasksMax= of the unit, --pids-limit of the \
         container), or start fewer threads. Risk: a program that never stops starting them is \
         then stopped later.",
    );
    Cause::new(None, finding)
}

fn refused_by(run: &RunView, group: &LimitedGroup) -> u64 {
    group.growth(run, "pids.refused").unwrap_or(0)
}

fn refusals(times: u64) -> String {
    match times {
        1 => "A new process or thread was refused".to_owned(),
        _ => format!("{} new processes or threads were refused", count(times)),
    }
}

fn limit(run: &RunView, base: &str) -> Option<u64> {
    let limit = run.latest(&format!("{base}.limit")).filter(|limit| *limit > NO_LIMIT)?;
    Some(limit.unsigned_abs())
}

fn limit_in_words(run: &RunView, base: &str) -> String {
    let words = |limit| format!(": it may have at most {}", count(limit));
    limit(run, base).map(words).unwrap_or_default()
}

/// The refusals, the limit, and the most that there were.
fn numbers(run: &RunView, base: &str) -> Vec<Evidence> {
    let refused = run.grown(&format!("{base}.refused"));
    let name = format!("{base}.limit");
    let limit = limit(run, base).map(|limit| run.evidence(&name, limit as f64));
    let current = format!("{base}.current");
    let most = run.max(&current).map(|most| run.evidence(&current, most as f64));
    [refused, limit, most].into_iter().flatten().collect()
}
