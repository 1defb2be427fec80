//! The hidden directory in which a copy grows, beside the place that it gets at the end.
//!
//! ```text
//! .terrace-copy.KEY/   KEY names the sources and the target, so the same command finds it again
//!   tree/              the copy: sealed files are complete and durable
//!   links/             a name for each inode that has several, while the copy runs
//!   offsets/           how far large files are durable
//!   doubt              the file system failed to write: nothing of this is kept
//! ```
//!
//! The directory is locked while a copy works in it. What another command left is not touched.

use super::{CopyPlan, offsets};
use crate::tree::remove_below;
use crate::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::lock::{self, LockMode};
use xxhash_rust::xxh3::xxh3_64;

/// What the names of all staging directories begin with.
pub const PREFIX: &str = ".terrace-copy.";
const TREE: &str = "tree";
const LINKS: &str = "links";
const DOUBT: &str = "doubt";
/// A copy that is not complete is seen by its owner only.
const OWNER_ONLY: u32 = 0o700;

/// The staging directory of a copy, locked.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The target's directory.
    into: Directory,
    name: OsString,
    directory: Directory,
    tree: Directory,
    links: Directory,
    is_resumed: bool,
    is_doubted: bool,
}

impl Staging {
    /// Makes the directory, or opens what an earlier run of the same command left.
    ///
    /// # Errors
    /// `Impossible` where the target cannot be written to, or while another process does the same.
    pub(super) fn open(plan: &CopyPlan, restart: bool) -> Result<Self> {
        let into = plan.into.reopen()?;
        let mut name = OsString::from(PREFIX);
        name.push(key(plan));
        let made = match into.create_subdirectory(&name, OWNER_ONLY) {
            Err(error) if error.is_name_taken() => None,
            made => Some(made?),
        };
        let is_resumed = made.is_none();
        let directory = match made {
            Some(made) => made,
            None => {
                let found = into.subdirectory(&name)?;
                if let Some(fault) = found.fault_of_itself()? {
                    let path = found.path();
                    return Err(Error::new(ErrorKind::Impossible, "use", fault.why).at(path));
                }
                found
            }
        };
        if !lock::try_take(directory.file(), LockMode::Exclusive).unwrap_or(true) {
            let why = "another `terrace copy` of the same files is running";
            return Err(Error::new(ErrorKind::Impossible, "copy", why));
        }
        let is_doubted = is_resumed && directory.stat(OsStr::new(DOUBT)).is_ok();
        if is_doubted {
            empty_below(&directory, OsStr::new(TREE))?;
            empty_below(&directory, OsStr::new(offsets::DIRECTORY))?;
            // The doubt goes last: a power cut leaves no sealed file without it.
            sys::file::sync_file_system(directory.file())?;
        }
        if is_doubted || restart && is_resumed {
            remove_below(&directory)?;
        }
        // They say which inodes belong together in this run only.
        empty_below(&directory, OsStr::new(LINKS))?;
        Ok(Self {
            tree: subdirectory(&directory, TREE)?,
            links: subdirectory(&directory, LINKS)?,
            into,
            name,
            directory,
            is_resumed: is_resumed && !restart && !is_doubted,
            is_doubted,
        })
    }

    /// After a sync that failed: notes that nothing here is to be kept. If that cannot be made
    /// durable either, the disk is gone, or its file system takes nothing more and has its journal:
    /// then what was durable is, and the error is no longer [`ErrorKind::Damaging`].
    pub(super) fn doubt(&self, error: Error) -> Error {
        if error.kind != ErrorKind::Damaging {
            return error;
        }
        // Each descriptor reports an error once, and this one may not have reported that of before.
        let _ = sys::file::sync_file_system(self.directory.file());
        let noted = self.directory.create_new(OsStr::new(DOUBT), OWNER_ONLY).and_then(|file| {
            sys::file::sync_data(&file)?;
            sys::file::sync_file_system(self.directory.file())
        });
        match noted {
            Ok(()) => error,
            Err(_) => Error { kind: ErrorKind::Failed, ..error },
        }
    }

    /// Whether an earlier run of the same command left its part.
    pub(super) fn is_there(plan: &CopyPlan) -> bool {
        let mut name = OsString::from(PREFIX);
        name.push(key(plan));
        plan.into.stat(&name).is_ok()
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// The path that an entry of the tree gets, for messages.
    pub(super) fn final_path(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(self.tree.path()).unwrap_or(path);
        self.into.path().join(below)
    }

    /// Whether what an earlier run left was removed, as the file system had failed to write.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_doubted
    }

