//! What the kernel says of an inode, by one `statx`: kind, owner, permissions, sizes and times.
//!
//! A name is examined itself and never followed, and an automount is not triggered. Where the
//! kernel does not say when a file was made, or which mount it is on, that is absent.

use crate::attributes::FileTime;
use crate::directory::{Directory, SpecialFile, single};
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use std::ffi::OsStr;
use std::fs::File;

const OPERATION: &str = "examine";

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

/// What `statx` reports of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: InodeKind,
    /// The permissions: 12 bits.
    pub mode: u32,
    /// The number of its owner.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
    /// The number of the device that it is on.
    pub device: u64,
    /// The number of its inode there.
    pub inode: u64,
    /// How many names the inode has.
    pub links: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// The bytes that it takes on its device.
    pub allocated_bytes: u64,
    /// When it was last read.
    pub accessed: FileTime,
    /// When its content last changed.
    pub modified: FileTime,
    /// When its inode last changed.
    pub changed: FileTime,
    /// When it was made, if the file system says.
    pub created: Option<FileTime>,
    /// The device that it stands for, if it is one; else 0.
    pub special_device: u64,
    /// The number of its mount, if the kernel says (Linux 5.8).
    pub mount: Option<u64>,
}

impl FileStat {
    /// What an open or held file is.
    ///
    /// # Errors
    /// Only where a filter forbids `statx`.
    pub fn of(file: &File) -> Result<Self> {
        rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted())
            .map(|stat| Self::from_kernel(&stat))
            .map_err(|errno| Error::new(OPERATION, errno.into()))
    }

    /// Whether both describe the same inode.
    #[must_use]
    pub fn is_same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether both describe the same file: FAT numbers inodes anew whenever it reads them, so one
    /// of the same length that was not touched in between counts as well.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        let is_untouched = (self.kind, self.bytes, self.modified, self.changed)
            == (other.kind, other.bytes, other.modified, other.changed);
        self.is_same_inode(other) || (self.device == other.device && is_untouched)
    }

    /// How it is made anew, if it is a pipe, a socket or a device.
    #[must_use]
    pub fn special(&self) -> Option<SpecialFile> {
        match self.kind {
            InodeKind::Pipe => Some(SpecialFile::Pipe),
            InodeKind::Socket => Some(SpecialFile::Socket),
            InodeKind::CharacterDevice => Some(SpecialFile::CharacterDevice(self.special_device)),
            InodeKind::BlockDevice => Some(SpecialFile::BlockDevice(self.special_device)),
            InodeKind::File | InodeKind::Directory | InodeKind::Link => None,
        }
    }

    fn from_kernel(stat: &Statx) -> Self {
        let reported = |mask: StatxFlags| stat.stx_mask & mask.bits() != 0;
        let time = |time: &StatxTimestamp| FileTime {
            seconds: time.tv_sec,
            nanoseconds: time.tv_nsec.into(),
        };
        Self {
            kind: kind_of(stat.stx_mode),
            mode: u32::from(stat.stx_mode) & 0o7777,
            user: stat.stx_uid,
            group: stat.stx_gid,
            device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            links: stat.stx_nlink,
            bytes: stat.stx_size,
            // `statx` counts in 512 bytes, whatever the blocks of the file system are.
            allocated_bytes: stat.stx_blocks.saturating_mul(512),
            accessed: time(&stat.stx_atime),
            modified: time(&stat.stx_mtime),
            changed: time(&stat.stx_ctime),
            created: reported(StatxFlags::BTIME).then(|| time(&stat.stx_btime)),
            special_device: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
            mount: reported(StatxFlags::MNT_ID).then_some(stat.stx_mnt_id),
        }
    }
}

impl Directory {
    /// What the entry `name` is; a link is described itself.
    ///
    /// # Errors
    /// `NotFound`, and as for examining it.
    pub fn stat(&self, name: &OsStr) -> Result<FileStat> {
        let name = single(OPERATION, name)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statx(self.file(), name, flags, wanted())
            .map(|stat| FileStat::from_kernel(&stat))
            .map_err(|errno| Error::new(OPERATION, errno.into()).at(self.path().join(name)))
    }
}

/// Whether the file system keeps an open file or directory encrypted, with a key that its mount was
/// given. `false` where the kernel does not say.
#[must_use]
pub fn is_encrypted(file: &File) -> bool {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::ENCRYPTED))
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID
}

fn kind_of(mode: u16) -> InodeKind {
    match FileType::from_raw_mode(mode.into()) {
        FileType::Directory => InodeKind::Directory,
        FileType::Symlink => InodeKind::Link,
        FileType::Fifo => InodeKind::Pipe,
        FileType::Socket => InodeKind::Socket,
        FileType::CharacterDevice => InodeKind::CharacterDevice,
        FileType::BlockDevice => InodeKind::BlockDevice,
        FileType::RegularFile | FileType::Unknown => InodeKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use testkit::TempDir;

    #[test]
    fn it_says_what_the_standard_library_says() {
        let directory = TempDir::new();
        std::fs::write(directory.join("file"), [1; 5000]).unwrap();
        std::os::unix::fs::symlink("file", directory.join("link")).unwrap();
        let held = Directory::open(directory.path()).unwrap();
        for (name, kind) in [("file", InodeKind::File), ("link", InodeKind::Link)] {
            let stat = held.stat(OsStr::new(name)).unwrap();
            let about = directory.join(name).symlink_metadata().unwrap();
            assert_eq!(stat.kind, kind);
            assert_eq!((stat.device, stat.inode), (about.dev(), about.ino()));
            assert_eq!((stat.mode, stat.bytes), (about.mode() & 0o7777, about.len()));
            assert_eq!((stat.user, stat.group), (about.uid(), about.gid()));
            assert_eq!(stat.allocated_bytes, about.blocks() * 512);
            let modified = FileTime { seconds: about.mtime(), nanoseconds: about.mtime_nsec() };
            assert_eq!(stat.modified, modified);
            assert_eq!(FileStat::of(&held.hold(OsStr::new(name)).unwrap()).unwrap(), stat);
        }
        assert_eq!(FileStat::of(held.file()).unwrap().kind, InodeKind::Directory);
        assert!(held.stat(OsStr::new("a/b")).is_err());
    }

    #[test]
    fn a_device_is_one_and_says_which() {
        let devices = Directory::open(std::path::Path::new("/dev")).unwrap();
        let null = devices.stat(OsStr::new("null")).unwrap();
        let number = std::fs::metadata("/dev/null").unwrap().rdev();
        assert_eq!(null.special(), Some(SpecialFile::CharacterDevice(number)));
    }
}
