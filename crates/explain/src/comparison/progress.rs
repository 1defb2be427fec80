//! Two recordings laid beside each other by the work that was done: which piece of it took
//! the second longer.
//!
//! Work is what a counter counts, or what the recorded program told of itself (spans
//! `progress`, each with the amount done so far). Between two samples it is taken to go on
//! evenly. What differs in a piece is asked of both explanations of just that piece.

use crate::recording::{View, Window, explain};
use model::compared::{Section, WorkAlignment};
use model::explanation::Explanation;
use model::recording::{Recording, SeriesKind};

/// Into how many pieces the work is cut. Picked: as many as a page has lines for.
const SECTIONS: usize = 10;

/// The name of the work that a program reports of itself.
const PROGRESS: &str = "progress";

/// What a command got from `read` and gave to `write`: work of nearly every program.
const USUAL: [&str; 2] = ["tree.read_chars", "tree.write_chars"];

/// A piece with fewer samples than this says nothing of its causes.
const LEAST_SAMPLES: u32 = 3;

/// Why two recordings cannot be laid beside each other by their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAligned {
    /// A recording, the first or the second, does not have the series, or it never grew there.
    NoWork {
        /// Whether it is the second.
        second: bool,
        /// The series.
        series: String,
    },
    /// The series is a level, not a counter.
    Level(String),
    /// Neither tells of progress, and the usual counters stand still.
    NothingUsual,
}

/// How much was done at which time since the start; both only grow.
#[derive(Debug, Default)]
struct Work {
    unit: String,
    points: Vec<(f64, f64)>,
}

/// Lays `second` beside `first` by the work that `series` counts; without one by what the
/// recordings tell of progress, or else by what was read and written.
///
/// # Errors
/// When that work is not in both recordings.
pub fn aligned(
    first: &Recording,
    second: &Recording,
    series: Option<&str>,
) -> Result<WorkAlignment, NotAligned> {
    let name = match series {
        Some(name) => name.to_owned(),
        None => usual(first, second).ok_or(NotAligned::NothingUsual)?,
    };
    let of = |recording: &Recording, second: bool| {
        let work = work(recording, &name)?;
        let done = work.filter(|work| work.total() > 0.0);
        let series = name.clone();
        done.ok_or(NotAligned::NoWork { second, series })
    };
    let works = (of(first, false)?, of(second, true)?);
    let total = works.0.total().min(works.1.total());
    let sections = (0..SECTIONS).map(|number| {
        let (from, to) = (
            total * number as f64 / SECTIONS as f64,
            total * (number + 1) as f64 / SECTIONS as f64,
        );
        let (a, b) = (works.0.piece(from, to), works.1.piece(from, to));
        Section {
            from,
            to,
            first_ns: a.1 - a.0,
            second_ns: b.1 - b.0,
            most: most((first, a), (second, b)),
        }
    });
    Ok(WorkAlignment {
        series: name.clone(),
        unit: works.0.unit.clone(),
        first_total: works.0.total(),
        second_total: works.1.total(),
        sections: sections.collect(),
    })
}

/// What both tell of progress, else the usual counter that grew most in the first.
fn usual(first: &Recording, second: &Recording) -> Option<String> {
    let grown = |recording: &Recording, name: &str| {
        let work = work(recording, name).ok().flatten();
        work.map_or(0.0, |work| work.total())
    };
    let in_both = |name: &&str| grown(first, name) > 0.0 && grown(second, name) > 0.0;
    if in_both(&PROGRESS) {
        return Some(PROGRESS.to_owned());
    }
    let usual = USUAL.into_iter().filter(in_both);
    let most = usual.max_by(|a, b| grown(first, a).total_cmp(&grown(first, b)));
    most.map(str::to_owned)
}

fn work(recording: &Recording, name: &str) -> Result<Option<Work>, NotAligned> {
    if name == PROGRESS {
        return Ok(reported_work(recording));
    }
    let Some(series) = recording.series(name) else {
        return Ok(None);
    };
    if series.schema.kind != SeriesKind::Counter {
        return Err(NotAligned::Level(name.to_owned()));
    }
    let mut done = 0.0;
    let mut points = Vec::with_capacity(recording.ticks.len());
    for (sample, tick) in (0u32..).zip(&recording.ticks) {
        let grown = series.growth(sample.saturating_sub(1), sample);
        done += grown.unwrap_or(0) as f64;
        points.push((tick.at_ns as f64, done));
    }
    let unit = series.schema.unit.clone();
    Ok(Some(Work { unit, points }))
}

/// The work that a program reported: the number that each span's text begins with.
fn reported_work(recording: &Recording) -> Option<Work> {
    let spans = recording.spans.iter().filter(|span| span.kind == PROGRESS);
    let mut work = Work::default();
    for span in spans {
        let mut words = span.text.split_whitespace();
        let Some(done) = words.next().and_then(|word| word.parse::<f64>().ok()) else {
            continue;
        };
        let before = work.total();
        if done.is_finite() && done >= before {
            work.unit = words.next().unwrap_or("count").to_owned();
            work.points.push((span.end_ns as f64, done));
        }
    }
    (!work.points.is_empty()).then_some(work)
}

