//! The one error of this crate: what kind, which operation, on which path, and the cause.
//! `Display` ends with the reason, so `source()` skips it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of every call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The classes of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// What was asked for makes no sense.
    Usage,
    /// This machine, kernel or user cannot do it.
    Impossible,
    /// The command to watch does not exist (127 by env(1)).
    CommandNotFound,
    /// The command to watch cannot be executed (126 by env(1)).
    CommandNotExecutable,
    /// The file is not a recording, or one of a newer version.
    NotARecording,
    /// The file system, or the quota of this user, has no space left.
    NoSpace,
    /// The file has reached the largest size that this process may write.
    FileTooLarge,
    /// It failed on the way.
    Failed,
}

/// A failure of the recorder.
#[derive(Debug)]
pub struct Error {
    /// What a caller can match on.
    pub kind: Kind,
    /// The operation as a verb phrase that follows "cannot".
    pub operation: String,
    /// The file concerned, where there is one.
    pub path: Option<PathBuf>,
    /// The cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// A failure with its cause: another error, or words.
    pub fn new(
        kind: Kind,
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            kind,
            operation: operation.into(),
            path: None,
            source: source.into(),
        }
    }

    /// The same error, naming the file that it is about.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// A failed operation on a file.
    pub fn io(operation: impl Into<String>, path: &Path, source: std::io::Error) -> Self {
        let reason = sys::plain_reason(&source);
        Self::new(Kind::Failed, operation, reason).at(path)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(out, " {}", path.display())?;
        }
        write!(out, ": {}", self.source)
    }
}

impl std::error::Error for Error {
    /// The cause of the reason that `Display` has already given.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

impl From<sys::Error> for Error {
    fn from(error: sys::Error) -> Self {
        let kind = match error.kind {
            sys::Kind::Denied | sys::Kind::Unsupported => Kind::Impossible,
            _ => Kind::Failed,
        };
        let path = error.path.clone();
        Self {
            path,
            ..Self::new(kind, error.operation, sys::plain_reason(&error.source))
        }
    }
}

/// An error of the system about the file that was asked for as `path`.
pub(crate) fn at(operation: &str, path: &Path, error: &sys::Error) -> Error {
    let mut reason = sys::plain_reason(&error.source);
    if let (sys::Kind::Denied, Some(fault)) = (error.kind, &error.path)
        && fault != path
    {
        reason = format!("{}: {reason}", fault.display());
    }
    let kind = match error.kind {
        // Refused by a rule of ours, not by the system: this user cannot do it here.
        sys::Kind::Denied if error.number().is_none() => Kind::Impossible,
        _ => Kind::Failed,
    };
    Error::new(kind, operation, reason).at(path)
}
