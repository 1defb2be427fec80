//! The program's own file: it never has a name that outlives its creation, so nothing is
//! left behind whatever ends the process.
//!
//! `O_TMPFILE` where the file system has it. Elsewhere the file is created under a random
//! name and unlinked at once: only a SIGKILL or a power cut between these two calls leaves
//! an empty file, named so that it can be recognised.

use super::direct_refusal;
use crate::directory::Directory;
use crate::error::{Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many random names are tried; one collision in 2^64 is already a broken generator.
const NAME_TRIES: u32 = 8;
/// Readable and writable by the owner only: probe data is private.
const MODE: u32 = 0o600;

/// An open file without a name, readable and writable; its space is free again on drop.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    directory: PathBuf,
}

impl Scratch {
    /// Creates an empty scratch file on the file system that holds `directory`.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, `NoSpace` as for creating a file there.
    pub fn create_in(directory: &Path) -> Result<Self> {
        let opened = Directory::open(directory);
        Self::create(&opened.map_err(|error| creation_error(error.source, directory))?)
    }

    /// Creates an empty scratch file on the file system that holds `directory`.
    ///
    /// # Errors
    /// As [`Scratch::create_in`].
    pub fn create(directory: &Directory) -> Result<Self> {
        match Self::nameless(directory) {
            Err(error) if lacks_nameless(&error) => Self::unlinked(directory),
            other => other,
        }
    }

    /// The file itself, with the cache in use.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A second opening of the same file with its own position and flags.
    ///
    /// # Errors
    /// `NotFound` where /proc is not mounted.
    pub fn reopen(&self) -> Result<File> {
        self.open_again(false)
    }

    /// As [`Scratch::reopen`], with `O_DIRECT`.
    ///
    /// # Errors
    /// `Unsupported` if the file system has no direct I/O; `NotFound` where /proc is not mounted.
    pub fn reopen_direct(&self) -> Result<File> {
        self.open_again(true)
    }

    fn open_again(&self, direct: bool) -> Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(if direct { libc::O_DIRECT } else { 0 })
            .open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
            .map_err(|source| Error::new("reopen the scratch file in", source).at(&self.directory))
            .map_err(|error| direct_refusal(error, direct))
    }

    fn nameless(directory: &Directory) -> Result<Self> {
        directory
            .create_nameless(MODE)
            .map(|file| Self { file, directory: directory.path().to_owned() })
            .map_err(|error| creation_error(error.source, directory.path()))
    }

    /// The way for file systems without `O_TMPFILE`.
    pub(super) fn unlinked(directory: &Directory) -> Result<Self> {
        let mut tries = 0;
        loop {
            tries += 1;
            let name = format!(".terrace-scratch-{:016x}", crate::random::seed()?);
            match directory.create_new(OsStr::new(&name), MODE) {
                Ok(file) => {
                    directory.remove(OsStr::new(&name))?;
                    return Ok(Self { file, directory: directory.path().to_owned() });
                }
                Err(error) if error.number() == Some(libc::EEXIST) && tries < NAME_TRIES => {}
                Err(error) => return Err(creation_error(error.source, directory.path())),
            }
        }
    }
}

fn creation_error(source: std::io::Error, directory: &Path) -> Error {
    Error::new("create a scratch file in", source).at(directory)
}

/// Old kernels take the flag for an attempt to write to the directory (EISDIR).
fn lacks_nameless(error: &Error) -> bool {
    error.kind == ErrorKind::Unsupported
        || matches!(error.number(), Some(libc::EISDIR | libc::EINVAL | libc::ENOENT))
}
