//! Subvolumes of btrfs: made, snapshotted and removed below an open directory of their file system.
//!
//! A snapshot holds what all programs had written when it was made, whether or not it was synced:
//! the kernel writes that out first. It is there whole or not at all.

use crate::directory::Directory;
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// `BTRFS_IOC_SUBVOL_CREATE`, from linux/btrfs.h, as the two below.
const SUBVOL_CREATE: libc::c_ulong = 0x5000_940e;
const SNAP_DESTROY: libc::c_ulong = 0x5000_940f;
const SNAP_CREATE_V2: libc::c_ulong = 0x5000_9417;
/// `BTRFS_SUBVOL_RDONLY`.
const READ_ONLY: u64 = 1 << 1;
/// `struct btrfs_ioctl_vol_args` and `..._v2`, in words of 8 bytes.
const WORDS: usize = 512;
/// Where the name begins in each, in words.
const NAME: usize = 1;
const NAME_V2: usize = 7;
/// `BTRFS_SUBVOL_NAME_MAX` is longer; no entry of a directory is.
const LONGEST_NAME: usize = 255;

/// The inode number of the top directory of each subvolume.
pub const TOP_INODE: u64 = 256;
/// The inode number of the empty directory that a snapshot has in place of a subvolume in it.
pub const PLACEHOLDER_INODE: u64 = 2;

/// Makes an empty subvolume `name` in `parent`.
///
/// # Errors
/// `Exists`, `Unsupported` where the file system has no subvolumes, `Denied` where it may not be
/// written.
pub fn create(parent: &Directory, name: &OsStr) -> Result<()> {
    let mut question = [0u64; WORDS];
    put_name(&mut question, NAME, name)?;
    ask("make the subvolume", parent, SUBVOL_CREATE, &question, name)
}

/// Makes a read-only snapshot `name` in `parent` of the subvolume whose top directory is `source`.
///
/// # Errors
/// As [`create`]; `CrossDevice` where both are on different file systems.
pub fn snapshot(source: &Directory, parent: &Directory, name: &OsStr) -> Result<()> {
    let mut question = [0u64; WORDS];
    question[0] = i64::from(source.file().as_raw_fd()) as u64;
    question[2] = READ_ONLY;
    put_name(&mut question, NAME_V2, name)?;
    ask("make the snapshot", parent, SNAP_CREATE_V2, &question, name)
}

/// Removes the subvolume or snapshot `name` of `parent`, with all that is in it. What it takes is
/// free a while later.
///
/// # Errors
/// `NotFound`; `Denied` without `CAP_SYS_ADMIN`.
pub fn destroy(parent: &Directory, name: &OsStr) -> Result<()> {
    let mut question = [0u64; WORDS];
    put_name(&mut question, NAME, name)?;
    ask("remove the snapshot", parent, SNAP_DESTROY, &question, name)
}

fn put_name(question: &mut [u64; WORDS], at: usize, name: &OsStr) -> Result<()> {
    let bytes = name.as_bytes();
    if bytes.is_empty()
        || bytes.len() > LONGEST_NAME
        || bytes.iter().any(|byte| b"/\0".contains(byte))
    {
        return Err(Error::invalid("name the subvolume", "it is not one name"));
    }
    for (at_byte, byte) in bytes.iter().enumerate() {
        let word = &mut question[at + at_byte / 8];
        let mut parts = word.to_ne_bytes();
        parts[at_byte % 8] = *byte;
        *word = u64::from_ne_bytes(parts);
    }
    Ok(())
}

fn ask(
    operation: &'static str,
    parent: &Directory,
    request: libc::c_ulong,
    question: &[u64; WORDS],
    name: &OsStr,
) -> Result<()> {
    // SAFETY: each of these ioctls reads 4096 bytes; `question` has as many and is live. The name
    // in it ends with a zero, as it is shorter than its room.
    let answer = unsafe {
        libc::ioctl(parent.file().as_raw_fd(), request as _, question.as_ptr().cast_mut())
    };
    if answer < 0 { Err(Error::last(operation).at(parent.path().join(name))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn only_one_name_is_taken() {
        let mut question = [0u64; WORDS];
        for name in ["", "a/b", &"x".repeat(256)] {
            assert!(put_name(&mut question, NAME, OsStr::new(name)).is_err(), "{name}");
        }
        put_name(&mut question, NAME_V2, OsStr::new("save.0123")).unwrap();
        let bytes: Vec<u8> = question.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(&bytes[56..66], b"save.0123\0");
    }

    #[test]
    fn another_file_system_has_no_subvolumes() {
        let directory = TempDir::new();
        let parent = Directory::open(directory.path()).unwrap();
        if crate::file::file_system(parent.file()).unwrap().name == Some("btrfs") {
            return testkit::skip("a directory that is not on btrfs");
        }
        assert!(create(&parent, OsStr::new("one")).is_err());
        assert!(parent.names().unwrap().is_empty());
    }
}