impl Work {
    fn total(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, done)| *done)
    }

    /// When the work from `from` to `to` was done.
    fn piece(&self, from: f64, to: f64) -> (f64, f64) {
        (self.when(from), self.when(to))
    }

    /// When so much was done.
    fn when(&self, amount: f64) -> f64 {
        let after = self.points.partition_point(|(_, done)| *done < amount);
        let Some(&(at, done)) = self.points.get(after) else {
            return self.points.last().map_or(0.0, |(at, _)| *at);
        };
        let (at_before, done_before) = match after {
            0 => (0.0, 0.0),
            _ => self.points[after - 1],
        };
        if done > done_before && amount > 0.0 {
            at_before + (at - at_before) * (amount - done_before) / (done - done_before)
        } else {
            0.0
        }
    }
}

/// The slice of the wall time that differs most between two pieces.
fn most(first: (&Recording, (f64, f64)), second: (&Recording, (f64, f64))) -> Option<String> {
    let (a, b) = (piece_of(first)?, piece_of(second)?);
    let length = |explanation: &Explanation, name: &str| {
        let slices = explanation.bars.wall.iter();
        let found = slices.filter(|slice| slice.name == name);
        found.map(|slice| slice.ns as f64).sum::<f64>()
    };
    let names = a.bars.wall.iter().chain(&b.bars.wall);
    let differs = |name: &str| (length(&b, name) - length(&a, name)).abs();
    let most = names.max_by(|x, y| differs(&x.name).total_cmp(&differs(&y.name)))?;
    (differs(&most.name) > 0.0).then(|| most.name.clone())
}

fn piece_of((recording, (from, to)): (&Recording, (f64, f64))) -> Option<Explanation> {
    let window = Window { from_ns: Some(from as u64), to_ns: Some(to as u64) };
    let (first, last) = View::new(recording, window).samples();
    (last - first + 1 >= LEAST_SAMPLES).then(|| explain(recording, window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{RecordingOutcome, Schema, Series, Span, Tick};

    /// A recording at 10 Hz whose counter grows by these amounts.
    fn reading(growths: &[i64]) -> Recording {
        let mut recording = Recording::default();
        let mut series = Series {
            schema: Schema {
                name: "tree.read_chars".to_owned(),
                unit: "bytes".to_owned(),
                ..Schema::default()
            },
            steps: model::recording::Steps::new(),
        };
        let mut value = 7;
        series.push(0, Some(value));
        recording.ticks.push(Tick::default());
        for (sample, growth) in (1u32..).zip(growths) {
            value += growth;
            series.push(sample, Some(value));
            let at_ns = u64::from(sample) * 100_000_000;
            recording.ticks.push(Tick { due_ns: at_ns, at_ns });
        }
        recording.outcome = Some(RecordingOutcome {
            ended_ns: growths.len() as u64 * 100_000_000,
            ..RecordingOutcome::default()
        });
        recording.series = vec![series];
        recording
    }

    #[test]
    fn a_stall_stands_in_the_piece_where_it_was() {
        let even = reading(&[10; 10]);
        // The same work, but nothing for half a second after 30 of the 100.
        let stalled = [&[10; 3][..], &[0; 5], &[10; 7]].concat();
        let aligned = aligned(&even, &reading(&stalled), None).unwrap();
        assert_eq!(aligned.series, "tree.read_chars");
        assert_eq!((aligned.first_total, aligned.second_total), (100.0, 100.0));
        let longer: Vec<f64> = aligned
            .sections
            .iter()
            .map(|section| ((section.second_ns - section.first_ns) / 1e8).round())
            .collect();
        assert_eq!(longer, [0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(aligned.sections[9].to, 100.0);
    }

    #[test]
    fn only_what_both_did_is_laid_beside() {
        let aligned = aligned(&reading(&[10; 10]), &reading(&[10; 5]), None).unwrap();
        assert_eq!(aligned.sections[9].to, 50.0);
        assert_eq!((aligned.first_total, aligned.second_total), (100.0, 50.0));
    }

    #[test]
    fn what_a_program_tells_goes_before_what_is_counted() {
        let reported_work = |amounts: &[(u64, &str)]| {
            let mut recording = reading(&[10; 10]);
            let spans = amounts.iter().map(|(at, text)| Span {
                kind: "progress".to_owned(),
                text: (*text).to_owned(),
                start_ns: *at,
                end_ns: *at,
            });
            recording.spans = spans.collect();
            recording
        };
        let first = reported_work(&[(100, "50 items"), (200, "100 items")]);
        let second = reported_work(&[(300, "nonsense"), (400, "50 items"), (500, "100 items")]);
        let aligned = aligned(&first, &second, None).unwrap();
        assert_eq!((aligned.series.as_str(), aligned.unit.as_str()), ("progress", "items"));
        assert_eq!(aligned.sections[0].first_ns, 20.0);
        assert_eq!(aligned.sections[0].second_ns, 80.0);
        assert_eq!(aligned.sections[9].second_ns, 20.0);
    }

    #[test]
    fn work_that_is_not_there_is_refused() {
        let some = reading(&[10; 3]);
        let none = Recording::default();
        assert_eq!(aligned(&some, &none, None), Err(NotAligned::NothingUsual));
        let missing = aligned(&some, &none, Some("tree.read_chars"));
        let series = "tree.read_chars".to_owned();
        assert_eq!(missing, Err(NotAligned::NoWork { second: true, series }));
        let mut level = reading(&[10; 3]);
        level.series[0].schema.kind = SeriesKind::Gauge;
        let refused = aligned(&level, &some, Some("tree.read_chars"));
        assert!(matches!(refused, Err(NotAligned::Level(_))));
    }
}
