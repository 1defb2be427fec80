//! The page and the rows of `measure seqio`: one line for each phase, with who served it.
//! The rate over time is in the JSON; here only its slowest stretch.

use super::iolat::place;
use super::{PageText, Report, runs_note, stopped};
use crate::output::csv::Sheet;
use crate::output::figure::{or_absent, plus_minus, precise_rate, precise_time};
use crate::output::json::word;
use crate::output::table::Table;
use measure::storage::{SeqPhase, SeqReport};
use model::Bytes;
use model::error_chain;

impl Report for SeqReport {
    const COMMAND: &'static str = "measure seqio";
    const SCHEMA: &'static str = "terrace.measure.seqio/1";

    fn write_page(&self, out: &mut PageText) {
        let in_flight = match self.depth {
            1 => String::new(),
            many => format!(", {many} in flight"),
        };
        out.heading(&format!(
            "terrace measure seqio: {} in requests of {}{in_flight}, {}, {}",
            Bytes(self.size_bytes),
            Bytes(self.block_bytes),
            word(&self.mode),
            place(&self.target),
        ));
        out.table(&table(&self.phases), 1);
        out.sentences(self.durable_rate.as_ref().map(|rate| {
            let (shown, error) = (precise_rate(rate.median), plus_minus(rate));
            format!("durable, write and sync together: {shown}, +- {error}")
        }));
        match self.runs.asked {
            1 => out.note("one transfer has no interval: without --quick it is repeated"),
            _ => runs_note(out, &self.runs),
        }
        out.notes(
            self.phases.iter().map(|phase| format!("{}: {}", name(phase), phase.served.reason)),
        );
        out.notes(&self.notes);
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
            .rate("bytes_per_s", |phase| phase.rate.as_ref())
            .column("slowest_bytes_per_s", slowest)
            .column("cpu_s", |phase| phase.cpu_s)
            .column("complete", |phase| phase.complete)
            .column("cached_before_bytes", |phase| phase.cached_before_bytes)
            .column("verified_bytes", |phase| phase.verified_bytes)
            .column("served_by", |phase| word(&phase.served.by))
            .column("covers", |phase| phase.rate.as_ref().map(|rate| rate.covers.name()))
            .column("runs", |phase| phase.rate.as_ref().map(|rate| rate.runs));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        self.failure
            .as_ref()
            .map(|error| error_chain(error))
            .or_else(|| stopped(self.interrupted, &self.runs))
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

fn table(phases: &[SeqPhase]) -> Table<&SeqPhase> {
    let time = |s: f64| precise_time(s * 1e9);
    Table::of(phases)
        .words("phase", 0, name)
        .numbers("rate", 0, |phase| precise_rate(phase.bytes_per_s))
        .numbers("+-", 0, |phase| or_absent(phase.rate.as_ref(), plus_minus))
        .numbers("slowest 0.1 s", 3, |phase| precise_rate(slowest(phase)))
        .numbers("bytes", 1, |phase| Bytes(phase.bytes).to_string())
        .numbers("time", 1, |phase| time(phase.wall_s))
        .numbers("CPU time", 2, |phase| or_absent(phase.cpu_s, time))
        .words("served by", 0, |phase| word(&phase.served.by).replace('_', " "))
        .words("", 0, |phase| if phase.complete { "" } else { "cut short" })
}

fn name(phase: &SeqPhase) -> String {
    word(&phase.name).replace('_', " ")
}

/// The rate of the slowest stretch of 100 ms, if there were at least two.
fn slowest(phase: &SeqPhase) -> Option<f64> {
    let rates = phase.series.iter().map(|at| at.bytes_per_s);
    (phase.series.len() > 1).then(|| rates.fold(f64::INFINITY, f64::min))
}
