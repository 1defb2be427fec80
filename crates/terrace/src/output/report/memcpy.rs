//! The page and the rows of `measure memcpy`.
//!
//! Several sizes make a matrix of medians, methods by sizes; one size has room for the
//! best, the interval and the trials. Below: which method wins where, and what the C
//! library leaves on the table.

use super::{
    Report, control_note, heading, interrupted, left_out_note, note, pages_note, sentence,
    trials_note,
};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::style::Tone;
use crate::output::table::{Cell, Column, Table};
use measure::memory::copy::{CopyReport, CopyRow, Winner};
use model::Bytes;

impl Report for CopyReport {
    const COMMAND: &'static str = "measure memcpy";
    const SCHEMA: &'static str = "terrace.measure.memcpy/1";

    fn page(&self, page: Page) -> String {
        let mut text = heading(page, &title(self));
        let sizes = sizes(self);
        for operation in ["copy", "read", "write"] {
            let rows: Vec<&CopyRow> =
                self.rows.iter().filter(|row| row.operation == operation).collect();
            if rows.is_empty() {
                continue;
            }
            let table = match sizes.as_slice() {
                [_] => detail(operation, &rows),
                _ => matrix(operation, &rows, &sizes),
            };
            text.push_str(&table.render(page, 1));
        }
        self.winners.iter().for_each(|winner| text.push_str(&sentence(page, &won(winner, self))));
        text.push_str(&noisy_note(page, &self.rows));
        text.push_str(&control_note(page, &self.control_step_ns));
        text.push_str(&trials_note(page, &self.tally));
        text.push_str(&pages_note(page, &self.pages));
        text.push_str(&left_out_note(page, &self.left_out));
        text
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(&self.rows)
            .column("method", |row| row.method.clone())
            .column("operation", |row| row.operation.clone())
            .column("size_bytes", |row| row.size_bytes)
            .column("threads", |_| self.threads)
            .estimate("", "bytes_per_s", |row| row.bytes_per_s.as_ref())
            .column("bus_bytes_per_s", |row| row.bus_bytes_per_s)
            .column("verified", |row| row.verified)
            .column("noisy", |row| row.noisy.clone());
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        let failed = self.rows.iter().find_map(|row| {
            let why = row.noisy.as_ref().filter(|why| why.starts_with("failed"))?;
            Some(format!("{} at {}: {why}", row.method, Bytes(row.size_bytes)))
        });
        interrupted(self.interrupted).or(failed)
    }
}

fn title(report: &CopyReport) -> String {
    let mut parts = vec!["terrace measure memcpy".to_owned()];
    match report.threads {
        1 => parts.push("1 thread".to_owned()),
        many => parts.push(format!("{many} threads, rates of all together")),
    }
    parts.extend(report.block_bytes.map(|block| format!("blocks of {}", Bytes(block))));
    if report.stride > 1 {
        parts.push(format!("every {}th element", report.stride));
    }
    if report.offset != (0, 0) {
        let (target, source) = report.offset;
        parts.push(format!("target {target} B and source {source} B behind a page boundary"));
    }
    parts.extend(report.libc.clone());
    parts.join(", ")
}

