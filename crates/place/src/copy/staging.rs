//! The hidden directory in which a copy grows, beside the place that it gets at the end.
//!
//! ```text
//! .terrace-copy.KEY/   KEY names the sources and the target, so the same command finds it again
//!   tree/              the copy: sealed files are complete and durable
//!   links/             a name for each inode that has several, while the copy runs
//!   offsets/           how far large files are durable
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
        if restart && is_resumed {
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
            is_resumed: is_resumed && !restart,
        })
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
        Ok(sys::file::sync_file_system(self.directory.file())?)
    }

    /// Removes it, when the copy has its place.
    pub(super) fn remove(self) -> Result<()> {
        remove_below(&self.directory)?;
        self.into.remove_directory(&self.name)?;
        self.into.sync()?;
        Ok(())
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
