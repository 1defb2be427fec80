//! The page and the row of `measure compute`: the time of a step, and of as many as the
//! article of 2001 made, beside its figures.

use super::{PageText, Report, runs_note, stopped, trials_note};
use crate::output::csv::Sheet;
use crate::output::figure::{plus_minus, precise_time};
use measure::compute::ComputeReport;

impl Report for ComputeReport {
    const COMMAND: &'static str = "measure compute";
    const SCHEMA: &'static str = "terrace.measure.compute/1";

    fn write_page(&self, out: &mut PageText) {
        out.heading("terrace measure compute: Mandelbrot steps, each waiting for the last");
        out.sentence(&format!(
            "{} a step (best {}, +- {}); {} steps take {}",
            precise_time(self.step_ns.median),
            precise_time(self.step_ns.best),
            plus_minus(&self.step_ns),
            self.iterations,
            precise_time(self.seconds * 1e9),
        ));
        let of_2001 = self.seconds_2001.map(|s| format!("{s:.3}")).join(", ");
        out.sentence(&format!("In 2001, at 648 MHz: {of_2001} s for 100000000 steps"));
        runs_note(out, &self.runs);
        trials_note(out, &self.tally);
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(std::slice::from_ref(self))
            .column("iterations", |report| report.iterations)
            .column("seconds", |report| report.seconds)
            .estimate("step_", "ns", |report| Some(&report.step_ns));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        stopped(self.interrupted, &self.runs)
    }
}
