//! Watching: a command that is started for it, a process, a group, or the machine.
//!
//! One thread samples at a steady rate and owns every source; the caller's thread waits for
//! the subject's end and passes signals on. What was recorded goes to a file, to a ring of
//! files, or stays in memory; it is read back by the same reader in all cases.

use crate::Result;
use crate::trace::Family;
use model::recording::Recording;
use std::ffi::OsString;
use std::path::PathBuf;

/// How to watch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Samples a second, 1 to 100.
    pub rate_hz: u32,
    /// Whether pressure may raise the rate for a while.
    pub burst: bool,
    /// Which events to reduce, where the user may.
    pub families: Vec<Family>,
    /// Whether to switch `kernel.task_delayacct` on for the time of the recording.
    pub apply: bool,
    /// The file to write; it must not exist unless `force`. In memory where absent.
    pub output: Option<PathBuf>,
    /// Whether an existing recording (never another file) may be replaced.
    pub force: bool,
    /// What must be longest ago in a ring of files; `output` is then its directory.
    pub keep_ns: Option<u64>,
    /// The most bytes that a ring may take.
    pub keep_bytes: u64,
}

/// A command to start and watch.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Its words, program first; never empty.
    pub argv: Vec<OsString>,
    /// Whether it may get a control group of its own.
    pub own_group: bool,
    /// How to watch it.
    pub watch: Watch,
}

/// Something that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The machine.
    Machine,
    /// A process and its children.
    Process(u32),
    /// A control group, by its path below its hierarchy or its directory.
    Group(PathBuf),
    /// A unit of the service manager.
    Unit(String),
}

/// A recording that is over.
#[derive(Debug)]
pub struct Captured {
    /// What was recorded.
    pub recording: Recording,
    /// The file that holds it.
    pub file: Option<PathBuf>,
}

/// Starts `plan.argv` and watches it to its end. The command's exit status is in the
/// recording's outcome. Signals that ask this process to end are passed on to the command.
///
/// # Errors
/// [`crate::Kind::CommandNotFound`] and [`crate::Kind::CommandNotExecutable`] for a command
/// that cannot be started; others before it was started. Once it runs, a fault of the
/// recorder ends the recording and never the command.
pub fn command(plan: &CommandPlan) -> Result<Captured> {
    let _ = plan;
    Err(crate::Error::new(
        crate::Kind::Impossible,
        "watch",
        "absent",
    ))
}

/// Watches what runs already until it ends, `for_ns` is over, or a signal asks for the end.
///
/// # Errors
/// When the target is not there or may not be watched.
pub fn watch(target: &Target, for_ns: Option<u64>, watch: &Watch) -> Result<Captured> {
    let _ = (target, for_ns, watch);
    Err(crate::Error::new(
        crate::Kind::Impossible,
        "watch",
        "absent",
    ))
}

/// Watches the machine in the background while a probe of this process runs: `survey
/// --record FILE`. Dropping it ends the recording.
#[derive(Debug)]
pub struct Background {}

impl Background {
    /// Starts; `name` is the probe's.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(name: &str, watch: &Watch) -> Result<Self> {
        let _ = (name, watch);
        Ok(Self {})
    }

    /// Notes a step of the probe.
    pub fn mark(&self, text: &str) {
        let _ = text;
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// When the last chunk could not be written.
    pub fn finish(self) -> Result<()> {
        Ok(())
    }
}

/// Puts a mark into every recording of this user that runs now; how many there were.
///
/// # Errors
/// When a recorder could not be told.
pub fn mark(text: &str) -> Result<usize> {
    let _ = text;
    Ok(0)
}
