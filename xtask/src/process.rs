//! Programs run as children: found, run to their end within limits, or kept running by a guard.
//!
//! The child stays in the terminal's process group, so Ctrl-C ends it with us. Past its time it
//! gets TERM (fio then ends its own workers), and KILL after a grace. What it prints is kept up to
//! a limit. Programs are searched on `PATH` and in the two directories that an ordinary user's
//! `PATH` leaves out.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::Error;

/// More than any program prints here; what is longer is read and forgotten.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Time between TERM and KILL, and for the last output of a program that has ended.
const GRACE: Duration = Duration::from_secs(2);

/// How often a child is looked at: its measured time is at most this much too long.
const POLL: Duration = Duration::from_millis(5);

/// Where Debian keeps programs for administrators.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// What a child may take before it is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// The most memory in RAM; looked at only where there is a limit.
    pub(crate) memory_bytes: Option<u64>,
}

/// How a child ended, by itself or by its limits.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) exit: ExitStatus,
    /// Whether it was ended because its time was over.
    pub(crate) is_late: bool,
    /// Whether something that it left behind holds its output.
    pub(crate) is_held: bool,
    /// The most memory that it was seen to have in RAM; 0 where that has no limit.
    pub(crate) peak_bytes: u64,
    /// From just before its start to its end, in wall time.
    pub(crate) elapsed: Duration,
    /// Its outputs; empty where they are no pipes.
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Ended {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) fn status(&self) -> Option<i32> {
        self.exit.code()
    }

    /// The signal that ended it.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.exit.signal()
    }

    /// Both outputs as text, for a search in them.
    pub(crate) fn text(&self) -> String {
        let [out, err] = [&self.stdout, &self.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        format!("{out}{err}")
    }
}

/// Runs `command` to its end, without input.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn observe(mut command: Command, limits: Limits) -> io::Result<Ended> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command.spawn()?, started, limits)
}

/// As [`observe`], of a child that runs since `started`.
fn finish(child: &mut Child, started: Instant, limits: Limits) -> io::Result<Ended> {
    let stdout = child.stdout.take().map(|pipe| keep(pipe, OUTPUT_BYTES_MAX));
    let stderr = child.stderr.take().map(|pipe| keep(pipe, OUTPUT_BYTES_MAX));
    let mut ended = Ended::default();
    ended.exit = loop {
        if let Some(exit) = child.try_wait()? {
            break exit;
        }
        if let Some(most) = limits.memory_bytes {
            ended.peak_bytes = ended.peak_bytes.max(peak_bytes(child.id()));
            if ended.peak_bytes > most {
                child.kill()?;
                break child.wait()?;
            }
        }
        if started.elapsed() >= limits.time {
            ended.is_late = true;
            break end(child, GRACE)?;
        }
        thread::sleep(POLL);
    };
    ended.elapsed = started.elapsed();
    for (kept, text) in [(stdout, &mut ended.stdout), (stderr, &mut ended.stderr)] {
        match kept.map(taken) {
            Some(Some(bytes)) => *text = bytes,
            Some(None) => ended.is_held = true,
            None => {}
        }
    }
    Ok(ended)
}

/// Asks a child to end, and kills it after `grace`.
fn end(child: &mut Child, grace: Duration) -> io::Result<ExitStatus> {
    signal(child.id(), "TERM")?;
    let asked = Instant::now();
    while asked.elapsed() < grace {
        if let Some(exit) = child.try_wait()? {
            return Ok(exit);
        }
        thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()
}

/// Sends a signal to a process that may be gone. `std` can only KILL; the shell's own `kill` exists
/// wherever a shell does.
pub(crate) fn signal(pid: u32, name: &str) -> io::Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("kill -{name} {pid}")]).stderr(Stdio::null());
    command.status().map(drop)
}