    /// Whether an earlier run left it.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The copy as it grows.
    pub(super) fn tree(&self) -> &Directory {
        &self.tree
    }

    /// Where inodes with several names are found again.
    pub(super) fn links(&self) -> &Directory {
        &self.links
    }

    /// Where it is recorded how far large files are durable.
    pub(super) fn offsets(&self) -> Result<Directory> {
        subdirectory(&self.directory, offsets::DIRECTORY)
    }

    /// Removes the further names of inodes, so that they have only those of the copy.
    pub(super) fn remove_links(&self) -> Result<()> {
        Ok(remove_below(&self.links)?)
    }

    /// Waits until everything in the file system is on its device.
    pub(super) fn make_durable(&self) -> Result<()> {
        sys::file::sync_file_system(self.directory.file()).map_err(sync_failed)
    }

    /// Removes it, when the copy has its place.
    pub(super) fn remove(self) -> Result<()> {
        remove_below(&self.directory)?;
        self.into.remove_directory(&self.name)?;
        let Err(error) = self.into.sync() else { return Ok(()) };
        // As in `doubt`, of which there is no place any more.
        let is_gone = self.into.sync().is_err();
        let failed = sync_failed(error);
        Err(if is_gone { Error { kind: ErrorKind::Failed, ..failed } } else { failed })
    }

    /// Staging directories that other commands left in the same directory. One that a copy works in
    /// is none.
    pub(super) fn others(&self) -> Vec<PathBuf> {
        let names = self.into.names().unwrap_or_default();
        let is_other =
            |name: &OsString| name.as_bytes().starts_with(PREFIX.as_bytes()) && *name != self.name;
        let is_left = |name: &OsString| {
            let found = self.into.subdirectory(name);
            found.is_ok_and(|found| {
                lock::try_take(found.file(), LockMode::Exclusive).unwrap_or(true)
            })
        };
        let left = names.into_iter().filter(is_other).filter(is_left);
        left.map(|name| self.into.path().join(name)).collect()
    }
}

/// An error of a sync: the file system's own data may be what was not written.
pub(super) fn sync_failed(error: sys::Error) -> Error {
    let is_of_device = error.is_of_device();
    let error = Error::from(error);
    if is_of_device { Error { kind: ErrorKind::Damaging, ..error } } else { error }
}

fn subdirectory(directory: &Directory, name: &str) -> Result<Directory> {
    let name = OsStr::new(name);
    match directory.create_subdirectory(name, OWNER_ONLY) {
        Err(error) if error.is_name_taken() => Ok(directory.subdirectory(name)?),
        made => Ok(made?),
    }
}

fn empty_below(directory: &Directory, name: &OsStr) -> Result<()> {
    match directory.subdirectory(name) {
        Ok(below) => Ok(remove_below(&below)?),
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether an earlier run had put the copy of `source` in place as `name` in `into`, and ended
/// before its hidden directory was removed.
pub(super) fn was_placed(into: &Directory, source: &Path, name: &OsStr) -> bool {
    let mut hidden = OsString::from(PREFIX);
    hidden.push(key_of(std::iter::once((source, Some(name)))));
    let Ok(found) = into.subdirectory(&hidden) else { return false };
    if !matches!(found.fault_of_itself(), Ok(None)) {
        return false;
    }
    let left = found.subdirectory(OsStr::new(TREE)).and_then(|tree| tree.stat(name));
    left.is_err_and(|error| error.kind == sys::ErrorKind::NotFound)
}

/// 16 hexadecimal digits of what was asked for: the sources by their absolute paths and the names
/// of their copies.
fn key(plan: &CopyPlan) -> String {
    key_of(plan.items.iter().map(|item| (item.real_path.as_path(), item.target_name.as_deref())))
}

fn key_of<'a>(items: impl Iterator<Item = (&'a Path, Option<&'a OsStr>)>) -> String {
    let mut text = Vec::new();
    for (path, target_name) in items {
        text.extend(path.as_os_str().as_bytes());
        text.push(0);
        text.extend(target_name.unwrap_or_default().as_bytes());
        text.push(0);
    }
    format!("{:016x}", xxh3_64(&text))
}
