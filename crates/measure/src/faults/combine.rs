//! The touches of several runs as one report. Memory that was new to the machine is so only for the
//! first run; the interval between the runs holds that too. Pure.

use super::{FaultReport, FaultSeries};
use crate::disturbance::Tally;
use crate::runs::{self, Repeatable, Runs};
use model::Estimate;
use model::estimate::Better;
use model::histogram::Bar;
use model::statistics;

impl Repeatable for FaultReport {
    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let mut tally = Tally::default();
        reports.iter().for_each(|report| tally.merge(&report.tally));
        let series: Vec<FaultSeries> = (reports.first().iter())
            .flat_map(|report| &report.series)
            .map(|series| combined_series(&reports, series, &runs))
            .collect();
        let control =
            runs::between(&reports, Better::Lower, &runs, |report| report.control_step_ns.as_ref());
        let interrupted = reports.iter().any(|report| report.interrupted);
        let first = reports.swap_remove(0);
        Self { series, tally, control_step_ns: control, interrupted, runs, ..first }
    }
}

fn combined_series(reports: &[FaultReport], of: &FaultSeries, runs: &Runs) -> FaultSeries {
    let all = reports.iter().flat_map(|report| &report.series);
    let same: Vec<&FaultSeries> =
        all.filter(|other| (other.way, other.phase) == (of.way, of.phase)).collect();
    let middle = |value: fn(&FaultSeries) -> Option<f64>| {
        let values: Vec<f64> = same.iter().filter_map(|series| value(series)).collect();
        statistics::median(&statistics::sorted(&values))
    };
    let sum = |value: fn(&FaultSeries) -> u64| same.iter().map(|series| value(series)).sum();
    let touches = same.iter().filter_map(|series| series.touch_ns.as_ref());
    let touch_ns = Estimate::between_runs(touches, Better::Lower, runs.span_s);
    FaultSeries {
        touches: sum(|series| series.touches),
        faults: same.iter().map(|series| series.faults).sum(),
        bytes: sum(|series| series.bytes),
        huge_bytes: same.iter().map(|series| series.huge_bytes).sum(),
        bytes_per_s: middle(|series| Some(series.bytes_per_s)).unwrap_or(of.bytes_per_s),
        p50_ns: touch_ns.as_ref().map(|touch| touch.median),
        p90_ns: middle(|series| series.p90_ns),
        p99_ns: middle(|series| series.p99_ns),
        max_ns: same.iter().filter_map(|series| series.max_ns).reduce(f64::max),
        bars: added(&same),
        touch_ns,
        cut_short: same.iter().any(|series| series.cut_short),
        ..of.clone()
    }
}

/// The bars of all, which have the same edges where they overlap.
fn added(all: &[&FaultSeries]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for bar in all.iter().flat_map(|series| &series.bars) {
        match bars.iter_mut().find(|other| other.from_ns == bar.from_ns) {
            Some(other) => other.count += bar.count,
            None => bars.push(*bar),
        }
    }
    bars.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    bars
}
