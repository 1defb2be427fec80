//! Entries of a directory that are not regular files: links, names of the same inode, pipes,
//! sockets and devices.
//!
//! As for files: a name is a single component, and no link is followed.

use super::{Directory, failed, single};
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;

/// What can be made with [`Directory::create_special`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFile {
    /// A named pipe.
    Pipe,
    /// A socket that nothing listens at.
    Socket,
    /// A character device by its number.
    CharacterDevice(u64),
    /// A block device by its number.
    BlockDevice(u64),
}

impl Directory {
    /// Holds an entry without opening it (`O_PATH`): a link itself, a device without its effects.
    ///
    /// # Errors
    /// `NotFound`, and as for examining it.
    pub fn hold(&self, name: &OsStr) -> Result<File> {
        self.open_beneath("examine", name, OFlags::PATH, 0)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// `Other` with `EEXIST` if the name is taken; as for making it.
    pub fn create_link(&self, name: &OsStr, target: &OsStr) -> Result<()> {
        const OPERATION: &str = "make the link";
        let name = single(OPERATION, name)?;
        rustix::fs::symlinkat(target, self.file(), name)
            .map_err(|errno| failed(OPERATION, errno).at(self.path().join(name)))
    }

    /// Where a symbolic link leads to.
    ///
    /// # Errors
    /// `Invalid` for what is not a link; `NotFound`.
    pub fn read_link(&self, name: &OsStr) -> Result<OsString> {
        const OPERATION: &str = "read the link";
        let name = single(OPERATION, name)?;
        rustix::fs::readlinkat(self.file(), name, Vec::new())
            .map(|target| OsString::from_vec(target.into_bytes()))
            .map_err(|errno| failed(OPERATION, errno).at(self.path().join(name)))
    }

    /// Makes a pipe, a socket or a device.
    ///
    /// # Errors
    /// `Denied` for devices unless root; `Other` with `EEXIST` if the name is taken.
    pub fn create_special(&self, name: &OsStr, kind: SpecialFile, mode: u32) -> Result<()> {
        const OPERATION: &str = "make the special file";
        let name = single(OPERATION, name)?;
        let (file_type, device) = match kind {
            SpecialFile::Pipe => (FileType::Fifo, 0),
            SpecialFile::Socket => (FileType::Socket, 0),
            SpecialFile::CharacterDevice(device) => (FileType::CharacterDevice, device),
            SpecialFile::BlockDevice(device) => (FileType::BlockDevice, device),
        };
        rustix::fs::mknodat(self.file(), name, file_type, Mode::from_raw_mode(mode), device)
            .map_err(|errno| failed(OPERATION, errno).at(self.path().join(name)))
    }

    /// Gives an entry of `from` a second name here: both are one inode afterwards.
    ///
    /// # Errors
    /// `Other` with `EEXIST` if the name is taken, `EXDEV` across file systems, `EMLINK`.
    pub fn create_hard_link(&self, name: &OsStr, from: &Self, from_name: &OsStr) -> Result<()> {
        const OPERATION: &str = "make the hard link";
        let (name, from_name) = (single(OPERATION, name)?, single(OPERATION, from_name)?);
        let flags = AtFlags::empty();
        rustix::fs::linkat(from.file(), from_name, self.file(), name, flags)
            .map_err(|errno| failed(OPERATION, errno).at(self.path().join(name)))
    }

    /// Moves an entry into another directory of the file system, where its name must be free.
    ///
    /// # Errors
    /// `Other` with `EEXIST` if the name is taken there; `NotFound`; `Unsupported` where the file
    /// system cannot promise that nothing is replaced.
    pub fn move_to(&self, name: &OsStr, to: &Self, to_name: &OsStr) -> Result<()> {
        const OPERATION: &str = "move";
        let (name, to_name) = (single(OPERATION, name)?, single(OPERATION, to_name)?);
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(self.file(), name, to.file(), to_name, flags) {
            Ok(()) => Ok(()),
            // Of a file system without the flag.
            Err(Errno::INVAL) => {
                Err(Error::new(OPERATION, Errno::OPNOTSUPP.into()).at(to.path().join(to_name)))
            }
            Err(errno) => Err(failed(OPERATION, errno).at(self.path().join(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::path::PathBuf;
    use testkit::TempDir;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    fn made() -> (TempDir, Directory) {
        let parent = TempDir::new();
        let directory = Directory::create_private(&parent.join("own")).unwrap();
        (parent, directory)
    }

    #[test]
    fn links_pipes_and_second_names_are_made_and_moved() {
        let (parent, directory) = made();
        directory.create_link(name("link"), name("../elsewhere")).unwrap();
        assert_eq!(directory.read_link(name("link")).unwrap(), name("../elsewhere"));
        assert!(directory.hold(name("link")).unwrap().metadata().unwrap().is_symlink());

        directory.create_special(name("pipe"), SpecialFile::Pipe, 0o640).unwrap();
        directory.create_special(name("socket"), SpecialFile::Socket, 0o600).unwrap();
        let pipe = directory.metadata(name("pipe")).unwrap();
        assert!(pipe.file_type().is_fifo() && pipe.mode() & 0o777 == 0o640);
        assert!(directory.metadata(name("socket")).unwrap().file_type().is_socket());

        let below = directory.create_subdirectory(name("below"), 0o700).unwrap();
        below.create_hard_link(name("second"), &directory, name("pipe")).unwrap();
        let second = below.metadata(name("second")).unwrap();
        assert_eq!((second.ino(), second.nlink()), (pipe.ino(), 2));

        let taken = directory.move_to(name("pipe"), &below, name("second")).unwrap_err();
        assert_eq!(taken.number(), Some(libc::EEXIST));
        directory.move_to(name("link"), &below, name("moved")).unwrap();
        let moved: PathBuf = parent.join("own/below/moved");
        assert_eq!(std::fs::read_link(moved).unwrap(), PathBuf::from("../elsewhere"));
    }

    #[test]
    fn a_device_has_the_number_that_was_asked_for() {
        let (_parent, directory) = made();
        let number = std::fs::metadata("/dev/null").unwrap().rdev();
        let kind = SpecialFile::CharacterDevice(number);
        match directory.create_special(name("null"), kind, 0o600) {
            Ok(()) => {
                let device = directory.metadata(name("null")).unwrap();
                assert!(device.file_type().is_char_device() && device.rdev() == number);
            }
            Err(error) => testkit::skip(format!("root in no user namespace: {error}")),
        }
    }

    #[test]
    fn a_name_of_two_components_is_refused() {
        let (_parent, directory) = made();
        for bad in ["a/b", "..", "", "."] {
            assert!(directory.create_link(name(bad), name("x")).is_err(), "{bad}");
            assert!(directory.create_special(name(bad), SpecialFile::Pipe, 0o600).is_err());
            assert!(directory.create_hard_link(name(bad), &directory, name("x")).is_err());
            assert!(directory.move_to(name(bad), &directory, name("x")).is_err());
            assert!(directory.read_link(name(bad)).is_err());
        }
    }
}
