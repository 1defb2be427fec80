//! The error of this crate: [`sys::Failure`] with the kinds that callers of a mover tell apart.
//! `Display` ends with the reason.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sys::{Failure, FailureKind};

/// The result of every call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a mover.
pub type Error = Failure<ErrorKind>;

/// An entry that a mover left out, or moved only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryFailure {
    /// Its path.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Why, as the end of a sentence.
    pub reason: String,
}

/// The classes of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense.
    Usage,
    /// This machine, kernel or user cannot do it.
    Impossible,
    /// A file that is no snapshot, a damaged one, or one of a newer version.
    NotASnapshot,
    /// It failed on the way.
    Failed,
    /// The target's file system failed to write what it had taken, and its disk still works: what
    /// was durable there may be damaged.
    Damaging,
}

impl FailureKind for ErrorKind {
    const IMPOSSIBLE: Self = Self::Impossible;
    const FAILED: Self = Self::Failed;
}
