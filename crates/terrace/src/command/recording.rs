//! A recording from the disk: a file, or the directory of a flight recorder.
//! All commands that take a recording open it here, and refuse alike.

use super::must_exist;
use crate::error::Result;
use model::recording::Recording;
use std::path::Path;

/// Reads the recording at `path`.
///
/// # Errors
/// When it cannot be read or is no recording. One that is cut or damaged opens with what is
/// whole, and says so.
pub fn open(path: &Path) -> Result<Recording> {
    open_one_of(path, 1)
}

/// As [`open`], for one of `count` recordings that are in memory at the same time.
///
/// # Errors
/// As [`open`].
pub fn open_one_of(path: &Path, count: usize) -> Result<Recording> {
    must_exist(path)?;
    Ok(record::file::open_one_of(path, count)?)
}
