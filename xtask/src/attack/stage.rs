//! What every attack works with: the binary, a directory of its own, the recordings to start from.
//!
//! All is made below one temporary directory that another user may enter, because some attacks are
//! that user's, and goes away at the end. Inputs of attacks that succeeded are copied to
//! `target/attack/`.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use testkit::TempDir;

use super::judge::{self, Expected, Form, TIME_LIMIT, within};
use super::trec::{self, Chunk};
use crate::process::{self, Ended, Limits};

/// The fixtures, from the workspace.
const RECORDINGS: &str = "crates/terrace/tests/fixtures/recordings";
const SURVEY: &str = "crates/terrace/tests/fixtures/survey.json";
/// Everything but a hang comes about in this time, however loaded the machine is.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// A command that ran out of time on a loaded machine gets so many times as much once more.
const RETRY_FACTOR: u32 = 4;
/// The user that owns nothing.
const OTHER_USER: &str = "65534";

/// Why a case did not hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It could not be tried here; the words after "needs".
    Needs(String),
    /// The attack succeeded, or the case itself failed.
    Failed(String),
}

/// How a case or a mutant ends.
pub(super) type Held = Result<(), Stop>;

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("the case itself: {error}"))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(what) => write!(f, "needs {what}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// A [`Stop::Failed`] unless `is_held`.
pub(super) fn ensure(is_held: bool, why: impl FnOnce() -> String) -> Held {
    if is_held { Ok(()) } else { Err(Stop::Failed(why())) }
}

/// A [`Stop::Needs`] unless this runs as root who may do what root may.
pub(super) fn need_admin() -> Held {
    if testkit::is_admin() { Ok(()) } else { Err(Stop::Needs("root".to_owned())) }
}

/// A [`Stop::Needs`] unless the programs are installed.
pub(super) fn need(programs: &[&str]) -> Held {
    let absent = programs.iter().find(|program| process::find(program).is_none());
    absent.map_or(Ok(()), |program| Err(Stop::Needs((*program).to_owned())))
}

/// The binary and what it is attacked with.
#[derive(Debug)]
pub(super) struct AttackStage {
    /// The copy of the binary that is attacked.
    pub(super) binary: PathBuf,
    /// Recordings to change, with their names: bytes as in the file.
    pub(super) recordings: Vec<(String, Vec<u8>)>,
    /// The same, as chunks.
    pub(super) chunks: Vec<Vec<Chunk>>,
    /// A survey, as JSON.
    pub(super) survey: serde_json::Value,
    /// How often a case kills or tries at random.
    pub(super) rounds: u32,
    /// What the random cases start from.
    pub(super) seed: u64,
    directory: TempDir,
}

impl AttackStage {
    /// Copies `binary` and reads the fixtures of the workspace at `root`.
    ///
    /// # Errors
    /// A file that cannot be read or copied.
    pub(super) fn new(root: &Path, binary: &Path, seed: u64, rounds: u32) -> io::Result<Self> {
        let directory = TempDir::new();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755))?;
        let copy = directory.join("terrace");
        std::fs::copy(binary, &copy)?;
        let mut recordings = Vec::new();
        for entry in std::fs::read_dir(root.join(RECORDINGS))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "trec") {
                let name = path.file_stem().unwrap_or_default();
                recordings.push((name.to_string_lossy().into_owned(), std::fs::read(&path)?));
            }
        }
        recordings.sort_unstable();
        let survey = serde_json::from_slice(&std::fs::read(root.join(SURVEY))?)?;
        let mut stage =
            Self { binary: copy, chunks: Vec::new(), recordings, survey, rounds, seed, directory };
        stage.record_seeds()?;
        let parsed = stage.recordings.iter().map(|(_, bytes)| trec::parse(bytes));
        stage.chunks = parsed.collect();
        Ok(stage)
    }

    /// Adds recordings of today's format: of a command, of the machine, and one of a ring.
    fn record_seeds(&mut self) -> io::Result<()> {
        let directory = self.scratch("seeds")?;
        let [run, record, ring] = ["run.trec", "record.trec", "ring"].map(|n| directory.join(n));
        let script = "head -c 30000000 /dev/zero | cksum >&2; sleep 0.3";
        let commands: [&[&str]; 3] = [
            &["run", "-q", "-o", text(&run), "--", "sh", "-c", script],
            &["record", "--for", "1s", "-o", text(&record)],
            &["record", "--for", "2s", "--keep", "20s", "-o", text(&ring)],
        ];
        for arguments in commands {
            let limits = Limits { time: PATIENCE, memory_bytes: None };
            process::observe(self.terrace(arguments), limits)?;
        }
        let segments = std::fs::read_dir(&ring).into_iter().flatten().flatten();
        let first = segments.map(|entry| entry.path()).next();
        for path in [run, record].into_iter().chain(first) {
            // Where recording is impossible, the fixtures are enough.
            if let Ok(bytes) = std::fs::read(&path) {
                self.recordings.push((text(&path).to_owned(), bytes));
            }
        }
        Ok(())
    }

    /// An empty directory of this name.
    pub(super) fn scratch(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir(&path)?,
        }
        Ok(path)
    }

    /// The bytes of one fixture.
    pub(super) fn recording(&self, name: &str) -> io::Result<&[u8]> {
        let found = self.recordings.iter().find(|(known, _)| known == name);
        let bytes = found.map(|(_, bytes)| bytes.as_slice());
        bytes.ok_or_else(|| io::Error::other(format!("no recording {name:?} in the fixtures")))
    }

    /// The binary with arguments, in an environment without a screen and with a state of its own.
    pub(super) fn terrace<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        self.isolate(&mut command);
        command
    }

    /// The binary, run by another program such as `strace`.
    pub(super) fn terrace_under<A: AsRef<std::ffi::OsStr>>(
        &self,
        wrapper: &[&str],
        arguments: &[A],
    ) -> Command {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(&self.binary).args(arguments);
        self.isolate(&mut command);
        command
    }

    /// A shell script, recorded at 100 samples a second to `out`, under another program if one is
    /// named.
    pub(super) fn recorded(&self, wrapper: &[&str], out: &Path, script: &str) -> Command {
        let run = ["run", "-q", "--rate", "100", "-o", text(out), "--", "sh", "-c", script];
        if wrapper.is_empty() {
            return self.terrace(&run);
        }
        self.terrace_under(wrapper, &run)
    }

    fn isolate(&self, command: &mut Command) {
        command.current_dir(self.directory.path());
        command.env("XDG_STATE_HOME", self.directory.join("state"));
        command.env("NO_COLOR", "1");
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "COLUMNS"] {
            command.env_remove(name);
        }
    }

    /// Runs the binary and judges it as every command that reads a file is judged.
    ///
    /// # Errors
    /// What it did, with the command line.
    pub(super) fn attack(&self, arguments: &[OsString], form: Form) -> Result<Ended, Stop> {
        // An address space of 6 GiB turns a request for too much memory into an end by signal.
        let limits = ["prlimit", "--as=6442450944", "--core=0", "--fsize=4294967296", "--"];
        let command = || match process::find("prlimit") {
            Some(_) => self.terrace_under(&limits, arguments),
            None => self.terrace(arguments),
        };
        let mut ended = process::observe(command(), within(TIME_LIMIT))?;
        if ended.is_late {
            ended = process::observe(command(), within(TIME_LIMIT * RETRY_FACTOR))?;
        }
        match judge::judge(&ended, &Expected::of(form)) {
            Ok(()) => Ok(ended),
            Err(why) => Err(bad(&why, &shown(arguments))),
        }
    }
}

