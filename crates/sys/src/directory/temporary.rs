//! A file that is written whole or not at all: made under another name in the same directory,
//! synced, renamed over its target, and the directory synced too.

use super::Directory;
use crate::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// The bits of a mode that `chmod` sets.
const MODE_BITS: u32 = 0o777;

/// The file while it is written; removed on drop, unless it was renamed.
#[derive(Debug)]
pub struct TempFile<'d> {
    directory: &'d Directory,
    target: OsString,
    file: File,
    name: Option<OsString>,
}

impl<'d> TempFile<'d> {
    /// Makes the file, empty. It never has more permissions than its target has, or than
    /// `mode` where the target does not exist.
    ///
    /// # Errors
    /// As [`Directory::create_new`]; `Invalid` if the target is not a regular file.
    pub fn create(directory: &'d Directory, target: &OsStr, mode: u32) -> Result<Self> {
        const OPERATION: &str = "replace";
        let old = match directory.metadata(target) {
            Ok(about) if about.is_file() => Some(about.mode() & MODE_BITS),
            Ok(_) => {
                let error = Error::invalid(OPERATION, "it is not a regular file");
                return Err(error.at(directory.path().join(target)));
            }
            Err(error) if error.number() == Some(libc::ENOENT) => None,
            Err(error) => return Err(error),
        };
        let mut name = OsString::from(".");
        name.push(target);
        name.push(format!(".{}.part", std::process::id()));
        let file = match directory.create_new(&name, old.unwrap_or(mode)) {
            // A process of the same number was killed here.
            Err(error) if error.number() == Some(libc::EEXIST) => {
                drop(directory.open_own(&name)?);
                directory.remove(&name)?;
                directory.create_new(&name, old.unwrap_or(mode))?
            }
            made => made?,
        };
        let made = Self {
            directory,
            target: target.to_owned(),
            file,
            name: Some(name),
        };
        if let Some(old) = old {
            // The mask of the process may have taken bits away that the target has.
            let set = made.file.set_permissions(Permissions::from_mode(old));
            set.map_err(|source| Error::new(OPERATION, source).at(directory.path().join(target)))?;
        }
        Ok(made)
    }

    /// The file to write to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file, whole and durable, in the place of its target.
    ///
    /// # Errors
    /// `NoSpace`, `Device`, and as for renaming; the target is then as it was.
    pub fn put(mut self) -> Result<()> {
        let path = || self.directory.path().join(&self.target);
        crate::file::sync_data(&self.file).map_err(|error| error.at(path()))?;
        if let Some(name) = &self.name {
            self.directory.rename(name, &self.target)?;
        }
        self.name = None;
        self.directory.sync()
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Writing has failed already and was reported; a second error would hide it.
            let _ = self.directory.remove(name);
        }
    }
}
