//! The step that runs all tests, and asks those that failed once more, alone.
//!
//! Many tests here make real pressure, on machines whose host may take the processor away
//! for seconds. One that fails amid the others and passes alone was disturbed: it is named,
//! so that it can be mended, and the step passes. One that fails twice has failed. At the end the
//! slowest targets are printed with their times.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Outcome, through};
use crate::error::Error;
use crate::workspace;

/// More than so many failing targets are no disturbance.
const DISTURBED_MAX: usize = 4;

/// Targets whose times are printed: the others are quicker.
const SLOWEST: usize = 10;

/// A target and the time that it took.
type Timed = (String, Duration);

/// Runs every test of the workspace.
///
/// # Errors
/// The program that failed, or the targets that failed twice.
pub(super) fn run(root: &Path) -> Result<Outcome, Error> {
    let mut command = workspace::cargo(root);
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    let (passed, complaints, times) = tee(command)?;
    print_slowest(times);
    if passed {
        return Ok(Outcome::Done);
    }
    let failed = failed_targets(&complaints);
    if failed.is_empty() || failed.len() > DISTURBED_MAX {
        return Err(Error::Failed(format!("cargo test: {} targets", failed.len())));
    }
    for target in &failed {
        println!("== tests: {target} failed; once more, alone");
        let mut command = workspace::cargo(root);
        command.args(["test", "--locked"]);
        command.args(target.split_whitespace());
        // Doc tests take no such option, and run alone anyway.
        if !target.ends_with("--doc") {
            command.args(["--", "--test-threads=1"]);
        }
        through(&format!("cargo test {target}, twice"), command)?;
    }
    println!("== tests: DISTURBED, passed alone: {}", failed.join(", "));
    Ok(Outcome::Done)
}

/// Runs `command` with our own standard output, passes its complaints on, and keeps them, with the
/// time of each target that they name.
fn tee(mut command: Command) -> Result<(bool, String, Vec<Timed>), Error> {
    let fail = |what: String| Error::Program { program: "cargo test".to_owned(), what };
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(format!("cannot start: {error}")))?;
    let mut kept = String::new();
    let mut begun: Vec<(String, Instant)> = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned() + "\n";
            begun.extend(target_of(&line).map(|name| (name, Instant::now())));
            // If standard error is closed, the exit status still decides.
            let _ = std::io::stderr().write_all(line.as_bytes());
            kept.push_str(&line);
        }
    }
    let status = child.wait().map_err(|error| fail(error.to_string()))?;
    let ends: Vec<Instant> =
        begun.iter().skip(1).map(|(_, at)| *at).chain([Instant::now()]).collect();
    let times =
        begun.into_iter().zip(ends).map(|((name, start), end)| (name, end - start)).collect();
    Ok((status.success(), kept, times))
}

/// The target that cargo begins to run: `     Running tests/cli.rs (target/debug/deps/cli-0f3a)`.
fn target_of(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{package}, doc tests"));
    }
    let (source, program) = line.strip_prefix("Running ")?.rsplit_once(" (")?;
    let name = program.rsplit('/').next()?.rsplit_once('-')?.0;
    Some(format!("{name}, {}", source.trim_start_matches("unittests ")))
}

fn print_slowest(mut times: Vec<Timed>) {
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    println!("== tests: the slowest of {} targets", times.len());
    for (name, time) in times.iter().take(SLOWEST) {
        println!("{:7.1} s  {name}", time.as_secs_f64());
    }
}

/// The targets that cargo lists at its end as failed: "`-p sys --lib`".
fn failed_targets(complaints: &str) -> Vec<String> {
    let list = complaints
        .lines()
        .skip_while(|line| !(line.starts_with("error: ") && line.ends_with(" failed:")))
        .skip(1);
    list.map_while(|line| line.trim().strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_at_the_end_is_found() {
        let text = "error: test failed, to rerun pass `-p sys --lib`\n\
                    error: 2 targets failed:\n    `-p sys --lib`\n    `-p terrace --test run`\n";
        assert_eq!(failed_targets(text), ["-p sys --lib", "-p terrace --test run"]);
        let text = "error: 1 target failed:\n    `-p model --doc`\n";
        assert_eq!(failed_targets(text), ["-p model --doc"]);
        assert!(failed_targets("error: could not compile `sys`\n").is_empty());
    }

    #[test]
    fn targets_are_named_as_they_begin() {
        let line = "   Running unittests src/lib.rs (target/debug/deps/terrace_x-64c5)";
        assert_eq!(target_of(line).unwrap(), "terrace_x, src/lib.rs");
        assert_eq!(target_of("   Doc-tests model").unwrap(), "model, doc tests");
        assert_eq!(target_of("   Compiling model v0.1.0 (x)"), None);
    }

    #[test]
    fn complaints_are_kept_with_the_status() {
        let mut command = Command::new("sh");
        let line = "     Running tests/cli.rs (target/debug/deps/cli-0f3a)";
        command.args(["-c", "echo one >&2; echo \"$0\" >&2; exit 3", line]);
        let (passed, kept, times) = tee(command).unwrap();
        assert!(!passed);
        assert_eq!(kept, format!("one\n{line}\n"));
        assert_eq!(times.len(), 1);
        assert_eq!(times[0].0, "cli, tests/cli.rs");
        assert!(tee(Command::new("no-such-program-here")).is_err());
    }
}
