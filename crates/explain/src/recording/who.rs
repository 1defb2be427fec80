//! Who did it: the actors of each finding and the files behind it, and the first users of each
//! figure. docs/accounting.md defines an actor.
//!
//! 1. [`sums`] adds up the rows of processes and files in the explained part.
//! 2. `roles` says by which quantities victims and culprits of a finding are found.
//! 3. `actors` names them, from a `ranking` of the users of each quantity.
//! 4. `sentence` puts them into words, `requests` whose requests a device served.
//!
//! Runs after attribution: culprits are looked for while most of the finding happened.

mod actors;
mod files;
pub mod quantity;
mod ranking;
mod requests;
mod roles;
mod sentence;
pub(crate) mod shares;
pub mod sums;
mod totals;
mod usage;

use super::{View, limited};
use actors::ActorView;
use model::explanation::{Cause, Explanation, Interval};
use model::recording::Subject;
use sentence::Names;
use sums::ProcessSum;

/// A burst takes at most this share of the time. Picked.
const MOST_OF_A_BURST: f64 = 0.5;

/// Names the actors of every finding of an explanation of `view`, and the first users of what was
/// used much. Leaves it as it is where processes were not watched.
pub fn name_actors(view: &View, explanation: &mut Explanation) {
    let who = &view.recording().who;
    if who.is_empty() {
        return;
    }
    let has_several = has_several(view.process_sums(), &view.facts().subject);
    for cause in &mut explanation.findings {
        name_actors_of(view, has_several, cause);
    }
    if has_several {
        explanation.usage = usage::usage(view, names(view));
    }
}

fn name_actors_of(view: &View, has_several: bool, cause: &mut Cause) {
    let Some(roles) = roles::of(&cause.finding.id) else {
        return;
    };
    if let Some(figure) = roles.files {
        cause.files = files::first_files(view, figure);
    }
    let mut sentences = Vec::new();
    let names = Names { finding_ns: cause.ns, ..names(view) };
    // Of a command that is one process the actor is known.
    if has_several {
        let burst = cause.span.and_then(|span| burst(view, span));
        let groups = limited::paths_in(view, &cause.finding.evidence);
        let meanwhile = burst.as_ref().unwrap_or(view);
        let actor_view = ActorView { view, meanwhile, groups: &groups };
        let found = actors::find(&actor_view, roles);
        cause.actors = found.to_actors(names);
        sentences.push(sentence::of_actors(&found, &actor_view, names));
    }
    sentences.push(sentence::of_files(&cause.files, has_several));
    sentences.extend(roles.requests.map(|is_write| requests::of_first(view, is_write)));
    sentences.retain(|sentence| !sentence.is_empty());
    cause.who = sentences;
}

/// The part of the view in which a finding happened, if that is short enough to ask who did what
/// just then.
fn burst<'a>(view: &View<'a>, span: Interval) -> Option<View<'a>> {
    let length_ns = span.to_ns.saturating_sub(span.from_ns);
    let is_burst = length_ns as f64 <= view.wall_ns() as f64 * MOST_OF_A_BURST;
    // A span leaves out a tenth of the growth, on either side.
    let rest_ns = length_ns / 9;
    let from_ns = span.from_ns.saturating_sub(rest_ns).max(view.from_ns());
    let to_ns = span.to_ns.saturating_add(rest_ns).min(view.to_ns());
    is_burst.then(|| view.during(Interval { from_ns, to_ns }))
}

fn names<'a>(view: &View<'a>) -> Names<'a> {
    Names { who: &view.recording().who, subject: &view.facts().subject, finding_ns: None }
}

/// Whether a name says more than the subject's does.
fn has_several(sums: &[ProcessSum], subject: &Subject) -> bool {
    match subject {
        Subject::Command { .. } | Subject::Process { .. } => {
            sums.iter()
                .filter(|sum| !sum.process.is_kernel)
                .fold(0u64, |all, sum| all.saturating_add(sum.processes))
                > 1
        }
        Subject::Machine | Subject::Group { .. } | Subject::Probe { .. } => !sums.is_empty(),
    }
}
