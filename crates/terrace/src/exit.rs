//! The exit status: what a script learns from a run without reading its output. Ordered
//! from good to bad.

use std::process::ExitCode;

/// How a run ended; the numbers are documented in `--help`, the manual and `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All that was asked was done.
    Done = 0,
    /// Something failed on the way, or Ctrl-C came; what was measured is printed.
    Partial = 1,
    /// The command line makes no sense; nothing was touched.
    Usage = 2,
    /// This machine, kernel, file system or user cannot do it.
    Impossible = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
