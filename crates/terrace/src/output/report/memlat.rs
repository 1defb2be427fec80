//! The page and the rows of `measure memlat`.
//!
//! Sizes by kind of page and order; then the caches as found and as claimed, and main
//! memory split into the memory and the page walk.

use super::{
    Report, control_note, heading, interrupted, left_out_note, note, pages_note, sentence,
    trials_note,
};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::style::Tone;
use crate::output::table::{Cell, Column, Table};
use measure::memory::PageKind;
use measure::memory::latency::{LatencyReport, LatencyRow, Translation};
use model::probe::CacheLevel;
use model::{Bytes, ChaseOrder};

/// More sizes than these are thinned out on the page to powers of two.
const MOST_SIZES: usize = 24;

impl Report for LatencyReport {
    const COMMAND: &'static str = "measure memlat";
    const SCHEMA: &'static str = "terrace.measure.memlat/1";

    fn page(&self, page: Page) -> String {
        let mut text = heading(page, "terrace measure memlat: time of one dependent load");
        text.push_str(&curves(self).render(page, 1));
        if !self.caches.is_empty() {
            text.push_str(&caches(self).render(page, 1));
        }
        if let Some(split) = &self.translation {
            text.push_str(&sentence(page, &walk(split)));
        }
        text.push_str(&note(page, &format!("not to be seen: {}", self.unseen)));
        text.push_str(&control_note(page, &self.control_step_ns));
        text.push_str(&trials_note(page, &self.tally));
        text.push_str(&pages_note(page, &self.pages));
        text.push_str(&left_out_note(page, &self.left_out));
        text
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(&self.rows)
            .column("size_bytes", |row| row.size_bytes)
            .column("pages", |row| row.pages.name())
            .column("order", |row| row.order.name())
            .estimate("", "ns", |row| row.load_ns.as_ref())
            .column("noisy", |row| row.noisy.clone());
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        interrupted(self.interrupted)
    }
}

fn curves(report: &LatencyReport) -> Table {
    let mut series: Vec<(PageKind, ChaseOrder)> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    for row in &report.rows {
        if !series.contains(&(row.pages, row.order)) {
            series.push((row.pages, row.order));
        }
        if !sizes.contains(&row.size_bytes) {
            sizes.push(row.size_bytes);
        }
    }
    if sizes.len() > MOST_SIZES {
        sizes.retain(|size| size.is_power_of_two());
    }
    let mut columns = vec![Column::numbers("size")];
    columns.extend(
        series
            .iter()
            .map(|(pages, order)| Column::numbers(&format!("{} {}", pages.name(), order.name()))),
    );
    let mut table = Table::new(columns);
    for size in sizes {
        let mut cells = vec![Cell::from(Bytes(size).to_string())];
        for (pages, order) in &series {
            let is_it = |row: &&LatencyRow| {
                (row.size_bytes, row.pages, row.order) == (size, *pages, *order)
            };
            let row = report.rows.iter().find(is_it);
            let load = row.and_then(|row| row.load_ns.as_ref());
            let noisy = row.is_some_and(|row| row.noisy.is_some());
            let shown = or_absent(load, |load| figure::time(load.median, Digits::Three));
            cells.push(Cell::toned(shown, if noisy { Tone::Warn } else { Tone::Plain }));
        }
        table.row(cells);
    }
    table
}

fn caches(report: &LatencyReport) -> Table {
    let mut table = Table::new(vec![
        Column::words("cache"),
        Column::numbers("found"),
        Column::numbers("load"),
        Column::numbers("sysfs").rank(1),
        Column::numbers("CPUID").rank(1),
        Column::numbers("libc").rank(1),
    ]);
    let size = |bytes: Option<u64>| or_absent(bytes, |bytes| Bytes(bytes).to_string());
    for cache in &report.caches {
        table.row(vec![
            Cell::from(format!("L{}", cache.level)),
            Cell::from(found(cache)),
            Cell::from(or_absent(cache.measured, |edge| {
                figure::time(edge.below_ns, Digits::Three)
            })),
            Cell::from(size(cache.sysfs_bytes)),
            Cell::from(size(cache.cpuid_bytes)),
            Cell::from(size(cache.libc_bytes)),
        ]);
    }
    table
}

/// The two sizes that the edge lies between.
fn found(cache: &CacheLevel) -> String {
    match &cache.measured {
        Some(edge) => format!("{} to {}", Bytes(edge.fits_bytes), Bytes(edge.spills_bytes)),
        None => "no edge".to_owned(),
    }
}

fn walk(split: &Translation) -> String {
    let time = |ns: f64| figure::time(ns.max(0.0), Digits::Three);
    let backed = match split.huge_share {
        Some(share) => format!("huge pages back {}", figure::percent(share)),
        None => "not verified in smaps".to_owned(),
    };
    format!(
        "RAM at {}: {} on 4 KiB pages is {} of memory and {} of page walk ({backed})",
        Bytes(split.size_bytes),
        time(split.base_ns.median),
        time(split.huge_ns.median),
        time(split.walk_ns),
    )
}
