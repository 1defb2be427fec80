//! What the tests of watching share: plans, waiting without a clock, and a second process.
//! Each of them is a program of its own and uses a part of it.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod process;

#[allow(unused_imports, reason = "as above")]
pub use files::{DiskFile, Flag};
#[allow(unused_imports, reason = "as above")]
pub use process::{Killed, SCRIPT, again, again_by, recorder, script, words};

use model::recording::{Recording, Subject};
use record::capture::{self, CommandPlan, RecordOptions, Target};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::TempDir;

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
        watch: RecordOptions::default(),
    }
}

pub fn shell(script: &str) -> CommandPlan {
    plan(&["sh", "-c", script])
}

pub fn command(plan: &CommandPlan) -> Recording {
    capture::command(plan).unwrap().recording
}

/// Long enough for several samples of what is read ten times a second, and of what is read
/// once a second.
pub const A_WHILE: Duration = Duration::from_millis(1500);

/// Watches `target` while `happening` runs, and until the target ends: the machine for `whiles`
/// times [`A_WHILE`].
pub fn watched(
    target: &Target,
    whiles: u32,
    watch: RecordOptions,
    happening: impl FnOnce() + Send,
) -> Recording {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let watch = RecordOptions { output: Some(file.clone()), ..watch };
    let machine_ns = (A_WHILE * whiles).as_nanos() as u64;
    let for_ns = matches!(target, Target::Machine).then_some(machine_ns);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(|| file.exists());
            std::thread::sleep(A_WHILE / 2);
            happening();
        });
        capture::watch(target, for_ns, &watch).unwrap().recording
    })
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

/// Waits for something that must come; the test harness's own limit is the only one.
pub fn until(mut come: impl FnMut() -> bool) {
    while !come() {
        std::thread::sleep(Duration::from_millis(5));
    }
}
