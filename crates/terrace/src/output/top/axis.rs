//! The axis of time above the lanes: where it begins and ends, the column that is looked at, and
//! what stands at the right of the cells.

use super::lanes::Widths;
use super::{Glyphs, Scene};
use crate::output::prose::long_time;
use crate::output::style::{Tone, Toned};
use crate::output::table::length;
use crate::output::verdict::shortened;
use model::explanation::StandingOut;
use model::recording::WallClock;

/// The time that lanes are drawn over.
#[derive(Clone, Debug)]
pub struct Axis {
    pub column_ns: u64,
    /// The end of the last one.
    pub edge_ns: u64,
    /// The column that is looked at.
    pub cursor_column: Option<usize>,
    /// The columns in which something stood out.
    moments: Vec<usize>,
    /// The cell in which what was recorded begins, and its words.
    start: (usize, String),
    /// The words of the last cell.
    end: String,
}

impl Axis {
    pub fn of(scene: &Scene<'_>, widths: Widths) -> Self {
        let (cursor, extent) = (scene.cursor, &scene.extent);
        let column_ns = cursor.column_ns(extent);
        let edge_ns = cursor.edge_ns(extent);
        let columns = edge_ns.saturating_sub(extent.first_ns).div_ceil(column_ns);
        let known = usize::try_from(columns).map_or(widths.cells, |it| it.min(widths.cells));
        let start_ns = edge_ns.saturating_sub(column_ns.saturating_mul(known as u64));
        let clock = WallClock::of(scene.recording);
        let is_known = scene.recording.facts.started_unix_ns > 0;
        let word = |at_ns: u64| match (extent.is_live, extent.last_ns.saturating_sub(at_ns)) {
            (true, ago_ns) if ago_ns < column_ns => "now".to_owned(),
            // By the clock of what was recorded, which is what others note.
            _ if is_known => clock.time_of_day(at_ns.into()),
            (false, _) => long_time(at_ns),
            (true, ago_ns) => format!("-{}", long_time(ago_ns / column_ns * column_ns)),
        };
        let column_of = |at_ns: u64| {
            let columns_back = edge_ns.checked_sub(at_ns)? / column_ns;
            (widths.cells - 1).checked_sub(usize::try_from(columns_back).ok()?)
        };
        let cursor_column = cursor.at_ns.and_then(column_of);
        let is_in = |moment: &StandingOut, cell: usize| {
            let back = (widths.cells - 1 - cell) as u64;
            let to_ns = edge_ns.saturating_sub(back.saturating_mul(column_ns));
            moment.from_ns < to_ns && moment.to_ns > to_ns.saturating_sub(column_ns)
        };
        let stood_out = |cell: &usize| scene.moments.iter().any(|moment| is_in(moment, *cell));
        Self {
            column_ns,
            edge_ns,
            cursor_column,
            moments: (widths.cells - known..widths.cells).filter(stood_out).collect(),
            start: (widths.cells - known, word(start_ns)),
            end: word(edge_ns),
        }
    }

    /// `        1 s each       -47 s         v            now        then       most`
    pub fn line(&self, glyphs: Glyphs, widths: Widths) -> Toned {
        let each = format!("{} a column", long_time(self.column_ns));
        let before = 1 + widths.question + widths.label;
        let mut cells: Vec<char> = " ".repeat(widths.cells).chars().collect();
        for column in &self.moments {
            cells[*column] = glyphs.moment_sign();
        }
        let room = widths.cells;
        let mut put = |at: usize, text: &str| {
            for (cell, letter) in cells.iter_mut().skip(at).zip(text.chars()) {
                *cell = letter;
            }
        };
        let (begin, start) = &self.start;
        let end = room.saturating_sub(length(&self.end));
        // A mark is worth more than the words that it would stand in.
        let is_free = |at: usize, text: &str| {
            let cells = at..at + length(text) + 1;
            let mut signs = self.moments.iter().chain(&self.cursor_column);
            !signs.any(|column| cells.contains(column))
        };
        if is_free(end, &self.end) {
            put(end, &self.end);
        }
        if begin + length(start) < end && is_free(*begin, start) {
            put(*begin, start);
        }
        if let Some(cursor_column) = self.cursor_column {
            put(cursor_column, &glyphs.cursor_sign().to_string());
        }
        let cells: String = cells.iter().collect();
        let value = if self.cursor_column.is_some() { "then" } else { "now" };
        let most = if widths.most > 0 { "most" } else { "" };
        let (value_width, most_width) = (widths.value, widths.most);
        let pad = before - 1;
        let each = shortened(&each, pad.saturating_sub(1));
        let text = format!(" {each:pad$}{cells}{value:>value_width$}{most:>most_width$}");
        vec![(Tone::Dim, text)]
    }
}
