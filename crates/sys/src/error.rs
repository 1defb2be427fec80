//! The one error of this crate: what kind, which operation, on which path, and the
//! kernel's own answer.
//!
//! `Display` already ends with the kernel's reason, so `source()` skips that reason and
//! a printed chain of causes never says the same thing twice.

use model::device::DeviceError;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The result of every call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A system call that failed.
#[derive(Debug)]
pub struct Error {
    /// What a caller can match on.
    pub kind: ErrorKind,
    /// The operation as a verb phrase that follows "cannot".
    pub operation: &'static str,
    /// The file concerned, where there is one.
    pub path: Option<PathBuf>,
    /// The kernel's answer, with its number where it gave one.
    pub source: io::Error,
}

/// The classes of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file, directory or device.
    NotFound,
    /// Permission is missing, or the file system is read-only.
    Denied,
    /// This kernel or file system does not have the facility.
    Unsupported,
    /// The device, the quota or the permitted file size is used up.
    NoSpace,
    /// Memory, or the kind of memory that was asked for, is not to be had.
    NoMemory,
    /// An argument that the kernel refuses: size, offset, alignment, kind of file.
    Invalid,
    /// The device failed (EIO and its relatives); the extent of the damage is unknown.
    Device,
    /// A signal arrived first.
    Interrupted,
    /// Anything else; the source says what.
    Other,
}

impl ErrorKind {
    /// The class of an I/O error; Linux error numbers first, then the portable kind.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::of_number(number),
            None => match error.kind() {
                io::ErrorKind::NotFound => Self::NotFound,
                io::ErrorKind::PermissionDenied => Self::Denied,
                io::ErrorKind::Unsupported => Self::Unsupported,
                io::ErrorKind::StorageFull => Self::NoSpace,
                io::ErrorKind::OutOfMemory => Self::NoMemory,
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::Invalid,
                io::ErrorKind::Interrupted => Self::Interrupted,
                _ => Self::Other,
            },
        }
    }

    fn of_number(number: i32) -> Self {
        // Not a `match`: EOPNOTSUPP and ENOTSUP are one number here and two elsewhere.
        let one_of = |numbers: &[i32]| numbers.contains(&number);
        if one_of(&[libc::ENOENT, libc::ENOTDIR, libc::ENXIO, libc::ENODEV]) {
            Self::NotFound
        } else if one_of(&[libc::EACCES, libc::EPERM, libc::EROFS]) {
            Self::Denied
        } else if one_of(&[libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTSUP, libc::ENOTTY]) {
            Self::Unsupported
        } else if one_of(&[libc::ENOSPC, libc::EDQUOT, libc::EFBIG]) {
            Self::NoSpace
        } else if number == libc::ENOMEM {
            Self::NoMemory
        } else if one_of(&[libc::EINVAL, libc::EBADF, libc::EFAULT, libc::EISDIR]) {
            Self::Invalid
        } else if one_of(&[libc::EIO, libc::EREMOTEIO, libc::ENOMEDIUM, libc::ETIMEDOUT]) {
            Self::Device
        } else if number == libc::EINTR {
            Self::Interrupted
        } else {
            Self::Other
        }
    }
}

impl Error {
    /// An error of `operation`, its kind taken from `source`.
    #[must_use]
    pub fn new(operation: &'static str, source: io::Error) -> Self {
        Self { kind: ErrorKind::of(&source), operation, path: None, source }
    }

    /// The same error, naming the file that it is about.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// The error that the last failed C call of this thread left in `errno`.
    pub(crate) fn last(operation: &'static str) -> Self {
        Self::new(operation, io::Error::last_os_error())
    }

    /// A caller's argument that is refused before the kernel sees it.
    pub(crate) fn invalid(operation: &'static str, why: &'static str) -> Self {
        Self::new(operation, io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// Whether a name that was to be made exists.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        self.number() == Some(libc::EEXIST)
    }

    /// Whether what is stored answered: the name is absent or that of another kind of entry, or the
    /// file system found its own data damaged. Any other error says nothing about what is stored.
    #[must_use]
    pub fn is_of_stored_data(&self) -> bool {
        const NUMBERS: [i32; 6] =
            [libc::ENOENT, libc::ENOTDIR, libc::EISDIR, libc::ELOOP, libc::EUCLEAN, libc::EBADMSG];
        // Without a number the entry was examined here, and is of another kind.
        self.number().is_none_or(|number| NUMBERS.contains(&number))
    }

    /// Whether a device failed a request (`EIO`), as when it was pulled.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        self.number() == Some(libc::EIO)
    }

