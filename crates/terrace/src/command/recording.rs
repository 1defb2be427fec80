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
    must_exist(path)?;
    Ok(record::file::open(path)?)
}
