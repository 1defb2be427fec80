//! The exit status: what a script learns from a run without reading its output. Ordered
//! from good to bad.

use std::process::ExitCode;

/// How a run ended; the numbers are documented in `--help`, the manual and `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All that was asked was done.
    Done,
    /// Something failed on the way, or Ctrl-C came; what was measured is printed.
    Partial,
    /// The command line makes no sense; nothing was touched.
    Usage,
    /// This machine, kernel, file system or user cannot do it.
    Impossible,
    /// What was compared is worse than was asked for.
    Worse,
    /// The status of a command that was run, or what env(1) would say about it.
    Command(u8),
}

/// The command was not run because this program failed; 125 as of env(1).
pub const FAILED_BEFORE: Exit = Exit::Command(FAILED_BEFORE_STATUS);
/// The number of it.
pub const FAILED_BEFORE_STATUS: u8 = 125;
/// The command cannot be executed.
pub const NOT_EXECUTABLE: Exit = Exit::Command(126);
/// The command was not found.
pub const NOT_FOUND: Exit = Exit::Command(127);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Partial => 1,
            Exit::Usage => 2,
            Exit::Impossible => 3,
            Exit::Worse => 4,
            Exit::Command(status) => status,
        })
    }
}
