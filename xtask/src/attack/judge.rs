//! Runs one attacked command and judges how it ended.
//!
//! `observe` runs a command under a limit of time and of memory and keeps what it printed; `judge`
//! is pure. A command holds when it ends by itself with a documented status, does not panic, stays
//! below its limits and prints no control character. Each rule has a test that shows it fail.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// No ordinary mutant takes a second, even in a debug build.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(20);
/// A command that ran out of time on a loaded machine gets so many times as much once more.
const RETRY_FACTOR: u32 = 4;
/// The most memory of an ordinary mutant.
pub(super) const MEMORY_LIMIT_BYTES: u64 = 1 << 30;
/// Longer output is read and forgotten.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// How often a command is looked at.
const POLL: Duration = Duration::from_millis(2);
/// What a command that has ended left behind holds its output at most this long.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// The documented statuses of every command but `run`.
pub(super) const DOCUMENTED: &[i32] = &[0, 1, 2, 3, 4];

/// What the output of a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A terminal: no control character but the end of a line.
    Text,
    /// A terminal with Terrace's own colours.
    Colored,
    /// JSON: no control character of ASCII but the end of a line.
    Json,
}

/// What is expected of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The statuses that it may end with.
    pub(super) statuses: &'static [i32],
    /// What its standard output is for. Standard error is always for a terminal.
    pub(super) form: Form,
    /// The most memory that it may have in RAM.
    pub(super) memory_bytes: u64,
}

impl Expected {
    /// What every command that reads a file or an argument owes.
    pub(super) const fn of(form: Form) -> Self {
        Self { statuses: DOCUMENTED, form, memory_bytes: MEMORY_LIMIT_BYTES }
    }
}

/// What a command did.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Its exit status; `None` if a signal ended it.
    pub(super) status: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// Whether it was killed at its limit of time.
    pub(super) is_late: bool,
    /// Its standard output.
    pub(super) stdout: Vec<u8>,
    /// Its standard error.
    pub(super) stderr: Vec<u8>,
    /// The most memory that it was seen to have in RAM.
    pub(super) peak_bytes: u64,
}

impl Observed {
    /// Both outputs as text, for a search in them.
    pub(super) fn text(&self) -> String {
        let [out, err] = [&self.stdout, &self.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        format!("{out}{err}")
    }
}

/// Runs a command as `make` gives it, and once more with more time if it was late.
pub(super) fn observe_patiently(make: impl Fn() -> Command) -> io::Result<Observed> {
    let first = observe(make(), TIME_LIMIT, MEMORY_LIMIT_BYTES)?;
    if !first.is_late {
        return Ok(first);
    }
    observe(make(), TIME_LIMIT * RETRY_FACTOR, MEMORY_LIMIT_BYTES)
}

/// Runs `command` without input to its end; kills it at `limit` or beyond `memory_bytes`.
pub(super) fn observe(
    mut command: Command,
    limit: Duration,
    memory_bytes: u64,
) -> io::Result<Observed> {
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    finish(child, limit, memory_bytes)
}

/// As [`observe`], of a command that runs already. Its outputs are pipes, or go elsewhere.
pub(super) fn finish(mut child: Child, limit: Duration, memory_bytes: u64) -> io::Result<Observed> {
    let deadline = Instant::now() + limit;
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let mut observed = Observed::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        observed.peak_bytes = observed.peak_bytes.max(peak_bytes(child.id()));
        observed.is_late = Instant::now() >= deadline;
        if observed.is_late || observed.peak_bytes > memory_bytes {
            child.kill()?;
            break child.wait()?;
        }
        thread::sleep(POLL);
    };
    let collect = |pipe: Option<Receiver<Vec<u8>>>| {
        pipe.and_then(|pipe| pipe.recv_timeout(OUTPUT_GRACE).ok()).unwrap_or_default()
    };
    (observed.status, observed.signal) = (status.code(), status.signal());
    (observed.stdout, observed.stderr) = (collect(stdout), collect(stderr));
    Ok(observed)
}

/// Reads a pipe on its own thread: the first bytes are kept, the others forgotten.
fn drain<R: Read + Send + 'static>(mut pipe: R) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error of reading ends the output early, as an end does.
        let _ = (&mut pipe).take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        let _ = io::copy(&mut pipe, &mut io::sink());
        let _ = sender.send(bytes);
    });
    receiver
}

