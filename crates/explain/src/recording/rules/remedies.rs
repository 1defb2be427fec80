//! What would help, ordered by what the subject is expected to gain by it.
//!
//! 1. [`wording`] says what can be done about a finding here; what cannot work on this machine is
//!    left out, in the finding too.
//! 2. [`gain`] estimates what the subject gains, by a model that it names.
//! 3. [`change`] says which setting a trial changes, where a program can do that and undo it, and
//!    [`restore`] whose memory it restores.
//!
//! A remedy is only to be tried where its range is wide or begins at nothing.

mod change;
mod gain;
mod restore;
mod wording;

use super::{RULES, Rank, RunView};
use crate::recording::work;
use model::explanation::{Cause, ExpectedGain, Remedy, SettingChange};
use model::recording::Subject;
use model::text::{is_hazard, shell_word};
use std::cmp::Ordering;

/// A gain below this is not promised. Picked: what a person may hope to notice.
const LEAST_PROMISED: f64 = 1.05;

/// Nor is one whose ends differ by more than this factor. Picked.
const WIDEST_PROMISED: f64 = 2.0;

/// The remedies of these findings, which lose those that cannot work here.
pub(super) fn propose(run: &RunView, findings: &mut [Cause]) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    for cause in findings {
        cause.finding.remedy = wording::possible(run, cause);
        let Some(text) = cause.finding.remedy.clone() else { continue };
        let remedy = remedy(run, cause, text);
        // What lies inside of a finding is mended by the same change.
        let is_known =
            remedies.iter().any(|known| known.change.is_some() && known.change == remedy.change);
        if !is_known {
            remedies.push(remedy);
        }
    }
    // Stable: equals stay in the order of the findings.
    remedies.sort_by(most_gain_first);
    remedies
}

fn remedy(run: &RunView, cause: &Cause, text: String) -> Remedy {
    let gain = gain::expected(run, cause);
    let change = change::of(run, &cause.finding.id);
    let restores = restore::of(run, &cause.finding.id);
    let is_to_be_tried = gain.as_ref().is_none_or(is_weak);
    let try_command = match &restores {
        Some(_) => Some(try_record(run)),
        None => try_command(run, is_to_be_tried, change.as_ref()),
    };
    let finding = cause.finding.id.clone();
    Remedy { finding, text, gain, is_to_be_tried, try_command, change, restores }
}

fn is_weak(gain: &ExpectedGain) -> bool {
    gain.low < LEAST_PROMISED || gain.high > gain.low * WIDEST_PROMISED
}

/// A command that was killed has all to gain. What has no number comes last.
fn most_gain_first(a: &Remedy, b: &Remedy) -> Ordering {
    let weight = |remedy: &Remedy| {
        let rule = RULES.iter().find(|rule| rule.id == remedy.finding);
        let is_decisive = rule.is_some_and(|rule| rule.rank == Rank::Decisive);
        if is_decisive {
            f64::INFINITY
        } else {
            remedy.gain.as_ref().map_or(0.0, ExpectedGain::middle)
        }
    };
    weight(b).total_cmp(&weight(a))
}

/// The command with which a user tries it: what a program can change and put back it tries by
/// itself, else the user changes the command.
fn try_command(
    run: &RunView,
    is_to_be_tried: bool,
    change: Option<&SettingChange>,
) -> Option<String> {
    let Subject::Command { argv } = &run.facts().subject else {
        return change.map(|_| try_record(run));
    };
    if change.is_none() {
        let words = "terrace run --against 'CHANGED CMD' -- CMD";
        return is_to_be_tried.then(|| words.to_owned());
    }
    let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    let line = words.join(" ");
    let is_short = line.len() <= LONGEST_LINE && !line.contains(is_hazard);
    let command = if is_short { line.as_str() } else { "CMD" };
    Some(format!("{}terrace run --try -- {command}", sudo(run)))
}

/// Longer command lines are not repeated.
const LONGEST_LINE: usize = 60;

/// Only root changes settings.
fn sudo(run: &RunView) -> &'static str {
    if run.facts().root { "" } else { "sudo " }
}

/// The same of what runs on: its work says what it brings.
fn try_record(run: &RunView) -> String {
    let target = match &run.facts().subject {
        Subject::Process { pid, .. } => format!(" --pid {pid}"),
        Subject::Group { unit: Some(unit), .. } => format!(" --unit {}", shell_word(unit)),
        Subject::Group { path, unit: None } => format!(" --cgroup {}", shell_word(path)),
        _ => String::new(),
    };
    let known = work::done(run.view).and_then(|work| {
        let word = match work.source.split(',').next()? {
            "PostgreSQL" => "pg",
            "MySQL" => "mysql",
            "Redis" => "redis",
            _ => return None,
        };
        Some(format!("{word}:{}", work.name))
    });
    let counted = known.unwrap_or_else(|| "SPEC".to_owned());
    format!("{}terrace record --try{target} --for 10s --work {counted}", sudo(run))
}
