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
use super::style::Tone;
use super::table::wrap;
use measure::disturbance::Tally;
use measure::memory::PagesGranted;
use measure::memory::copy::SkippedMethod;
use model::Estimate;
use model::histogram::Bar;
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

    /// Text for a person.
    fn page(&self, page: Page) -> String;

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

/// What a result says when Ctrl-C ended it.
fn interrupted(interrupted: bool) -> Option<String> {
    interrupted.then(|| "interrupted: this is what was measured until then".to_owned())
}

/// A remark below a table, wrapped and dim.
fn note(page: Page, text: &str) -> String {
    let line = wrap(text, page.width.saturating_sub(1), 3);
    let painted: Vec<String> = line
        .lines()
        .map(|line| {
            let words = line.trim_start();
            format!(
                "{}{}",
                &line[..line.len() - words.len()],
                page.style.paint(Tone::Dim, words)
            )
        })
        .collect();
    format!(" {}\n", painted.join("\n"))
}

/// A sentence below a table, wrapped.
fn sentence(page: Page, text: &str) -> String {
    format!(" {}\n", wrap(text, page.width.saturating_sub(1), 3))
}

/// A heading line.
fn heading(page: Page, text: &str) -> String {
    format!(
        "{}\n",
        page.style.paint(Tone::Strong, &wrap(text, page.width, 3))
    )
}

/// How many trials count, and why others do not.
/// The processor alone, beside every figure of memory: is it the memory or the processor?
fn control_note(page: Page, step_ns: &Option<Estimate>) -> String {
    let Some(step) = step_ns else {
        return String::new();
    };
    let time = figure::time(step.median, Digits::Three);
    note(
        page,
        &format!("the processor alone, in the same run: {time} a step of the fractal control"),
    )
}

fn trials_note(page: Page, tally: &Tally) -> String {
    let mut text = format!("{} trials count", tally.kept);
    if tally.discarded() > 0 {
        text.push_str(&format!(
            ", {} discarded ({})",
            tally.discarded(),
            causes(tally)
        ));
    }
    note(page, &text)
}

/// What disturbed trials, and how many.
fn causes(tally: &Tally) -> String {
    let causes: [(u32, &str); 4] = [
        (tally.waited, "other work had the processor"),
        (tally.stolen, "the host took the processor"),
        (tally.faulted, "page faults"),
        (tally.crowded_out, "others held the cache"),
    ];
    let causes: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count}: {why}"))
        .collect();
    causes.join(", ")
}

/// Whether the kernel granted the pages that were asked for.
fn pages_note(page: Page, pages: &[PagesGranted]) -> String {
    pages
        .iter()
        .map(|granted| match granted.share() {
            Some(share) => note(
                page,
                &format!(
                    "pages {}: {} of the buffer, by smaps",
                    granted.asked,
                    figure::percent(share)
                ),
            ),
            None => note(
                page,
                &format!(
                    "pages {}: smaps cannot be read, so not verified",
                    granted.asked
                ),
            ),
        })
        .collect()
}

/// What was left out, with the reasons; those that share one stand together.
fn left_out_note(page: Page, left_out: &[SkippedMethod]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for item in left_out {
        match groups.iter_mut().find(|(reason, _)| *reason == item.reason) {
            Some((_, names)) => names.push(&item.name),
            None => groups.push((&item.reason, vec![&item.name])),
        }
    }
    groups
        .iter()
        .map(|(reason, names)| note(page, &format!("left out: {} ({reason})", names.join(", "))))
        .collect()
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
            let steps = if bar.count == 0 {
                0
            } else {
                (share * room).ceil() as usize
            };
            let from = figure::time(bar.from_ns, figure::Digits::Two);
            let to = figure::time(bar.to_ns, figure::Digits::Two);
            let line = format!(
                " {from:>7} .. {to:<7} {:>9} {}",
                bar.count,
                "#".repeat(steps)
            );
            format!("{}\n", line.trim_end())
        })
        .collect()
}
