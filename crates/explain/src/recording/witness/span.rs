//! Whether a source watched from the first to the last instant of a view, and what it lacks: a
//! series with a hole has not, nor have events that were stopped, or of which some were lost.

use super::command::watching_command;
use crate::recording::rules::RunView;
use crate::wording::count;
use model::recording::{Series, SourceState};

/// Samples may begin so much later than the span, and end so much earlier: as a part of it.
/// Picked: less than what matters.
const MOST_UNSAMPLED: f64 = 0.04;

/// And by so much whatever its length: two samples at the usual rate.
const LEAST_UNSAMPLED_NS: u64 = 200_000_000;

/// What was not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Why, as a clause.
    pub why: String,
    /// The command or setting that would watch it.
    pub remedy: Option<String>,
}

impl Missing {
    /// Nothing would watch it.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: None }
    }

    /// This would watch it: a right, a setting, or else nothing.
    pub fn of(run: &RunView, why: &str, remedy: Option<&str>) -> Self {
        // A bare right becomes the whole command that was typed, with it.
        let whole = |remedy: &str| match remedy {
            "sudo" => watching_command(run.facts(), None, true),
            other => other.to_owned(),
        };
        Self { why: why.to_owned(), remedy: remedy.map(whole) }
    }

    /// Events of this family would watch it.
    pub fn with_events(run: &RunView, why: impl Into<String>, family: &str) -> Self {
        let remedy = watching_command(run.facts(), Some(family), false);
        Self { why: why.into(), remedy: Some(remedy) }
    }
}

/// Whether samples cover the view, without a gap between segments of a ring.
fn clock(run: &RunView) -> Result<(), Missing> {
    let (from, to) = (run.from_ns(), run.to_ns());
    let mut spans = run.recording().spans.iter();
    if spans.any(|span| span.kind == "gap" && span.start_ns < to && span.end_ns > from) {
        return Err(Missing::new("the recorder did not run for a part of the time"));
    }
    let (first, last) = run.samples();
    let (Some(begin), Some(end)) = (run.at_ns(first), run.at_ns(last)) else {
        return Err(Missing::new("there are no samples"));
    };
    let most = LEAST_UNSAMPLED_NS.max((run.wall_ns() as f64 * MOST_UNSAMPLED) as u64);
    if begin.saturating_sub(from) > most {
        return Err(Missing::new("the first sample was taken long after the start"));
    }
    if to.saturating_sub(end) > most {
        return Err(Missing::new("the last sample was taken long before the end"));
    }
    Ok(())
}

/// Whether a series has a value at every sample of the view.
pub fn whole(run: &RunView, name: &str) -> Result<(), Missing> {
    clock(run)?;
    let not_recorded = || Missing::new(format!("{name} was not recorded"));
    let series = run.series(name).ok_or_else(not_recorded)?;
    hole(run, series).map_or(Ok(()), |what| Err(Missing::new(format!("{name} {what}"))))
}

fn hole(run: &RunView, series: &Series) -> Option<&'static str> {
    let (first, last) = run.samples();
    if series.at(first).is_none() {
        return Some("began after the start");
    }
    if series.at(last).is_none() {
        return Some("ended before the end");
    }
    let mut changes = series.within(first, last);
    changes.any(|step| step.value.is_none()).then_some("has a hole")
}

/// Whether all these counters watched.
pub fn counted(run: &RunView, names: &[&str]) -> Result<(), Missing> {
    names.iter().try_for_each(|name| whole(run, name))
}

/// Whether they watched and did not move.
pub fn still(run: &RunView, names: &[&str]) -> Result<(), Missing> {
    counted(run, names)?;
    match names.iter().find(|name| run.growth(name) > Some(0)) {
        Some(name) => Err(Missing::new(format!("{name} moved"))),
        None => Ok(()),
    }
}

/// Whether all series between a prefix and a suffix watched, and there is one.
pub fn any(run: &RunView, prefix: &str, suffix: &str) -> Result<(), Missing> {
    let names = run.names_between(prefix, suffix);
    if names.is_empty() {
        return Err(Missing::new(format!("{prefix}* was not recorded")));
    }
    counted(run, &names)
}

/// Whether a source was open.
pub fn source(run: &RunView, name: &str) -> Result<(), Missing> {
    match run.facts().sight(name) {
        SourceState::Open => Ok(()),
        SourceState::NotAsked => Err(Missing::new(format!("{name} was not asked for"))),
        SourceState::Closed { why, remedy } => Err(Missing::of(run, why, remedy.as_deref())),
    }
}

/// The same, if the recording knows of it at all.
pub fn source_if_asked(run: &RunView, name: &str) -> Result<(), Missing> {
    match run.facts().sight(name) {
        SourceState::NotAsked => Ok(()),
        _ => source(run, name),
    }
}

/// Whether events of a family were followed all the time and none was lost; `base` is a sum of
/// theirs that is known from the first sample on.
pub fn events(run: &RunView, family: &str, base: &str) -> Result<(), Missing> {
    let mut spans = run.recording().spans.iter();
    let stop = spans.find(|span| span.kind == "events_stopped");
    match (stop, run.facts().sight(&format!("events.{family}"))) {
        (Some(stop), _) if stop.start_ns < run.to_ns() => {
            let why = format!("events were stopped: {}", stop.text);
            return Err(Missing::with_events(run, why, family));
        }
        (Some(_), _) | (None, SourceState::Open) => {}
        (None, SourceState::NotAsked) => {
            let why = if run.facts().root {
                "its events were not asked for"
            } else {
                "its events need root"
            };
            return Err(Missing::with_events(run, why, family));
        }
        (None, SourceState::Closed { why, remedy }) => {
            return Err(Missing::of(run, why, remedy.as_deref()));
        }
    }
    let outcome = run.recording().outcome.as_ref().filter(|_| run.is_whole());
    let said = outcome.map_or(0, |outcome| outcome.lost_events);
    let lost = said.max(run.sum("trace.lost").unwrap_or(0));
    if lost > 0 {
        let why = format!("{} kernel events were lost", count(lost));
        return Err(Missing::with_events(run, why, family));
    }
    whole(run, base)
}
