//! Replaces a file whole or not at all.
//!
//! 1. A temporary file is made in the directory of the target, under a random name, and locked.
//! 2. It is written and synced.
//! 3. It is renamed over the target, and the directory is synced.
//!
//! A reader opens the old file or the new one, never a part. Until the rename every error leaves
//! the old file as it was. If the process is killed, the temporary file remains without its lock,
//! and the next replacement of the same target removes it.

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::lock;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const OPERATION: &str = "replace";
/// The bits of a mode that a replacement takes over. It never has set-user-ID.
const MODE_BITS: u32 = 0o777;
/// Readable and writable by the owner.
const OWNER_ONLY: u32 = 0o600;
/// A temporary file is `.TARGET.RANDOM.part`.
const SUFFIX: &[u8] = b".part";
/// Bytes of the target's name in that of its temporary file: a name has at most 255.
const STEM_BYTES_MAX: usize = 200;
/// Attempts at a temporary file. Another process that sweeps can take away the new file before
/// it is locked; seen never, and eight times in a row is a fault.
const ATTEMPTS: u32 = 8;

/// Who may access the new file. It belongs to the user and group of this process, even if the
/// old file belonged to another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// Its owner alone, whatever the old file permitted.
    OwnerOnly,
    /// The same users as the old file. Without an old file, those of this mode, less the mask of
    /// the process.
    AsBefore {
        /// The mode of a file that did not exist.
        new: u32,
    },
}

/// What survives if the machine loses power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The old file or, once the call returned, the new one.
    Synced,
    /// Possibly an empty or damaged file: for a cache whose reader checks what it reads. A process
    /// that is killed still leaves the old file or the new one.
    Unsynced,
}

/// Replaces the file `name` in `directory`, which need not exist, by one that holds `contents`.
///
/// # Errors
/// As [`TempFile::create`], [`TempFile::put`], and as for writing. The old file is then as it was,
/// unless syncing the directory failed: then the new one is there, and may be lost in a power cut.
pub fn replace(
    directory: &Directory,
    name: &OsStr,
    contents: &[u8],
    mode: FileMode,
    durability: Durability,
) -> Result<()> {
    let temporary = TempFile::create(directory, name, mode, durability)?;
    let written = temporary.file().write_all(contents);
    written.map_err(|source| Error::new("write", source).at(temporary.target_path()))?;
    temporary.put()
}

/// A file that replaces its target when it is complete. It is removed on drop, unless it was put
/// in place.
#[derive(Debug)]
pub struct TempFile<'d> {
    directory: &'d Directory,
    target: OsString,
    file: File,
    /// Its name; `None` once it is the target's.
    name: Option<OsString>,
    durability: Durability,
}

impl<'d> TempFile<'d> {
    /// Makes the file, empty. Files that killed processes left for the same target are removed.
    ///
    /// # Errors
    /// As [`Directory::create_new`]; `Invalid` if the target is not a regular file.
    pub fn create(
        directory: &'d Directory,
        target: &OsStr,
        mode: FileMode,
        durability: Durability,
    ) -> Result<Self> {
        let path = || directory.path().join(target);
        let old = match directory.metadata(target) {
            Ok(about) if about.is_file() => Some(about.mode() & MODE_BITS),
            Ok(_) => return Err(Error::invalid(OPERATION, "it is not a regular file").at(path())),
            Err(error) if error.number() == Some(libc::ENOENT) => None,
            Err(error) => return Err(error),
        };
        // The mask of the process takes bits away only where no mode is set below.
        let (initial, exact) = match (mode, old) {
            (FileMode::OwnerOnly, _) => (OWNER_ONLY, Some(OWNER_ONLY)),
            (FileMode::AsBefore { .. }, Some(old)) => (OWNER_ONLY, Some(old)),
            (FileMode::AsBefore { new }, None) => (new, None),
        };
        sweep(directory, target);
        let (name, file) = create_locked(directory, target, initial)?;
        let made =
            Self { directory, target: target.to_owned(), file, name: Some(name), durability };
        if let Some(mode) = exact {
            let set = made.file.set_permissions(Permissions::from_mode(mode));
            set.map_err(|source| Error::new(OPERATION, source).at(path()))?;
        }
        Ok(made)
    }

