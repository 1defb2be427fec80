//! What is copied with a file besides its content: owners, mode, times, extended attributes.
//!
//! All work on an open file, or on one that is only held (`O_PATH`), so that a link or a device is
//! meant itself. Access control lists are extended attributes. A held file is reached by its number
//! in /proc where the kernel has no call for it.

use crate::error::{Error, Result};
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// An extended attribute has at most this many bytes, all names of a file together as well: the
/// kernel's own bound.
const MOST_BYTES: usize = 64 << 10;

/// The name and the value of an extended attribute.
pub type ExtendedAttribute = (OsString, Vec<u8>);

/// A time of a file: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: i64,
}

/// The path of an open file in /proc, which leads to the file itself, whatever it is.
fn in_proc(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn failed(operation: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::new(operation, errno.into())
}

/// The names of all extended attributes that this user may see. None where the file system has
/// none.
///
/// # Errors
/// Where they cannot be read.
pub fn extended_names(file: &File) -> Result<Vec<OsString>> {
    const OPERATION: &str = "read the extended attributes";
    let room = match rustix::fs::flistxattr_query(file) {
        Err(Errno::BADF) => rustix::fs::listxattr_query(in_proc(file)),
        answer => answer,
    };
    // Most files have none: no room is needed to learn that.
    let mut buffer = match room {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Ok(_) => vec![0u8; MOST_BYTES],
        Err(errno) => return Err(failed(OPERATION)(errno)),
    };
    let listed = match rustix::fs::flistxattr(file, &mut buffer[..]) {
        Err(Errno::BADF) => rustix::fs::listxattr(in_proc(file), &mut buffer[..]),
        answer => answer,
    };
    let bytes = listed.map_err(failed(OPERATION))?;
    Ok(buffer[..bytes]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect())
}

/// All extended attributes that this user may read, sorted by name. None where the file system
/// has none.
///
/// # Errors
/// Where they cannot be read; one that vanishes meanwhile is left out.
pub fn extended(file: &File) -> Result<Vec<ExtendedAttribute>> {
    const OPERATION: &str = "read the extended attributes";
    let names = extended_names(file)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut buffer = vec![0u8; MOST_BYTES];
    let mut found = Vec::new();
    for name in names {
        let got = match rustix::fs::fgetxattr(file, &*name, &mut buffer[..]) {
            Err(Errno::BADF) => rustix::fs::getxattr(in_proc(file), &*name, &mut buffer[..]),
            answer => answer,
        };
        match got {
            Ok(bytes) => found.push((name, buffer[..bytes].to_vec())),
            // Listed by some file systems that do not have its kind.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(failed(OPERATION)(errno)),
        }
    }
    found.sort();
    Ok(found)
}

/// Sets one extended attribute.
///
/// # Errors
/// `Unsupported` where the file system has none of this kind, `Denied`, `NoSpace`.
pub fn set_extended(file: &File, name: &OsStr, value: &[u8]) -> Result<()> {
    let set = match rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()) {
        Err(Errno::BADF) => rustix::fs::setxattr(in_proc(file), name, value, XattrFlags::empty()),
        answer => answer,
    };
    set.map_err(failed("set an extended attribute"))
}

/// Removes one extended attribute; one that is not there is no error.
///
/// # Errors
/// `Denied` for a file of another user.
pub fn remove_extended(file: &File, name: &OsStr) -> Result<()> {
    let removed = match rustix::fs::fremovexattr(file, name) {
        Err(Errno::BADF) => rustix::fs::removexattr(in_proc(file), name),
        answer => answer,
    };
    match removed {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(failed("remove an extended attribute")(errno)),
    }
}

/// Gives the file to a user and a group. The kernel takes the bits for set-user-ID away, so the
/// mode is set afterwards.
///
/// # Errors
/// `Denied` unless root, or for a group of one's own.
pub fn set_owner(file: &File, user: u32, group: u32) -> Result<()> {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    rustix::fs::chownat(file, "", user, group, AtFlags::EMPTY_PATH)
        .map_err(failed("change the owner"))
}

/// Sets the permissions, all 12 bits. Not of a link, which has none.
///
/// # Errors
/// `Denied` for a file of another user.
pub fn set_mode(file: &File, mode: u32) -> Result<()> {
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let set = match rustix::fs::fchmod(file, mode) {
        Err(Errno::BADF) => rustix::fs::chmod(in_proc(file), mode),
        answer => answer,
    };
    set.map_err(failed("change the permissions"))
}

