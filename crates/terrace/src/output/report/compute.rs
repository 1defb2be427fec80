//! The page and the row of `measure compute`: the time of a step, and of as many as the
//! article of 2001 made, beside its figures.

use super::{Report, heading, interrupted, sentence, trials_note};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits};
use measure::compute::ComputeReport;

impl Report for ComputeReport {
    const NAME: &'static str = "compute";

    fn page(&self, page: Page) -> String {
        let mut text = heading(
            page,
            "terrace measure compute: Mandelbrot steps, each waiting for the last",
        );
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
        let of_2001: Vec<String> = self
            .seconds_2001
            .iter()
            .map(|s| format!("{s:.3}"))
            .collect();
        text.push_str(&sentence(
            page,
            &format!(
                "In 2001, at 648 MHz: {} s for 100000000 steps",
                of_2001.join(", ")
            ),
        ));
        text.push_str(&trials_note(page, &self.tally));
        text
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(&[
            "iterations",
            "seconds",
            "step_median_ns",
            "step_best_ns",
            "step_low_ns",
            "step_high_ns",
            "spread",
            "trials",
            "discarded",
        ]);
        sheet.row(&[
            &self.iterations,
            &self.seconds,
            &self.step_ns.median,
            &self.step_ns.best,
            &self.step_ns.low,
            &self.step_ns.high,
            &self.step_ns.spread,
            &self.step_ns.trials,
            &self.step_ns.discarded,
        ]);
        sheet
    }

    fn shortfall(&self) -> Option<String> {
        interrupted(self.interrupted)
    }
}
