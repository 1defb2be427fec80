//! What a cache keeps on the host: its key and its journal, in a directory of its own that only
//! this user can change, on another disk than the medium.
//!
//! The open journal is locked before it is read, so that two daemons never have the same cache; the
//! lock goes with the last request that is under way, also after a kill. A key that is lost is
//! drawn anew, and the cache is cold.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use sys::directory::Directory;
use sys::file::{Durability, FileMode, TempFile};
use sys::lock::{self, LockMode};

use super::volume::failed;
use crate::{Error, ErrorKind, Result};

const OPERATION: &str = "use the journal of a cache";
const KEY_NAME: &str = "key";
const JOURNAL_NAME: &str = "journal";
const KEY_BYTES: usize = 32;
const OWNER_ONLY: u32 = 0o600;

/// Says by the first bytes of a journal or a medium whether it is of a version that is not known:
/// `cache::newer_version`.
pub type NewerVersion = fn(&[u8]) -> Option<u16>;

/// A cache's part on the host, locked.
#[derive(Debug)]
pub struct HostPart {
    directory: Directory,
    journal: File,
    key: [u8; KEY_BYTES],
    /// The key was drawn now.
    pub is_key_new: bool,
}

impl HostPart {
    /// Opens the directory of the cache `name` below `state`, or makes it.
    ///
    /// # Errors
    /// `Usage` for a name that is not one of a file; `Impossible` if others can change it.
    pub fn directory(state: &Path, name: &str) -> Result<Directory> {
        let refused = |reason| Error::new(ErrorKind::Usage, OPERATION, reason).at(name);
        check_name(name).map_err(refused)?;
        let path = state.join(name);
        Directory::create_private(&path).map_err(|error| failed(&path, error))
    }

    /// Opens what is in the directory of a cache, or makes it, and locks it. The directory may be
    /// one that another process opened: the way to it is not walked again.
    ///
    /// # Errors
    /// `Impossible` if another daemon has it, if others can change or read what is there, or if the
    /// key is not one.
    pub fn open(directory: Directory) -> Result<Self> {
        let (directory, journal) = locked(directory)?;
        let (key, is_key_new) = key(&directory)?;
        directory.sync().map_err(|error| failed(directory.path(), error))?;
        Ok(Self { directory, journal, key, is_key_new })
    }

    /// Sees to it that no later attach finds what this directory proves of a cache, and holds its
    /// lock: the volume can then be written without the cache.
    ///
    /// # Errors
    /// As [`Self::open`], but for a key that is not one; if nothing of it can be removed.
    pub fn give_up(directory: Directory) -> Result<File> {
        let (directory, journal) = locked(directory)?;
        revoke(&directory)?;
        Ok(journal)
    }

    /// Its open directory, for a process that follows.
    #[must_use]
    pub fn directory_file(&self) -> &File {
        self.directory.file()
    }

    /// The key, which never leaves the host.
    #[must_use]
    pub fn key(&self) -> [u8; KEY_BYTES] {
        self.key
    }

    /// The open journal.
    #[must_use]
    pub fn journal(&self) -> &File {
        &self.journal
    }

    /// The number of the device that the journal is on.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn device(&self) -> Result<(u32, u32)> {
        let about = self.about()?;
        Ok(sys::block::device_numbers(about.dev()))
    }

    /// The whole journal as it is; nothing is written. It is empty for a new one.
    ///
    /// # Errors
    /// `Impossible` for one of a newer version, which is left as it is; `Failed` if it cannot be
    /// read.
    pub fn read_journal(&self, bytes_max: u64, newer: NewerVersion) -> Result<Vec<u8>> {
        let about = self.about()?;
        // What is behind the end of one of these sizes was of others, and counts for nothing.
        let bytes = about.len().min(bytes_max);
        let mut journal = vec![0; bytes as usize];
        let read = self.journal.read_exact_at(&mut journal, 0);
        read.map_err(|error| self.error(ErrorKind::Failed, error))?;
        match newer(&journal) {
            Some(major) => {
                let reason = format!(
                    "its journal is of version {major}, which this program does not know; it is \
                     left as it is"
                );
                Err(self.error(ErrorKind::Impossible, reason))
            }
            None => Ok(journal),
        }
    }

    /// Gives the journal the length that the engine expects, with all of its blocks, and lets what
    /// is written from here on go past the page cache, where the file system allows that. No byte
    /// changes but zeros that are added.
    ///
    /// So a write of the journal needs no page of memory, and making it durable waits for no other
    /// file: page-outs wait for it where memory is short.
    ///
    /// # Errors
    /// `Failed` without room.
    pub fn prepare_journal(&self, bytes: u64) -> Result<()> {
        let failed = |error| self.error(ErrorKind::Failed, error);
        let before = self.about()?;
        self.journal.set_len(bytes).map_err(failed)?;
        if before.len() < bytes || before.blocks() * 512 < bytes {
            // A block of a file that has no place on the disk yet gets one when it is written.
            let mut content = vec![0; bytes as usize];
            let written = self.journal.read_exact_at(&mut content, 0);
            written.and_then(|()| self.journal.write_all_at(&content, 0)).map_err(failed)?;
        }
        self.journal.sync_all().map_err(failed)?;
        match sys::file::set_direct(&self.journal, true) {
            Err(error) if error.kind != sys::ErrorKind::Unsupported => Err(failed(error.source)),
            _ => Ok(()),
        }
    }

    /// Sees to it that no later attach finds this journal with this key: the journal is removed,
    /// or the key where that fails.
    ///
    /// # Errors
    /// If neither can be removed.
    pub fn revoke(&self) -> Result<()> {
        revoke(&self.directory)
    }

    /// The directory, for what else is kept of this cache.
    #[must_use]
    pub fn state_directory(&self) -> &Directory {
        &self.directory
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    fn about(&self) -> Result<Metadata> {
        self.journal.metadata().map_err(|error| self.error(ErrorKind::Failed, error))
    }

    fn error(
        &self,
        kind: ErrorKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::new(kind, OPERATION, source).at(self.directory.path())
    }
}

