//! The result of a command in the forms in which it can be printed, and those of the probes, one
//! file each: a page for a person, rows for a program.
//!
//! Pure: results of `measure` in, text out. What the JSON shows is the result itself,
//! so a page may leave figures out, and never has one that the JSON lacks.

mod classic;
mod compute;
mod faults;
mod iolat;
mod memcpy;
mod memlat;
mod random;
mod seqio;

pub use classic::ClassicResult;
pub use iolat::IolatResult;
pub use random::RandomResult;

use super::Page;
use super::figure::{self, Digits};
use super::prose::{PageText, by_reason};
use measure::disturbance::Tally;
use measure::memory::PagesGranted;
use measure::memory::SkippedMethod;
use measure::runs::Runs;
use model::histogram::Bar;
use model::statistics::spells::LEAST_RUNS;
use model::{Covers, Estimate};
use serde::Serialize;
use std::path::Path;

/// The longest bar of a histogram.
const BAR_WIDTH: usize = 40;

/// The result of a command, in the forms in which it can be printed.
pub trait Report: Serialize {
    /// The command, as error messages name it: `measure memcpy`.
    const COMMAND: &'static str;

    /// The name and version of its JSON: `terrace.measure.memcpy/1`.
    const SCHEMA: &'static str;

    /// Whether trials were timed: then the cost of timing them is stated with the result.
    const TIMED: bool = true;

    /// Writes the text for a person.
    fn write_page(&self, out: &mut PageText);

    /// The text for a person.
    fn page(&self, page: Page) -> String {
        let mut out = PageText::new(page);
        self.write_page(&mut out);
        out.finish()
    }

    /// Comma-separated values, a row for each measurement; `None` if the command has none.
    fn csv(&self) -> Option<String> {
        None
    }

    /// What is missing of what was asked for; `None` when all is there.
    fn shortfall(&self) -> Option<String>;

    /// The directory in which the JSON is stored as `result.json` too, if any.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Bytes written to files, all of them removed again.
    fn written_bytes(&self) -> u64 {
        0
    }
}

/// What a result says when Ctrl-C ended its measurement.
pub fn interrupted(is_interrupted: bool) -> Option<String> {
    interrupted_after("measured", is_interrupted)
}

/// What a probe's result says when Ctrl-C ended a run, or came before all runs were made.
fn stopped(is_interrupted: bool, runs: &Runs) -> Option<String> {
    let is_short = runs.counted < runs.asked && sys::interrupt::requested();
    interrupted(is_interrupted || is_short)
}

/// What a result says when Ctrl-C came before all was `done`: measured, seen.
pub fn interrupted_after(done: &str, is_interrupted: bool) -> Option<String> {
    is_interrupted.then(|| format!("interrupted: this is what was {done} until then"))
}

/// The processor alone, beside every figure of memory: is it the memory or the processor?
fn control_note(out: &mut PageText, step_ns: &Option<Estimate>) {
    if let Some(step) = step_ns {
        let time = figure::precise_time(step.median);
        out.note(&format!(
            "the processor alone, in the same run: {time} a step of the fractal control"
        ));
    }
}

/// Runs within less time can all be in one slow spell, of which 10 to 40 s were seen.
const SHORT_SPAN_S: f64 = 40.0;

/// What the intervals hold, and which runs are missing.
fn runs_note(out: &mut PageText, runs: &Runs) {
    let held = match (runs.covers, runs.counted as usize) {
        (Covers::WithinRun, _) if runs.asked == 1 => {
            "+- is within this run: another run, with other memory, can differ by more".to_owned()
        }
        (Covers::WithinRun, _) => {
            "+- is within one run: no other one gave a figure in the time".to_owned()
        }
        (Covers::BetweenRuns, few) if few < LEAST_RUNS => format!(
            "{few} runs are too few for an interval, which needs {LEAST_RUNS}: give more --budget"
        ),
        (Covers::BetweenRuns, many) => {
            let span = figure::time(runs.span_s * 1e9, Digits::Two);
            format!(
                "+- is between {many} runs over {span}, each a process of its own; it is wider than \
                 they differ the nearer they are, as a slow spell of a machine outlasts several"
            )
        }
    };
    out.note(&held);
    let is_short = runs.span_s < SHORT_SPAN_S && runs.counted as usize >= LEAST_RUNS;
    out.notes(is_short.then_some(
        "a slow spell that lasts longer is not in it: --over 1min spreads the runs over a minute",
    ));
    out.notes(runs.left_out.iter().map(|why| format!("not counted: {why}")));
}

/// How many trials count, and why others do not.
fn trials_note(out: &mut PageText, tally: &Tally) {
    let discarded = match tally.discarded() {
        0 => String::new(),
        many => format!(", {many} discarded ({})", causes(tally)),
    };
    out.note(&format!("{} trials count{discarded}", tally.kept));
}

/// What disturbed trials, and how many.
fn causes(tally: &Tally) -> String {
    let causes: [(u32, &str); 4] = [
        (tally.waited, "other work had the processor"),
        (tally.stolen, "the host took the processor"),
        (tally.faulted, "page faults"),
        (tally.crowded_out, "others held the cache"),
    ];
    let seen = causes.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = seen.map(|(count, why)| format!("{count}: {why}")).collect();
    texts.join(", ")
}

/// Whether the kernel granted the pages that were asked for.
fn pages_note(out: &mut PageText, pages: &[PagesGranted]) {
    out.notes(pages.iter().map(|granted| {
        let share = match granted.share() {
            Some(share) => format!("{} of the buffer, by smaps", figure::percent(share)),
            None => "smaps cannot be read, so not verified".to_owned(),
        };
        format!("pages {}: {share}", granted.asked)
    }));
}

/// What was left out, with the reasons; those that share one stand together.
fn left_out_note(out: &mut PageText, left_out: &[SkippedMethod]) {
    let items = left_out.iter().map(|item| (&*item.reason, &*item.name));
    out.notes(by_reason(items).iter().map(|line| format!("left out: {line}")));
}

/// A histogram: one line for each bar from the first to the last that holds a value.
fn histogram(page: Page, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let room = page.width.saturating_sub(34).clamp(10, BAR_WIDTH) as f64;
    bars.iter()
        .map(|bar| {
            let share = bar.count as f64 / most as f64;
            // A bar that holds anything is seen, however few its values are.
            let signs = "#".repeat((share * room).ceil() as usize);
            let [from, to] = [bar.from_ns, bar.to_ns].map(|ns| figure::time(ns, Digits::Two));
            let line = format!(" {from:>7} .. {to:<7} {:>9} {signs}", bar.count);
            format!("{}\n", line.trim_end())
        })
        .collect()
}
