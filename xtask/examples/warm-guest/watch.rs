//! `terrace warm watch` and a program that is evicted by a hog, which holds memory for a while
//! and ends. Nothing is touched until the pages are back. One line says what the process had in
//! swap at each step, and what the watch printed by then.
//!
//! There is one hog only: what a restore has read counts as used, and a second one would evict its
//! own pages first.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::WorkingSet;

use crate::system::{self, PAGE, Running, Swap, failed};
use crate::{Outcome, write_result};

/// The set that is evicted.
const MIB: u64 = 64;
const PAGES: u64 = (MIB << 20) / PAGE;
/// Two of these, the set and the system are more than the machine has.
const HOG: &str = "120m";
/// Several times the quiet time, also where all is slow.
const HOLD: &str = "20s";
const QUIET: &str = "2s";
/// Several times the quiet time.
const CALM: Duration = Duration::from_secs(10);
/// Pages that are not back by then never will be.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(100);

const LINES: &str = "/run/watch.out";

pub(crate) fn scene() -> Outcome<()> {
    // A huge page would go and come as a whole.
    system::write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    let _swap = Swap::on(system::SWAP)?;
    let mut toucher = WorkingSet::start("terrace", MIB, "scattered")?;
    let mut watch = start(toucher.pid())?;
    until("its first line", || Ok(!lines()?.is_empty()))?;
    let shortage = shortage(toucher.pid())?;
    // No shortage comes, so no restore does.
    thread::sleep(CALM);
    let calm = lines()?;
    let runs = watch.runs();
    system::run(&["kill", "-TERM", &watch.0.id().to_string()])?;
    let ended = watch.output()?;
    let touched = toucher.touch()?;
    let wrong = toucher.wrong_pages()?;
    write_result(&json!({
        "fact": "watch",
        "set_pages": PAGES,
        "shortage": shortage,
        "calm": calm,
        "runs": runs,
        "status": ended.status.code(),
        "complaint": String::from_utf8_lossy(&ended.stderr),
        "lines": lines()?,
        "major_faults": touched[2],
        "wrong_pages": wrong,
    }))
}

/// Its lines go to a file, where they are read while it runs.
fn start(pid: u32) -> Outcome<Running> {
    let file = File::create(LINES).map_err(failed(LINES))?;
    let mut command = Command::new("terrace");
    command.args(["warm", "watch", "--pid", &pid.to_string(), "--quiet", QUIET]);
    Running::start(command.stdout(file).stderr(Stdio::piped()))
}

/// A hog comes, holds its memory and ends; then the pages are waited for.
fn shortage(pid: u32) -> Outcome<Value> {
    let mut command = Command::new("terrace");
    command.args(["hog", "--size", HOG, "--count", "2", "--repeat", "1", "--hold", HOLD]);
    let mut hog = Running::start(command.stdout(Stdio::null()))?;
    let (mut most, mut least) = (0, u64::MAX);
    while hog.runs() {
        let swapped = system::swapped_pages(pid)?;
        most = swapped.max(most);
        // Since it was the most: what came back while memory was short.
        least = if swapped == most { swapped } else { swapped.min(least) };
        thread::sleep(LOOK);
    }
    let held = lines()?;
    let ended = Instant::now();
    let restored = || Ok(lines()?.iter().any(|line| line.starts_with("restored")));
    until("a restore", restored)?;
    Ok(json!({
        "most_swapped": most,
        "least_swapped": least,
        "lines_while_held": held,
        "waited_s": ended.elapsed().as_secs_f64(),
        "swapped_after": system::swapped_pages(pid)?,
    }))
}

/// The lines so far.
fn lines() -> Outcome<Vec<String>> {
    let text = fs::read_to_string(LINES).map_err(failed(LINES))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn until(what: &str, is_so: impl Fn() -> Outcome<bool>) -> Outcome<()> {
    let began = Instant::now();
    while !is_so()? {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what} did not come: {:?}", lines()?));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
