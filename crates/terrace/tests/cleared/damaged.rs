//! The kept recordings, damaged: each series in turn is absent, ends early, begins late or has a
//! hole; events are stopped in the middle, lost, or were never seen. What is then still cleared
//! must be cleared by a number of what watched from the start to the end, and never is what the
//! whole recording finds guilty.

use crate::support::print_figure;
use explain::recording::{Window, explain};
use model::explanation::Explanation;
use model::recording::{Recording, Series, SourceState, Span};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

/// What happens to a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Absent,
    EndsEarly,
    BeginsLate,
    HasHole,
}

const DAMAGES: [Damage; 4] =
    [Damage::Absent, Damage::EndsEarly, Damage::BeginsLate, Damage::HasHole];

impl Damage {
    /// The samples without a value, of so many.
    fn samples(self, all: u32) -> Range<u32> {
        match self {
            Self::Absent => 0..all,
            Self::EndsEarly => all / 2..all,
            Self::BeginsLate => 0..all / 2,
            Self::HasHole => all / 3..all / 2,
        }
    }
}

/// The kept recordings, by name.
fn recordings() -> Vec<(String, Recording)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings");
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let kept = paths.filter(|path| path.extension().is_some_and(|end| end == "trec"));
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    kept.map(|path| (name(&path), record::file::open(&path).unwrap())).collect()
}

/// `series` without values at some samples; without a name where it has none at all.
fn damaged(series: &Series, damage: Damage, samples: u32) -> Series {
    if damage == Damage::Absent {
        return Series::default();
    }
    let without = damage.samples(samples);
    let mut left = Series { schema: series.schema.clone(), ..Series::default() };
    for sample in 0..samples {
        left.push(sample, series.at(sample).filter(|_| !without.contains(&sample)));
    }
    left
}

/// What is found, by rule.
fn found(explanation: &Explanation) -> BTreeSet<String> {
    explanation.findings.iter().map(|cause| cause.finding.id.clone()).collect()
}

/// The rules whose suspects have numbers of series.
fn cleared_by_series(explanation: &Explanation) -> BTreeSet<String> {
    let by_series = explanation.cleared.iter().filter(|one| !one.evidence.series.is_empty());
    by_series.map(|one| one.id.clone()).collect()
}

/// What the whole recording says.
struct Whole {
    found: BTreeSet<String>,
    by_series: BTreeSet<String>,
}

impl Whole {
    fn of(recording: &Recording) -> Self {
        let explanation = explain(recording, Window::default());
        Self { found: found(&explanation), by_series: cleared_by_series(&explanation) }
    }

    /// Which suspects a damaged recording clears although it must not: what the whole one finds
    /// guilty, what has a number of a series that `is_damaged`, and what has no series any more.
    fn cleared_blindly(
        &self,
        recording: &Recording,
        is_damaged: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for one in explain(recording, Window::default()).cleared {
            let number = &one.evidence;
            if self.found.contains(&one.id) {
                wrong.push(format!("{} is guilty", one.id));
            } else if let Some(name) = number.series.iter().find(|name| is_damaged(name)) {
                wrong.push(format!("{} by {name}", one.id));
            } else if number.series.is_empty()
                && number.source != "taskstats"
                && self.by_series.contains(&one.id)
            {
                wrong.push(format!("{} by nothing: {}", one.id, number.name));
            }
        }
        wrong
    }
}

/// Series in one row of the kernel's files are looked at together first.
const CHUNK: usize = 12;

/// The places of the series without any of which the explanation differs.
fn that_matter(recording: &mut Recording) -> Vec<usize> {
    let whole = explain(recording, Window::default());
    let all: Vec<usize> = (0..recording.series.len()).collect();
    let mut differs_without = |places: &[usize]| {
        let take = |at: &usize| std::mem::take(&mut recording.series[*at]);
        let taken: Vec<Series> = places.iter().map(take).collect();
        let differs = explain(recording, Window::default()) != whole;
        for (at, series) in places.iter().zip(taken) {
            recording.series[*at] = series;
        }
        differs
    };
    let mut found = Vec::new();
    for chunk in all.chunks(CHUNK) {
        if differs_without(chunk) {
            found.extend(chunk.iter().filter(|at| differs_without(&[**at])));
        }
    }
    found
}

