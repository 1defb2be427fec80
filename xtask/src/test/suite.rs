//! The step that runs all tests, and asks those that failed once more, alone.
//!
//! 1. cargo builds every test program and names them.
//! 2. Those of [`PARALLEL`] need no quiet machine and run two at a time; what they print comes as
//!    each ends. All others run alone and in order: many of them judge times. Documents last.
//! 3. A program that fails amid the others and passes alone was disturbed: it is named, so that it
//!    can be mended, and the step passes. One that fails twice has failed.
//!
//! At the end the slowest programs are printed with their times. What is left behind of them is
//! named ([`super::leftovers`]); the step fails if the process of a test program made it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::leftovers::{Leftover, Present};
use super::{Outcome, cargo};
use crate::error::Error;
use crate::workspace::{self, Executable};

/// The sources of test programs that judge no time, change nothing of the machine and do not mind
/// if something else does.
const PARALLEL: &[&str] = &[
    "crates/cache/src/lib.rs",
    "crates/cache/tests/driven/main.rs",
    "crates/cache/tests/simulation/main.rs",
    "crates/explain/src/lib.rs",
    "crates/explain/tests/accounting/main.rs",
    "crates/explain/tests/any_number.rs",
    "crates/explain/tests/compared_surveys.rs",
    "crates/explain/tests/fixtures.rs",
    "crates/explain/tests/huge_faults.rs",
    "crates/explain/tests/remedies_and_grades.rs",
    "crates/explain/tests/rules_by_hand.rs",
    "crates/lab/src/lib.rs",
    "crates/machine/src/lib.rs",
    "crates/machine/tests/denials.rs",
    "crates/machine/tests/fake_machines.rs",
    "crates/machine/tests/usb_trees.rs",
    "crates/memops/src/lib.rs",
    "crates/model/src/lib.rs",
    "crates/place/tests/snapshot_file.rs",
    "crates/policy/src/lib.rs",
    "crates/policy/tests/curves.rs",
    "crates/policy/tests/eviction_oracles.rs",
    "crates/record/tests/file_cut.rs",
    "crates/record/tests/file_hostile.rs",
    "crates/record/tests/file_output.rs",
    "crates/record/tests/file_part.rs",
    "crates/record/tests/file_property.rs",
    "crates/record/tests/file_ring.rs",
    "crates/record/tests/file_ring_part.rs",
    "crates/record/tests/file_who.rs",
    "crates/record/tests/import.rs",
    "crates/record/tests/redact_property.rs",
    "crates/terrace/tests/browser.rs",
    "crates/terrace/tests/cleared/main.rs",
    "crates/terrace/tests/copy_trees.rs",
    "crates/terrace/tests/explain.rs",
    "crates/terrace/tests/explain_limits.rs",
    "crates/terrace/tests/export.rs",
    "crates/terrace/tests/faults.rs",
    "crates/terrace/tests/import.rs",
    "crates/terrace/tests/proof.rs",
    "crates/terrace/tests/ramdisk_adopt.rs",
    "crates/terrace/tests/ramdisk_atomic.rs",
    "crates/terrace/tests/ramdisk_mount.rs",
    "crates/terrace/tests/ramdisk_store.rs",
    "crates/terrace/tests/recordings.rs",
    "crates/viewer/src/lib.rs",
    "crates/viewer/tests/decode.rs",
    "crates/viewer/tests/types.rs",
    "crates/viewer/tests/words.rs",
    "xtask/tests/boost_attach_guest.rs",
    "xtask/tests/copy_guest.rs",
    "xtask/tests/warm_watch_guest.rs",
];

/// The one of [`PARALLEL`] that takes longest.
const LONGEST: &str = "xtask/tests/copy_guest.rs";

/// Programs of [`PARALLEL`] that run at a time. Each has threads of its own for its tests.
const AT_A_TIME: usize = 2;

/// More failing programs than these are no disturbance: one in twenty.
const DISTURBED_MAX: usize = 8;

/// Programs whose times are printed: the others are quicker.
const SLOWEST: usize = 10;

