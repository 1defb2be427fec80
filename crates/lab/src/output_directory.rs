//! The directory in which an experiment keeps what it found: its own, so that nothing that is
//! there is ever replaced. It is held open from the start, and belongs to this user alone.

use crate::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;
use sys::directory::Directory;

/// Others may pass through it to the directory of a database, and read nothing.
const MODE: u32 = 0o711;

/// Whether `out` can be such a directory.
///
/// # Errors
/// `Usage` where something is there already, or where another user can change it.
fn check(out: &Path) -> Result<()> {
    match Directory::open(out) {
        Ok(directory) => must_be_own(&directory).and_then(|()| must_be_empty(&directory)),
        Err(error) if error.source.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unusable(out, &error)),
    }
}

/// Checks the values of `--out` and `--disk`, as far as they are given.
///
/// # Errors
/// `Usage` if `out` exists already or another user can change it, or if `disk` is not a directory.
pub fn check_options(out: Option<&Path>, disk: Option<&Path>) -> Result<()> {
    out.map_or(Ok(()), check)?;
    match disk.filter(|disk| !disk.is_dir()) {
        None => Ok(()),
        Some(disk) => Err(Error::usage(format!("--disk: {} is no directory", disk.display()))),
    }
}

/// Makes the directory `out`.
///
/// # Errors
/// `Usage` if it exists with content, if another user can change it, or if it cannot be made.
pub fn make(out: &Path) -> Result<()> {
    open(out).and_then(|directory| must_be_empty(&directory))
}

/// Opens the directory `out`, which is made if it is missing.
///
/// # Errors
/// `Usage` if another user can change it, or if it cannot be made.
pub fn open(out: &Path) -> Result<Directory> {
    let directory = Directory::create(out, MODE).map_err(|error| unusable(out, &error))?;
    must_be_own(&directory)?;
    Ok(directory)
}

fn must_be_own(directory: &Directory) -> Result<()> {
    let out = directory.path().display();
    match directory.fault_of_itself()? {
        None => Ok(()),
        Some(fault) => {
            let error = Error::usage(format!("--out: cannot use {out}: {}", fault.why));
            Err(error.hint("it takes a directory that only you can change"))
        }
    }
}

fn must_be_empty(directory: &Directory) -> Result<()> {
    if directory.names()?.is_empty() {
        Ok(())
    } else {
        Err(Error::usage(format!(
            "--out: {} is there and is no empty directory",
            directory.path().display()
        )))
    }
}

fn unusable(out: &Path, error: &sys::Error) -> Error {
    let text = match error.source.kind() {
        ErrorKind::NotADirectory => {
            format!("--out: {} is there and is no empty directory", out.display())
        }
        _ => format!("--out: {error}"),
    };
    Error::usage(text)
}
