//! The one error of this crate: a kernel file that cannot be read.
//!
//! Readers that only add insight return `None` instead; this error is for callers that
//! ask for one file and need to say why it is missing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The classes of failure that callers distinguish.
pub use sys::ErrorKind;

/// The result of a direct reading.
pub type Result<T> = std::result::Result<T, Error>;

/// A file that could not be read.
#[derive(Debug)]
pub struct Error {
    /// What a caller can match on.
    pub kind: ErrorKind,
    /// The operation as a verb phrase that follows "cannot".
    pub operation: &'static str,
    /// The file, as it is named in the real tree or below the fake one.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

impl Error {
    pub(crate) fn new(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self { kind: ErrorKind::of(&source), operation, path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = sys::plain_reason(&self.source);
        write!(out, "cannot {} {}: {reason}", self.operation, self.path.display())
    }
}

impl std::error::Error for Error {
    /// The cause below the reason that `Display` has already given.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.source)
    }
}