/// Reads a pipe on its own thread, so that a full pipe never blocks the program: the first
/// `bytes_max` are kept, the others forgotten.
pub(crate) fn keep(mut pipe: impl Read + Send + 'static, bytes_max: u64) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error of reading ends the output early, as an end does.
        let _ = pipe.by_ref().take(bytes_max).read_to_end(&mut bytes);
        let _ = io::copy(&mut pipe, &mut io::sink());
        bytes
    })
}

/// What was kept of a pipe whose program has ended; `None` if another one holds it still.
fn taken(kept: JoinHandle<Vec<u8>>) -> Option<Vec<u8>> {
    let ended = Instant::now();
    while !kept.is_finished() {
        if ended.elapsed() > GRACE {
            return None;
        }
        thread::sleep(POLL);
    }
    kept.join().ok()
}

/// The most memory that a process had in RAM so far; 0 if it has ended.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// A child that is killed and waited for when its guard goes.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    started: Instant,
}

impl Running {
    /// Starts `command` without input, with the outputs that it has.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let started = Instant::now();
        Ok(Self { child: command.stdin(Stdio::null()).spawn()?, started })
    }

    /// A child that was started with pipes.
    pub(crate) fn of(child: Child) -> Self {
        Self { child, started: Instant::now() }
    }

    /// Starts it with no output either.
    pub(crate) fn silent(mut command: Command) -> io::Result<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self::start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end within `limits`, counted from its start.
    pub(crate) fn finish(&mut self, limits: Limits) -> io::Result<Ended> {
        finish(&mut self.child, self.started, limits)
    }

    /// Asks it to end, and kills it after `grace`.
    pub(crate) fn end(mut self, grace: Duration) -> io::Result<ExitStatus> {
        end(&mut self.child, grace)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program did that ran to its end.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The program, for messages.
    program: String,
    status: ExitStatus,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub(crate) stdout: String,
    /// Its standard error, likewise.
    pub(crate) stderr: String,
    /// From just before its start to its end, in wall time.
    pub(crate) elapsed: Duration,
}

impl Finished {
    /// This run, if the program ended with status 0.
    ///
    /// # Errors
    /// [`Error::Program`] with the status and the last line that the program complained with.
    pub(crate) fn success(self) -> Result<Self, Error> {
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
pub(crate) fn run(command: Command, limit: Duration) -> Result<Finished, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |what: String| Err(Error::Program { program: program.clone(), what });
    let ended = match observe(command, Limits { time: limit, memory_bytes: None }) {
        Ok(ended) => ended,
        Err(error) => return fail(format!("cannot start: {error}")),
    };
    if ended.is_late {
        return fail(format!("stopped after {} s", limit.as_secs_f64()));
    }
    if ended.is_held {
        return fail("left a process behind that holds its output".to_owned());
    }
    let [stdout, stderr] =
        [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(Finished { program, status: ended.exit, stdout, stderr, elapsed: ended.elapsed })
}

/// The path of `name`, from `PATH` or a directory for administrators; `None` if it is absent.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    find_in(name, &std::env::var_os("PATH").unwrap_or_default())
}

/// Whether `path` is a file that someone may execute.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn find_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

/// `word` as one word of a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
    fn more_memory_than_allowed_ends_a_program() {
        let limits = Limits { time: Duration::from_secs(60), memory_bytes: Some(1) };
        let ended = observe(shell("exec sleep 60"), limits).unwrap();
        assert!(ended.peak_bytes > 1 && !ended.is_late);
        assert_eq!(ended.signal(), Some(9));
    }

    #[test]
    fn a_guard_ends_what_it_started() {
        let mut running = Running::silent(shell("exec sleep 60")).unwrap();
        let pid = running.pid();
        assert!(running.is_alive());
        drop(running);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        let running = Running::silent(shell("exec sleep 60")).unwrap();
        assert_eq!(running.end(Duration::from_secs(20)).unwrap().signal(), Some(15));
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--bs=4k"), "--bs=4k");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn search_finds_a_shell_and_not_a_directory() {
        assert!(find("sh").is_some());
        assert_eq!(find_in("lib", OsStr::new("/usr")), None);
        assert_eq!(find("no-such-program-here"), None);
    }
}
