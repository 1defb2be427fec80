//! The page and the rows of `measure seqio`: one line for each phase, with who served it.
//! The rate over time is in the JSON; here only its slowest stretch.

use super::iolat::place;
use super::{Report, heading, interrupted, note, sentence};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::json::word;
use crate::output::table::{Cell, Column, Table};
use measure::storage::{PhaseName, SeqPhase, SeqReport};
use model::Bytes;
use model::error_chain;

impl Report for SeqReport {
    const COMMAND: &'static str = "measure seqio";
    const SCHEMA: &'static str = "terrace.measure.seqio/1";

    fn page(&self, page: Page) -> String {
        let in_flight = match self.depth {
            1 => String::new(),
            many => format!(", {many} in flight"),
        };
        let mut text = heading(
            page,
            &format!(
                "terrace measure seqio: {} in requests of {}{in_flight}, {}, {}",
                Bytes(self.size_bytes),
                Bytes(self.block_bytes),
                word(&self.mode),
                place(&self.target),
            ),
        );
        text.push_str(&table(&self.phases).render(page, 1));
        if let Some(rate) = self.durable_bytes_per_s {
            let rate = figure::rate(rate, Digits::Three);
            text.push_str(&sentence(page, &format!("durable, write and sync together: {rate}")));
        }
        for phase in &self.phases {
            let reason =
                format!("{}: {}", word(&phase.name).replace('_', " "), phase.served.reason);
            text.push_str(&note(page, &reason));
        }
        self.notes.iter().for_each(|line| text.push_str(&note(page, line)));
        text
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(&self.phases)
            .column("path", |_| self.target.path.display().to_string())
            .column("mode", |_| word(&self.mode))
            .column("phase", |phase| word(&phase.name))
            .column("block_bytes", |_| self.block_bytes)
            .column("depth", |_| self.depth)
            .column("bytes", |phase| phase.bytes)
            .column("wall_s", |phase| phase.wall_s)
            .column("bytes_per_s", |phase| phase.bytes_per_s)
            .column("slowest_bytes_per_s", slowest)
            .column("cpu_s", |phase| phase.cpu_s)
            .column("complete", |phase| phase.complete)
            .column("cached_before_bytes", |phase| phase.cached_before_bytes)
            .column("verified_bytes", |phase| phase.verified_bytes)
            .column("served_by", |phase| word(&phase.served.by));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        self.failure
            .as_ref()
            .map(|error| error_chain(error))
            .or_else(|| interrupted(self.interrupted))
    }

    fn written_bytes(&self) -> u64 {
        let written = self.phases.iter().filter(|phase| phase.name == PhaseName::Write);
        written.map(|phase| phase.bytes).sum()
    }
}

fn table(phases: &[SeqPhase]) -> Table {
    let mut table = Table::new(vec![
        Column::words("phase"),
        Column::numbers("rate"),
        Column::numbers("slowest 0.1 s").rank(3),
        Column::numbers("bytes").rank(1),
        Column::numbers("time").rank(1),
        Column::numbers("CPU time").rank(2),
        Column::words("served by"),
        Column::words(""),
    ]);
    let rate = |rate: Option<f64>| or_absent(rate, |rate| figure::rate(rate, Digits::Three));
    let time = |s: f64| figure::time(s * 1e9, Digits::Three);
    for phase in phases {
        table.row(vec![
            Cell::from(word(&phase.name).replace('_', " ")),
            Cell::from(rate(phase.bytes_per_s)),
            Cell::from(rate(slowest(phase))),
            Cell::from(Bytes(phase.bytes).to_string()),
            Cell::from(time(phase.wall_s)),
            Cell::from(or_absent(phase.cpu_s, time)),
            Cell::from(word(&phase.served.by).replace('_', " ")),
            Cell::from(if phase.complete { "" } else { "cut short" }),
        ]);
    }
    table
}

/// The rate of the slowest stretch of 100 ms, if there were at least two.
fn slowest(phase: &SeqPhase) -> Option<f64> {
    let rates = phase.series.iter().map(|at| at.bytes_per_s);
    (phase.series.len() > 1).then(|| rates.fold(f64::INFINITY, f64::min))
}
