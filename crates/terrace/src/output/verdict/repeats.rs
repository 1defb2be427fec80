//! The table of repeated runs: how long each took, and how much they disagree.
//! Spread is the middle half over the median, as everywhere in this program.

use super::paragraph;
use crate::output::Page;
use crate::output::figure;
use crate::output::prose::{indented, long_time};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use model::statistics;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    pub wall_ns: u64,
    /// How it ended, in words.
    pub ending: String,
    pub file: Option<String>,
}

/// The table of `runs`, and a line on their median and spread; `shown` is the index of
/// the run whose verdict follows.
pub fn repeats(runs: &[Repeat], shown: usize, page: Page) -> String {
    let file = |run: &Repeat| Cell::toned(run.file.clone().unwrap_or_default(), Tone::Dim);
    let table = Table::of(runs.iter().enumerate())
        .numbers("run", 0, |(index, _)| (index + 1).to_string())
        .numbers("wall time", 0, |(_, run)| long_time(run.wall_ns))
        .words("", 0, |(_, run)| run.ending.as_str())
        .words("", 1, |(index, _)| if index == shown { "<- shown" } else { "" })
        .words("", 2, |(_, run)| file(run));
    let text = table.render(page, 1);
    format!("{text}{}", summary(runs, shown, page))
}

fn summary(runs: &[Repeat], shown: usize, page: Page) -> String {
    let walls: Vec<f64> = runs.iter().map(|run| run.wall_ns as f64).collect();
    let sorted = statistics::sorted(&walls);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return String::new();
    };
    let middle = statistics::median(&sorted).unwrap_or(*first);
    let spread = statistics::spread(&sorted)
        .map(|spread| format!(", spread {} (middle half over median)", figure::percent(spread)));
    let line = format!(
        "{} runs: median {}, {} to {}{}. The verdict is of run {}.",
        runs.len(),
        long_time(middle as u64),
        long_time(*first as u64),
        long_time(*last as u64),
        spread.unwrap_or_default(),
        shown + 1
    );
    match runs.len() {
        0 | 1 => paragraph("1 run", Tone::Dim, page),
        _ => indented(&line, Tone::Plain, 1, 1, page),
    }
}

/// The run in the middle: the median of an odd number, the lower middle of an even one.
pub fn median_of(runs: &[Repeat]) -> usize {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|&index| runs[index].wall_ns);
    order.get(runs.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}
