//! A command against itself, and against itself with 15 % more work, by `terrace run --against`.
//! The command is a loop of the shell: nothing but a processor can make it slow.

use std::fs;

use super::compared::{Item, items};
use super::judged::Pairs;
use super::{LIMIT, one};
use crate::bench::directory::WorkDirectory;
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Target};
use crate::bench::report;
use crate::error::Error;

/// Comparisons of a command with itself.
const EQUAL: usize = 40;

/// Comparisons with more work.
const SLOWED: usize = 20;

/// Runs of each side.
const RUNS: u32 = 10;

/// On a machine whose neighbours make single runs 10 % longer or shorter, ten runs cannot prove
/// 15 % nine times of ten by any rule; the page of the comparison says how many could. Twice as
/// many do.
const MORE_RUNS: u32 = 20;

/// Turns of the loop: about 130 ms, long beside the start of a process and of a recording. With
/// 15 ms (20,000 turns) on a busy machine 15 % more were found in 2 of 20 comparisons.
const TURNS: u32 = 150_000;

/// 15 % more of them.
const MORE_TURNS: u32 = TURNS * 115 / 100;

/// Compares commands; the rows of the record.
pub(super) fn measure(terrace: &Peer, directory: &WorkDirectory) -> Result<Vec<Comparison>, Error> {
    let mut equal = Pairs::default();
    for number in 1..=EQUAL {
        eprintln!("command against itself: {number} of {EQUAL}");
        let items = against(terrace, (TURNS, RUNS), directory)?;
        items.iter().for_each(|item| equal.add(item.is_called));
    }
    let few = found(terrace, RUNS, directory)?;
    let many = found(terrace, MORE_RUNS, directory)?;
    Ok(vec![
        one(
            "a command against itself: figures called different",
            equal.share(),
            Some(Target::AtMost(0.05)),
        )?,
        one("15 % more work: found by 10 runs each", few.share(), None)?,
        one("15 % more work: found by 20 runs each", many.share(), Some(Target::AtLeast(0.9)))?,
    ])
}

/// How often more work is found in the time on the clock.
fn found(terrace: &Peer, runs: u32, directory: &WorkDirectory) -> Result<Pairs, Error> {
    let mut found = Pairs::default();
    for number in 1..=SLOWED {
        eprintln!("command against more work, {runs} runs: {number} of {SLOWED}");
        let items = against(terrace, (MORE_TURNS, runs), directory)?;
        let mut walls = items.iter().filter(|item| item.of == "wall");
        found.add(walls.any(|wall| wall.is_larger));
    }
    Ok(found)
}

/// The line that the record shows.
pub(super) fn shown() -> Vec<String> {
    args((TURNS, RUNS), "FILE")
}

/// The items of one comparison.
fn against(
    terrace: &Peer,
    asked: (u32, u32),
    directory: &WorkDirectory,
) -> Result<Vec<Item>, Error> {
    let file = directory.file("against.json");
    let words = args(asked, &file);
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    terrace.run(&args, LIMIT)?;
    let text =
        fs::read_to_string(&file).map_err(|error| Error::Failed(format!("{file}: {error}")))?;
    items(&report::parse(&text)?)
}

/// The arguments for these turns of the other command and these runs of each.
fn args((turns, runs): (u32, u32), file: &str) -> Vec<String> {
    let script = |turns: u32| format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    let other = format!("sh -c '{}'", script(turns));
    let own = script(TURNS);
    let runs = runs.to_string();
    let words = [
        "run",
        "--quiet",
        "--json",
        file,
        "--against",
        &other,
        "--runs",
        &runs,
        "--",
        "sh",
        "-c",
        &own,
    ];
    words.map(str::to_owned).to_vec()
}
