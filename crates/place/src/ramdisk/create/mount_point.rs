//! Where a RAM disk gets its place: an empty directory, or a name that is free. It is held by its
//! parent's descriptor.

use super::{MAKE, absolute};
use crate::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};
use sys::mount::MountRestrictions;

/// The permissions of a directory that is made for a RAM disk.
const NEW_MODE: u32 = 0o755;

/// A place that is free.
#[derive(Debug)]
pub(super) struct MountPoint {
    /// The absolute path, without links.
    pub(super) path: PathBuf,
    /// What the mount forbids that it will be on: the RAM disk forbids the same.
    pub(super) restrictions: MountRestrictions,
    parent: Directory,
    name: OsString,
    /// The directory that is there; `None` if it is to be made.
    there: Option<FileStat>,
}

impl MountPoint {
    /// Examines the place; nothing is changed.
    ///
    /// # Errors
    /// `Usage` for a link, for a directory that is not empty, and where something is mounted.
    /// `covers_files`: the directory is there, and not empty.
    pub(super) fn examine(path: &Path, covers_files: bool) -> Result<Self> {
        let refused = |why: &str| Error::new(ErrorKind::Usage, MAKE, why.to_owned()).at(path);
        let unreachable = |error: &std::io::Error| refused(&sys::plain_reason(error));
        let whole = absolute(path).map_err(|error| unreachable(&error))?;
        let (Some(above), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(refused("it is the top of the whole tree"));
        };
        let parent = Directory::open(above).map_err(|error| unreachable(&error.source))?;
        let outside = FileStat::of(parent.file())?;
        let restrictions =
            MountRestrictions { read_only: false, ..MountRestrictions::of(parent.file())? };
        let there = match parent.stat(name) {
            Err(error) if error.kind == sys::ErrorKind::NotFound && !covers_files => None,
            Err(error) => return Err(unreachable(&error.source)),
            Ok(stat) if stat.kind == InodeKind::Link => {
                return Err(refused("it is a link; name the directory that it leads to"));
            }
            Ok(stat) if stat.kind != InodeKind::Directory => {
                return Err(refused("it is not a directory"));
            }
            Ok(stat) if stat.mount != outside.mount || stat.device != outside.device => {
                return Err(refused("it is taken: something is mounted there already"));
            }
            Ok(stat) => {
                if !covers_files && !parent.subdirectory(name)?.names()?.is_empty() {
                    return Err(refused(
                        "it is not empty, and the RAM disk would hide what is in it; `terrace \
                         ramdisk adopt` moves a directory onto a RAM disk",
                    ));
                }
                Some(stat)
            }
        };
        let (name, path) = (name.to_owned(), whole.clone());
        Ok(Self { path, restrictions, parent, name, there })
    }

    /// Whether the directory exists.
    pub(super) fn is_there(&self) -> bool {
        self.there.is_some()
    }

    /// Permissions, owner and group of the directory that the RAM disk will cover.
    pub(super) fn access(&self) -> (u32, u32, u32) {
        self.there.map_or((NEW_MODE, 0, 0), |stat| (stat.mode, stat.user, stat.group))
    }

    /// Opens the directory, and makes it if it does not exist.
    ///
    /// # Errors
    /// As for making it.
    pub(super) fn open_or_make(&self) -> Result<Directory> {
        Ok(match self.there {
            Some(_) => self.parent.subdirectory(&self.name)?,
            None => self.parent.create_subdirectory(&self.name, NEW_MODE)?,
        })
    }
}
