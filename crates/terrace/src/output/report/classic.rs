//! The table of the program of 2001: megabytes a second by method, today beside the
//! figures of the article where the size is the article's.

use super::{heading, trials_note};
use crate::args::classic::{Classic, METHODS};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::or_absent;
use crate::output::table::{Cell, Column, Table};
use measure::memory::copy::{CopyReport, CopyRow};

/// The article's figures for 16 MiB: Linux 2.2.16, Linux 2.4.4, Windows 2000 (MB/s).
const OF_2001: [[f64; 3]; 7] = [
    [173.644, 179.417, 132.077],
    [169.683, 169.000, 93.494],
    [170.065, 172.333, 96.156],
    [170.136, 172.648, 102.507],
    [170.066, 172.050, 123.498],
    [170.094, 172.330, 123.498],
    [169.778, 171.192, 123.283],
];

/// The size that the article measured.
const ARTICLE_BYTES: u64 = 16 << 20;

/// The names that the methods had.
const NAMES: [&str; 7] = [
    "memcpy",
    "char *",
    "short *",
    "int *",
    "long *",
    "__int64 *",
    "double *",
];

/// The table for a person.
pub fn page(classic: &Classic, report: &CopyReport, page: Page) -> String {
    let title = format!(
        "memory copy of {}, {} passes, MB/s (10^6), each copied byte once",
        classic.size, classic.passes
    );
    let mut columns = vec![
        Column::numbers(""),
        Column::words("method"),
        Column::numbers("average"),
    ];
    if !classic.averages_only {
        columns.extend([
            Column::numbers("best"),
            Column::numbers("passes"),
            Column::numbers("disturbed"),
        ]);
    }
    let beside = classic.size.0 == ARTICLE_BYTES;
    if beside {
        let then = ["2.2.16 (2001)", "2.4.4 (2001)", "Win2000 (2001)"];
        columns.extend(then.map(|title| Column::numbers(title).rank(1)));
    }
    let mut table = Table::new(columns);
    for &method in &classic.methods {
        let rate = row(report, method).and_then(|row| row.bytes_per_s.as_ref());
        let megabytes = |bytes_per_s: f64| format!("{:.3}", bytes_per_s / 1e6);
        let mut cells = vec![
            Cell::from(method.to_string()),
            Cell::from(NAMES[method]),
            Cell::from(or_absent(rate, |rate| megabytes(rate.median))),
        ];
        if !classic.averages_only {
            cells.push(Cell::from(or_absent(rate, |rate| megabytes(rate.best))));
            cells.push(Cell::from(or_absent(rate, |rate| rate.trials.to_string())));
            cells.push(Cell::from(or_absent(rate, |rate| {
                rate.discarded.to_string()
            })));
        }
        if beside {
            cells.extend(OF_2001[method].map(|then| Cell::from(format!("{then:.3}"))));
        }
        table.row(cells);
    }
    let closing = trials_note(page, &report.tally);
    heading(page, &title) + &table.render(page, 1) + &closing
}

/// The table for a program.
pub fn sheet(classic: &Classic, report: &CopyReport) -> Sheet {
    let mut sheet = Sheet::new(&[
        "method",
        "name",
        "bytes",
        "average_mb_per_s",
        "best_mb_per_s",
        "passes",
    ]);
    for &method in &classic.methods {
        let rate = row(report, method).and_then(|row| row.bytes_per_s.as_ref());
        sheet.row(&[
            &method,
            &METHODS[method],
            &classic.size.0,
            &rate.map(|rate| rate.median / 1e6),
            &rate.map(|rate| rate.best / 1e6),
            &rate.map(|rate| rate.trials),
        ]);
    }
    sheet
}

fn row(report: &CopyReport, method: usize) -> Option<&CopyRow> {
    report.rows.iter().find(|row| row.method == METHODS[method])
}
