//! Why an experiment was refused or ended: a kind, from which the program makes its exit status,
//! one line for a person, and a hint.

use model::error_chain;

/// The result of a step of an experiment.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The options make no sense; nothing was touched.
    Usage,
    /// This machine, kernel or user cannot do it.
    Impossible,
    /// Something failed on the way, or Ctrl-C came.
    Failed,
}

/// A failure that ends an experiment.
#[derive(Debug)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// What went wrong, causes included, in one line.
    pub text: String,
    /// What to try, if something may help.
    pub hint: Option<String>,
}

impl Error {
    /// A failure of this kind.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), hint: None }
    }

    /// Options that make no sense.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, text)
    }

    /// What this machine or user cannot do.
    pub fn impossible(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Impossible, text)
    }

    /// A failure on the way.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, text)
    }

    /// The same failure with something to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<measure::Error> for Error {
    fn from(error: measure::Error) -> Self {
        let kind = match error.kind {
            measure::ErrorKind::Usage => ErrorKind::Usage,
            measure::ErrorKind::Impossible => ErrorKind::Impossible,
            measure::ErrorKind::Failed | measure::ErrorKind::Implausible => ErrorKind::Failed,
        };
        Self::new(kind, error_chain(&error))
    }
}

impl From<place::Error> for Error {
    fn from(error: place::Error) -> Self {
        let kind = match error.kind {
            place::ErrorKind::Usage => ErrorKind::Usage,
            place::ErrorKind::Impossible => ErrorKind::Impossible,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error_chain(&error))
    }
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Self {
        let kind = match error.kind {
            record::ErrorKind::Usage => ErrorKind::Usage,
            record::ErrorKind::Impossible => ErrorKind::Impossible,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error_chain(&error))
    }
}

impl From<sys::Error> for Error {
    fn from(error: sys::Error) -> Self {
        let kind = match error.kind {
            sys::ErrorKind::Denied | sys::ErrorKind::Unsupported => ErrorKind::Impossible,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error_chain(&error))
    }
}
