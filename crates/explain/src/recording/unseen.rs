//! What could not be seen: sights that were closed, and the part of the bar that is
//! unexplained because of it, with what would open them.

use super::View;
use super::accounting::Accounts;
use super::accounting::processor_samples::{LEAST_SAMPLES, ProcessorSamples};
use super::witness::watching_command;
use crate::wording::{count, percent};
use model::explanation::TimeSlice;
use model::explanation::Unseen;
use model::recording::SourceState;

/// Conditions of the recorder, not sights: their loss shows as late samples.
const NOT_SIGHTS: [&str; 2] = ["realtime", "locked"];

/// An unexplained share that is worth a word: 3 %, the most that a run with all sights
/// open may leave.
const WORTH_TELLING: f64 = 0.03;

/// And a length below which two clocks of the kernel may differ: one tick.
const WORTH_TELLING_NS: u64 = 4_000_000;

/// What switch events would tell, and how to get them.
const EVENTS: &str = "events.sched";

/// Everything that was asked for and not seen; what rules could not judge is theirs.
pub(super) fn unseen(view: &View, accounts: &Accounts) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    unseen.extend(unexplained(view, accounts));
    unseen.extend(undivided(view));
    for (what, sight) in &view.facts().sights {
        if let SourceState::Closed { why, remedy } = sight
            && !NOT_SIGHTS.contains(&what.as_str())
        {
            unseen.push(Unseen { what: what.clone(), why: why.clone(), remedy: remedy.clone() });
        }
    }
    unseen
}

/// Processor time that was sampled too seldom to be divided.
fn undivided(view: &View) -> Option<Unseen> {
    let samples = ProcessorSamples::any(view)?.all;
    (samples < LEAST_SAMPLES).then(|| Unseen {
        what: "events.cpu".to_owned(),
        why: format!(
            "{} samples of the processors are too few to divide their time; {LEAST_SAMPLES} are \
             needed",
            count(samples)
        ),
        remedy: None,
    })
}

fn unexplained(view: &View, accounts: &Accounts) -> Option<Unseen> {
    if accounts.thread_ns == 0 {
        return None;
    }
    let rest_ns = accounts.thread(TimeSlice::Unexplained);
    let share = rest_ns as f64 / accounts.thread_ns as f64;
    if share <= WORTH_TELLING || rest_ns <= WORTH_TELLING_NS {
        return None;
    }
    let rest = format!("rest {}: cause cannot be seen", percent(share));
    let with_events = || Some(watching_command(view.facts(), Some("sched"), false));
    let (why, remedy) = match view.facts().sight(EVENTS) {
        SourceState::Open => match view.events_gap() {
            Some(gap) => (format!("{rest}: {}", gap.text), with_events()),
            None => (rest, None),
        },
        SourceState::NotAsked => {
            let why = if view.facts().root {
                "switch events were not asked for"
            } else {
                "switch events need root"
            };
            (format!("{rest}: {why}"), with_events())
        }
        SourceState::Closed { why, remedy } => {
            (format!("{rest}: {why}"), remedy.clone().or_else(with_events))
        }
    };
    Some(Unseen { what: TimeSlice::Unexplained.into(), why, remedy })
}
