//! The lanes: for each question the series that answer it, as rows of cells over time.
//!
//! Where there are fewer rows than lanes, the questions take turns, within a question its charts,
//! and within a chart the liveliest lane comes first; what the chosen finding rests on comes before
//! all. What is chosen stands in the order of the questions, so that a lane keeps its place.

use super::Glyphs;
use super::values::{Lane, TimeColumns, speaks};
use crate::output::style::{Tone, Toned};
use crate::output::verdict::shortened;
use model::recording::{Recording, Series};
use viewer::questions::{Chart, Layer, Question, Wanted, matched};

/// The most lanes of a chart: more look alike; the liveliest stay.
const MOST_OF_A_CHART: usize = 8;

/// What is to be drawn and where.
#[derive(Clone, Copy, Debug)]
pub struct Space<'a> {
    pub recording: &'a Recording,
    pub columns: &'a TimeColumns,
    /// The column that is looked at.
    pub cursor_column: Option<usize>,
    /// The series that the chosen finding rests on.
    pub evidence: &'a [String],
    pub glyphs: Glyphs,
    pub widths: Widths,
}

/// How the columns of the screen are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    pub question: usize,
    pub label: usize,
    pub cells: usize,
    pub value: usize,
    /// For the largest value; 0 where there is no room.
    pub most: usize,
}

impl Widths {
    pub fn of(width: usize) -> Self {
        let (question, label, most) = match width {
            ..60 => (0, 16, 0),
            60..100 => (7, 25, 10),
            _ => (7, 34, 10),
        };
        let value = 10;
        let taken = 1 + question + label + value + most;
        Self { question, label, cells: width.saturating_sub(taken).max(1), value, most }
    }
}

/// A lane with its values, and how much it asks to be shown.
struct Row<'a> {
    lane: Lane<'a>,
    values: Vec<Option<f64>>,
    /// What fills a cell.
    full: f64,
    is_evidence: bool,
    /// In which round of its question it is taken: the first lanes of all charts before the second.
    round: usize,
}

/// The rows of `questions` in at most `room` lines.
pub fn rows(questions: &[Question], space: &Space<'_>, room: usize) -> Vec<Toned> {
    let mut groups: Vec<(&Question, Vec<Row<'_>>)> =
        questions.iter().map(|question| (question, of_question(question, space))).collect();
    let shares = shared_out(&groups, room);
    let mut lines = Vec::new();
    for ((question, rows), share) in groups.iter_mut().zip(shares) {
        if rows.is_empty() && share > 0 {
            lines.push(still(question, space));
        }
        let title = std::iter::once(question.id.as_str()).chain(std::iter::repeat(""));
        let kept = most_wanted(std::mem::take(rows), share);
        let titled = kept.iter().zip(title);
        lines.extend(titled.map(|(row, title)| line(row, title, space)));
    }
    lines
}

/// How many lines each question gets: one in turn, those that have something to show first.
fn shared_out(groups: &[(&Question, Vec<Row<'_>>)], room: usize) -> Vec<usize> {
    let mut shares = vec![0; groups.len()];
    let mut left = room;
    let longest = groups.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
    for round in 0..longest {
        for ((_, rows), share) in groups.iter().zip(&mut shares) {
            if left > 0 && round < rows.len() {
                *share += 1;
                left -= 1;
            }
        }
    }
    for ((_, rows), share) in groups.iter().zip(&mut shares) {
        if left > 0 && rows.is_empty() {
            *share = 1;
            left -= 1;
        }
    }
    shares
}

/// So many of the rows, in their order.
fn most_wanted(rows: Vec<Row<'_>>, count: usize) -> Vec<Row<'_>> {
    let mut ranks: Vec<usize> = (0..rows.len()).collect();
    ranks.sort_by_key(|index| (!rows[*index].is_evidence, rows[*index].round, *index));
    ranks.truncate(count);
    let indexed = rows.into_iter().enumerate();
    let kept = indexed.filter(|(index, _)| ranks.contains(index));
    kept.map(|(_, row)| row).collect()
}

fn of_question<'a>(question: &Question, space: &Space<'a>) -> Vec<Row<'a>> {
    let charts = question.charts.iter();
    charts.flat_map(|chart| of_chart(chart, space)).collect()
}

/// The lanes of a chart, each with its round: the liveliest one is of the first.
fn of_chart<'a>(chart: &Chart, space: &Space<'a>) -> Vec<Row<'a>> {
    let lanes = if chart.layers.is_empty() {
        lanes_of(chart, space.recording)
    } else {
        layers_of(chart, space.recording)
    };
    let mut rows: Vec<Row<'a>> = lanes.into_iter().map(|lane| row(lane, space)).collect();
    if !chart.layers.is_empty() {
        // Layers are parts of one whole, and a part fills as much as it is of that.
        let whole: f64 = rows.iter().map(|row| most(&row.values)).fold(0.0, f64::max);
        rows.iter_mut().for_each(|row| row.full = whole.max(row.lane.floor));
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if chart.layers.is_empty() {
        order.sort_by(|a, b| most(&rows[*b].values).total_cmp(&most(&rows[*a].values)));
    }
    for (round, index) in order.into_iter().enumerate() {
        rows[index].round = round;
    }
    rows.retain(|row| row.round < MOST_OF_A_CHART);
    rows
}

fn row<'a>(lane: Lane<'a>, space: &Space<'a>) -> Row<'a> {
    let values = lane.values(space.recording, space.columns);
    let name = &lane.series.schema.name;
    Row {
        full: most(&values).max(lane.floor),
        is_evidence: space.evidence.contains(name),
        values,
        lane,
        round: 0,
    }
}

fn most(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

fn lanes_of<'a>(chart: &Chart, recording: &'a Recording) -> Vec<Lane<'a>> {
    let lane = |wanted: &Wanted, (series, word): (&'a Series, &'a str)| {
        let label = labelled(chart, &wanted.label, word);
        Lane::new(label, series, chart.unit.as_deref())
    };
    let of = |wanted: &Wanted| -> Vec<Lane<'a>> {
        let patterns = wanted.patterns.iter();
        let mut matches = patterns.map(|pattern| found(pattern, recording));
        let first = matches.find(|some| !some.is_empty()).unwrap_or_default();
        first.into_iter().map(|one| lane(wanted, one)).collect()
    };
    chart.series.iter().flat_map(of).collect()
}