/// Sets when the file was last read and last changed.
///
/// # Errors
/// `Denied` for a file of another user; `Invalid` for nanoseconds beyond a second.
pub fn set_times(file: &File, accessed: FileTime, modified: FileTime) -> Result<()> {
    let spec = |time: FileTime| Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds };
    let times = Timestamps { last_access: spec(accessed), last_modification: spec(modified) };
    let set = match rustix::fs::futimens(file, &times) {
        Err(Errno::BADF) => rustix::fs::utimensat(file, "", &times, AtFlags::EMPTY_PATH),
        answer => answer,
    };
    set.map_err(failed("change the times"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use std::os::unix::fs::MetadataExt;
    use testkit::TempDir;

    const THEN: FileTime = FileTime { seconds: 1_000_000_001, nanoseconds: 123_456_789 };
    const BEFORE: FileTime = FileTime { seconds: -5, nanoseconds: 1 };

    /// A file and a link below a new directory.
    fn made() -> (TempDir, Directory, File) {
        let parent = TempDir::new();
        let directory = Directory::create_private(&parent.join("own")).unwrap();
        let file = directory.create_new(OsStr::new("file"), 0o600).unwrap();
        directory.create_link(OsStr::new("link"), OsStr::new("file")).unwrap();
        (parent, directory, file)
    }

    #[test]
    fn extended_attributes_are_read_back_of_open_and_held_files() {
        let (_parent, directory, file) = made();
        assert!(extended(&file).unwrap().iter().all(|(name, _)| name != "user.x"));
        let value = [0, 255, b'\n'];
        if let Err(error) = set_extended(&file, OsStr::new("user.x"), &value) {
            return testkit::skip(format!("extended attributes in temporary files: {error}"));
        }
        let held = directory.hold(OsStr::new("file")).unwrap();
        set_extended(&held, OsStr::new("user.empty"), b"").unwrap();
        for file in [&file, &held] {
            let all = extended(file).unwrap();
            let own: Vec<_> =
                all.iter().filter(|(name, _)| name.as_bytes().starts_with(b"user.")).collect();
            let (empty, x) = (OsString::from("user.empty"), OsString::from("user.x"));
            assert_eq!(own, [&(empty, Vec::new()), &(x, value.to_vec())]);
            assert_eq!(extended_names(file).unwrap().len(), all.len());
        }
        for file in [&file, &held] {
            remove_extended(file, OsStr::new("user.x")).unwrap();
            assert!(!extended_names(file).unwrap().contains(&OsString::from("user.x")));
        }
    }

    #[test]
    fn times_are_set_of_a_file_and_of_a_link_itself() {
        let (_parent, directory, file) = made();
        set_times(&file, BEFORE, THEN).unwrap();
        let about = file.metadata().unwrap();
        assert_eq!((about.mtime(), about.mtime_nsec()), (THEN.seconds, THEN.nanoseconds));
        assert_eq!((about.atime(), about.atime_nsec()), (BEFORE.seconds, BEFORE.nanoseconds));
        let link = directory.hold(OsStr::new("link")).unwrap();
        match set_times(&link, THEN, BEFORE) {
            Ok(()) => {
                let about = directory.metadata(OsStr::new("link")).unwrap();
                assert_eq!(about.mtime(), BEFORE.seconds);
                assert_eq!(file.metadata().unwrap().mtime(), THEN.seconds);
            }
            Err(error) => testkit::skip(format!("times of links (Linux 5.8): {error}")),
        }
    }

    #[test]
    fn owners_and_permissions_are_set_of_the_file_that_is_meant() {
        let (_parent, directory, file) = made();
        set_mode(&file, 0o4751).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o4751);
        set_mode(&directory.hold(OsStr::new("file")).unwrap(), 0o640).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o640);
        let link = directory.hold(OsStr::new("link")).unwrap();
        if let Err(error) = set_owner(&link, 65534, 65534) {
            return testkit::skip(format!("root: {error}"));
        }
        let about = directory.metadata(OsStr::new("link")).unwrap();
        assert_eq!((about.uid(), about.gid()), (65534, 65534));
        assert_ne!(file.metadata().unwrap().uid(), 65534);
    }
}
