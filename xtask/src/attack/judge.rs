//! Judges how an attacked command ended; pure.
//!
//! A command holds when it ends by itself with a documented status, does not panic, stays below its
//! limits and prints no control character. Each rule has a test that shows it fail.

use std::time::Duration;

use crate::process::{Ended, Limits};

/// No ordinary mutant takes a second, even in a debug build.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The most memory of an ordinary mutant.
pub(super) const MEMORY_LIMIT_BYTES: u64 = 1 << 30;

/// The usual memory, and this much time.
pub(super) fn within(time: Duration) -> Limits {
    Limits { time, memory_bytes: Some(MEMORY_LIMIT_BYTES) }
}

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

/// Why `observed` is not what is expected, in words.
pub(super) fn judge(observed: &Ended, expected: &Expected) -> Result<(), String> {
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
    match (observed.status(), observed.signal()) {
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
    use crate::process::observe;
    use std::process::Command;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn verdict(script: &str, form: Form) -> Result<(), String> {
        let observed = observe(shell(script), within(Duration::from_secs(60))).unwrap();
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
        let observed = observe(shell("exec sleep 60"), within(limit)).unwrap();
        assert!(judge(&observed, &Expected::of(Form::Text)).is_err());
        assert!(observed.is_late);
    }

    #[test]
    fn too_much_memory_is_seen() {
        let limits = Limits { memory_bytes: Some(1), ..within(Duration::from_secs(60)) };
        let observed = observe(shell("exec sleep 60"), limits).unwrap();
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
