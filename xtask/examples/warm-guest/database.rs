//! A database that answers single questions: what it holds is pushed out, comes back in one of several
//! ways, and the clock runs until it answers as it did before.
//!
//! A question reads one random row. "As before" is the 2012 experiment's criterion in its strict form: the
//! 99th percentile of the last answers is at most 1.2 times what it was.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::system::{self, DATA, Swap, failed, make_file_system, run};
use crate::toucher::{Toucher, scattered};
use crate::{Outcome, tell};

/// Steps of this many rows visit all of them, each once, far from the last one.
const PRIME: usize = 7_368_787;
/// Rows have this many bytes: with its header not quite a page.
const ROW_BYTES: u64 = 900;
/// Answers that the 99th percentile is taken of: five may be slower.
const WINDOW: usize = 500;
/// Questions of the time before.
const BEFORE: usize = 2000;
const ALLOWED: f64 = 1.2;
/// Who is not back by then is recorded so.
const LIMIT_S: f64 = 400.0;

/// Each way once, with a database built for it.
pub(crate) fn scene(mib: &str, hog: &str, ways: &[&str]) -> Outcome<()> {
    let mib = mib.parse::<u64>().map_err(failed(mib))?;
    make_file_system(DATA)?;
    run(&["mount", "-o", "noatime", DATA, "/mnt"])?;
    let rows = (mib << 20) / ROW_BYTES;
    let file = Path::new("/mnt/rows.db");
    let build = format!(
        "PRAGMA journal_mode=OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); \
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}) \
         INSERT INTO t SELECT i, randomblob({ROW_BYTES}) FROM n;"
    );
    run(&["sqlite3", "/mnt/rows.db", &build])?;
    for way in ways {
        one(file, mib, rows as usize, hog, way)?;
    }
    run(&["umount", "/mnt"]).map(drop)
}

fn one(file: &Path, mib: u64, rows: usize, hog: &str, way: &str) -> Outcome<()> {
    let swap = Swap::on()?;
    let mut sqlite = Command::new("sqlite3");
    sqlite.args(["-cmd", &format!("PRAGMA cache_size=-{}", mib * 2048)]);
    sqlite.args(["-cmd", "SELECT 0"]).arg(file);
    let mut sqlite = Toucher::of(sqlite)?;
    // The layout is the program's own: pages come to its heap as rows are asked for, here at random.
    let all = format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}) \
         SELECT sum(length(t.v)) FROM n CROSS JOIN t ON t.id = (n.i * {PRIME}) % {rows};"
    );
    sqlite.ask(&all)?;
    let mut numbers = (0..).flat_map(|round| scattered(rows, 4 + round));
    let mut next = || numbers.next().unwrap_or(0);
    let mut before: Vec<f64> = Vec::new();
    for _ in 0..BEFORE {
        before.push(ask(&mut sqlite, next())?);
    }
    let allowed_s = p99(&before) * ALLOWED;
    let swapped = system::push_out(sqlite.pid(), mib << 8, hog)?;
    let (moving_s, report) = system::bring_back(way, &[sqlite.pid()], &["--only", "anonymous"])?;
    let (started, mut answers) = (Instant::now(), Vec::new());
    let mut is_back = false;
    while !is_back && started.elapsed().as_secs_f64() < LIMIT_S {
        answers.push(ask(&mut sqlite, next())?);
        is_back = answers.len() >= WINDOW && p99(&answers[answers.len() - WINDOW..]) <= allowed_s;
    }
    let asking_s = started.elapsed().as_secs_f64();
    drop(sqlite);
    drop(swap);
    tell(&json!({
        "way": way,
        "total_s": moving_s + asking_s,
        "moving_s": moving_s,
        "is_back": is_back,
        "allowed_p99_s": allowed_s,
        "questions": answers.len(),
        "swapped_pages": swapped,
        "report": report,
    }))
}

/// Seconds until the answer to a question about one row.
fn ask(sqlite: &mut Toucher, row: usize) -> Outcome<f64> {
    let started = Instant::now();
    let answer = sqlite.ask(&format!("SELECT length(v) FROM t WHERE id = {row};"))?;
    if answer != [ROW_BYTES] {
        return Err(format!("row {row} is {answer:?}"));
    }
    Ok(started.elapsed().as_secs_f64())
}

fn p99(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * 99 / 100).min(sorted.len() - 1)]
}
