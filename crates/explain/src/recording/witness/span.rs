//! Whether a source watched from the first to the last instant of a view, and what it lacks: a
//! series with a hole has not, nor have events that were stopped, or of which some were lost.

use super::command::watching_command;
use crate::recording::rules::RunView;
use crate::recording::view::begins_at_zero;
use crate::wording::count;
use model::Evidence;
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

/// Whether the series that a number was computed from watched all the time. One that the
/// recorder begins when it first counts something may appear late.
pub fn number(run: &RunView, number: &Evidence) -> Result<(), Missing> {
    let named = match number.series.as_slice() {
        [] => std::slice::from_ref(&number.name),
        series => series,
    };
    let mut recorded = named.iter().filter_map(|name| run.series(name)).peekable();
    if let Some(name) = named.iter().find(|name| is_name_of_series(name))
        && recorded.peek().is_none()
    {
        return Err(Missing::new(format!("{name} was not recorded")));
    }
    for series in recorded {
        let name = &series.schema.name;
        family(name).map_or(Ok(()), |family| followed(run, family))?;
        let may_be_late = begins_at_zero(name);
        let missing = if may_be_late { hole_after_start(run, series) } else { hole(run, series) };
        if let Some(what) = missing {
            return Err(Missing::new(format!("{name} {what}")));
        }
    }
    Ok(())
}

/// Whether a number's name is that of a series: `tree.run_ns`, not `waited for reads`.
fn is_name_of_series(name: &str) -> bool {
    name.contains('.') && !name.contains([' ', '/'])
}

/// Of a series that begins late.
const BEGAN_LATE: &str = "began after the start";

fn hole(run: &RunView, series: &Series) -> Option<&'static str> {
    let (first, _) = run.samples();
    if series.at(first).is_none() { Some(BEGAN_LATE) } else { hole_after_start(run, series) }
}

/// A hole after the first value.
fn hole_after_start(run: &RunView, series: &Series) -> Option<&'static str> {
    let (first, last) = run.samples();
    if series.at(last).is_none() {
        return Some("ended before the end");
    }
    let mut has_begun = series.at(first).is_some();
    let mut changes = series.within(first, last);
    let has_hole = changes.any(|step| {
        let is_hole = has_begun && step.value.is_none();
        has_begun |= step.value.is_some();
        is_hole
    });
    has_hole.then_some("has a hole")
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

/// Whether events of a family were followed all the time and none was lost; `base` are sums of
/// theirs that are known from the first sample on.
pub fn events(run: &RunView, family: &str, base: &[&str]) -> Result<(), Missing> {
    followed(run, family)?;
    counted(run, base)
}

/// Whether events of a family were followed all the time and none was lost.
fn followed(run: &RunView, family: &str) -> Result<(), Missing> {
    let gap = run.events_gap();
    match (gap, run.facts().sight(&format!("events.{family}"))) {
        (Some(gap), _) => {
            let why = format!("events were not followed all the time: {}", gap.text);
            return Err(Missing::with_events(run, why, family));
        }
        (None, _) if run.events_were_stopped() => {}
        (None, SourceState::Open) => {}
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
    Ok(())
}

/// The family of events that a series sums. Waits are seen by switches.
fn family(name: &str) -> Option<&str> {
    match name.strip_prefix("trace.")?.split_once('.')?.0 {
        "block_io" | "sleep" => Some("sched"),
        family => Some(family),
    }
}
