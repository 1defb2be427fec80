//! Commands that hold back who writes to a directory while it is saved, and let them go on.
//!
//! One shell runs both: it freezes, waits for a line or for the end of its pipe, and thaws. So it
//! thaws also when this process is killed at any moment. It ignores what a terminal or a service
//! manager sends to all of a group; only a kill of the shell itself leaves the users frozen.

use crate::{Error, ErrorKind, Result};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long each of both commands may take. Picked: a database ends its checkpoint within it.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// How long the end of a shell is waited for that has nothing left to do.
const END_LIMIT: Duration = Duration::from_millis(100);
/// Of what the shell itself prints; a line is less than 20 bytes.
const LONGEST_ANSWER: usize = 64;

/// Why no status came, as the end of a sentence.
const TOO_SLOW: &str = "did not end within 60 s";
const WAS_KILLED: &str = "was killed";
const NO_STATUS: &str = "gave no status";
const NOT_STARTED: &str = "could not be started: there is no shell, or no process can be made";

/// A command before what is saved is read, and one after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeCommands {
    /// Holds the users back, for `sh -c`.
    pub freeze: String,
    /// Lets them go on; also runs after a freeze that failed half-way.
    pub thaw: String,
}

/// The users are frozen; dropped, they are thawed.
#[derive(Debug)]
pub(super) struct Frozen {
    shell: Shell,
    thaw: String,
    since: Instant,
}

impl FreezeCommands {
    /// Runs the first command.
    ///
    /// # Errors
    /// If it fails or takes too long; then the second one has run as well.
    pub(super) fn freeze(&self) -> Result<Frozen> {
        let failed = |why: String| {
            let operation = "freeze the users of what is to be saved";
            Error::new(ErrorKind::Failed, operation, format!("{why}; nothing was saved"))
        };
        let since = Instant::now();
        let script = format!("{}; read -r _; {}", guarded(&self.freeze), guarded(&self.thaw));
        let mut shell =
            Shell::start(&script).map_err(|why| failed(format!("the freeze command {why}")))?;
        let why = match shell.answer() {
            Ok(0) => return Ok(Frozen { shell, thaw: self.thaw.clone(), since }),
            Ok(status) => format!("the freeze command ended with status {status}"),
            Err(why) => format!("the freeze command {why}"),
        };
        shell.kill();
        let after = match Shell::start(&guarded(&self.thaw)).and_then(|mut shell| shell.answer()) {
            Ok(0) => String::new(),
            Ok(status) => format!(", and the thaw command after it with status {status}"),
            Err(why) => format!(", and the thaw command after it {why}"),
        };
        Err(failed(format!("{why}{after}")))
    }
}

impl Frozen {
    /// Runs the second command; how long the users were frozen, and why they may still be.
    pub(super) fn thaw(mut self) -> (Duration, std::result::Result<(), String>) {
        self.shell.go_on();
        // A shell that was killed thaws no more.
        let answer = self.shell.answer().or_else(|why| match why {
            WAS_KILLED => Shell::start(&guarded(&self.thaw))?.answer(),
            why => Err(why),
        });
        let thawed = match answer {
            Ok(0) => Ok(()),
            Ok(status) => Err(format!("the thaw command ended with status {status}")),
            Err(why) => Err(format!("the thaw command {why}")),
        };
        (self.since.elapsed(), thawed)
    }
}

/// A command of a shell, after which its status is printed. In parentheses, so that `exit` ends
/// only itself; what it prints is for standard error.
fn guarded(command: &str) -> String {
    format!("(trap - HUP INT TERM PIPE\n{command}\n) </dev/null >&2; echo $?")
}

/// A shell in a process group of its own, with a pipe to it and one from it.
#[derive(Debug)]
struct Shell {
    child: Child,
    /// Without it the shell goes on.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Shell {
    fn start(script: &str) -> std::result::Result<Self, &'static str> {
        let script = format!("trap '' HUP INT TERM PIPE; {script}");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|_| NOT_STARTED)?;
        match (child.stdin.take(), child.stdout.take()) {
            (input, Some(output)) => Ok(Self { child, input, output }),
            _ => Err(NOT_STARTED),
        }
    }

    /// Lets a shell that waits go on.
    fn go_on(&mut self) {
        // The end of the pipe is as good as a line.
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"\n");
        }
    }

    fn kill(mut self) {
        // Its number is its own until it was waited for.
        let _ = sys::process::kill_group(self.child.id());
        let _ = self.child.wait();
    }

    /// The status of its next command; else why it has no status.
    fn answer(&mut self) -> std::result::Result<i32, &'static str> {
        let until = Instant::now() + COMMAND_LIMIT;
        let mut text = Vec::new();
        let mut byte = [0];
        while text.len() < LONGEST_ANSWER {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TOO_SLOW);
            }
            let wait_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            if sys::poll::readable([Some(self.output.as_fd())], Some(wait_ns)) != [true] {
                continue;
            }
            match self.output.read(&mut byte) {
                Ok(1) if byte == *b"\n" => break,
                Ok(1) => text.push(byte[0]),
                Ok(_) | Err(_) => return Err(WAS_KILLED),
            }
        }
        String::from_utf8_lossy(&text).trim().parse().map_err(|_| NO_STATUS)
    }
}

impl Drop for Shell {
    /// One that waits thaws by itself, at the end of its pipe.
    fn drop(&mut self) {
        self.input = None;
        // It prints its last status just before its end; one that hangs is not waited for.
        let until = Instant::now() + END_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    fn commands(directory: &TempDir, freeze: &str) -> FreezeCommands {
        let log = directory.join("log");
        FreezeCommands {
            freeze: format!("echo freeze >>{0}; {freeze}", log.display()),
            thaw: format!("echo thaw >>{0}; echo said", log.display()),
        }
    }

    fn log(directory: &TempDir) -> String {
        std::fs::read_to_string(directory.join("log")).unwrap()
    }

    #[test]
    fn the_users_are_frozen_until_they_are_thawed() {
        let directory = TempDir::new();
        let frozen = commands(&directory, "echo said").freeze().unwrap();
        assert_eq!(log(&directory), "freeze\n");
        assert_eq!(frozen.thaw().1, Ok(()));
        assert_eq!(log(&directory), "freeze\nthaw\n");
    }

    #[test]
    fn a_freeze_that_fails_is_undone_and_named() {
        for freeze in ["exit 3", "kill -9 0"] {
            let directory = TempDir::new();
            let error = commands(&directory, freeze).freeze().unwrap_err().to_string();
            let why = if freeze == "exit 3" { "ended with status 3" } else { "was killed" };
            assert!(error.contains(why) && error.contains("nothing was saved"), "{error}");
            assert_eq!(log(&directory), "freeze\nthaw\n");
        }
    }

    #[test]
    fn a_shell_that_was_killed_is_replaced_to_thaw() {
        let directory = TempDir::new();
        let frozen = commands(&directory, "true").freeze().unwrap();
        sys::process::kill_group(frozen.shell.child.id()).unwrap();
        assert_eq!(frozen.thaw().1, Ok(()));
        assert_eq!(log(&directory), "freeze\nthaw\n");
    }

    #[test]
    fn what_is_dropped_thaws_by_itself() {
        let directory = TempDir::new();
        drop(commands(&directory, "true").freeze().unwrap());
        while log(&directory) != "freeze\nthaw\n" {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
