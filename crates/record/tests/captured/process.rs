//! Processes of the tests: this program once more, doing what only one of its tests does, and
//! what ends with the test.

use super::until;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};

/// The environment variable that says what a second process of a test program is to do.
pub const SCRIPT: &str = "TERRACE_TEST_SCRIPT";

/// This test program once more, running only the test `name`.
pub fn again(name: &str) -> Command {
    again_by(Command::new(std::env::current_exe().unwrap()), name)
}

/// The same by a command of this program that was begun already.
pub fn again_by(mut command: Command, name: &str) -> Command {
    command.args(["--exact", name, "--include-ignored"]);
    command.args(["--nocapture", "--test-threads=1"]);
    command
}

/// A command's words, program first.
pub fn words(command: &Command) -> Vec<OsString> {
    let program = std::iter::once(command.get_program());
    program.chain(command.get_args()).map(Into::into).collect()
}

/// A process that ends with the test.
pub struct Killed(pub Child);

impl Killed {
    /// Starts it; its output is dropped.
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL, after which nothing of it runs.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits until it has come so far, which it must.
    pub fn until(&mut self, come: impl Fn() -> bool) {
        until(|| {
            let ended = self.0.try_wait().unwrap();
            assert!(come() || ended.is_none(), "it ended early: {ended:?}");
            come()
        });
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A recorder in a second process: the test `name`, which runs [`SCRIPT`] under itself.
pub fn recorder(name: &str, script: &str) -> Killed {
    Killed::start(again(name).env(SCRIPT, script).stdin(Stdio::piped()))
}

/// What [`recorder`] is to run; `None` in a usual run of the tests.
pub fn script() -> Option<String> {
    std::env::var(SCRIPT).ok()
}