/// How a program ended.
#[derive(Debug)]
struct Run<'a> {
    program: &'a Executable,
    ended: Ended,
    time: Duration,
}

/// What a program did.
#[derive(Clone, Copy, Debug)]
struct Ended {
    passed: bool,
    /// The number that it had, by which what it left is known.
    process: Option<u32>,
}

/// Runs every test of the workspace.
///
/// # Errors
/// What does not build, or the programs that failed twice.
pub(super) fn run(root: &Path) -> Result<Outcome, Error> {
    let build = ["test", "--workspace", "--no-run"];
    let mut programs = workspace::executables(root, &build, &[])?;
    programs.retain(|program| program.is_test);
    // Cargo names them as they are built, which is another order each time.
    programs.sort_by(|a, b| a.source.cmp(&b.source));
    let before = Present::now();
    let (parallel, alone): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| PARALLEL.contains(&program.source.as_str()));
    let mut runs = run_parallel(root, &parallel);
    for program in alone {
        runs.push(timed(program, || streamed(root, program, &[])));
    }
    print_slowest(&mut runs);
    let failed: Vec<_> =
        runs.iter().filter(|run| !run.ended.passed).map(|run| run.program).collect();
    let again = once_more(root, &failed)?;
    runs.extend(again);
    nothing_left(&runs, &Present::now().since(&before))?;
    cargo(root, &["test", "--workspace", "--doc", "--locked", "--quiet"], &[])
}

/// Runs the programs [`AT_A_TIME`]; prints what each said when it has ended.
fn run_parallel<'a>(root: &Path, programs: &[&'a Executable]) -> Vec<Run<'a>> {
    // The longest first: as the last it would run with one processor idle.
    let (mut longest, others): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.source == LONGEST);
    longest.extend(others);
    let left = Mutex::new(longest.into_iter());
    let ended = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(program) = next else {
                return;
            };
            let mut text = Vec::new();
            let run = timed(program, || captured(root, program, &mut text));
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            // If standard output is closed, the exit status still decides.
            let _ = std::io::stdout().write_all(&text);
            ended.push(run);
        }
    };
    thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(worker))));
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn timed<'a>(program: &'a Executable, run: impl FnOnce() -> Ended) -> Run<'a> {
    let started = Instant::now();
    let ended = run();
    Run { program, ended, time: started.elapsed() }
}

/// The program as cargo would run it: in the folder of its package.
fn command(root: &Path, program: &Executable, args: &[&str]) -> Command {
    let package = program.manifest.parent().unwrap_or(root);
    let mut command = Command::new(&program.path);
    command.args(args).current_dir(package).stdin(Stdio::null());
    command.env("CARGO_MANIFEST_DIR", package);
    command
}

