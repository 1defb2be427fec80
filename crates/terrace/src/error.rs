//! What went wrong, in one line for a person: `terrace: measure iolat: cannot open /x:
//! permission denied`, then a hint where there is one.
//!
//! The line is made of a chain of causes, outermost first, and never says the same twice.

use crate::exit::{self, Exit};
use model::error_chain;
use std::fmt;

/// The result of a step of this program.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that ends the command.
#[derive(Debug)]
pub struct Error {
    /// The exit status that it means.
    pub exit: Exit,
    /// The command that failed: `measure iolat`; empty before one is known.
    pub during: String,
    /// What went wrong, without the program's and the command's name.
    pub text: String,
    /// What to try, where there is something.
    pub hint: Option<String>,
}

impl Error {
    /// A failure in words.
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, during: String::new(), text: text.into(), hint: None }
    }

    /// A command line that makes no sense.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// The same failure, naming the command that it ended.
    pub fn during(mut self, command: &str) -> Self {
        if self.during.is_empty() {
            self.during = command.to_owned();
        }
        self
    }

    /// The same failure of `run`, where every status below 125 belongs to the command.
    pub fn of_run(mut self) -> Self {
        if !matches!(self.exit, Exit::Command(_)) {
            self.exit = exit::FAILED_BEFORE;
        }
        self
    }

    /// The same failure with something to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.during.is_empty() {
            write!(f, "{}: ", self.during)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<measure::Error> for Error {
    fn from(error: measure::Error) -> Self {
        let exit = match error.kind {
            measure::ErrorKind::Usage => Exit::Usage,
            measure::ErrorKind::Impossible => Exit::Impossible,
            measure::ErrorKind::Failed | measure::ErrorKind::Implausible => Exit::Partial,
        };
        Self::new(exit, error_chain(&error))
    }
}

impl From<place::Error> for Error {
    fn from(error: place::Error) -> Self {
        let exit = match error.kind {
            place::ErrorKind::Usage | place::ErrorKind::NotASnapshot => Exit::Usage,
            place::ErrorKind::Impossible => Exit::Impossible,
            _ => Exit::Partial,
        };
        Self::new(exit, error_chain(&error))
    }
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Self {
        let exit = match error.kind {
            record::ErrorKind::Usage | record::ErrorKind::NotARecording => Exit::Usage,
            record::ErrorKind::Impossible => Exit::Impossible,
            record::ErrorKind::CommandNotFound => exit::NOT_FOUND,
            record::ErrorKind::CommandNotExecutable => exit::NOT_EXECUTABLE,
            _ => Exit::Partial,
        };
        let failure = Self::new(exit, error_chain(&error));
        if exit == Exit::Impossible {
            return failure.hint("`terrace doctor` says what this machine allows");
        }
        failure
    }
}

impl From<lab::Error> for Error {
    fn from(error: lab::Error) -> Self {
        let exit = match error.kind {
            lab::ErrorKind::Usage => Exit::Usage,
            lab::ErrorKind::Impossible => Exit::Impossible,
            lab::ErrorKind::Failed => Exit::Partial,
        };
        Self { hint: error.hint, ..Self::new(exit, error.text) }
    }
}

impl From<sys::Error> for Error {
    fn from(error: sys::Error) -> Self {
        let exit = match error.kind {
            sys::ErrorKind::Denied | sys::ErrorKind::Unsupported => Exit::Impossible,
            _ => Exit::Partial,
        };
        Self::new(exit, error_chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::ErrorKind;
    use std::io;
    use std::path::Path;

    fn denied() -> sys::Error {
        sys::Error::new("open", io::Error::from_raw_os_error(13)).at("/x")
    }

    #[test]
    fn causes_are_chained_without_repetition() {
        let outer = measure::Error::caused(ErrorKind::Impossible, "open", denied());
        assert_eq!(error_chain(&outer.at(Path::new("/x"))), "cannot open /x: permission denied");
        let outer = measure::Error::caused(ErrorKind::Failed, "measure", denied());
        assert_eq!(error_chain(&outer), "cannot measure: cannot open /x: permission denied");
    }

    #[test]
    fn kinds_become_exit_codes() {
        let of = |kind| Error::from(measure::Error::new(kind, "do it", "no")).exit;
        assert_eq!(of(ErrorKind::Usage), Exit::Usage);
        assert_eq!(of(ErrorKind::Impossible), Exit::Impossible);
        assert_eq!(of(ErrorKind::Failed), Exit::Partial);
        assert_eq!(of(ErrorKind::Implausible), Exit::Partial);
    }

    #[test]
    fn the_first_command_named_stays() {
        let error = Error::usage("no").during("measure iolat").during("measure");
        assert_eq!(error.to_string(), "measure iolat: no");
    }
}