/// What is wrong of one recording, with each of its series damaged in turn; and how many were.
fn damaged_in_turn(name: &str, mut recording: Recording) -> (usize, Vec<String>) {
    let whole = Whole::of(&recording);
    let samples = u32::try_from(recording.ticks.len()).unwrap();
    let mut wrong = Vec::new();
    let places = that_matter(&mut recording);
    for at in &places {
        let series = recording.series[*at].clone();
        let own = &series.schema.name;
        for damage in DAMAGES.into_iter().filter(|damage| is_possible(*damage, own)) {
            recording.series[*at] = damaged(&series, damage, samples);
            let blindly = whole.cleared_blindly(&recording, |name| name == own);
            wrong.extend(blindly.iter().map(|what| format!("{name}: {own} {damage:?}: {what}")));
        }
        recording.series[*at] = series;
    }
    (places.len(), wrong)
}

/// Whether it is a damage: a sum of the recorder's has no value before it counts something, and a
/// limit that is not set has no series.
fn is_possible(damage: Damage, name: &str) -> bool {
    match damage {
        Damage::BeginsLate => !is_of_events(name),
        Damage::Absent => !name.contains(".io.") || !name.contains(".max."),
        Damage::EndsEarly | Damage::HasHole => true,
    }
}

#[test]
fn nothing_is_cleared_by_a_series_that_did_not_watch() {
    let each = recordings()
        .into_iter()
        .map(|(name, recording)| std::thread::spawn(move || damaged_in_turn(&name, recording)));
    let threads: Vec<_> = each.collect();
    let mut series = 0;
    let mut wrong = Vec::new();
    for thread in threads {
        let (damaged, of_recording) = thread.join().unwrap();
        series += damaged;
        wrong.extend(of_recording);
    }
    print_figure("cleared_series", series as f64);
    print_figure("cleared_blindly", wrong.len() as f64);
    assert!(series > 500, "{series}");
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}

/// Whether a series is made of events.
fn is_of_events(name: &str) -> bool {
    name.starts_with("trace.")
}

#[test]
fn nothing_is_cleared_by_events_that_were_stopped_or_lost() {
    let mut wrong = Vec::new();
    let mut with_events = 0;
    for (name, recording) in recordings() {
        if !recording.series.iter().any(|series| is_of_events(&series.schema.name)) {
            continue;
        }
        with_events += 1;
        let whole = Whole::of(&recording);
        let mut stopped = recording.clone();
        let middle_ns = recording.wall_ns() / 2;
        stopped.spans.push(Span {
            kind: "events_stopped".to_owned(),
            text: "kernel events came too fast".to_owned(),
            start_ns: middle_ns,
            end_ns: middle_ns,
        });
        let mut paused = recording.clone();
        paused.spans.push(Span {
            kind: "events_paused".to_owned(),
            text: "kernel events came too fast".to_owned(),
            start_ns: middle_ns / 2,
            end_ns: middle_ns,
        });
        let mut lost = recording.clone();
        lost.outcome.as_mut().unwrap().lost_events = 5_000;
        for (damage, recording) in [("stopped", stopped), ("paused", paused), ("lost", lost)] {
            let blindly = whole.cleared_blindly(&recording, is_of_events);
            wrong.extend(blindly.iter().map(|what| format!("{name}: {damage}: {what}")));
        }
    }
    print_figure("cleared_blindly", wrong.len() as f64);
    assert!(with_events >= 5, "{with_events}");
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn nothing_guilty_is_cleared_where_a_source_was_absent() {
    let mut wrong = Vec::new();
    for (name, recording) in recordings() {
        let whole = Whole::of(&recording);
        let roots = recording.series.iter().filter_map(|series| series.schema.name.split_once('.'));
        let mut families: BTreeSet<String> = roots.map(|(root, _)| format!("{root}.")).collect();
        let of_events = recording.facts.sights.keys().filter_map(|key| key.strip_prefix("events."));
        families.extend(of_events.map(|family| format!("trace.{family}.")));
        for family in families {
            let mut without = recording.clone();
            without.series.retain(|series| !series.schema.name.starts_with(&family));
            let sight = family.trim_start_matches("trace.").trim_end_matches('.');
            for key in [format!("events.{sight}"), sight.to_owned()] {
                if let Some(state) = without.facts.sights.get_mut(&key) {
                    let why = "not permitted".to_owned();
                    *state = SourceState::Closed { why, remedy: None };
                }
            }
            let blindly = whole.cleared_blindly(&without, |name| name.starts_with(&family));
            wrong.extend(blindly.iter().map(|what| format!("{name} without {family}: {what}")));
        }
    }
    print_figure("cleared_blindly", wrong.len() as f64);
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}
