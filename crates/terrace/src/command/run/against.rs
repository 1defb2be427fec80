//! `terrace run --against`: two commands take turns, in an order that rotates, and their times are
//! compared. The first run of each warms the caches and does not count.

use super::{
    PlannedRun, Ran, json_target, numbered, page_of_one, prepare, print_verdict, run_once,
};
use crate::args::When;
use crate::args::run::RunArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, OutputTarget, Page, compare, json};
use explain::comparison;
use model::compared::{Comparison, Side};
use model::explanation::Explanation;
use std::ffi::OsString;

/// The names of the sides, in the files of their recordings too: `x.first.3.trec`.
const SIDES: [&str; 2] = ["first", "second"];

/// Runs both in turn, and prints how they differ. A run that fails is the last, and its verdict is
/// printed instead.
///
/// # Errors
/// If a command was not started.
pub fn run(args: &RunArgs, against: &[OsString], color: When) -> Result<Exit> {
    let report = json_target(args)?;
    // Asked before a command may have changed the terminal.
    let page = Page::on_standard_error(color);
    let commands = [&args.command[..], against];
    let turns = take_turns(args, commands, page, &mut |_| Ok(()))?;
    turns.map_or_else(Ok, |sides| print_comparison(args, &compared(&sides), report, page))
}

/// Runs two commands in turn, each once to warm up; `set_up` is called before each run with its
/// side. If a run fails it is the last, its verdict is printed, and `Err` has the exit status.
pub(super) fn take_turns(
    args: &RunArgs,
    commands: [&[OsString]; 2],
    page: Page,
    set_up: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<std::result::Result<[Vec<Ran>; 2], Exit>> {
    let mut sides: [Vec<Ran>; 2] = [Vec::new(), Vec::new()];
    for number in 0..=args.repeats() {
        for turn in 0..2 {
            let side = (turn + number as usize) % 2;
            set_up(side)?;
            prepare(args)?;
            let ran = run_once(args, planned_run(args, commands[side], side, number))?;
            if ran.status != 0 {
                // The time of a failed run is not comparable.
                return Ok(Err(failed(args, &ran, (side, number), page)));
            }
            if number > 0 {
                sides[side].push(ran);
            }
        }
    }
    Ok(Ok(sides))
}

/// Prints how the two sides differ, and writes it as JSON if that was asked for.
pub(super) fn print_comparison(
    args: &RunArgs,
    comparison: &Comparison,
    report: Option<OutputTarget>,
    page: Page,
) -> Result<Exit> {
    if !args.quiet {
        let text = if args.details {
            compare::details(comparison, page)
        } else {
            compare::page(comparison, page)
        };
        print_verdict(&text);
    }
    if let Some(target) = report {
        let written = json::render(comparison);
        written.and_then(|text| target.write(&text))?;
    }
    Ok(Exit::Done)
}

/// What is run, and where its recording goes; that of the first round is not kept.
fn planned_run<'a>(
    args: &RunArgs,
    argv: &'a [OsString],
    side: usize,
    number: u32,
) -> PlannedRun<'a> {
    let kept = args.output.as_deref().filter(|_| number > 0);
    PlannedRun {
        argv,
        output: kept.map(|path| numbered(path, &format!("{}.{number}", SIDES[side]))),
    }
}

fn failed(args: &RunArgs, ran: &Ran, (side, number): (usize, u32), page: Page) -> Exit {
    if !args.quiet {
        print_verdict(&page_of_one(args, ran, page));
    }
    let which = match number {
        0 => format!("the first run of the {} command, to warm up,", SIDES[side]),
        _ => format!("run {number} of the {} command", SIDES[side]),
    };
    let ending = &ran.explanation.ending;
    let text = format!("{which} failed ({ending}), so nothing is compared");
    output::complain(&Error::new(Exit::Command(ran.status), text).during("run"))
}

/// How the runs of the two sides differ.
pub(super) fn compared(sides: &[Vec<Ran>; 2]) -> Comparison {
    let explanations = |side: &[Ran]| -> Vec<Explanation> {
        side.iter().map(|ran| ran.explanation.clone()).collect()
    };
    let [first, second] = sides;
    let named = |side: Side, runs: &[Ran]| {
        let files = runs.iter().filter_map(|ran| ran.file.as_ref());
        Side { files: files.map(|file| file.display().to_string()).collect(), ..side }
    };
    let comparison = comparison::recordings(&explanations(first), &explanations(second));
    Comparison {
        first: named(comparison.first.clone(), first),
        second: named(comparison.second.clone(), second),
        ..comparison
    }
}
