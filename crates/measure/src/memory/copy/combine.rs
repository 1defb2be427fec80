//! The rates of several runs as one report: each row's interval holds the spread between the runs,
//! and the winners are chosen anew. Pure.

use super::worker::CACHED_BYTES;
use super::{CopyReport, CopyRow, judge, nature};
use crate::disturbance::Tally;
use crate::runs::{self, Repeatable, Runs};
use model::Estimate;
use model::estimate::Better;

impl Repeatable for CopyReport {
    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let mut tally = Tally::default();
        reports.iter().for_each(|report| tally.merge(&report.tally));
        let rows: Vec<CopyRow> = (reports.first().iter())
            .flat_map(|report| &report.rows)
            .map(|row| combined_row(&reports, row, &runs))
            .collect();
        let control =
            runs::between(&reports, Better::Lower, &runs, |report| report.control_step_ns.as_ref());
        let interrupted = reports.iter().any(|report| report.interrupted);
        let winners = judge::winners(&rows);
        let first = reports.swap_remove(0);
        Self { rows, winners, tally, control_step_ns: control, interrupted, runs, ..first }
    }
}

/// The row of all reports that is of the same method and size as `row`.
fn combined_row(reports: &[CopyReport], row: &CopyRow, runs: &Runs) -> CopyRow {
    let key = |row: &CopyRow| (row.size_bytes, row.method.clone());
    let same: Vec<&CopyRow> = (reports.iter())
        .flat_map(|report| &report.rows)
        .filter(|other| key(other) == key(row))
        .collect();
    let rates = same.iter().filter_map(|row| row.bytes_per_s.as_ref());
    let rate = Estimate::between_runs(rates, Better::Higher, runs.span_s);
    let factor = nature(&row.method).1.filter(|_| row.size_bytes > CACHED_BYTES);
    // A run whose share ended before its turn verified nothing, and says nothing against it.
    let reached = same.iter().filter(|row| row.bytes_per_s.is_some());
    CopyRow {
        bus_bytes_per_s: factor.and_then(|factor| Some(rate.as_ref()?.median * factor)),
        verified: rate.is_some() && reached.into_iter().all(|row| row.verified),
        noisy: same.iter().find_map(|row| row.noisy.clone()),
        bytes_per_s: rate,
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Covers;

    fn report(gb_per_s: Option<f64>) -> CopyReport {
        let values: Vec<f64> = gb_per_s.map(|rate| rate * 1e9).into_iter().collect();
        let row = |method: &str, values: &[f64]| CopyRow {
            method: method.to_owned(),
            operation: "copy".to_owned(),
            size_bytes: 256 << 20,
            bytes_per_s: Estimate::from_values(values, Better::Higher, 0),
            bus_bytes_per_s: None,
            verified: !values.is_empty(),
            noisy: None,
        };
        CopyReport {
            rows: vec![row("memcpy", &values), row("rep-movsb", &[20e9])],
            ..CopyReport::default()
        }
    }

    /// Three commands of one process each said 13.21 to 13.41, 13.85 to 13.90, 13.56 to 13.72.
    #[test]
    fn the_interval_holds_the_spread_between_the_runs() {
        let rates = [13.33, 13.87, 13.64, 13.5, 13.7, 13.8];
        let reports: Vec<CopyReport> = rates.iter().map(|&rate| report(Some(rate))).collect();
        let all = CopyReport::combine(reports, Runs::default());
        let rate = all.rows[0].bytes_per_s.as_ref().unwrap();
        // Three times as far from the median, 13.67, as the runs are.
        assert!(rate.low < Some(12.9e9) && rate.low > Some(12.4e9), "{rate:?}");
        assert!(rate.high > Some(14.2e9) && rate.high < Some(14.5e9), "{rate:?}");
        assert_eq!(rate.covers, Covers::BetweenRuns);
        assert_eq!(all.winners[0].method, "rep-movsb");
        assert!(all.rows[0].verified && all.rows[0].bus_bytes_per_s.is_some());
    }

    #[test]
    fn a_run_that_did_not_come_to_a_method_says_nothing_of_it() {
        let all = CopyReport::combine(vec![report(None), report(Some(13.0))], Runs::default());
        let rate = all.rows[0].bytes_per_s.as_ref().unwrap();
        assert_eq!((rate.median, rate.runs), (13.0e9, 1));
        assert!(all.rows[0].verified);
    }
}
