//! The page and the rows of `measure faults`: each way and phase, the histogram of the
//! first touch of small pages, and the second mode where there is one.

use super::{
    PageText, Report, control_note, histogram, left_out_note, runs_note, stopped, trials_note,
};
use crate::output::csv::Sheet;
use crate::output::figure::{or_absent, percent, plus_minus, precise_rate, precise_time};
use crate::output::table::Table;
use measure::faults::{FaultReport, FaultSeries, TouchMethod, TouchPhase};
use model::Bytes;

impl Report for FaultReport {
    const COMMAND: &'static str = "measure faults";
    const SCHEMA: &'static str = "terrace.measure.faults/1";

    fn write_page(&self, out: &mut PageText) {
        out.heading(&format!("terrace measure faults: first touch of {}", Bytes(self.limit_bytes)));
        out.table(&table(self), 1);
        if let Some(first) = self.find(TouchMethod::Base, TouchPhase::First) {
            out.sentence("Touches of new 4 KiB pages by their time:");
            out.lines(|page| histogram(page, &first.bars));
        }
        out.sentences(self.series.iter().filter_map(modes));
        out.notes(self.reported_bytes.map(|bytes| {
            format!("the kernel reported {} as free to the host while waiting", Bytes(bytes))
        }));
        out.notes(self.limited_by.as_ref().map(|limit| {
            format!("not more than a quarter of what is available was touched (limit: {limit})")
        }));
        control_note(out, &self.control_step_ns);
        runs_note(out, &self.runs);
        trials_note(out, &self.tally);
        left_out_note(out, &self.left_out);
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(&self.series)
            .column("way", |series| series.way.name())
            .column("phase", |series| series.phase.name())
            .column("touch_bytes", |series| series.touch_bytes)
            .column("touches", |series| series.touches)
            .column("faults", |series| series.faults)
            .column("bytes", |series| series.bytes)
            .column("huge_bytes", |series| series.huge_bytes)
            .column("bytes_per_s", |series| series.bytes_per_s)
            .column("p50_ns", |series| series.p50_ns)
            .column("p50_low_ns", |series| series.touch_ns.as_ref().and_then(|touch| touch.low))
            .column("p50_high_ns", |series| series.touch_ns.as_ref().and_then(|touch| touch.high))
            .column("covers", |series| series.touch_ns.as_ref().map(|touch| touch.covers.name()))
            .column("runs", |series| series.touch_ns.as_ref().map(|touch| touch.runs))
            .column("p90_ns", |series| series.p90_ns)
            .column("p99_ns", |series| series.p99_ns)
            .column("max_ns", |series| series.max_ns)
            .column("fast_ns", |series| series.modes.map(|modes| modes.fast_ns))
            .column("slow_ns", |series| series.modes.map(|modes| modes.slow_ns))
            .column("slow_share", |series| series.modes.map(|modes| modes.slow_share))
            .column("cut_short", |series| series.cut_short);
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        stopped(self.interrupted, &self.runs)
    }
}

fn table(report: &FaultReport) -> Table<&FaultSeries> {
    Table::of(&report.series)
        .words("way", 0, |series| series.way.name())
        .words("when", 0, |series| when(series.phase, report.waited_s))
        .numbers("touch", 4, |series| Bytes(series.touch_bytes).to_string())
        .numbers("p50", 0, |series| precise_time(series.p50_ns))
        .numbers("+-", 0, |series| or_absent(series.touch_ns.as_ref(), plus_minus))
        .numbers("p90", 3, |series| precise_time(series.p90_ns))
        .numbers("p99", 1, |series| precise_time(series.p99_ns))
        .numbers("max", 2, |series| precise_time(series.max_ns))
        .numbers("made resident", 0, |series| precise_rate(series.bytes_per_s))
        .numbers("faults", 5, |series| or_absent(series.faults, |faults| faults.to_string()))
}

/// The second mode, where there is one.
fn modes(series: &FaultSeries) -> Option<String> {
    let modes = series.modes.as_ref()?;
    Some(format!(
        "{} {}: two modes, {} and {}; the slow one has {} of the touches",
        series.way.name(),
        when(series.phase, 0.0),
        precise_time(modes.fast_ns),
        precise_time(modes.slow_ns),
        percent(modes.slow_share),
    ))
}

fn when(phase: TouchPhase, waited_s: f64) -> String {
    match phase {
        TouchPhase::First => "new".to_owned(),
        TouchPhase::Again => "again at once".to_owned(),
        TouchPhase::AfterWait if waited_s > 0.0 => format!("after {waited_s:.0} s"),
        TouchPhase::AfterWait => "after the wait".to_owned(),
    }
}
