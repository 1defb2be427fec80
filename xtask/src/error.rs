//! The one error of this crate: what was attempted, on what, and why it did not work.
//!
//! Its `Display` is one line that a person can act on; it never repeats the text of its source,
//! which `main` does not print separately, so the io error is part of the line here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What stops a command of `cargo xtask`.
#[derive(Debug)]
pub enum Error {
    /// The command line asks for something that does not exist; the text says what does.
    Usage(String),
    /// A file or directory could not be read or written.
    Io {
        /// What was attempted, as a verb: `read`, `write`, `list`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program could not be started, failed, or ran past its limit.
    Program {
        /// The program's name or path.
        program: String,
        /// What it did wrong, in words.
        what: String,
    },
    /// Text that was read does not have the expected shape.
    Malformed {
        /// What was read.
        what: &'static str,
        /// Where it deviates.
        why: String,
    },
    /// The check ran and found something; the details were printed before.
    Failed(String),
}

impl Error {
    /// An [`Error::Io`], for use in `map_err`.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }

    /// The exit status that this error ends the process with.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) => f.write_str(text),
            Self::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", path.display())
            }
            Self::Program { program, what } => write!(f, "{program}: {what}"),
            Self::Malformed { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

// No `source()`: the line above already holds it, and a chain printer would say it twice.
impl std::error::Error for Error {}
