//! Files that a listing has found: opened again by name only if they are still the same inode.
//!
//! As for all entries: a name is a single component, and no link is followed.

use super::{Directory, failed, single};
use crate::error::{Error, ErrorKind, Result};
use crate::file_stat::{FileStat, InodeKind};
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;

impl Directory {
    /// Another opening of the same directory, which is listed from its beginning.
    ///
    /// # Errors
    /// Without a free descriptor.
    pub fn reopen(&self) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.file, ".", flags, Mode::empty()) {
            Ok(opened) => opened.into(),
            // It may be entered and not listed.
            Err(Errno::ACCESS) => {
                self.file.try_clone().map_err(|source| Error::new("duplicate", source))?
            }
            Err(errno) => return Err(failed("open the directory", errno).at(&self.path)),
        };
        Ok(Self { file, path: self.path.clone(), exposure: self.exposure.clone() })
    }

    /// Opens the regular file that `stat` describes for reading. Reading it does not touch its
    /// access time where the kernel allows that. The descriptor does not block, which means nothing
    /// to a regular file but to a ring ([`Directory::open_regular`] is for that).
    ///
    /// # Errors
    /// `Other` with `ESTALE` if the name is another inode by now; `NotFound`, `Denied`.
    pub fn open_found(&self, name: &OsStr, stat: &FileStat) -> Result<File> {
        let harmless = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = match self.open_beneath("open", name, harmless | OFlags::NOATIME, 0) {
            Err(error) if error.kind == ErrorKind::Denied => {
                self.open_beneath("open", name, harmless, 0)?
            }
            opened => opened?,
        };
        let now = FileStat::of(&opened)?;
        if now.kind == InodeKind::File && now.is_same_file(stat) {
            return Ok(opened);
        }
        let source = io::Error::from_raw_os_error(libc::ESTALE);
        Err(Error::new("open", source).at(self.path.join(name)))
    }

    /// Opens a regular file for reading by few calls: only below a directory that this user alone
    /// can change, where nothing else has its name.
    ///
    /// # Errors
    /// `Invalid` for what is not a regular file; `Denied`, `NotFound`.
    pub fn open_beneath_private(&self, name: &OsStr) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_beneath("open", name, flags, 0)?;
        if FileStat::of(&file)?.kind == InodeKind::File {
            return Ok(file);
        }
        Err(Error::invalid("open", "it is not a regular file").at(self.path.join(name)))
    }

    /// Opens a regular file of this user for reading and writing, whatever other names it has: only
    /// below a directory that this user alone can change.
    ///
    /// # Errors
    /// `Denied` for a file of another user; `NotFound`.
    pub fn open_own_linked(&self, name: &OsStr) -> Result<File> {
        let file = self.open_beneath("open", name, OFlags::RDWR | OFlags::NOCTTY, 0)?;
        let stat = FileStat::of(&file)?;
        if stat.kind == InodeKind::File && stat.user == crate::process::effective_uid() {
            return Ok(file);
        }
        let source = io::Error::from_raw_os_error(libc::EPERM);
        Err(Error::new("open", source).at(self.path.join(name)))
    }

    /// Gives an entry another name in `to`, on the same file system, and replaces what has that
    /// name there.
    ///
    /// # Errors
    /// `NotFound`; `Other` with `EXDEV`, `EISDIR`, `ENOTDIR`; as for renaming.
    pub fn replace_in(&self, name: &OsStr, to: &Self, to_name: &OsStr) -> Result<()> {
        const OPERATION: &str = "rename";
        let (name, to_name) = (single(OPERATION, name)?, single(OPERATION, to_name)?);
        rustix::fs::renameat_with(&self.file, name, &to.file, to_name, RenameFlags::empty())
            .or_else(|errno| match errno {
                Errno::NOSYS => rustix::fs::renameat(&self.file, name, &to.file, to_name),
                errno => Err(errno),
            })
            .map_err(|errno| failed(OPERATION, errno).at(to.path.join(to_name)))
    }

    /// Exchanges an entry and one of `to`, on the same file system, at once.
    ///
    /// # Errors
    /// `NotFound` if one of them is absent, `Invalid` on file systems that cannot.
    pub fn exchange_with(&self, name: &OsStr, to: &Self, to_name: &OsStr) -> Result<()> {
        const OPERATION: &str = "exchange";
        let (name, to_name) = (single(OPERATION, name)?, single(OPERATION, to_name)?);
        rustix::fs::renameat_with(&self.file, name, &to.file, to_name, RenameFlags::EXCHANGE)
            .map_err(|errno| failed(OPERATION, errno).at(to.path.join(to_name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn a_directory_that_was_listed_is_listed_again_by_another_opening() {
        let parent = TempDir::new();
        std::fs::write(parent.join("file"), "one").unwrap();
        let directory = Directory::open(parent.path()).unwrap();
        for _ in 0..2 {
            let mut entries = Vec::new();
            directory.reopen().unwrap().list_some(&mut entries).unwrap();
            assert_eq!(entries.len(), 1);
        }
    }

    #[test]
    fn a_name_that_is_another_inode_by_now_is_not_opened() {
        let parent = TempDir::new();
        std::fs::write(parent.join("file"), "one").unwrap();
        std::fs::write(parent.join("other"), "two").unwrap();
        let directory = Directory::open(parent.path()).unwrap();
        let name = OsStr::new("file");
        let stat = directory.stat(name).unwrap();
        assert!(directory.open_found(name, &stat).is_ok());
        directory.replace_in(OsStr::new("other"), &directory.reopen().unwrap(), name).unwrap();
        assert_eq!(directory.open_found(name, &stat).unwrap_err().number(), Some(libc::ESTALE));
        std::fs::remove_file(parent.join("file")).unwrap();
        std::os::unix::fs::symlink("/dev/null", parent.join("file")).unwrap();
        assert!(directory.open_found(name, &stat).is_err());
    }
}
