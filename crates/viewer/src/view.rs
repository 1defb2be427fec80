//! A recording and its explanation for a browser: JSON that names the series, and one block of
//! columns that holds their values (docs/view.md draws it).
//!
//! Most values rarely change, so a column is runs of changes with gaps between; the
//! whole block is compressed by the page, which a browser can undo by itself.

use crate::who::WhoContents;
use model::explanation::Explanation;
use model::recording::{DeviceFacts, Recording, Series, SeriesKind, Span};
use serde::Serialize;

/// The name of the JSON form.
pub const SCHEMA: &str = "terrace.view/1";

/// What a browser draws of one recording.
#[derive(Clone, Debug)]
pub struct View {
    /// What everything is, and where its values are in `columns`.
    pub contents: Contents,
    /// The values: one column after another.
    pub columns: Vec<u8>,
}

/// What everything is.
#[derive(Clone, Debug, Serialize)]
pub struct Contents {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// What it is called: the name of its file.
    pub name: String,
    /// When it started, nanoseconds since 1970 UTC; 0 if unknown.
    pub started_unix_ns: u64,
    /// Seconds east of Greenwich of the recorded machine's clock.
    pub utc_offset_s: i32,
    /// How many samples it has.
    pub samples: usize,
    /// When each sample was read, microseconds since the start: less is not seen, and is noise
    /// that does not compress.
    pub ticks: ColumnRange,
    /// One value over time each.
    pub series: Vec<SeriesLine>,
    /// Marks and named intervals.
    pub spans: Vec<Span>,
    /// The disks, so that a chart can say what a device is.
    pub devices: Vec<DeviceFacts>,
    /// Where the time went.
    pub explain: Explanation,
    /// Who did it.
    pub who: WhoContents,
}

/// The position of a column in the block.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ColumnRange {
    /// Its first byte.
    pub offset: usize,
    /// Its length in bytes.
    pub length: usize,
}

/// One series.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesLine {
    /// Its name, as in docs/counters.md.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// The kernel file or the event that it comes from.
    pub source: String,
    /// How often it is refreshed, where that is slower than it was read.
    pub refresh_ns: Option<u64>,
    /// What it means; empty if undocumented.
    pub meaning: String,
    /// Its values; absent in the events of a live recording.
    #[serde(flatten)]
    pub column: Option<ColumnRange>,
}

impl SeriesLine {
    /// The line of `series` without its values.
    #[must_use]
    pub fn unpacked(series: &Series, meaning: impl Fn(&str) -> String) -> Self {
        let schema = &series.schema;
        Self {
            name: schema.name.clone(),
            unit: schema.unit.clone(),
            kind: schema.kind,
            source: schema.source.clone(),
            refresh_ns: schema.refresh_ns,
            meaning: meaning(&schema.name),
            column: None,
        }
    }
}

impl View {
    /// Packs `recording` with its explanation. `meaning` says what a series of this name
    /// means.
    #[must_use]
    pub fn new(
        name: &str,
        recording: &Recording,
        explain: Explanation,
        meaning: impl Fn(&str) -> String,
    ) -> Self {
        let mut columns = Vec::new();
        let at_us = recording
            .ticks
            .iter()
            .enumerate()
            .map(|(sample, tick)| (sample as u32, i64::try_from(tick.at_ns / 1_000).ok()));
        let ticks = pack(at_us, &mut columns);
        let mut line = |series: &Series| {
            let steps = series.steps.iter().map(|step| (step.sample, step.value));
            SeriesLine {
                column: Some(pack(steps, &mut columns)),
                ..SeriesLine::unpacked(series, &meaning)
            }
        };
        let series = recording.series.iter().map(&mut line).collect();
        let who =
            WhoContents::new(&recording.who, &recording.facts, recording.wall_ns(), &mut columns);
        Self {
            contents: Contents {
                schema: SCHEMA,
                name: name.to_owned(),
                started_unix_ns: recording.facts.started_unix_ns,
                utc_offset_s: recording.facts.utc_offset_s,
                samples: recording.ticks.len(),
                ticks,
                series,
                spans: shown_spans(&recording.spans).cloned().collect(),
                devices: recording.facts.devices.clone(),
                explain,
                who,
            },
            columns,
        }
    }
}