/// Runs it with our own output.
fn streamed(root: &Path, program: &Executable, args: &[&str]) -> Ended {
    println!("\n     Running {}", program.source);
    let mut text = Vec::new();
    let ended = awaited(command(root, program, args), &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    ended
}

/// Runs it and adds what it prints to `text`.
fn captured(root: &Path, program: &Executable, text: &mut Vec<u8>) -> Ended {
    text.extend(format!("\n     Running {}\n", program.source).bytes());
    let mut command = command(root, program, &[]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    awaited(command, text)
}

/// Runs it to its end; adds what came through pipes to `text`, and why it could not be started.
fn awaited(mut command: Command, text: &mut Vec<u8>) -> Ended {
    let child = command.spawn();
    let process = child.as_ref().ok().map(std::process::Child::id);
    let passed = match child.and_then(std::process::Child::wait_with_output) {
        Ok(output) => {
            text.extend(output.stdout.iter().chain(&output.stderr));
            output.status.success()
        }
        Err(error) => {
            text.extend(format!("cannot start: {error}\n").bytes());
            false
        }
    };
    Ended { passed, process }
}

/// Names what is left behind; an error if it is of a program of this run.
fn nothing_left(runs: &[Run<'_>], left: &[Leftover]) -> Result<(), Error> {
    let mut culprits = Vec::new();
    for Leftover { words, process } in left {
        let is_of = |run: &&Run<'_>| process.is_some() && run.ended.process == *process;
        let source = runs.iter().find(is_of).map(|run| run.program.source.as_str());
        culprits.extend(source);
        println!("== tests: LEFT BEHIND by {}: {words}", source.unwrap_or("another process"));
    }
    culprits.sort_unstable();
    culprits.dedup();
    if culprits.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!("left something behind: {}", culprits.join(", "))))
}

fn print_slowest(runs: &mut [Run<'_>]) {
    runs.sort_by_key(|run| std::cmp::Reverse(run.time));
    println!("== tests: the slowest of {} programs", runs.len());
    for run in runs.iter().take(SLOWEST) {
        println!("{:7.1} s  {}", run.time.as_secs_f64(), run.program.source);
    }
}

/// Runs those that failed once more, alone and one test after the other.
fn once_more<'a>(root: &Path, failed: &[&'a Executable]) -> Result<Vec<Run<'a>>, Error> {
    let names: Vec<&str> = failed.iter().map(|program| program.source.as_str()).collect();
    if failed.len() > DISTURBED_MAX {
        return Err(Error::Failed(format!("{} programs: {}", failed.len(), names.join(", "))));
    }
    let mut runs = Vec::new();
    for program in failed {
        println!("== tests: {} failed; once more, alone", program.source);
        let run = timed(program, || streamed(root, program, &["--test-threads=1"]));
        if !run.ended.passed {
            return Err(Error::Failed(format!("{} failed twice", program.source)));
        }
        runs.push(run);
    }
    if !failed.is_empty() {
        println!("== tests: DISTURBED, passed alone: {}", names.join(", "));
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Executable {
        Executable {
            name: "sh".to_owned(),
            path: "/bin/sh".into(),
            source: "crates/x/tests/sh.rs".to_owned(),
            manifest: "/proc/Cargo.toml".into(),
            is_test: true,
        }
    }

    #[test]
    fn sources_that_run_parallel_others_exist_and_are_in_order() {
        let root = workspace::current_root().unwrap();
        assert!(PARALLEL.is_sorted());
        for source in PARALLEL {
            assert!(root.join(source).is_file(), "{source}");
        }
    }

    #[test]
    fn a_program_runs_in_the_folder_of_its_package() {
        let command = command(Path::new("."), &shell(), &["--test-threads=1"]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/proc")));
    }

    #[test]
    fn what_fails_beside_others_is_known_and_said() {
        let absent = Executable { path: "/no/such/program".into(), ..shell() };
        let mut text = Vec::new();
        assert!(captured(Path::new("."), &shell(), &mut text).passed);
        assert!(!captured(Path::new("."), &absent, &mut text).passed);
        assert!(String::from_utf8(text).unwrap().contains("cannot start"));
        let runs = run_parallel(Path::new("."), &[&absent, &absent, &absent]);
        assert_eq!(runs.iter().filter(|run| !run.ended.passed).count(), 3);
    }

    #[test]
    fn what_a_program_left_is_named_and_is_an_error_and_what_others_left_is_none() {
        let program = shell();
        let ended = Ended { passed: true, process: Some(7) };
        let runs = [Run { program: &program, ended, time: Duration::ZERO }];
        let of = |process| Leftover { words: "directory /tmp/x".to_owned(), process };
        nothing_left(&runs, &[of(None), of(Some(8))]).unwrap();
        let error = nothing_left(&runs, &[of(Some(7)), of(Some(7))]).unwrap_err().to_string();
        assert_eq!(error, "left something behind: crates/x/tests/sh.rs");
    }

    #[test]
    fn what_fails_twice_has_failed_and_many_are_no_disturbance() {
        let root = Path::new(".");
        let absent = Executable { path: "/no/such/program".into(), ..shell() };
        once_more(root, &[]).unwrap();
        let error = once_more(root, &[&absent]).unwrap_err().to_string();
        assert!(error.contains("failed twice"), "{error}");
        let error = once_more(root, &[&shell(); DISTURBED_MAX + 1][..]).unwrap_err().to_string();
        assert!(error.starts_with("9 programs: "), "{error}");
    }
}
