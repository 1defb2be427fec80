//! Opening files of others so that nothing about them changes, not even when they were last
//! read.

use super::refuse_special;
use crate::error::{Error, Kind, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file or directory for reading. Reading it does not touch its access time
/// where the kernel allows that: to the owner and to root (`O_NOATIME`).
///
/// # Errors
/// `Invalid` for any other kind of file, which is not opened.
pub fn open_unnoticed(path: &Path) -> Result<File> {
    let fail = |source| Error::new("open", source).at(path);
    refuse_special(&std::fs::metadata(path).map_err(fail)?).map_err(fail)?;
    let open = |no_access_time| {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | no_access_time)
            .open(path)
    };
    let file = open(libc::O_NOATIME)
        .or_else(|error| match Kind::of(&error) {
            Kind::Denied => open(0),
            _ => Err(error),
        })
        .map_err(fail)?;
    // The name may have been exchanged in between, and O_NONBLOCK kept that harmless. To what
    // is opened here it means nothing, so it stays: files are opened by the ten thousand.
    refuse_special(&file.metadata().map_err(fail)?).map_err(fail)?;
    Ok(file)
}
