//! The directory in which an experiment keeps what it found: its own, so that nothing that is
//! there is ever replaced.

use crate::error::{Error, Result};
use crate::exit::Exit;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Whether `out` can be such a directory.
///
/// # Errors
/// `Usage` where something is there already.
pub fn check(out: &Path) -> Result<()> {
    let taken = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    match taken {
        false => Ok(()),
        true => Err(Error::usage(format!(
            "--out: {} is there and is no empty directory",
            out.display()
        ))),
    }
}

/// Makes it.
///
/// # Errors
/// `Usage` where that cannot be done.
pub fn make(out: &Path) -> Result<()> {
    fs::create_dir_all(out).map_err(|error| {
        let reason = sys::plain_reason(&error);
        Error::usage(format!("cannot make {}: {reason}", out.display()))
    })
}

/// Writes `result.json` into it.
///
/// # Errors
/// `Partial` where it could not be written.
pub fn write(out: &Path, json: &str) -> Result<()> {
    let file = out.join("result.json");
    fs::write(&file, json).map_err(|error| {
        let reason = sys::plain_reason(&error);
        let text = format!("cannot write {}: {reason}", file.display());
        Error::new(Exit::Partial, text)
    })
}
