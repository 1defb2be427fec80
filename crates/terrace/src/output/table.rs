//! A table of text: aligned, as wide as its cells, and no wider than the page.
//!
//! Each column has a rank. While the table is too wide, the column with the highest
//! rank is left out; those of rank 0 always stay. Cells are measured without colour.

use super::Page;
use super::clean::escaped;
use super::markdown;
use super::style::Tone;

/// The space between two columns.
const GAP: usize = 2;

/// A column, and its cell of each row.
#[derive(Clone, Debug)]
struct Column {
    title: String,
    is_number: bool,
    rank: u8,
    cells: Vec<Cell>,
}

/// One cell: its text, as it was given, and its tone.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

/// Columns over rows. Each column is declared once, with its title, its rank and its cell of a row.
#[derive(Clone, Debug)]
pub struct Table<R> {
    rows: Vec<R>,
    columns: Vec<Column>,
    gap: usize,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

impl<R: Copy> Table<R> {
    /// A table of `rows` without columns.
    pub fn of(rows: impl IntoIterator<Item = R>) -> Self {
        Self { rows: rows.into_iter().collect(), columns: Vec::new(), gap: GAP }
    }

    /// Adds a column whose cells begin below each other. The higher its rank, the earlier it is
    /// left out on narrow pages; a column of rank 0 stays.
    pub fn words<C: Into<Cell>>(mut self, title: &str, rank: u8, cell: impl FnMut(R) -> C) -> Self {
        let cells = self.rows.iter().copied().map(cell).map(C::into).collect();
        self.columns.push(Column { title: title.to_owned(), is_number: false, rank, cells });
        self
    }

    /// Adds a column whose cells end below each other; see [`Table::words`].
    pub fn numbers<C: Into<Cell>>(self, title: &str, rank: u8, cell: impl FnMut(R) -> C) -> Self {
        let mut table = self.words(title, rank, cell);
        table.columns.iter_mut().next_back().into_iter().for_each(|last| last.is_number = true);
        table
    }

    pub fn gap(mut self, gap: usize) -> Self {
        self.gap = gap;
        self
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether all columns fit on `page`, each line indented by `indent` spaces.
    pub fn fits(&self, page: Page, indent: usize) -> bool {
        self.fitting(page, indent).len() == self.columns.len()
    }

    /// The table as lines, the titles first, each line indented by `indent` spaces.
    pub fn render(&self, page: Page, indent: usize) -> String {
        let shown = self.fitting(page, indent);
        let titles = shown.iter().map(|(column, _)| (column.title.as_str(), Tone::Dim));
        let mut text = String::new();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            text.push_str(&self.line(&shown, titles, page, indent));
        }
        for row in 0..self.rows.len() {
            let cells = shown.iter().map(|(column, _)| &column.cells[row]);
            let toned = cells.map(|cell| (cell.text.as_str(), cell.tone));
            text.push_str(&self.line(&shown, toned, page, indent));
        }
        text
    }

    /// The table as Markdown; the indent of a cell survives.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = self.columns.iter().map(|column| column.title.clone()).collect();
        let rule = |column: &Column| if column.is_number { "---:" } else { "---" }.to_owned();
        let mut text = line(titles) + &line(self.columns.iter().map(rule).collect());
        for row in 0..self.rows.len() {
            let cell = |column: &Column| {
                let text = &column.cells[row].text;
                let indent = if text.starts_with(' ') { "&nbsp;&nbsp;" } else { "" };
                format!("{indent}{}", markdown::text(text.trim_start()))
            };
            text.push_str(&line(self.columns.iter().map(cell).collect()));
        }
        text
    }

    /// The columns that fit on `page`, in order, each with its width.
    fn fitting(&self, page: Page, indent: usize) -> Vec<(&Column, usize)> {
        let width = page.width.saturating_sub(indent);
        let with_width = |column| (column, Column::width(column));
        let mut shown: Vec<_> = self.columns.iter().map(with_width).collect();
        loop {
            let cells: usize = shown.iter().map(|(_, width)| width).sum();
            let total = cells + self.gap * shown.len().saturating_sub(1);
            // Of equal ranks the rightmost column goes first.
            let last = (0..shown.len()).max_by_key(|&index| shown[index].0.rank);
            match last.filter(|&index| total > width && shown[index].0.rank > 0) {
                Some(index) => drop(shown.remove(index)),
                None => return shown,
            }
        }
    }

    fn line<'a>(
        &self,
        shown: &[(&Column, usize)],
        cells: impl Iterator<Item = (&'a str, Tone)>,
        page: Page,
        indent: usize,
    ) -> String {
        let mut line = " ".repeat(indent);
        // Space is only written before more text, so that no line ends with it.
        let mut pending = 0;
        for ((column, width), (text, tone)) in shown.iter().zip(cells) {
            let fill = width.saturating_sub(length(text));
            let (before, after) = if column.is_number { (fill, 0) } else { (0, fill) };
            pending += before;
            if !text.is_empty() {
                line.push_str(&" ".repeat(pending));
                line.push_str(&page.style.paint(tone, &escaped(text)));
                pending = 0;
            }
            pending += after + self.gap;
        }
        line.push('\n');
        line
    }
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| length(&cell.text));
        cells.fold(length(&self.title), usize::max)
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

    fn table() -> Table<[&'static str; 3]> {
        Table::of([["a", "1", "first"], ["long", "100", ""]])
            .words("name", 0, |row| row[0])
            .numbers("rate", 1, |row| row[1])
            .words("note", 2, |row| row[2])
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
        let warning = Table::of([()]).words("", 0, |()| Cell::toned("ab", Tone::Warn));
        let table = warning.words("", 0, |()| "c");
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
