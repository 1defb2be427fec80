//! The page and the row of `measure compute`: the time of a step, and of as many as the
//! article of 2001 made, beside its figures.

use super::{Report, heading, interrupted, sentence, trials_note};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits};
use measure::compute::ComputeReport;

impl Report for ComputeReport {
    const COMMAND: &'static str = "measure compute";
    const SCHEMA: &'static str = "terrace.measure.compute/1";

    fn page(&self, page: Page) -> String {
        let mut text =
            heading(page, "terrace measure compute: Mandelbrot steps, each waiting for the last");
        let step = figure::time(self.step_ns.median, Digits::Three);
        text.push_str(&sentence(
            page,
            &format!(
                "{step} a step (best {}, +- {}); {} steps take {}",
                figure::time(self.step_ns.best, Digits::Three),
                figure::plus_minus(&self.step_ns),
                self.iterations,
                figure::time(self.seconds * 1e9, Digits::Three),
            ),
        ));
        let of_2001: Vec<String> = self.seconds_2001.iter().map(|s| format!("{s:.3}")).collect();
        text.push_str(&sentence(
            page,
            &format!("In 2001, at 648 MHz: {} s for 100000000 steps", of_2001.join(", ")),
        ));
        text.push_str(&trials_note(page, &self.tally));
        text
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(std::slice::from_ref(self))
            .column("iterations", |report| report.iterations)
            .column("seconds", |report| report.seconds)
            .estimate("step_", "ns", |report| Some(&report.step_ns));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        interrupted(self.interrupted)
    }
}