/// What a command did that did not hold, and its command line, to repeat it.
pub(super) fn bad(why: &str, command: &str) -> Stop {
    Stop::Failed(format!("{why}\n    {command}"))
}

/// A path of our own making as text.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// A command line that a shell takes.
pub(super) fn shown(arguments: &[OsString]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    format!("terrace {}", words.join(" "))
}

/// A word as it is if a shell leaves it so, else in `$'...'`.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:%,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let escaped = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if super::judge::is_control(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("$'{}'", word.chars().map(escaped).collect::<String>())
}

/// Arguments from text and paths.
pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// A shell command of our own as another user.
pub(super) fn as_other_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", OTHER_USER, "--regid", OTHER_USER, "--clear-groups", program]);
    command
}

/// Gives `path` to the other user.
pub(super) fn give_away(path: &Path) -> io::Result<()> {
    let id = OTHER_USER.parse().ok();
    std::os::unix::fs::lchown(path, id, id)
}

/// Waits until `is_so`, at most `limit`; whether it came.
pub(super) fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command to its end with the usual limits of time and memory.
pub(super) fn observe(command: Command) -> io::Result<Ended> {
    process::observe(command, within(PATIENCE))
}

/// The command ended with this status, and not by a signal.
pub(super) fn has_status(observed: &Ended, expected: i32) -> Held {
    ensure(observed.status() == Some(expected), || {
        let text = observed.text();
        let first = text.lines().find(|line| line.starts_with("terrace"));
        let (status, signal) = (observed.status(), observed.signal());
        format!("status {status:?}, signal {signal:?} instead of {expected}: {first:?}")
    })
}

/// The command ended with a documented status, and no panic.
pub(super) fn is_documented(observed: &Ended, what: impl FnOnce() -> String) -> Held {
    let documented = observed.status().is_some_and(|status| judge::DOCUMENTED.contains(&status));
    ensure(documented && !observed.text().contains("panicked"), || {
        let (status, signal) = (observed.status(), observed.signal());
        format!("{}: status {status:?}, signal {signal:?}", what())
    })
}

/// No file that was being written is left in the directory.
pub(super) fn no_part_left(directory: &Path) -> Held {
    let mut left = names(directory);
    left.retain(|name| name.ends_with(".part"));
    ensure(left.is_empty(), || format!("left behind: {left:?}"))
}

/// The names in a directory; none if it is not there.
pub(super) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_what_is_shown() {
        let arguments = words(["explain", "a b", "it's", "\u{1b}[31m"]);
        let shown = shown(&arguments);
        assert_eq!(shown, r"terrace explain $'a b' $'it\'s' $'\u001b[31m'");
    }
}
