//! A command against itself, and against itself with 15 % more work, by `terrace run --against`.
//! The command is a loop of the shell: nothing but a processor can make it slow.

use std::fs;

use super::compared::{Item, items};
use super::judged::Pairs;
use super::place::Place;
use super::{LIMIT, one};
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Target};
use crate::bench::report;
use crate::error::Error;

/// Comparisons of a command with itself.
const EQUAL: usize = 40;

/// Comparisons with more work.
const SLOWED: usize = 20;

/// Turns of the loop: about 130 ms, long beside the start of a process and of a recording. With
/// 15 ms (20,000 turns) on a busy machine 15 % more were found in 2 of 20 comparisons.
const TURNS: u32 = 150_000;

/// 15 % more of them.
const MORE_TURNS: u32 = TURNS * 115 / 100;

/// Compares commands; the rows of the record.
pub(super) fn measure(terrace: &Peer, place: &Place) -> Result<Vec<Comparison>, Error> {
    let mut equal = Pairs::default();
    for number in 1..=EQUAL {
        eprintln!("command against itself: {number} of {EQUAL}");
        let told = against(terrace, TURNS, place)?;
        told.iter().for_each(|item| equal.add(item.is_called));
    }
    let (mut wall, mut cpu) = (Pairs::default(), Pairs::default());
    for number in 1..=SLOWED {
        eprintln!("command against more work: {number} of {SLOWED}");
        let told = against(terrace, MORE_TURNS, place)?;
        let larger = |of: &str, name: &str| {
            let mut found = told
                .iter()
                .filter(|item| item.of == of && item.name == name);
            found.any(|item| item.is_larger)
        };
        wall.add(larger("wall", "wall"));
        cpu.add(larger("slice", "run"));
    }
    Ok(vec![
        one(
            "a command against itself: figures called different",
            equal.share(),
            Some(Target::AtMost(0.05)),
        )?,
        one(
            "15 % more work: found in the time on the clock",
            wall.share(),
            Some(Target::AtLeast(0.9)),
        )?,
        one(
            "15 % more work: found in the time on a processor",
            cpu.share(),
            None,
        )?,
    ])
}

/// The line that the record shows.
pub(super) fn shown() -> Vec<String> {
    args(TURNS, "FILE")
}

fn against(terrace: &Peer, turns: u32, place: &Place) -> Result<Vec<Item>, Error> {
    let file = place.file("against.json");
    let args = args(turns, &file);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    terrace.run(&args, LIMIT)?;
    let text =
        fs::read_to_string(&file).map_err(|error| Error::Failed(format!("{file}: {error}")))?;
    items(&report::parse(&text)?)
}

fn args(turns: u32, file: &str) -> Vec<String> {
    let script = |turns: u32| format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    let other = format!("sh -c '{}'", script(turns));
    let own = script(TURNS);
    let words = [
        "run",
        "--quiet",
        "--json",
        file,
        "--against",
        &other,
        "--runs",
        "10",
        "--",
        "sh",
        "-c",
        &own,
    ];
    words.map(str::to_owned).to_vec()
}
