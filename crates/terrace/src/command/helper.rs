//! How this program is called again, by one of its hidden commands: a process of its own
//! where a thread would not do.

use crate::error::{Error, Result};
use crate::exit::Exit;
use std::ffi::OsString;

/// This program and its hidden command, as the words to start.
///
/// # Errors
/// When the file of this program is not known.
pub fn argv(command: &str) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().map_err(|error| {
        let why = sys::plain_reason(&error);
        let text = format!("cannot find this program's own file: {why}");
        Error::new(Exit::Partial, text)
    })?;
    Ok(vec![program.into(), OsString::from(command)])
}
