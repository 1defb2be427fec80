//! The page and the rows of `measure memlat`.
//!
//! Sizes by kind of page and order; then the caches as found and as claimed, and main
//! memory split into the memory and the page walk.

use super::{
    PageText, Report, control_note, left_out_note, pages_note, runs_note, stopped, trials_note,
};
use crate::output::csv::Sheet;
use crate::output::figure::{or_absent, percent, precise_time};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use measure::memory::PageKind;
use measure::memory::latency::{LatencyReport, LatencyRow, Translation};
use model::probe::CacheLevel;
use model::{Bytes, ChaseOrder};

/// More sizes than these are thinned out on the page to powers of two.
const MOST_SIZES: usize = 24;

impl Report for LatencyReport {
    const COMMAND: &'static str = "measure memlat";
    const SCHEMA: &'static str = "terrace.measure.memlat/1";

    fn write_page(&self, out: &mut PageText) {
        out.heading("terrace measure memlat: time of one dependent load");
        out.table(&curves(self), 1);
        if !self.caches.is_empty() {
            out.table(&caches(self), 1);
        }
        out.notes(too_coarse(self));
        out.sentences(self.translation.as_ref().map(walk));
        out.note(&format!("not to be seen: {}", self.unseen));
        control_note(out, &self.control_step_ns);
        runs_note(out, &self.runs);
        trials_note(out, &self.tally);
        pages_note(out, &self.pages);
        left_out_note(out, &self.left_out);
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
        stopped(self.interrupted, &self.runs)
    }
}

fn curves(report: &LatencyReport) -> Table<u64> {
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
    let mut table = Table::of(sizes).numbers("size", 0, |size| Bytes(size).to_string());
    for (pages, order) in series {
        let cell = |size: u64| {
            let is_it =
                |row: &&LatencyRow| (row.size_bytes, row.pages, row.order) == (size, pages, order);
            let row = report.rows.iter().find(is_it);
            let load = row.and_then(|row| row.load_ns.as_ref());
            let noisy = row.is_some_and(|row| row.noisy.is_some());
            let shown = precise_time(load.map(|load| load.median));
            Cell::toned(shown, if noisy { Tone::Warn } else { Tone::Plain })
        };
        table = table.numbers(&format!("{} {}", pages.name(), order.name()), 0, cell);
    }
    table.numbers("+- at most", 0, |size| {
        let loads = report.rows.iter().filter(|row| row.size_bytes == size);
        let errors = loads.filter_map(|row| row.load_ns.as_ref()?.relative_error());
        or_absent(errors.reduce(f64::max), percent)
    })
}

fn caches(report: &LatencyReport) -> Table<&CacheLevel> {
    let smallest = report.rows.iter().map(|row| row.size_bytes).min().unwrap_or(0);
    let size = |bytes: Option<u64>| or_absent(bytes, |bytes| Bytes(bytes).to_string());
    Table::of(&report.caches)
        .words("cache", 0, |cache| format!("L{}", cache.level))
        .numbers("found", 0, |cache| found(cache, smallest))
        .numbers("load", 0, |cache| precise_time(cache.measured.map(|edge| edge.below_ns)))
        .numbers("sysfs", 1, |cache| size(cache.sysfs_bytes))
        .numbers("CPUID", 1, |cache| size(cache.cpuid_bytes))
        .numbers("libc", 1, |cache| size(cache.libc_bytes))
}

/// The two sizes that the edge is between.
fn found(cache: &CacheLevel, smallest: u64) -> String {
    let claim = cache.hardware_bytes().or(cache.libc_bytes);
    match &cache.measured {
        Some(edge) => format!("{} to {}", Bytes(edge.fits_bytes), Bytes(edge.spills_bytes)),
        None if claim.is_some_and(|claim| claim < smallest) => "below all sizes".to_owned(),
        None => "no edge".to_owned(),
    }
}

/// What would name the caches, where the sizes cannot.
fn too_coarse(report: &LatencyReport) -> Option<String> {
    let has_edge = report.caches.iter().any(|cache| cache.measured.is_some());
    let mut sizes: Vec<u64> = report.rows.iter().map(|row| row.size_bytes).collect();
    sizes.sort_unstable();
    let is_coarse = sizes.windows(2).any(|pair| pair[1] > 2 * pair[0]);
    (!has_edge && is_coarse && sizes.len() > 1).then(|| {
        "an edge between sizes more than a doubling apart is of no known level; without --size \
         the steps are small enough"
            .to_owned()
    })
}

fn walk(split: &Translation) -> String {
    let time = |ns: f64| precise_time(ns.max(0.0));
    let backed = match split.huge_share {
        Some(share) => format!("huge pages back {}", percent(share)),
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
