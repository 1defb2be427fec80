//! The error of a crate that works on files: what kind, which operation, on which path, and the
//! cause. Each crate has its own kinds; the rest is here once.

use crate::{Error, ErrorKind, plain_reason};
use std::borrow::Borrow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The kinds that every such crate has.
pub trait FailureKind: Copy {
    /// This machine, kernel or user cannot do it.
    const IMPOSSIBLE: Self;
    /// It failed on the way.
    const FAILED: Self;
}

/// An operation that failed.
#[derive(Debug)]
pub struct Failure<K> {
    /// What a caller can match on.
    pub kind: K,
    /// The operation as a verb phrase that follows "cannot".
    pub operation: String,
    /// The file concerned, if there is one.
    pub path: Option<PathBuf>,
    /// The cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl<K> Failure<K> {
    /// A failure with its cause: another error, or words.
    pub fn new(
        kind: K,
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, operation: operation.into(), path: None, source: source.into() }
    }

    /// The same failure, naming the file that it is about.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_owned());
        self
    }
}

impl<K: FailureKind> Failure<K> {
    /// A failed operation on a file.
    pub fn io(operation: impl Into<String>, path: &Path, source: impl Borrow<io::Error>) -> Self {
        Self::new(K::FAILED, operation, plain_reason(source.borrow())).at(path)
    }
}

impl<K> fmt::Display for Failure<K> {
    /// Ends with the reason.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(out, " {}", path.display())?;
        }
        write!(out, ": {}", self.source)
    }
}

impl<K: fmt::Debug> std::error::Error for Failure<K> {
    /// The cause of the reason that `Display` has already given.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

impl<K: FailureKind> From<Error> for Failure<K> {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Denied | ErrorKind::Unsupported => K::IMPOSSIBLE,
            _ => K::FAILED,
        };
        Self { path: error.path, ..Self::new(kind, error.operation, plain_reason(&error.source)) }
    }
}
