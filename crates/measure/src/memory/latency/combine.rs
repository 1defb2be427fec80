//! The latencies of several runs as one report: the caches are found anew in the curve of all of
//! them. Pure but for what the system claims of its caches.

use super::{LatencyReport, LatencyRow, caches, translation};
use crate::disturbance::Tally;
use crate::runs::{self, Repeatable, Runs};
use machine::Root;
use model::Estimate;
use model::estimate::Better;

impl Repeatable for LatencyReport {
    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let mut tally = Tally::default();
        reports.iter().for_each(|report| tally.merge(&report.tally));
        let rows: Vec<LatencyRow> = (reports.first().iter())
            .flat_map(|report| &report.rows)
            .map(|row| combined_row(&reports, row, &runs))
            .collect();
        let control =
            runs::between(&reports, Better::Lower, &runs, |report| report.control_step_ns.as_ref());
        let interrupted = reports.iter().any(|report| report.interrupted);
        let first = reports.swap_remove(0);
        let caches = caches::find(&rows, &Root::system());
        Self {
            levels: caches::latencies(&rows, &caches),
            translation: translation(&rows, &first.pages),
            caches,
            rows,
            tally,
            control_step_ns: control,
            interrupted,
            runs,
            ..first
        }
    }
}

fn combined_row(reports: &[LatencyReport], row: &LatencyRow, runs: &Runs) -> LatencyRow {
    let key = |row: &LatencyRow| (row.size_bytes, row.pages, row.order);
    let rows = reports.iter().flat_map(|report| &report.rows);
    let same: Vec<&LatencyRow> = rows.filter(|other| key(other) == key(row)).collect();
    let loads = same.iter().filter_map(|row| row.load_ns.as_ref());
    LatencyRow {
        load_ns: Estimate::between_runs(loads, Better::Lower, runs.span_s),
        noisy: same.iter().find_map(|row| row.noisy.clone()),
        ..row.clone()
    }
}