/// The spans that a page draws: how far the work was is a value over time and no mark.
pub(crate) fn shown_spans(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|span| span.kind != "progress")
}

/// Appends the changes `(sample, value)` as runs: how many samples to skip, how many changes follow
/// one after another, then each change: 0 for absent, else 1 + the zigzag of its difference to the
/// last value that was there. Numbers are LEB128, their bytes by place (`Planes`).
pub fn pack(
    changes: impl Iterator<Item = (u32, Option<i64>)>,
    columns: &mut Vec<u8>,
) -> ColumnRange {
    let offset = columns.len();
    let mut planes = Planes::default();
    let mut next = 0;
    let mut last = 0i64;
    let (mut gap, mut run): (u32, Vec<u128>) = (0, Vec::new());
    for (sample, value) in changes {
        if sample != next || run.is_empty() {
            planes.run(gap, &mut run);
            gap = sample - next;
        }
        run.push(value.map_or(0, |value| {
            let step = i128::from(value) - i128::from(last);
            last = value;
            1 + zigzag(step)
        }));
        next = sample + 1;
    }
    planes.run(gap, &mut run);
    planes.write(columns);
    ColumnRange { offset, length: columns.len() - offset }
}

/// The bytes of numbers, all first ones, then all second ones and so on: bytes of one place are
/// alike, so they compress better by an eighth.
#[derive(Debug, Default)]
struct Planes(Vec<Vec<u8>>);

impl Planes {
    fn run(&mut self, gap: u32, run: &mut Vec<u128>) {
        if !run.is_empty() {
            self.number(u128::from(gap));
            self.number(run.len() as u128);
            run.drain(..).for_each(|number| self.number(number));
        }
    }

    fn number(&mut self, number: u128) {
        for (place, byte) in leb(number).enumerate() {
            if place == self.0.len() {
                self.0.push(Vec::new());
            }
            self.0[place].push(byte);
        }
    }

    /// How many bytes each place has, then the bytes.
    fn write(&self, columns: &mut Vec<u8>) {
        let lengths = self.0.iter().map(|plane| plane.len() as u128);
        columns.extend(lengths.flat_map(leb));
        columns.extend(self.0.iter().flatten());
    }
}

/// LEB128: seven bits a byte, lowest first; all but the last have the highest bit.
fn leb(number: u128) -> impl Iterator<Item = u8> {
    let mut left = Some(number);
    std::iter::from_fn(move || {
        let number = left?;
        left = (number >= 0x80).then_some(number >> 7);
        Some(number as u8 & 0x7f | u8::from(left.is_some()) << 7)
    })
}

fn zigzag(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(changes: &[(u32, Option<i64>)]) -> Vec<u8> {
        let mut columns = Vec::new();
        pack(changes.iter().copied(), &mut columns);
        columns
    }

    #[test]
    fn neighbours_share_a_run_and_gaps_begin_a_new_one() {
        assert_eq!(packed(&[]), Vec::<u8>::new());
        assert_eq!(
            packed(&[(0, Some(1)), (1, Some(0)), (5, Some(64)), (6, None)]),
            // Eight first bytes and one second one.
            [8, 1, 0, 2, 3, 2, 3, 2, 0x81, 0, 1]
        );
        let first_late = [3, 2, 1, 5];
        assert_eq!(packed(&[(2, Some(2))]), first_late);
    }

    #[test]
    fn the_widest_difference_fits() {
        let bytes = packed(&[(0, Some(i64::MIN)), (1, Some(i64::MAX))]);
        assert_eq!(bytes.len(), 10 + 2 + 10 + 10);
    }
}
