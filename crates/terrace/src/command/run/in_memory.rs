//! `terrace ramdisk try`: one command takes turns with a directory on its disk and in memory, and
//! its times are compared. Each turn begins with a fresh copy of the directory in its place.

use super::against::{compared, print_comparison, take_turns};
use super::json_target;
use crate::args::When;
use crate::args::ramdisk::TryArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, Page};
use machine::Root;
use model::progress::Control;
use place::ramdisk::{RamdiskTrial, TrialPlace};
use std::path::Path;

const COMMAND: &str = "ramdisk try";

/// Runs the command in both places, and prints how its time differs.
///
/// # Errors
/// If there can be no copy, or the command was not started.
pub fn run(args: &TryArgs, color: When) -> Result<Exit> {
    let run = args.as_run();
    let report = json_target(&run)?;
    let page = Page::on_standard_error(color);
    // By its path: what is mounted over it is another directory.
    let working = std::env::current_dir()
        .map_err(|why| Error::usage(format!("the working directory is gone: {why}")))?;
    let prepared = RamdiskTrial::prepare(&Root::system(), &args.directory, &mut |_| {
        Control::stop_if(sys::interrupt::requested())
    })?;
    let Some(mut trial) = prepared else { return Err(interrupted()) };
    if !args.quiet {
        let text = format!(
            "runs it {} times with {} on its disk and in memory, each time with a fresh copy of {} \
             that only it sees",
            2 * (args.repeat + 1),
            trial.path().display(),
            trial.bytes()
        );
        output::announce(COMMAND, &text);
    }
    let command = &args.command[..];
    let turns = take_turns(&run, [command, command], page, &mut |side| {
        let place = [TrialPlace::Disk, TrialPlace::Memory][side];
        begin(&mut trial, place, &working)
    });
    // Before the page: what it says is over then.
    drop(trial);
    // It was in the copy.
    std::env::set_current_dir(&working)
        .map_err(|why| Error::usage(format!("cannot go back to {}: {why}", working.display())))?;
    let sides = match turns? {
        Ok(sides) => sides,
        Err(exit) => return Ok(exit),
    };
    let mut comparison = compared(&sides);
    comparison.first.name.push_str(", on its disk");
    comparison.second.name.push_str(", in memory");
    print_comparison(&run, &comparison, report, page)
}

fn begin(trial: &mut RamdiskTrial, place: TrialPlace, working: &Path) -> Result<()> {
    let begun = trial.begin(place, &mut |_| Control::stop_if(sys::interrupt::requested()))?;
    if !begun || sys::interrupt::requested() {
        return Err(interrupted());
    }
    std::env::set_current_dir(working)
        .map_err(|why| Error::usage(format!("cannot go back to {}: {why}", working.display())))
}

fn interrupted() -> Error {
    Error::new(Exit::Partial, "interrupted; nothing was compared, and nothing is left of it")
}
