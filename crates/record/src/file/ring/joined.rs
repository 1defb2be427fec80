//! Reading a ring: segments put together to one recording.
//!
//! Series are joined by their names, times count from the first segment's start. What a
//! segment does not have is absent while it lasts.

use super::segments;
use crate::file::{MAX_SAMPLES, MAX_STEPS, open};
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Series, Span, Step, Tick};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// The recorder's own processor time: it begins anew with each run.
const OWN_CPU: &str = "own.cpu_ns";

/// A pause between two samples that is told as a gap: twice the longest period there is.
const GAP_NS: u64 = 2_000_000_000;

/// Reads a ring: all its segments as one recording, times counted from the first one's
/// start, series joined by their names. The facts are those of the newest segment. A pause
/// between two segments is a span of kind `gap`; of more than a reader takes, the newest is
/// kept.
///
/// # Errors
/// [`Kind::NotARecording`] for a directory without a segment; others when it cannot be read.
pub fn read_ring(directory: &Path) -> Result<Recording> {
    let mut damage = Vec::new();
    let mut parts = VecDeque::new();
    let (mut steps, mut samples) = (0, 0);
    for segment in segments(directory)?.iter().rev() {
        let recording = match open(&segment.path) {
            Ok(recording) => recording,
            Err(error) => {
                damage.push(error.to_string());
                continue;
            }
        };
        samples += recording.ticks.len();
        steps += recording
            .series
            .iter()
            .map(|series| series.steps.len())
            .sum::<usize>();
        if steps > MAX_STEPS || samples > MAX_SAMPLES {
            damage.push(format!(
                "what is older than {} was left out",
                segment.path.display()
            ));
            break;
        }
        let name = segment
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        damage.extend(
            recording
                .damage
                .iter()
                .map(|text| format!("{name}: {text}")),
        );
        parts.push_front(recording);
    }
    if parts.is_empty() {
        let why = damage
            .pop()
            .unwrap_or_else(|| "no recording is in it".to_owned());
        return Err(Error::new(Kind::NotARecording, "read the recordings in", why).at(directory));
    }
    let mut joined = Joined::default();
    for part in parts {
        joined.add(part);
    }
    let mut recording = joined.recording;
    recording.damage = damage;
    if let Some(outcome) = &mut recording.outcome {
        // The last run's own figure would be that of another length: of one run only, and
        // of all of it, however little of it the ring still holds.
        outcome.own_cpu_ns = joined.own_cpu_ns;
        outcome.own_setup_ns = 0;
    }
    Ok(recording)
}

/// Segments, put together in order of their time.
#[derive(Debug, Default)]
struct Joined {
    recording: Recording,
    ids: HashMap<String, usize>,
    is_begun: bool,
    /// What all runs together spent between the samples that are here.
    own_cpu_ns: u64,
    own_cpu_last: Option<i64>,
}

impl Joined {
    fn add(&mut self, part: Recording) {
        self.add_own_cost(&part.series);
        let whole = &mut self.recording;
        let started_unix_ns = if self.is_begun {
            whole.facts.started_unix_ns
        } else {
            part.facts.started_unix_ns
        };
        let last = whole.ticks.last().copied().unwrap_or_default();
        let last_ns = last.at_ns;
        let mut offset_ns = part.facts.started_unix_ns.saturating_sub(started_unix_ns);
        let is_back = |first: &Tick| {
            first.due_ns.saturating_add(offset_ns) < last.due_ns
                || first.at_ns.saturating_add(offset_ns) < last.at_ns
        };
        if part.ticks.first().is_some_and(is_back) {
            // The clock was set back between two runs.
            offset_ns = last_ns;
        }
        let moved = |ns: u64| ns.saturating_add(offset_ns);
        whole.facts = Facts {
            started_unix_ns,
            ..part.facts
        };
        let first_ns = part.ticks.first().map_or(last_ns, |tick| moved(tick.at_ns));
        if self.is_begun && first_ns - last_ns > GAP_NS {
            whole.spans.push(Span {
                kind: "gap".to_owned(),
                text: "nothing was recorded".to_owned(),
                start_ns: last_ns,
                end_ns: first_ns,
            });
        }
        self.is_begun = true;
        let first = whole.ticks.len() as u32;
        let has_rows = !part.ticks.is_empty();
        whole.ticks.extend(part.ticks.iter().map(|tick| Tick {
            due_ns: moved(tick.due_ns),
            at_ns: moved(tick.at_ns),
        }));
        whole.spans.extend(part.spans.into_iter().map(|span| Span {
            start_ns: moved(span.start_ns),
            end_ns: moved(span.end_ns),
            ..span
        }));
        whole.tasks.extend(part.tasks);
        whole.outcome = part.outcome.map(|outcome| Outcome {
            ended_ns: moved(outcome.ended_ns),
            ..outcome
        });
        if has_rows {
            self.add_series(first, part.series);
        }
    }

    /// Adds what the recorder spent while a segment was written.
    fn add_own_cost(&mut self, series: &[Series]) {
        let own = series.iter().find(|series| series.schema.name == OWN_CPU);
        for value in own.iter().flat_map(|own| &own.steps).map(|step| step.value) {
            if let (Some(before), Some(now)) = (self.own_cpu_last, value) {
                // Less than before: another run began.
                let spent = now.saturating_sub(before);
                self.own_cpu_ns += u64::try_from(spent).unwrap_or(0);
            }
            self.own_cpu_last = value;
        }
    }

    /// Adds the values of a segment whose first sample is number `first`.
    fn add_series(&mut self, first: u32, parts: Vec<Series>) {
        let series = &mut self.recording.series;
        let mut seen = vec![false; series.len()];
        for part in parts {
            let next = series.len();
            let index = *self.ids.entry(part.schema.name.clone()).or_insert(next);
            if index == next {
                let id = next as u32;
                series.push(Series {
                    schema: Schema { id, ..part.schema },
                    steps: Vec::new(),
                });
                seen.push(false);
            }
            // Of two series of one name in a segment, which only a fault makes, the first.
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            if part.steps.first().is_none_or(|step| step.sample > 0) {
                series[index].push(first, None);
            }
            for Step { sample, value } in part.steps {
                series[index].push(first + sample, value);
            }
        }
        for (series, _) in series.iter_mut().zip(seen).filter(|(_, seen)| !seen) {
            series.push(first, None);
        }
    }
}
