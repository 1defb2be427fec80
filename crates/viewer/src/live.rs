//! What a page does not have yet of a running recording: the events of docs/view.md.
//!
//! Pure: a recording as far as it was read, and the [`PagePosition`] up to which a page knows it,
//! become one event of bounded length. Nobody but the page remembers its place, so that it may
//! come back with it after a break.

use crate::view::{SeriesLine, shown_spans};
use crate::who::{WhoNews, WhoPosition};
use model::explanation::Explanation;
use model::recording::{Recording, Span};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The most samples in one event: a page that was away for long catches up in steps.
const SAMPLES_MAX: usize = 1_000;

/// How much of a recording a page knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagePosition {
    /// Samples that it has.
    pub samples: usize,
    /// Series that it has.
    pub series: usize,
    /// Spans that it has, in the order of arrival.
    pub spans: usize,
    /// The number of the explanation that it has.
    pub explanation: u64,
    /// Processes, files and their rows that it has.
    pub who: WhoPosition,
}

impl fmt::Display for PagePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, series, spans, explanation, who } = self;
        let WhoPosition { processes, rows, files, file_rows } = who;
        write!(out, "{samples}.{series}.{spans}.{explanation}")?;
        write!(out, ".{processes}.{rows}.{files}.{file_rows}")
    }
}

impl FromStr for PagePosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|word| word.parse::<u32>());
        let mut next = || numbers.next().ok_or(())?.map_err(drop);
        let place = Self {
            samples: next()? as usize,
            series: next()? as usize,
            spans: next()? as usize,
            explanation: u64::from(next()?),
            who: WhoPosition {
                processes: next()? as usize,
                rows: next()? as usize,
                files: next()? as usize,
                file_rows: next()? as usize,
            },
        };
        numbers.next().is_none().then_some(place).ok_or(())
    }
}

/// A running recording as it is now.
#[derive(Clone, Copy, Debug)]
pub struct LiveState<'a> {
    /// As far as it was read.
    pub recording: &'a Recording,
    /// The last explanation that was made of it.
    pub explanation: &'a Explanation,
    /// How many were made.
    pub explanations: u64,
    /// Whether nothing will follow.
    pub has_ended: bool,
}

#[derive(Serialize)]
struct Event<'a> {
    from_sample: usize,
    ticks_ns: Vec<u64>,
    series: Vec<SeriesLine>,
    changes: Vec<(usize, u32, Option<i64>)>,
    spans: Vec<&'a Span>,
    who: Option<WhoNews>,
    explain: Option<&'a Explanation>,
    ended: bool,
}

/// The event for a page that knows all before `place`, as one line of JSON, and the place
/// after it. `None` when there is nothing new.
///
/// # Errors
/// When JSON cannot hold it.
pub fn event(
    now: &LiveState<'_>,
    place: PagePosition,
    meaning: impl Fn(&str) -> String,
) -> serde_json::Result<Option<(String, PagePosition)>> {
    let recording = now.recording;
    let from = place.samples.min(recording.ticks.len());
    let to = recording.ticks.len().min(from + SAMPLES_MAX);
    let series = recording.series.get(place.series..).unwrap_or_default();
    let spans = recording.spans.get(place.spans..).unwrap_or_default();
    let is_explained = place.explanation < now.explanations;
    let (who, who_place) = match WhoNews::after(&recording.who, place.who) {
        Some((news, after)) => (Some(news), after),
        None => (None, place.who),
    };
    let has_all = to == recording.ticks.len() && who_place == WhoPosition::end_of(&recording.who);
    let ended = now.has_ended && has_all;
    let is_known = from == to && series.is_empty() && spans.is_empty() && who.is_none();
    if is_known && !is_explained && !ended {
        return Ok(None);
    }
    let after = PagePosition {
        samples: to,
        series: recording.series.len(),
        spans: recording.spans.len(),
        explanation: now.explanations,
        who: who_place,
    };
    let ticks = recording.ticks[from..to].iter();
    let line = |series| SeriesLine::unpacked(series, &meaning);
    let text = serde_json::to_string(&Event {
        from_sample: from,
        ticks_ns: ticks.map(|tick| tick.at_ns).collect(),
        series: series.iter().map(line).collect(),
        changes: changes(recording, from as u32, to as u32),
        spans: shown_spans(spans).collect(),
        who,
        explain: is_explained.then_some(now.explanation),
        ended,
    })?;
    Ok(Some((text, after)))
}

