//! A table of text: aligned, as wide as its cells, and no wider than the page.
//!
//! Each column has a rank. While the table is too wide, the column with the highest
//! rank is left out; those of rank 0 always stay. Cells are measured without colour.

use super::Page;
use super::clean::escaped;
use super::style::Tone;

/// The space between two columns.
const GAP: usize = 2;

/// On which side a column's cells are filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    align: Align,
    rank: u8,
}

/// One cell: its text and its tone.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
}

/// Columns and rows, laid out by [`Table::render`].
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    gap: usize,
}

impl Column {
    pub fn words(title: &str) -> Self {
        Self { title: escaped(title).into_owned(), align: Align::Left, rank: 0 }
    }

    pub fn numbers(title: &str) -> Self {
        Self { align: Align::Right, ..Self::words(title) }
    }

    /// The same column, left out on narrow pages: the higher the rank, the earlier.
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

impl Cell {
    /// A cell in a tone; its text is escaped.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: escaped(&text.into()).into_owned(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), gap: GAP }
    }

    pub fn gap(mut self, gap: usize) -> Self {
        self.gap = gap;
        self
    }

    /// Adds a row; missing cells are empty, cells beyond the columns are left out.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether all columns fit on `page`, each line indented by `indent` spaces.
    pub fn fits(&self, page: Page, indent: usize) -> bool {
        let shown = self.fitting(&self.widths(), page.width.saturating_sub(indent));
        shown.len() == self.columns.len()
    }

    /// The table as lines, the titles first, each line indented by `indent` spaces.
    pub fn render(&self, page: Page, indent: usize) -> String {
        let widths = self.widths();
        let shown = self.fitting(&widths, page.width.saturating_sub(indent));
        let mut text = String::new();
        let titles: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::toned(column.title.as_str(), Tone::Dim))
            .collect();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            text.push_str(&self.line(&titles, &shown, &widths, page, indent));
        }
        for row in &self.rows {
            text.push_str(&self.line(row, &shown, &widths, page, indent));
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let of_cells = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.map(|cell| length(&cell.text)).max().unwrap_or(0)
        };
        self.columns
            .iter()
            .enumerate()
            .map(|(index, column)| length(&column.title).max(of_cells(index)))
            .collect()
    }

    /// Which columns fit into `width`, in order.
    fn fitting(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        loop {
            let cells: usize = shown.iter().map(|&index| widths[index]).sum();
            let total = cells + self.gap * shown.len().saturating_sub(1);
            // Of equal ranks the rightmost column goes first.
            let last = shown.iter().copied().max_by_key(|&index| self.columns[index].rank);
            match last {
                Some(index) if total > width && self.columns[index].rank > 0 => {
                    shown.retain(|&other| other != index);
                }
                _ => return shown,
            }
        }
    }

    fn line(
        &self,
        row: &[Cell],
        shown: &[usize],
        widths: &[usize],
        page: Page,
        indent: usize,
    ) -> String {
        let mut line = " ".repeat(indent);
        let empty = Cell::default();
        // Space is only written before more text, so that no line ends with it.
        let mut pending = 0;
        for &index in shown {
            let cell = row.get(index).unwrap_or(&empty);
            let fill = widths[index].saturating_sub(length(&cell.text));
            let (before, after) = match self.columns[index].align {
                Align::Left => (0, fill),
                Align::Right => (fill, 0),
            };
            pending += before;
            if !cell.text.is_empty() {
                line.push_str(&" ".repeat(pending));
                line.push_str(&page.style.paint(cell.tone, &cell.text));
                pending = 0;
            }
            pending += after + self.gap;
        }
        line.push('\n');
        line
    }
}

/// The columns that `text` takes on a terminal once it is escaped: one for each character of those
/// used here.
pub fn length(text: &str) -> usize {
    escaped(text).chars().count()
}

/// Holds words together on one line: [`wrap`] shows it as a space.
const TIE: char = '\u{a0}';

/// `text` as one word for [`wrap`]: a command that is to be copied must not be broken.
pub fn tied(text: &str) -> String {
    text.replace(' ', &TIE.to_string())
}

/// What [`wrap`] leaves beside its number.
const UNITS: [&str; 16] = [
    "%", "ns", "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "KB/s", "MB/s",
    "GB/s", "TB/s",
];

/// Whether these two words are a number and its unit: `(10.3` and `s,`.
fn is_quantity(number: &str, unit: &str) -> bool {
    let number = number.trim_start_matches('(');
    let unit = unit.trim_end_matches([',', ';', ':', '.', ')']);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && UNITS.contains(&unit)
}

/// `text` escaped, with one space between its words.
fn escaped_words(text: &str) -> String {
    let words: Vec<_> = text.split_ascii_whitespace().map(escaped).collect();
    words.join(" ")
}

/// The words of `text`; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in escaped_words(text).split(' ') {
        match words.last_mut().filter(|last| is_quantity(last, word)) {
            Some(last) => *last += &format!("{TIE}{word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// `text`, escaped, in lines of at most `width` columns, each further line indented by `hang`
/// spaces. A word that is longer than the width stands alone on its line.
pub fn wrap(text: &str, width: usize, hang: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in words(text) {
        if column > 0 && column + 1 + length(&word) > width {
            out.push('\n');
            out.push_str(&" ".repeat(hang));
            column = hang;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += length(&word);
    }
    out.replace(TIE, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::words("name"),
            Column::numbers("rate").rank(1),
            Column::words("note").rank(2),
        ]);
        table.row(vec!["a".into(), "1".into(), "first".into()]);
        table.row(vec!["long".into(), "100".into()]);
        table
    }

    #[test]
    fn cells_are_aligned_and_lines_end_with_text() {
        let text = table().render(Page::plain(80), 1);
        assert_eq!(text, " name  rate  note\n a        1  first\n long   100\n");
    }

    #[test]
    fn the_highest_rank_goes_first() {
        assert_eq!(table().render(Page::plain(12), 0), "name  rate\na        1\nlong   100\n");
        assert_eq!(table().render(Page::plain(8), 0), "name\na\nlong\n");
        assert_eq!(table().render(Page::plain(1), 0), "name\na\nlong\n");
        assert!(table().fits(Page::plain(18), 1) && !table().fits(Page::plain(17), 1));
    }

    #[test]
    fn colour_changes_no_width() {
        let mut table = Table::new(vec![Column::words(""), Column::words("")]);
        table.row(vec![Cell::toned("ab", Tone::Warn), "c".into()]);
        let page = Page { width: 80, style: super::super::style::Style::new(true) };
        let text = table.render(page, 0);
        assert_eq!(super::super::clean::printable(&text), "\x1b[33mab\x1b[0m  c\n");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrap("ran 10.3 s (2 of us)", 8, 0), "ran\n10.3 s\n(2 of\nus)");
        assert_eq!(wrap("ab (44 %), c", 7, 0), "ab\n(44 %),\nc");
        assert_eq!(wrap("p50 s", 4, 0), "p50\ns");
    }

    #[test]
    fn long_words_stand_alone() {
        assert_eq!(wrap("ab cd ef", 5, 1), "ab cd\n ef");
        assert_eq!(wrap("abcdefgh ij", 5, 0), "abcdefgh\nij");
        assert_eq!(wrap("", 5, 0), "");
        assert_eq!(wrap(&format!("ab {} ef", tied("c d")), 5, 0), "ab\nc d\nef");
    }
}
