//! `terrace run --try`: the command runs once for its verdict; then as it is and with the first
//! remedy that can be tried, in turn, in an order that rotates.
//!
//! The change is there only while a run with it lasts. Without such a remedy the verdict is printed
//! with the reason, and the status is the command's.

use super::{
    PlannedRun, Ran, json_target, numbered, page_of_one, prepare, print_verdict, run_once,
};
use crate::args::When;
use crate::args::run::RunArgs;
use crate::command::attempt::{Attempt, SIDES, USUAL_ROUNDS};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, Page, json};
use explain::comparison;
use model::explanation::Explanation;

/// Tries the first remedy, and prints what it brought.
///
/// # Errors
/// If the command was not started, or the change cannot be made or put back.
pub fn run(args: &RunArgs, color: When) -> Result<Exit> {
    // While no command runs that has the signals, they end the trial, and nothing stays changed.
    sys::interrupt::install()?;
    let report = json_target(args)?;
    // Asked before the command may have changed the terminal.
    let page = Page::on_standard_error(color);
    prepare(args)?;
    let first = run_once(args, PlannedRun { argv: &args.command, output: None })?;
    if first.status != 0 {
        let why = format!("the command failed ({})", first.explanation.ending);
        return Ok(not_tried(args, &first, &why, page));
    }
    let attempt = match Attempt::of("run", &first.explanation) {
        Ok(attempt) => attempt,
        Err(why) => return Ok(not_tried(args, &first, &why, page)),
    };
    attempt.announce();
    let mut sides: [Vec<Explanation>; 2] = [Vec::new(), Vec::new()];
    for number in 0..=args.repeat.unwrap_or(USUAL_ROUNDS) {
        for turn in 0..2 {
            let side = (turn + number as usize) % 2;
            // The run for the verdict has warmed the first side up.
            if (side, number) == (0, 0) {
                continue;
            }
            let ran = one(args, &attempt, side, number)?;
            if ran.status != 0 {
                return Ok(failed(args, &ran, side, page));
            }
            if number > 0 {
                sides[side].push(ran.explanation);
            }
        }
    }
    let comparison = comparison::recordings(&sides[0], &sides[1]);
    let comparison = attempt.concluded(comparison, args.keep_change)?;
    if !args.quiet {
        print_verdict(&attempt.page(&comparison, args.details, page));
    }
    if let Some(target) = report {
        json::render(&comparison).and_then(|text| target.write(&text))?;
    }
    Ok(Exit::Done)
}

/// One run of a side: the second has the change.
fn one(args: &RunArgs, attempt: &Attempt, side: usize, number: u32) -> Result<Ran> {
    let kept = args.output.as_deref().filter(|_| number > 0);
    let output = kept.map(|path| numbered(path, &format!("{}.{number}", SIDES[side])));
    if sys::interrupt::requested() {
        return Err(Error::new(Exit::Partial, "interrupted; nothing stays changed"));
    }
    let applied = (side == 1).then(|| attempt.apply()).transpose()?;
    prepare(args)?;
    let ran = run_once(args, PlannedRun { argv: &args.command, output });
    applied.map_or(Ok(()), |applied| attempt.put_back(applied))?;
    ran
}

/// The verdict of the first run, and why nothing was tried.
fn not_tried(args: &RunArgs, ran: &Ran, why: &str, page: Page) -> Exit {
    if !args.quiet {
        print_verdict(&page_of_one(args, ran, page));
    }
    output::announce("run", &format!("nothing was tried: {why}"));
    Exit::Command(ran.status)
}

fn failed(args: &RunArgs, ran: &Ran, side: usize, page: Page) -> Exit {
    if !args.quiet {
        print_verdict(&page_of_one(args, ran, page));
    }
    let which = ["as it is", "with the change"][side];
    let ending = &ran.explanation.ending;
    let text = format!("a run {which} failed ({ending}), so nothing is compared; it was put back");
    output::complain(&Error::new(Exit::Command(ran.status), text).during("run"))
}