/// What changed in the samples from `from` to before `to`, in the order of the samples.
fn changes(recording: &Recording, from: u32, to: u32) -> Vec<(usize, u32, Option<i64>)> {
    let mut changes = Vec::new();
    for (index, series) in recording.series.iter().enumerate() {
        let later = match from.checked_sub(1) {
            Some(before) => series.steps.split(before).1,
            None => series.steps.iter(),
        };
        let new = later.take_while(|step| step.sample < to);
        changes.extend(new.map(|step| (index, step.sample, step.value)));
    }
    changes.sort_by_key(|(_, sample, _)| *sample);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{Schema, Series, Tick};
    use serde_json::{Value, json};

    fn recording(samples: u32) -> Recording {
        let mut series = Series {
            schema: Schema { name: "a".to_owned(), ..Schema::default() },
            steps: model::recording::Steps::new(),
        };
        let mut ticks = Vec::new();
        for sample in 0..samples {
            series.push(sample, (sample % 2 == 0).then_some(i64::from(sample)));
            let at_ns = u64::from(sample) * 10;
            ticks.push(Tick { due_ns: at_ns, at_ns });
        }
        Recording { ticks, series: vec![series], ..Recording::default() }
    }

    /// The event after `place`, with the explanation number `explanations`.
    fn sent(
        recording: &Recording,
        place: PagePosition,
        has_ended: bool,
    ) -> Option<(Value, PagePosition)> {
        let now = LiveState {
            recording,
            explanation: &Explanation::default(),
            explanations: 1,
            has_ended,
        };
        let event = event(&now, place, |name| format!("meaning of {name}")).unwrap();
        event.map(|(text, after)| (serde_json::from_str(&text).unwrap(), after))
    }

    #[test]
    fn what_is_new_is_sent_once() {
        let (first, place) = sent(&recording(3), PagePosition::default(), false).unwrap();
        assert_eq!(first["from_sample"], 0);
        assert_eq!(first["ticks_ns"], json!([0, 10, 20]));
        assert_eq!(first["changes"], json!([[0, 0, 0], [0, 1, null], [0, 2, 2]]));
        assert_eq!(first["series"][0]["meaning"], "meaning of a");
        assert!(first["series"][0].get("offset").is_none());
        assert!(first["explain"].is_object());
        assert_eq!(sent(&recording(3), place, false), None);
        let (second, place) = sent(&recording(4), place, false).unwrap();
        assert_eq!(second["from_sample"], 3);
        assert_eq!(second["changes"], json!([[0, 3, null]]));
        assert_eq!(second["series"], json!([]));
        assert!(second["explain"].is_null() && second["ended"] == false);
        let (last, _) = sent(&recording(4), place, true).unwrap();
        assert_eq!(last["ended"], true);
    }

    #[test]
    fn who_was_away_for_long_catches_up_in_steps() {
        let recording = recording(2_500);
        let mut place = PagePosition::default();
        for (from, ended) in [(0, false), (1_000, false), (2_000, true)] {
            let (event, after) = sent(&recording, place, true).unwrap();
            assert_eq!(event["from_sample"], from);
            assert_eq!(event["ended"], ended);
            place = after;
        }
        assert_eq!(place.samples, 2_500);
    }

    #[test]
    fn a_place_is_read_back_and_nonsense_is_not() {
        let who = WhoPosition { processes: 3, rows: 50, files: 1, file_rows: 4 };
        let place = PagePosition { samples: 7, series: 2, spans: 0, explanation: 9, who };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in
            ["", "1.2.3.4", "1.2.3.4.5.6.7.8.9", "-1.0.0.0.0.0.0.0", "99999999999.0.0.0.0.0.0.0"]
        {
            assert_eq!(text.parse::<PagePosition>(), Err(()), "{text}");
        }
        // A page that is ahead of the recording gets nothing.
        let ahead = "9.9.9.9.9.9.9.9".parse().unwrap();
        assert_eq!(sent(&recording(3), ahead, false), None);
    }
}
