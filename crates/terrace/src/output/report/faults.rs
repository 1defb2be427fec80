//! The page and the rows of `measure faults`: each way and phase, the histogram of the
//! first touch of small pages, and the second mode where there is one.

use super::{
    Report, control_note, heading, histogram, interrupted, left_out_note, note, sentence,
    trials_note,
};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::table::{Cell, Column, Table};
use measure::faults::{FaultReport, FaultSeries, TouchMethod, TouchPhase};
use model::Bytes;

impl Report for FaultReport {
    const COMMAND: &'static str = "measure faults";
    const SCHEMA: &'static str = "terrace.measure.faults/1";

    fn page(&self, page: Page) -> String {
        let mut text = heading(
            page,
            &format!("terrace measure faults: first touch of {}", Bytes(self.limit_bytes)),
        );
        text.push_str(&table(self).render(page, 1));
        if let Some(first) = self.find(TouchMethod::Base, TouchPhase::First) {
            text.push_str(&sentence(page, "Touches of new 4 KiB pages by their time:"));
            text.push_str(&histogram(page, &first.bars));
        }
        for series in &self.series {
            text.push_str(&modes(page, series));
        }
        if let Some(bytes) = self.reported_bytes {
            let text_of =
                format!("the kernel reported {} as free to the host while waiting", Bytes(bytes));
            text.push_str(&note(page, &text_of));
        }
        if let Some(limit) = &self.limited_by {
            let why = format!(
                "not more than a quarter of what is available was touched (limit: {limit})"
            );
            text.push_str(&note(page, &why));
        }
        text.push_str(&control_note(page, &self.control_step_ns));
        text.push_str(&trials_note(page, &self.tally));
        text.push_str(&left_out_note(page, &self.left_out));
        text
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
        interrupted(self.interrupted)
    }
}

fn table(report: &FaultReport) -> Table {
    let mut table = Table::new(vec![
        Column::words("way"),
        Column::words("when"),
        Column::numbers("touch").rank(4),
        Column::numbers("p50"),
        Column::numbers("p90").rank(3),
        Column::numbers("p99").rank(1),
        Column::numbers("max").rank(2),
        Column::numbers("made resident"),
        Column::numbers("faults").rank(5),
    ]);
    let time = |ns: Option<f64>| or_absent(ns, |ns| figure::time(ns, Digits::Three));
    for series in &report.series {
        table.row(vec![
            Cell::from(series.way.name()),
            Cell::from(when(series.phase, report.waited_s)),
            Cell::from(Bytes(series.touch_bytes).to_string()),
            Cell::from(time(series.p50_ns)),
            Cell::from(time(series.p90_ns)),
            Cell::from(time(series.p99_ns)),
            Cell::from(time(series.max_ns)),
            Cell::from(figure::rate(series.bytes_per_s, Digits::Three)),
            Cell::from(or_absent(series.faults, |faults| faults.to_string())),
        ]);
    }
    table
}

fn modes(page: Page, series: &FaultSeries) -> String {
    let Some(modes) = &series.modes else {
        return String::new();
    };
    let time = |ns: f64| figure::time(ns, Digits::Three);
    sentence(
        page,
        &format!(
            "{} {}: two modes, {} and {}; the slow one has {} of the touches",
            series.way.name(),
            when(series.phase, 0.0),
            time(modes.fast_ns),
            time(modes.slow_ns),
            figure::percent(modes.slow_share),
        ),
    )
}

fn when(phase: TouchPhase, waited_s: f64) -> String {
    match phase {
        TouchPhase::First => "new".to_owned(),
        TouchPhase::Again => "again at once".to_owned(),
        TouchPhase::AfterWait if waited_s > 0.0 => format!("after {waited_s:.0} s"),
        TouchPhase::AfterWait => "after the wait".to_owned(),
    }
}
