//! Rows and columns that become a table of text or of Markdown. What stands in them is for
//! the page to say.

use crate::output::Page;
use crate::output::markdown;
use crate::output::table::{Column, Table};

/// Rows of text below titles.
pub(super) struct Grid {
    /// Title, whether it holds numbers, and its rank: the higher, the sooner left out.
    columns: Vec<(&'static str, bool, u8)>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(columns: &[(&'static str, bool, u8)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn text(&self, page: Page) -> String {
        let columns = self.columns.iter().map(|(title, is_number, rank)| {
            let column = if *is_number { Column::numbers(title) } else { Column::words(title) };
            column.rank(*rank)
        });
        let mut table = Table::new(columns.collect());
        for row in &self.rows {
            table.row(row.iter().map(|cell| cell.as_str().into()).collect());
        }
        table.render(page, 1)
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = self.columns.iter().map(|(title, ..)| (*title).to_owned());
        let rules = self
            .columns
            .iter()
            .map(|(_, is_number, _)| if *is_number { "---:".to_owned() } else { "---".to_owned() });
        let mut text = line(titles.collect()) + &line(rules.collect());
        for row in &self.rows {
            let cells =
                (0..self.columns.len()).map(|index| row.get(index).map_or("", String::as_str));
            text.push_str(&line(cells.map(cell).collect()));
        }
        text
    }
}

/// A cell of Markdown; the indent of a part inside of another survives.
fn cell(text: &str) -> String {
    let escaped = markdown::text(text.trim_start());
    if text.starts_with(' ') { format!("&nbsp;&nbsp;{escaped}") } else { escaped }
}