/// The most memory that a process had in RAM so far; 0 if it has ended.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Why `observed` is not what is expected, in words.
pub(super) fn judge(observed: &Observed, expected: &Expected) -> Result<(), String> {
    let complaint = String::from_utf8_lossy(&observed.stderr);
    let first = complaint.lines().next().unwrap_or_default();
    if observed.is_late {
        return Err("it did not end in time".to_owned());
    }
    if observed.peak_bytes > expected.memory_bytes {
        let mib = [observed.peak_bytes, expected.memory_bytes].map(|bytes| bytes >> 20);
        return Err(format!("it took {} MiB of memory, more than {}", mib[0], mib[1]));
    }
    if complaint.contains("panicked") {
        return Err(format!("it panicked: {first:?}"));
    }
    match (observed.status, observed.signal) {
        (Some(status), _) if expected.statuses.contains(&status) => {}
        (Some(status), _) => {
            return Err(format!("status {status} is not expected: {first:?}"));
        }
        (None, signal) => return Err(format!("signal {} ended it", signal.unwrap_or(0))),
    }
    if let Some(found) = control_character(&observed.stderr, Form::Text) {
        return Err(format!("a control character on standard error: {found}"));
    }
    match control_character(&observed.stdout, expected.form) {
        Some(found) => Err(format!("a control character on standard output: {found}")),
        None => Ok(()),
    }
}

/// The first character that may not be in an output of this form, with what is around it.
pub(super) fn control_character(bytes: &[u8], form: Form) -> Option<String> {
    let printed = String::from_utf8_lossy(bytes);
    let text = match form {
        Form::Colored => without_colors(&printed),
        Form::Text | Form::Json => printed.into_owned(),
    };
    let is_bad = |c: &char| match form {
        Form::Json => c.is_ascii_control() && *c != '\n',
        _ => is_control(*c) && *c != '\n',
    };
    let at = text.chars().position(|c| is_bad(&c))?;
    let around: String = text.chars().skip(at.saturating_sub(30)).take(50).collect();
    Some(format!("{around:?}"))
}

/// Whether a terminal may take this character for a command, or it changes the order of a line.
pub(super) fn is_control(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text without sequences that only set a colour: ESC, `[`, digits and `;`, `m`.
fn without_colors(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ';'));
        match end.filter(|end| after[*end..].starts_with('m')) {
            Some(end) => {
                kept.push_str(&rest[..at]);
                rest = &after[end + 1..];
            }
            None => {
                kept.push_str(&rest[..at + 1]);
                rest = &rest[at + 1..];
            }
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn verdict(script: &str, form: Form) -> Result<(), String> {
        let observed = observe(shell(script), Duration::from_secs(60), MEMORY_LIMIT_BYTES).unwrap();
        judge(&observed, &Expected::of(form))
    }

    #[test]
    fn an_ordinary_end_holds() {
        verdict("echo out; echo err >&2; exit 3", Form::Text).unwrap();
    }

    #[test]
    fn a_panic_is_seen_whatever_the_status() {
        let error =
            verdict("echo 'thread main panicked at x' >&2; exit 1", Form::Text).unwrap_err();
        assert!(error.contains("panicked"), "{error}");
    }

    #[test]
    fn an_undocumented_status_and_a_signal_are_seen() {
        let error = verdict("exit 101", Form::Text).unwrap_err();
        assert!(error.contains("status 101"), "{error}");
        let error = verdict("kill -SEGV $$", Form::Text).unwrap_err();
        assert!(error.contains("signal 11"), "{error}");
    }

    #[test]
    fn a_command_that_hangs_is_killed_and_seen() {
        let limit = Duration::from_millis(50);
        let observed = observe(shell("exec sleep 60"), limit, MEMORY_LIMIT_BYTES).unwrap();
        assert!(judge(&observed, &Expected::of(Form::Text)).is_err());
        assert!(observed.is_late);
    }

    #[test]
    fn too_much_memory_is_seen() {
        let observed = observe(shell("sleep 60"), Duration::from_secs(60), 1).unwrap();
        assert!(observed.peak_bytes > 1);
        let expected = Expected { memory_bytes: 1, ..Expected::of(Form::Text) };
        let error = judge(&observed, &expected).unwrap_err();
        assert!(error.contains("memory"), "{error}");
    }

    #[test]
    fn control_characters_are_seen_on_either_output() {
        for hostile in ["\\033]0;x", "\\007", "\\r", "\\302\\2332J", "\\342\\200\\256"] {
            let error = verdict(&format!("printf 'a{hostile}'"), Form::Text).unwrap_err();
            assert!(error.contains("standard output"), "{error}");
            let error = verdict(&format!("printf 'a{hostile}' >&2"), Form::Json).unwrap_err();
            assert!(error.contains("standard error"), "{error}");
        }
        assert!(control_character(b"{\"a\": \"\x1b\"}", Form::Json).is_some());
        assert!(control_character("é 漢 \u{1f980}\n".as_bytes(), Form::Text).is_none());
    }

    #[test]
    fn only_colours_are_taken_for_colours() {
        assert!(control_character(b"\x1b[1;31mred\x1b[0m", Form::Colored).is_none());
        assert!(control_character(b"\x1b[1;31mred", Form::Text).is_some());
        for hostile in ["\u{1b}[2J", "\u{1b}]0;x\u{7}", "\u{1b}[", "\u{1b}[31\u{1b}[0m"] {
            assert!(control_character(hostile.as_bytes(), Form::Colored).is_some());
        }
    }
}
