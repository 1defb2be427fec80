//! Why a probe could not measure: a kind to match on, what was tried, where, and
//! the cause. The binary turns the kind into an exit code.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a probe.
pub type Result<T> = std::result::Result<T, Error>;

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What was asked makes no sense: a size of 0, an unknown method.
    Usage,
    /// This machine, kernel, file system or user cannot do it.
    Impossible,
    /// It could be done, but failed: an I/O error, a full disk.
    Failed,
    /// The result cannot be true, so it is no result.
    Implausible,
}

/// A probe's failure.
#[derive(Debug)]
pub struct Error {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// What was tried, after "cannot": `write the test file`.
    pub operation: String,
    /// Where.
    pub path: Option<PathBuf>,
    /// Why, when this crate knows it and no lower error does.
    pub reason: Option<String>,
    /// The lower error.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a reason of this crate's own.
    pub fn new(kind: ErrorKind, operation: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            kind,
            operation: operation.into(),
            path: None,
            reason: Some(reason.into()),
            source: None,
        }
    }

    /// An error caused by a lower one.
    pub fn caused(
        kind: ErrorKind,
        operation: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind,
            operation: operation.into(),
            path: None,
            reason: None,
            source: Some(Box::new(source)),
        }
    }

    /// An error whose reason is the kernel's.
    pub fn io(kind: ErrorKind, operation: impl Into<String>, source: &io::Error) -> Self {
        Self::new(kind, operation, sys::plain_reason(source))
    }

    /// The same error, with the path that it is about.
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