    /// The file to write to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in the place of its target.
    ///
    /// # Errors
    /// `NoSpace`, `Device`, and as for renaming: the target is then as it was. An error of syncing
    /// the directory names the directory: the new file is then in place.
    pub fn put(self) -> Result<()> {
        self.put_by(Directory::rename)
    }

    /// The same where there must be no target yet.
    ///
    /// # Errors
    /// As [`Self::put`], and those of [`Directory::move_to`].
    pub fn put_new(self) -> Result<()> {
        self.put_by(|directory, name, target| directory.move_to(name, directory, target))
    }

    fn put_by(
        mut self,
        rename: impl FnOnce(&Directory, &OsStr, &OsStr) -> Result<()>,
    ) -> Result<()> {
        if self.durability == Durability::Synced {
            self.sync_file()?;
        }
        if let Some(name) = &self.name {
            rename(self.directory, name, &self.target)?;
        }
        self.name = None;
        if self.durability == Durability::Synced && !self.directory.sync()? {
            // File systems with a journal write the rename together with the file's own change.
            self.sync_file()?;
        }
        Ok(())
    }

    fn sync_file(&self) -> Result<()> {
        // Not only the data: the mode is part of what was promised.
        let synced = self.file.sync_all();
        synced.map_err(|source| Error::new("sync", source).at(self.target_path()))
    }

    fn target_path(&self) -> std::path::PathBuf {
        self.directory.path().join(&self.target)
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

/// A new file with a name for `target`, locked where the file system has locks.
fn create_locked(directory: &Directory, target: &OsStr, mode: u32) -> Result<(OsString, File)> {
    for _ in 0..ATTEMPTS {
        let mut name = prefix(target);
        name.push(format!("{:016x}", crate::random::seed()?));
        name.push(OsStr::from_bytes(SUFFIX));
        let file = match directory.create_new(&name, mode) {
            Err(error) if error.number() == Some(libc::EEXIST) => continue,
            made => made?,
        };
        // Without locks nothing is swept either, so the file is safe.
        let is_ours = lock::try_take(&file, lock::LockMode::Exclusive).unwrap_or(true);
        if is_ours && file.metadata().is_ok_and(|about| about.nlink() > 0) {
            return Ok((name, file));
        }
    }
    let source = std::io::Error::other("its temporary file is removed again and again");
    Err(Error::new(OPERATION, source).at(directory.path().join(target)))
}

/// Removes the temporary files of `target` that belong to this user and to no live process.
fn sweep(directory: &Directory, target: &OsStr) {
    let prefix = prefix(target);
    // A directory that may not be listed is not swept.
    for name in directory.names().unwrap_or_default() {
        if is_temporary(&name, &prefix)
            && let Ok(file) = directory.open_own(&name)
            && lock::try_take(&file, lock::LockMode::Exclusive).unwrap_or(false)
        {
            // What cannot be removed now is tried again next time.
            let _ = directory.remove(&name);
        }
    }
}

/// What the names of the temporary files of `target` begin with.
fn prefix(target: &OsStr) -> OsString {
    let bytes = target.as_bytes();
    let stem = &bytes[..bytes.len().min(STEM_BYTES_MAX)];
    OsString::from_iter([OsStr::new("."), OsStr::from_bytes(stem), OsStr::new(".")])
}

/// Whether `name` is `prefix`, hexadecimal digits, and [`SUFFIX`].
fn is_temporary(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(prefix.as_bytes());
    let digits = rest.and_then(|rest| rest.strip_suffix(SUFFIX));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests;
