//! The step that runs all tests, and asks those that failed once more, alone.
//!
//! Many tests here make real pressure, on machines whose host may take the processor away
//! for seconds. One that fails amid the others and passes alone was disturbed: it is named,
//! so that it can be mended, and the step passes. One that fails twice has failed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Outcome, through};
use crate::error::Error;
use crate::workspace;

/// More than so many failing targets are no disturbance.
const DISTURBED_MAX: usize = 4;

/// Runs every test of the workspace.
///
/// # Errors
/// The program that failed, or the targets that failed twice.
pub(super) fn run(root: &Path) -> Result<Outcome, Error> {
    let mut command = workspace::cargo(root);
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    let (passed, complaints) = tee(command)?;
    if passed {
        return Ok(Outcome::Done);
    }
    let failed = failed_targets(&complaints);
    if failed.is_empty() || failed.len() > DISTURBED_MAX {
        return Err(Error::Failed(format!(
            "cargo test: {} targets",
            failed.len()
        )));
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

/// Runs `command` with our own standard output, passes its complaints on, and keeps them.
fn tee(mut command: Command) -> Result<(bool, String), Error> {
    let fail = |what: String| Error::Program {
        program: "cargo test".to_owned(),
        what,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(format!("cannot start: {error}")))?;
    let mut kept = String::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned() + "\n";
            // Nobody may be listening; the result is decided by the exit status.
            let _ = std::io::stderr().write_all(line.as_bytes());
            kept.push_str(&line);
        }
    }
    let status = child.wait().map_err(|error| fail(error.to_string()))?;
    Ok((status.success(), kept))
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
        assert_eq!(
            failed_targets(text),
            ["-p sys --lib", "-p terrace --test run"]
        );
        let text = "error: 1 target failed:\n    `-p model --doc`\n";
        assert_eq!(failed_targets(text), ["-p model --doc"]);
        assert!(failed_targets("error: could not compile `sys`\n").is_empty());
    }

    #[test]
    fn complaints_are_kept_with_the_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one >&2; exit 3"]);
        let (passed, kept) = tee(command).unwrap();
        assert!(!passed);
        assert_eq!(kept, "one\n");
        assert!(tee(Command::new("no-such-program-here")).is_err());
    }
}
