//! A recording from the disk: a file, or the directory of a flight recorder.
//! All commands that take a recording open it here, and refuse alike.

use crate::error::{Error, Result};
use model::recording::Recording;
use std::path::Path;

/// Reads the recording at `path`.
///
/// # Errors
/// When it cannot be read or is no recording. One that is cut or damaged opens with what is
/// whole, and says so.
pub fn open(path: &Path) -> Result<Recording> {
    if let Err(error) = path.metadata() {
        let reason = sys::plain_reason(&error);
        let text = format!("cannot open {}: {reason}", path.display());
        return Err(Error::usage(text));
    }
    Ok(record::file::open(path)?)
}
