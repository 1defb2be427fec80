//! What `cargo xtask bench warm` and the test `warm_guest` run inside of the guest: it evicts
//! memory, restores it in one of several ways, touches and compares it. Each way gives one line of
//! JSON.
//!
//! `warm-guest SCENE WORDS...` writes its lines to /out/results. It is no part of the product: it
//! knows only what a person at a shell could do, and the tool under test is called as a person
//! would call it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it answers in lines")]

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

use serde_json::Value;

mod anonymous;
mod database;
mod facts;
mod files;
mod group;
mod postgres;
mod recovery;
mod short;
mod sqlite;
mod system;
mod watch;

use postgres::Postgres;
use sqlite::Sqlite;

/// What failed, in a line.
type Outcome<T> = Result<T, String>;

const RESULTS: &str = "/out/results";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["anonymous", mib, layout, hog, ways @ ..] => anonymous::scene(mib, layout, hog, ways),
        ["mapped", mib, ways @ ..] => files::mapped(mib, ways),
        ["snapshot", mib] => files::snapshot(mib),
        ["sqlite", mib, hog, ways @ ..] => database::scene::<Sqlite>(mib, hog, ways),
        ["postgres", mib, hog, ways @ ..] => database::scene::<Postgres>(mib, hog, ways),
        ["recovery", applications, repeat, limit] => recovery::scene(applications, repeat, limit),
        ["short", mib, hog] => short::scene(mib, hog),
        ["facts", names @ ..] => facts::scene(names),
        ["watch"] => watch::scene(),
        _ => Err(format!("no scene {words:?}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("warm-guest: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Adds a line to the results, and shows it.
fn write_result(result: &Value) -> Outcome<()> {
    println!("{result}");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(RESULTS)
        .map_err(|error| format!("{RESULTS}: {error}"))?;
    writeln!(file, "{result}").map_err(|error| format!("{RESULTS}: {error}"))
}
