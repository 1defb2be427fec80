//! Runs a program under a time limit and keeps what it prints, both bounded.
//!
//! The child stays in the terminal's process group, so Ctrl-C ends it with us. Past the limit it
//! gets TERM (fio then ends its own workers), and KILL after a grace. Programs are searched on
//! `PATH` and in the two directories that an ordinary user's `PATH` leaves out.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// More than any peer prints; a program that prints more is out of hand and is cut off.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Time between TERM and KILL, and for the last output of a program that has ended.
const GRACE: Duration = Duration::from_secs(2);

/// How often the child is looked at: its measured time is at most this much too long.
const POLL: Duration = Duration::from_millis(5);

/// Where Debian keeps programs for administrators.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// What a program did.
#[derive(Debug)]
pub struct Finished {
    /// The program, for messages.
    pub program: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// From just before its start to its end, in wall time.
    pub elapsed: Duration,
}

impl Finished {
    /// This run, if the program ended with status 0.
    ///
    /// # Errors
    /// [`Error::Program`] with the status and the last line that the program complained with.
    pub fn success(self) -> Result<Self, Error> {
        if self.status.success() {
            return Ok(self);
        }
        let complaint = self.stderr.lines().rev().find(|line| !line.is_empty());
        let what = match complaint {
            Some(line) => format!("{}: {}", self.status, line.trim()),
            None => self.status.to_string(),
        };
        Err(Error::Program { program: self.program, what })
    }
}

/// Runs `command` to its end, without input, for at most `limit`.
///
/// # Errors
/// [`Error::Program`] when it cannot start, runs past `limit`, or keeps its output open after its
/// end. A failing exit status is no error here; see [`Finished::success`].
pub fn run(mut command: Command, limit: Duration) -> Result<Finished, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |what: String| Error::Program { program: program.clone(), what };
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(format!("cannot start: {error}")))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = wait(&mut child, started + limit)
        .map_err(|error| fail(format!("cannot wait: {error}")))?
        .ok_or_else(|| fail(format!("stopped after {} s", limit.as_secs_f64())))?;
    let elapsed = started.elapsed();
    let text = |output: &Receiver<Vec<u8>>| {
        let bytes = output
            .recv_timeout(GRACE)
            .map_err(|_| fail("left a process behind that holds its output".to_owned()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (stdout, stderr) = (text(&stdout)?, text(&stderr)?);
    Ok(Finished { program, status, stdout, stderr, elapsed })
}

/// The path of `name`, from `PATH` or a directory for administrators; `None` if it is absent.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(name, &path)
}

/// Whether `path` is a file that someone may execute.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn find_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

/// Reads a pipe on its own thread, so that a full pipe never blocks the program.
fn drain<R: Read + Send + 'static>(pipe: Option<R>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // A read error ends the output early; the exit status tells why.
            let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        }
        // Nobody listens any more when the limit has passed.
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits until `deadline`; past it, ends the child and gives `None`.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = wait_until(child, deadline)? {
        return Ok(Some(status));
    }
    // `std` can only KILL. The shell's own `kill` exists wherever a shell does.
    let _ = Command::new("sh")
        .args(["-c", &format!("kill -TERM {}", child.id())])
        .stderr(Stdio::null())
        .status();
    if wait_until(child, Instant::now() + GRACE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}

fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_and_the_status_are_kept() {
        let run = run(shell("echo out; echo err >&2; exit 3"), Duration::from_secs(20)).unwrap();
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(run.status.code(), Some(3));
        let error = run.success().unwrap_err();
        assert_eq!(error.to_string(), "sh: exit status: 3: err");
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x";
        let run = run(shell(script), Duration::from_secs(20)).unwrap();
        assert_eq!(run.stdout.len(), 1_000_000);
    }

    #[test]
    fn past_its_limit_a_program_is_stopped() {
        let started = Instant::now();
        let error = run(shell("exec sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("stopped after"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_program_that_ignores_the_first_signal_is_stopped_too() {
        let script = "trap '' TERM; while :; do :; done";
        let error = run(shell(script), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("stopped after"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = run(Command::new("no-such-program-here"), GRACE).unwrap_err();
        assert!(error.to_string().starts_with("no-such-program-here: cannot start"));
    }

    #[test]
    fn search_finds_a_shell_and_not_a_directory() {
        assert!(find("sh").is_some());
        assert_eq!(find_in("lib", OsStr::new("/usr")), None);
        assert_eq!(find("no-such-program-here"), None);
    }
}
