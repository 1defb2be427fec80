//! Where a generation is restored to: a hidden directory until all of it is there. What a killed
//! restore left is removed by the next one.

use crate::ramdisk::hidden;
use crate::tree::remove_below;
use crate::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::path::Path;
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};

/// What the names of hidden directories begin with.
pub(in crate::ramdisk) const PREFIX: &str = ".terrace-restore.";

/// The target and the hidden directory.
#[derive(Debug)]
pub(super) struct RestoreTarget {
    /// The directory that holds the hidden one.
    holder: Directory,
    hidden_name: OsString,
    hidden: Directory,
    place: Place,
}

/// How what was restored gets its name.
#[derive(Debug)]
enum Place {
    /// The hidden directory becomes this entry of the holder, which is free or an empty directory.
    Entry(OsString),
    /// The holder is the target: the top of a mount.
    Holder,
    /// The hidden directory is the target, and becomes visible otherwise.
    Hidden,
}

impl RestoreTarget {
    /// Makes the hidden directory. What killed restores left there is removed.
    ///
    /// # Errors
    /// `Usage` if the target is there and no empty directory.
    pub(super) fn prepare(target: &Path) -> Result<Self> {
        let refused =
            |why: &str| Error::new(ErrorKind::Usage, "restore to", why.to_owned()).at(target);
        let (parent, name) = match (target.parent(), target.file_name()) {
            (Some(parent), Some(name)) => (Path::new(".").join(parent), name.to_owned()),
            _ => return Err(refused("name the directory itself")),
        };
        let parent = Directory::open(&parent).map_err(|error| {
            Error::new(ErrorKind::Usage, "restore to", sys::plain_reason(&error.source)).at(target)
        })?;
        let (holder, place) = match parent.stat(&name) {
            Err(error) if error.kind == sys::ErrorKind::NotFound => (parent, Place::Entry(name)),
            Err(error) => return Err(error.into()),
            Ok(stat) if stat.kind != InodeKind::Directory => {
                return Err(refused("it is not a directory"));
            }
            Ok(_) => {
                let there = parent.subdirectory(&name)?;
                hidden::sweep(&there, PREFIX);
                if !there.names()?.is_empty() {
                    return Err(refused("it is not empty, and nothing is replaced"));
                }
                let (inside, outside) = (FileStat::of(there.file())?, FileStat::of(parent.file())?);
                let is_mount = inside.device != outside.device || inside.mount != outside.mount;
                if is_mount { (there, Place::Holder) } else { (parent, Place::Entry(name)) }
            }
        };
        let (hidden_name, hidden) = hidden::make(&holder, PREFIX)?;
        Ok(Self { holder, hidden_name, hidden, place })
    }

    /// A directory that no other process sees.
    ///
    /// # Errors
    /// Without a free descriptor.
    pub(super) fn hidden_already(hidden: &Directory) -> Result<Self> {
        let (holder, hidden) = (hidden.reopen()?, hidden.reopen()?);
        Ok(Self { holder, hidden_name: OsString::new(), hidden, place: Place::Hidden })
    }

    /// Where the entries grow.
    pub(super) fn hidden(&self) -> &Directory {
        &self.hidden
    }

    /// Gives what was restored its name; the directory.
    pub(super) fn place(self) -> Result<Directory> {
        match &self.place {
            Place::Entry(name) => {
                // An empty directory with that name is replaced, nothing else is.
                self.holder.replace_in(&self.hidden_name, &self.holder, name)?;
                self.holder.sync()?;
                Ok(self.holder.subdirectory(name)?)
            }
            Place::Hidden => Ok(self.hidden),
            Place::Holder => {
                let hidden = self.hidden.reopen()?;
                // Before it changes by what is moved out of it.
                let metadata = crate::metadata::FileMetadata::of(hidden.file())?;
                for name in hidden.names()? {
                    hidden.move_to(&name, &self.holder, &name)?;
                }
                self.holder.remove_directory(&self.hidden_name)?;
                metadata.apply(self.holder.file())?;
                metadata.seal(self.holder.file())?;
                self.holder.sync()?;
                Ok(self.holder)
            }
        }
    }

    /// Removes what was restored.
    pub(super) fn give_up(self) -> Result<()> {
        if matches!(self.place, Place::Hidden) {
            return Ok(());
        }
        remove_below(&self.hidden)?;
        Ok(self.holder.remove_directory(&self.hidden_name)?)
    }
}
