//! The error of this crate: [`sys::Failure`] with the kinds that callers of the recorder tell
//! apart.

use std::path::Path;
use sys::{Failure, FailureKind};

/// The result of every call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the recorder.
pub type Error = Failure<ErrorKind>;

/// The classes of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
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

impl FailureKind for ErrorKind {
    const IMPOSSIBLE: Self = Self::Impossible;
    const FAILED: Self = Self::Failed;
}

/// An error of the system about the file that was asked for as `path`.
pub(crate) fn at(operation: &str, path: &Path, error: &sys::Error) -> Error {
    let mut reason = sys::plain_reason(&error.source);
    if let (sys::ErrorKind::Denied, Some(fault)) = (error.kind, &error.path)
        && fault != path
    {
        reason = format!("{}: {reason}", fault.display());
    }
    let kind = match error.kind {
        // Refused by a rule of ours, not by the system: this user cannot do it here.
        sys::ErrorKind::Denied if error.number().is_none() => ErrorKind::Impossible,
        _ => ErrorKind::Failed,
    };
    Error::new(kind, operation, reason).at(path)
}
