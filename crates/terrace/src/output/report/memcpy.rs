//! The page and the rows of `measure memcpy`.
//!
//! Several sizes make a matrix of medians, methods by sizes, with the widest of their intervals;
//! one size has room for the best, the interval and the trials. Below: which method wins where, and
//! what the C library leaves on the table.

use super::{
    PageText, Report, control_note, left_out_note, pages_note, runs_note, stopped, trials_note,
};
use crate::output::csv::Sheet;
use crate::output::figure::{or_absent, percent, plus_minus, precise_rate};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use measure::memory::copy::{CopyReport, CopyRow, Winner};
use model::{Bytes, Estimate};

impl Report for CopyReport {
    const COMMAND: &'static str = "measure memcpy";
    const SCHEMA: &'static str = "terrace.measure.memcpy/1";

    fn write_page(&self, out: &mut PageText) {
        out.heading(&title(self));
        let sizes = sizes(self);
        for operation in ["copy", "read", "write"] {
            let of_operation = self.rows.iter().filter(|row| row.operation == operation);
            let rows: Vec<&CopyRow> = of_operation.collect();
            match sizes.as_slice() {
                _ if rows.is_empty() => {}
                [_] => out.table(&detail(operation, &rows), 1),
                _ => out.table(&matrix(operation, &rows, &sizes), 1),
            }
        }
        out.sentences(self.winners.iter().map(|winner| won(winner, self)));
        out.notes(noisy(&self.rows));
        control_note(out, &self.control_step_ns);
        runs_note(out, &self.runs);
        trials_note(out, &self.tally);
        pages_note(out, &self.pages);
        left_out_note(out, &self.left_out);
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
        stopped(self.interrupted, &self.runs).or(failed)
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
fn matrix<'r>(operation: &str, rows: &[&'r CopyRow], sizes: &[u64]) -> Table<&'r str> {
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let of = |method: &str, size: u64| {
        rows.iter().find(|row| row.method == method && row.size_bytes == size)
    };
    let mut table = Table::of(methods).words(operation, 0, |method| method);
    // The largest sizes stay longest: they are what memory itself does.
    for (&size, rank) in sizes.iter().zip((0..sizes.len()).rev()) {
        table = table.numbers(&Bytes(size).to_string(), rank.min(250) as u8, |method| {
            let row = of(method, size);
            let noisy = row.is_some_and(|row| row.noisy.is_some());
            let median = row.and_then(|row| row.bytes_per_s.as_ref()).map(|rate| rate.median);
            Cell::toned(precise_rate(median), if noisy { Tone::Warn } else { Tone::Plain })
        });
    }
    let widest = |method: &str| {
        let rates = sizes.iter().filter_map(|&size| of(method, size)?.bytes_per_s.as_ref());
        or_absent(rates.filter_map(Estimate::relative_error).reduce(f64::max), percent)
    };
    table = table.numbers("+- at most", 0, widest);
    let largest = sizes.last().copied().unwrap_or(0);
    table.numbers(&format!("bus traffic at {}", Bytes(largest)), u8::MAX, |method| {
        precise_rate(of(method, largest).and_then(|row| row.bus_bytes_per_s))
    })
}

/// One size with its error bars.
fn detail<'r>(operation: &str, rows: &[&'r CopyRow]) -> Table<&'r CopyRow> {
    let toned = |row: &CopyRow, of: fn(&Estimate) -> f64| {
        let tone = if row.noisy.is_some() { Tone::Warn } else { Tone::Plain };
        Cell::toned(precise_rate(row.bytes_per_s.as_ref().map(of)), tone)
    };
    let of =
        |row: &CopyRow, shown: fn(&Estimate) -> String| or_absent(row.bytes_per_s.as_ref(), shown);
    Table::of(rows.iter().copied())
        .words(operation, 0, |row| row.method.as_str())
        .numbers("median", 0, |row| toned(row, |rate| rate.median))
        .numbers("best", 1, |row| toned(row, |rate| rate.best))
        .numbers("+-", 0, |row| of(row, plus_minus))
        .numbers("spread", 5, |row| of(row, |rate| or_absent(rate.spread, percent)))
        .numbers("trials", 3, |row| of(row, |rate| rate.trials.to_string()))
        .numbers("discarded", 4, |row| of(row, |rate| rate.discarded.to_string()))
        .numbers("bus traffic", 1, |row| precise_rate(row.bus_bytes_per_s))
}

/// `256 MiB copy: rep-movsb wins with 18.7 GB/s, 1.47x of glibc 2.36`.
fn won(winner: &Winner, report: &CopyReport) -> String {
    let libc = report.libc.as_deref().unwrap_or("the C library");
    let rate = precise_rate(winner.bytes_per_s);
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

fn noisy(rows: &[CopyRow]) -> Option<String> {
    let noisy = rows.iter().filter_map(|row| {
        let why = row.noisy.as_ref()?;
        Some(format!("{} at {}: {why}", row.method, Bytes(row.size_bytes)))
    });
    match noisy.collect::<Vec<_>>().as_slice() {
        [] => None,
        few if few.len() <= 3 => Some(format!("noisy: {}", few.join("; "))),
        [first, rest @ ..] => Some(format!("noisy: {first}; {} more in --csv", rest.len())),
    }
}