    /// The error number, where the kernel gave one.
    #[must_use]
    pub fn number(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(out, " {}", path.display())?;
        }
        write!(out, ": {}", plain_reason(&self.source))
    }
}

impl std::error::Error for Error {
    /// What lies beneath the reason that `Display` has already given; `None` for a kernel error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.source)
    }
}

impl From<DeviceError> for Error {
    /// The same operation and reason, without the offset.
    fn from(error: DeviceError) -> Self {
        Self::new(error.operation, error.source)
    }
}

/// The reason in words: without "(os error 13)", and starting as the middle of a sentence.
#[must_use]
pub fn plain_reason(error: &io::Error) -> String {
    let whole = error.to_string();
    let text = whole.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        // "RAM is short" keeps its capitals, "Permission denied" does not.
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

/// Makes the [`Error`] of an operation from an error number, for `map_err`.
pub(crate) fn failed(operation: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::new(operation, errno.into())
}

/// The descriptor that a system call answered with, or the [`Error`] of its -1.
pub(crate) fn owned(operation: &'static str, answer: libc::c_long) -> Result<OwnedFd> {
    let descriptor = check(operation, answer as libc::c_int)?;
    // SAFETY: the kernel has just given this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Turns the -1 of a C call into an [`Error`].
pub(crate) fn check(operation: &'static str, answer: libc::c_int) -> Result<libc::c_int> {
    if answer == -1 { Err(Error::last(operation)) } else { Ok(answer) }
}

/// Turns the -1 of a counting C call into an [`Error`], and repeats it while signals interrupt.
pub(crate) fn count(operation: &'static str, mut call: impl FnMut() -> isize) -> Result<usize> {
    loop {
        // A negative answer does not convert, and -1 is the only one there is.
        match usize::try_from(call()) {
            Ok(bytes) => return Ok(bytes),
            Err(_) => {
                let error = Error::last(operation);
                if error.kind != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn text_is_one_plain_line() {
        let error = Error::new("open", io::Error::from_raw_os_error(libc::EACCES)).at("/dev/x");
        assert_eq!(error.to_string(), "cannot open /dev/x: permission denied");
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(error.source().is_none(), "the reason is already in the text");
    }

    #[test]
    fn acronyms_keep_their_capitals() {
        assert_eq!(plain_reason(&io::Error::other("RAM is short")), "RAM is short");
        assert_eq!(plain_reason(&io::Error::other("")), "");
    }

    #[test]
    fn only_some_errors_are_of_what_is_stored() {
        let of =
            |number| Error::new("open", io::Error::from_raw_os_error(number)).is_of_stored_data();
        assert!([libc::ENOENT, libc::ENOTDIR, libc::EUCLEAN, libc::EBADMSG].into_iter().all(of));
        let others = [
            libc::EIO,
            libc::ENODEV,
            libc::ENXIO,
            libc::ENODATA,
            libc::EMFILE,
            libc::ENOMEM,
            libc::EACCES,
            libc::EROFS,
        ];
        assert!(!others.into_iter().any(of));
        assert!(Error::invalid("open", "it is not a regular file").is_of_stored_data());
    }

    #[test]
    fn kinds_follow_the_number() {
        let kind = |number| ErrorKind::of(&io::Error::from_raw_os_error(number));
        assert_eq!(kind(libc::ENOENT), ErrorKind::NotFound);
        assert_eq!(kind(libc::EROFS), ErrorKind::Denied);
        assert_eq!(kind(libc::EOPNOTSUPP), ErrorKind::Unsupported);
        assert_eq!(kind(libc::ENOSPC), ErrorKind::NoSpace);
        assert_eq!(kind(libc::ENOMEM), ErrorKind::NoMemory);
        assert_eq!(kind(libc::EINVAL), ErrorKind::Invalid);
        assert_eq!(kind(libc::EIO), ErrorKind::Device);
        assert_eq!(kind(libc::EINTR), ErrorKind::Interrupted);
        assert_eq!(kind(libc::ELOOP), ErrorKind::Other);
    }
}