fn sizes(report: &CopyReport) -> Vec<u64> {
    let mut sizes: Vec<u64> = report.rows.iter().map(|row| row.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Medians, methods by sizes.
fn matrix(operation: &str, rows: &[&CopyRow], sizes: &[u64]) -> Table {
    let mut columns = vec![Column::words(operation)];
    // The largest sizes stay longest: they are what memory itself does.
    let ranks = (1..=sizes.len()).rev();
    columns.extend(sizes.iter().zip(ranks).map(|(&size, rank)| {
        Column::numbers(&Bytes(size).to_string()).rank((rank - 1).min(250) as u8)
    }));
    let largest = sizes.last().copied().unwrap_or(0);
    columns.push(Column::numbers(&format!("bus traffic at {}", Bytes(largest))).rank(u8::MAX));
    let mut table = Table::new(columns);
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    for method in methods {
        let mut cells = vec![Cell::from(method)];
        let of = |size: u64| rows.iter().find(|row| row.method == method && row.size_bytes == size);
        for &size in sizes {
            let row = of(size);
            let rate = row.and_then(|row| row.bytes_per_s.as_ref());
            let noisy = row.is_some_and(|row| row.noisy.is_some());
            let shown = or_absent(rate, |rate| figure::rate(rate.median, Digits::Three));
            cells.push(Cell::toned(shown, if noisy { Tone::Warn } else { Tone::Plain }));
        }
        let bus = of(largest).and_then(|row| row.bus_bytes_per_s);
        cells.push(Cell::from(or_absent(bus, |rate| figure::rate(rate, Digits::Three))));
        table.row(cells);
    }
    table
}

/// One size with its error bars.
fn detail(operation: &str, rows: &[&CopyRow]) -> Table {
    let mut table = Table::new(vec![
        Column::words(operation),
        Column::numbers("median"),
        Column::numbers("best").rank(1),
        Column::numbers("+-").rank(2),
        Column::numbers("spread").rank(5),
        Column::numbers("trials").rank(3),
        Column::numbers("discarded").rank(4),
        Column::numbers("bus traffic").rank(1),
    ]);
    let rate =
        |bytes_per_s: Option<f64>| or_absent(bytes_per_s, |rate| figure::rate(rate, Digits::Three));
    for row in rows {
        let estimate = row.bytes_per_s.as_ref();
        let tone = if row.noisy.is_some() { Tone::Warn } else { Tone::Plain };
        table.row(vec![
            Cell::from(row.method.as_str()),
            Cell::toned(rate(estimate.map(|e| e.median)), tone),
            Cell::toned(rate(estimate.map(|e| e.best)), tone),
            Cell::from(or_absent(estimate, figure::plus_minus)),
            Cell::from(or_absent(estimate.and_then(|e| e.spread), figure::percent)),
            Cell::from(or_absent(estimate, |e| e.trials.to_string())),
            Cell::from(or_absent(estimate, |e| e.discarded.to_string())),
            Cell::from(rate(row.bus_bytes_per_s)),
        ]);
    }
    table
}

/// `256 MiB copy: rep-movsb wins with 18.7 GB/s, 1.47x of glibc 2.36`.
fn won(winner: &Winner, report: &CopyReport) -> String {
    let libc = report.libc.as_deref().unwrap_or("the C library");
    let rate = figure::rate(winner.bytes_per_s, Digits::Three);
    let over = match winner.over_libc {
        Some(ratio) if ratio <= 1.0 => format!(", nothing beats {libc}"),
        Some(ratio) if winner.proven => format!(", {ratio:.2}x {libc}"),
        Some(ratio) => format!(", {ratio:.2}x {libc}, within the noise"),
        None => String::new(),
    };
    format!(
        "{} {}: {} is fastest with {rate}{over}{}",
        Bytes(winner.size_bytes),
        winner.operation,
        winner.method,
        unreached(winner, report)
    )
}

/// Says so when the budget ended before all methods had their turn at the winner's size.
fn unreached(winner: &Winner, report: &CopyReport) -> String {
    let rows = report
        .rows
        .iter()
        .filter(|row| row.size_bytes == winner.size_bytes && row.operation == winner.operation);
    let (reached, missing): (Vec<_>, Vec<_>) = rows.partition(|row| row.bytes_per_s.is_some());
    match missing.len() {
        0 => String::new(),
        _ => format!(
            ", of {} methods; the budget ended before the other {}",
            reached.len(),
            missing.len()
        ),
    }
}

fn noisy_note(page: Page, rows: &[CopyRow]) -> String {
    let noisy: Vec<String> = rows
        .iter()
        .filter_map(|row| Some((row, row.noisy.as_ref()?)))
        .map(|(row, why)| format!("{} at {}: {why}", row.method, Bytes(row.size_bytes)))
        .collect();
    match noisy.as_slice() {
        [] => String::new(),
        few if few.len() <= 3 => note(page, &format!("noisy: {}", few.join("; "))),
        [first, rest @ ..] => note(page, &format!("noisy: {first}; {} more in --csv", rest.len())),
    }
}