/// The layers of a chart; none where one of their names is not known.
fn layers_of<'a>(chart: &Chart, recording: &'a Recording) -> Vec<Lane<'a>> {
    let named = |pattern: &str| {
        if pattern.contains('*') {
            Some(found(pattern, recording))
        } else {
            recording.series(pattern).map(|series| vec![(series, "")])
        }
    };
    let of = |layer: &Layer| {
        let subtracted: Option<Vec<_>> = layer.less.iter().map(|name| named(name)).collect();
        let less: Vec<&Series> = subtracted?.into_iter().flatten().map(|it| it.0).collect();
        let lane = |(series, word): (&'a Series, &'a str)| {
            let label = labelled(chart, &layer.label, word);
            let less = less.clone();
            Lane { less, ..Lane::new(label, series, chart.unit.as_deref()) }
        };
        Some(named(&layer.pattern)?.into_iter().map(lane).collect::<Vec<_>>())
    };
    let layers: Option<Vec<_>> = chart.layers.iter().map(of).collect();
    layers.unwrap_or_default().into_iter().flatten().collect()
}

/// The series of a pattern that have something to say, each with the word that `*` is.
fn found<'a>(pattern: &str, recording: &'a Recording) -> Vec<(&'a Series, &'a str)> {
    let series = recording.series.iter();
    series
        .filter_map(|series| Some((series, matched(pattern, &series.schema.name)?)))
        .filter(|(series, _)| speaks(series))
        .collect()
}

fn labelled(chart: &Chart, label: &str, word: &str) -> String {
    let label = label.replace('*', word);
    format!("{} {label}", chart.lane).trim().to_owned()
}

fn still(question: &Question, space: &Space<'_>) -> Toned {
    let Widths { question: titles, label, cells, value, most } = space.widths;
    let title = column(&question.id, titles);
    let words = shortened(&question.still, label + cells + value + most);
    vec![(Tone::Strong, format!(" {title}")), (Tone::Dim, words)]
}

/// ` disk   read vda         ..:=#%@@   120 MB/s    430 MB/s`
fn line(row: &Row<'_>, title: &str, space: &Space<'_>) -> Toned {
    let widths = space.widths;
    let at = space.cursor_column.unwrap_or(row.values.len().saturating_sub(1));
    let shown =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| row.lane.shown(value));
    let present = row.values.get(at).copied().flatten();
    let label = if row.is_evidence { Tone::Warn } else { Tone::Plain };
    let mut line = vec![
        (Tone::Strong, format!(" {}", column(title, widths.question))),
        (label, column(&row.lane.label, widths.label)),
    ];
    line.extend(cells(row, space));
    line.push((Tone::Strong, right(&shown(present), widths.value)));
    if widths.most > 0 {
        let is_known = row.values.iter().any(Option::is_some);
        let largest = is_known.then(|| most(&row.values));
        line.push((Tone::Dim, right(&shown(largest), widths.most)));
    }
    line
}

/// The cells of a lane, in three pieces where one of them is looked at.
fn cells(row: &Row<'_>, space: &Space<'_>) -> Toned {
    let signs: Vec<char> =
        row.values.iter().map(|value| space.glyphs.height(*value, row.full)).collect();
    let text = |signs: &[char]| signs.iter().collect::<String>();
    match space.cursor_column.filter(|at| *at < signs.len()) {
        None => vec![(Tone::Busy, text(&signs))],
        Some(at) => vec![
            (Tone::Busy, text(&signs[..at])),
            (Tone::Marked, text(&signs[at..=at])),
            (Tone::Busy, text(&signs[at + 1..])),
        ],
    }
}

/// `text` in exactly `width` columns, the last of which is a space.
fn column(text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    let shown = if width == 0 { String::new() } else { shortened(text, room) };
    format!("{shown:width$}")
}

fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}
