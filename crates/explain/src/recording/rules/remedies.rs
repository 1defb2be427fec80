//! What would help, ordered by what the subject is expected to gain by it.
//!
//! 1. [`wording`] says what can be done about a finding here; what cannot work on this machine is
//!    left out, in the finding too.
//! 2. [`gain`] estimates what the subject gains, by a model that it names.
//! 3. [`change`] says which setting a trial changes, where a program can do that and undo it.
//!
//! A remedy is only to be tried where its range is wide or begins at nothing.

mod change;
mod gain;
mod wording;

use super::{RULES, Rank, RunView};
use model::explanation::{Cause, ExpectedGain, Remedy};
use model::recording::Subject;
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
    let is_to_be_tried = gain.as_ref().is_none_or(is_weak);
    let try_command = try_command(run, is_to_be_tried);
    Remedy { finding: cause.finding.id.clone(), text, gain, is_to_be_tried, try_command, change }
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

/// The command with which a user tries it, who changes the command.
fn try_command(run: &RunView, is_to_be_tried: bool) -> Option<String> {
    let is_command = matches!(run.facts().subject, Subject::Command { .. });
    let words = "terrace run --against 'CHANGED CMD' -- CMD";
    (is_command && is_to_be_tried).then(|| words.to_owned())
}