/// The directory with its journal, which is locked.
fn locked(directory: Directory) -> Result<(Directory, File)> {
    let failed = |error| failed(directory.path(), error);
    let journal = directory.open_or_create(OsStr::new(JOURNAL_NAME), OWNER_ONLY).map_err(failed)?;
    if !lock::try_take(&journal, LockMode::Exclusive).map_err(failed)? {
        let reason = "another process serves this cache, or requests of one that was killed are \
                      still under way";
        let error = Error::new(ErrorKind::Impossible, OPERATION, reason);
        return Err(error.at(directory.path()));
    }
    Ok((directory, journal))
}

/// Removes the journal, or the key where that fails.
fn revoke(directory: &Directory) -> Result<()> {
    let remove = |name: &str| {
        let removed = directory.remove(OsStr::new(name));
        removed.and_then(|()| directory.sync()).map(drop)
    };
    let removed = remove(JOURNAL_NAME).or_else(|_| remove(KEY_NAME));
    removed.map_err(|error| failed(directory.path(), error))
}

/// Refuses what no cache may be called: its name is also that of a directory, and a word of command
/// lines.
///
/// # Errors
/// What a name has, as a sentence.
pub fn check_name(name: &str) -> std::result::Result<(), &'static str> {
    // A point would part the name of a series.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_name = !name.is_empty() && name.len() <= 64 && name.chars().all(is_letter);
    let is_right = is_name && !name.starts_with('-');
    is_right.then_some(()).ok_or(
        "a name has letters, digits, `-` and `_`, at most 64 of them, and begins with a letter, a \
         digit or `_`",
    )
}

/// The key of the cache, and whether it was drawn now.
fn key(directory: &Directory) -> Result<([u8; KEY_BYTES], bool)> {
    let at = |error| failed(&directory.path().join(KEY_NAME), error);
    let file = match directory.open_own(OsStr::new(KEY_NAME)) {
        Ok(file) => file,
        Err(error) if error.kind == sys::ErrorKind::NotFound => {
            return new_key(directory).map_err(at);
        }
        Err(error) => return Err(at(error)),
    };
    let refused = |reason: &str| {
        Err(Error::new(ErrorKind::Impossible, OPERATION, reason.to_owned())
            .at(directory.path().join(KEY_NAME)))
    };
    let about = file.metadata().map_err(|error| at(sys::Error::new("examine", error)))?;
    if about.mode() & 0o077 != 0 {
        return refused("others can read this key: chmod 600 it, or remove it to start cold");
    }
    let mut key = [0; KEY_BYTES];
    if about.len() != KEY_BYTES as u64 || file.read_exact_at(&mut key, 0).is_err() {
        return refused("it is not a key of 32 bytes; remove it to start cold");
    }
    Ok((key, false))
}

fn new_key(directory: &Directory) -> sys::Result<([u8; KEY_BYTES], bool)> {
    let key = random()?;
    let name = OsStr::new(KEY_NAME);
    let file = TempFile::create(directory, name, FileMode::OwnerOnly, Durability::Synced)?;
    file.file().write_all(&key).map_err(|error| sys::Error::new("write", error))?;
    file.put()?;
    Ok((key, true))
}

/// Bytes from the kernel, for keys, salts and names.
///
/// # Errors
/// Where the call is missing or filtered.
pub fn random<const BYTES: usize>() -> sys::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&sys::random::seed()?.to_le_bytes()[..part.len()]);
    }
    Ok(bytes)
}
