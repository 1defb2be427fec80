//! What the tests of watching share: plans, waiting without a clock, and a second process.
//! Each of them is a program of its own and uses a part of it.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::recording::{Recording, Subject};
use record::capture::{self, CommandPlan, Watch};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The environment variable that makes a test program run a command as a second process.
pub const SCRIPT: &str = "TERRACE_TEST_SCRIPT";

/// Signals are passed on to one command at a time, and orphans are given to the process, so
/// the tests of one program take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command without a group of its own, recorded in memory.
pub fn plan(argv: &[&str]) -> CommandPlan {
    CommandPlan {
        argv: argv.iter().map(Into::into).collect(),
        own_group: false,
        watch: Watch::default(),
    }
}

pub fn shell(script: &str) -> CommandPlan {
    plan(&["sh", "-c", script])
}

pub fn command(plan: &CommandPlan) -> Recording {
    capture::command(plan).unwrap().recording
}

/// The word that names a subject.
pub fn text(subject: &Subject) -> &str {
    match subject {
        Subject::Machine => "machine",
        Subject::Command { argv } | Subject::Process { argv, .. } => &argv[0],
        Subject::Group { path, .. } => path,
        Subject::Probe { name } => name,
    }
}

/// The value of a series at the end.
pub fn last(recording: &Recording, name: &str) -> u64 {
    let steps = &recording.series(name).unwrap().steps;
    let value = steps.last().and_then(|step| step.value);
    value.unwrap().unsigned_abs()
}

/// A name for a file beside what is built, not on tmpfs, which has no device behind it; what
/// is there goes away with the test.
pub struct DiskFile(PathBuf);

impl DiskFile {
    pub fn new(name: &str) -> Self {
        let name = format!("{name}-{}.tmp", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits for something that must come; the test harness's own limit is the only one.
pub fn until(come: impl Fn() -> bool) {
    while !come() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// This test program once more, running only the test `name`.
pub fn again(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command
}
