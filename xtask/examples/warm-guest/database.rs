//! A database that answers single questions: what it holds is pushed out, comes back in one of
//! several ways, and the clock runs until it answers as it did before.
//!
//! A question reads one random row. "As before" is the 2012 experiment's criterion in its strict
//! form: the 99th percentile of the last answers is at most 1.2 times what it was. Every row is
//! compared afterwards.

use std::time::Instant;

use serde_json::json;
use testkit::{Random, WorkingSet};

use crate::files::Mounted;
use crate::system::{self, Swap, bring_back};
use crate::{Outcome, write_result};

/// Steps of this many rows visit all of them, each once, far from the last one.
pub(crate) const PRIME: usize = 7_368_787;
/// Rows have this many bytes: with its header not quite a page.
pub(crate) const ROW_BYTES: usize = 896;
/// The text of a row is its number with so many digits, again and again.
const DIGITS: usize = 32;
/// Answers that the 99th percentile is taken of: five may be slower.
const WINDOW: usize = 500;
/// Questions of the time before.
const BEFORE: usize = 2000;
const ALLOWED: f64 = 1.2;
/// Who is not back by then is recorded so: its time is at least that.
const LIMIT_S: f64 = 60.0;

/// A database that runs; ended on drop.
pub(crate) trait Database: Sized {
    /// The options of a restore for the kinds of memory that the database uses.
    const KINDS: &'static [&'static str];
    /// The text of the row `id`, as an expression.
    const TEXT: &'static str;

    /// Makes the table `t` of `rows` rows, with the columns `id` and `v`, on the disk of files.
    fn build(rows: usize) -> Outcome<()>;
    /// Starts it and has it ask for all rows in a random order: the layout is the program's own.
    fn start(rows: usize) -> Outcome<Self>;
    fn client(&mut self) -> &mut WorkingSet;
    /// The processes that hold its memory.
    fn pids(&self) -> Outcome<Vec<u32>>;
    /// How many pages of what it was given lie in swap.
    fn pages_in_swap(&self) -> Outcome<u64>;
}

/// Each way once, with a database built for it.
pub(crate) fn scene<D: Database>(mib: &str, hog: &str, ways: &[&str]) -> Outcome<()> {
    let mib = mib.parse::<usize>().map_err(system::failed(mib))?;
    let _disk = Mounted::new()?;
    let rows = (mib << 20) / ROW_BYTES;
    D::build(rows)?;
    for way in ways {
        let swap = Swap::on(system::SWAP)?;
        one::<D>(mib as u64, rows, hog, way)?;
        drop(swap);
    }
    Ok(())
}

fn one<D: Database>(mib: u64, rows: usize, hog: &str, way: &str) -> Outcome<()> {
    let mut database = D::start(rows)?;
    let mut numbers = (4..).flat_map(|seed| {
        let mut round: Vec<usize> = (0..rows).collect();
        Random(seed).shuffle(&mut round);
        round
    });
    let mut ask = |client: &mut WorkingSet| question(client, numbers.next().unwrap_or(0));
    let before: Outcome<Vec<f64>> = (0..BEFORE).map(|_| ask(database.client())).collect();
    let allowed_s = p99(&before?) * ALLOWED;
    let swapped = system::push_out_until(mib << 8, hog, || database.pages_in_swap())?;
    let (pids, kinds) = (database.pids()?, D::KINDS);
    let (moving_s, report) = bring_back(way, &pids, kinds)?;
    let (started, mut answers) = (Instant::now(), Vec::new());
    let mut is_back = false;
    while !is_back && started.elapsed().as_secs_f64() < LIMIT_S {
        answers.push(ask(database.client())?);
        is_back = answers.len() >= WINDOW && p99(&answers[answers.len() - WINDOW..]) <= allowed_s;
    }
    let asking_s = started.elapsed().as_secs_f64();
    // What is still in swap would be compared page by page for minutes.
    bring_back("restore", &pids, kinds)?;
    let wrong =
        database.client().ask(&format!("SELECT count(*) FROM t WHERE v <> {};", D::TEXT))?;
    write_result(&json!({
        "way": way,
        "total_s": moving_s + asking_s,
        "moving_s": moving_s,
        "is_back": is_back,
        "allowed_p99_s": allowed_s,
        "questions": answers.len(),
        "swapped_pages": swapped,
        "wrong_rows": wrong[0],
        "report": report,
    }))
}

/// Seconds until the answer to a question about one row.
fn question(client: &mut WorkingSet, row: usize) -> Outcome<f64> {
    let started = Instant::now();
    let answer = client
        .ask(&format!("SELECT CAST(substr(v, 1, {DIGITS}) AS BIGINT) FROM t WHERE id = {row};"))?;
    if answer != [row as u64] {
        return Err(format!("row {row} is {answer:?}"));
    }
    Ok(started.elapsed().as_secs_f64())
}

fn p99(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * 99 / 100).min(sorted.len() - 1)]
}
