//! The verdict suite: one real workload per cause, watched by the real program, and the
//! verdict compared with what was done. Prints the confusion table.
//!
//! Not libtest's harness: the cases must run one at a time, each may be judged again on a
//! machine whose host takes the processor away, and the table needs all of them. Words
//! after `--` choose cases; `--remedies` tries their first remedies instead. This same program is
//! also every workload (`workload NAME ...`).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod busy;
mod cases;
mod judge;
mod remedies;
mod stage;
mod witness;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

/// How often a case is judged before it counts as wrong: the host of a shared machine may hold
/// one run up so long that another cause is the true one, or give memory back slowly, twice in
/// a row. All verdicts are printed.
const ATTEMPTS: usize = 5;

/// How long an attempt waits for the neighbours of the one before it to rest.
const QUIET_LIMIT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "workload") {
        return workload::run(&words[1..]);
    }
    let (chosen, skipped) = names(&words);
    if words.iter().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    if !testkit::is_admin() {
        testkit::skip("root outside of a container: causes are made with groups, devices and swap");
        return ExitCode::SUCCESS;
    }
    let cases: Vec<&cases::Case> = cases::CASES
        .iter()
        .filter(|case| chosen.is_empty() || chosen.iter().any(|word| case.name.contains(*word)))
        .filter(|case| {
            !skipped.iter().any(|word| format!("verdicts::{}", case.name).contains(word))
        })
        .collect();
    if cases.is_empty() && chosen.is_empty() {
        println!("all cases are left out");
        return ExitCode::SUCCESS;
    }
    if cases.is_empty() {
        println!("no case has a name with {chosen:?}");
        return ExitCode::FAILURE;
    }
    if words.iter().any(|word| word == "--remedies") {
        remedies::print_all(&cases);
        return ExitCode::SUCCESS;
    }
    let rows: Vec<judge::Row> = cases.into_iter().map(tell).collect();
    println!("\n{}", judge::table(&rows));
    if judge::is_badly_covered(&rows) {
        println!("findings account for too little of the time in more than one case of ten");
        return ExitCode::FAILURE;
    }
    if rows.iter().any(|row| row.is_wrong()) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The words that choose cases, and those that leave some out (`--skip NAME`; `verdicts::` is in
/// front of each). Other options are what cargo and its users pass to a harness: `--nocapture`,
/// `--test-threads=1`.
fn names(words: &[String]) -> (Vec<&str>, Vec<&str>) {
    let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--skip" => skipped.extend(words.next()),
            "--test-threads" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => chosen.push(word),
        }
    }
    (chosen, skipped)
}

/// Runs a case until its verdict is right, at most [`ATTEMPTS`] times.
fn tell(case: &'static cases::Case) -> judge::Row {
    let mut row = judge::Row::new(case);
    for attempt in 1..=ATTEMPTS {
        let report = match stage::run(case) {
            Ok(report) => report,
            Err(need) => {
                testkit::skip(&need);
                return row.skipped(need);
            }
        };
        let faults = judge::faults(case, &report);
        let others = report.others.map_or(String::new(), |share| {
            format!("; others had {:.0} % of the processors", share * 100.0)
        });
        let summary = report.summary();
        println!("{} (attempt {attempt}): {summary}{others}", case.name);
        for fault in &faults {
            println!("    {fault}");
        }
        if !faults.is_empty() {
            println!("{}", report.page);
        }
        let right = faults.is_empty();
        row.add(&report, &faults);
        if right {
            break;
        }
        busy::wait_for_quiet(QUIET_LIMIT);
    }
    row
}
