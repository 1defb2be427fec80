//! Opening files of others so that nothing about them changes, not even when they were last
//! read, and without crossing to a file system that was not meant.

use super::refuse_special;
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Opens a regular file or directory for reading. Reading it does not touch its access time
/// where the kernel allows that: to the owner and to root (`O_NOATIME`).
///
/// # Errors
/// `Invalid` for any other kind of file, which is not opened.
pub fn open_unnoticed(path: &Path) -> Result<File> {
    let fail = |source| Error::new("open", source).at(path);
    refuse_special(&std::fs::metadata(path).map_err(fail)?).map_err(fail)?;
    unnoticed(|flags| open(path, flags)).map_err(fail)
}

/// Names a file or directory without opening it: no driver, server or peer is asked to open
/// anything. Only its place in the tree can be used.
///
/// # Errors
/// `NotFound`, `Denied` as for looking the path up.
pub fn open_place(path: &Path) -> Result<File> {
    open(path, OFlags::PATH)
        .map(File::from)
        .map_err(|errno| Error::new("find", errno.into()).at(path))
}

/// As [`open_unnoticed`], of the relative path `name` below `directory`. No component of it leads
/// to another mount, neither by a mount point nor by a link.
///
/// # Errors
/// `Invalid` for any other kind of file and for a path that leads to another mount. Before Linux
/// 5.6, and where a filter forbids the call, the path is opened as any other.
pub fn open_unnoticed_below(directory: &File, name: &Path) -> Result<File> {
    let fail = |source| Error::new("open", source).at(name);
    let place = open_on_mount(directory, name, OFlags::PATH).map_err(|errno| fail(errno.into()))?;
    refuse_special(&File::from(place).metadata().map_err(fail)?).map_err(fail)?;
    unnoticed(|flags| open_on_mount(directory, name, flags)).map_err(fail)
}

/// Opens by `open`, without touching the access time where that is permitted.
fn unnoticed(open: impl Fn(OFlags) -> rustix::io::Result<OwnedFd>) -> io::Result<File> {
    let harmless = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = open(harmless | OFlags::NOATIME).or_else(|errno| {
        let is_denied = ErrorKind::of(&errno.into()) == ErrorKind::Denied;
        if is_denied { open(harmless) } else { Err(errno) }
    })?;
    let file = File::from(opened);
    // The name may have been exchanged in between, and O_NONBLOCK kept that harmless. To what
    // is opened here it means nothing, so it stays: files are opened by the ten thousand.
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

/// Opens for reading.
fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()))
}

fn open_on_mount(directory: &File, name: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let on_this_mount = ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    let all_flags = flags | OFlags::CLOEXEC;
    match rustix::fs::openat2(directory, name, all_flags, Mode::empty(), on_this_mount) {
        // With O_NOATIME the latter is the word for a file of another user.
        Err(Errno::NOSYS | Errno::PERM) if !flags.contains(OFlags::NOATIME) => {
            let known = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
            open(&known.join(name), flags)
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use testkit::TempDir;

    #[test]
    fn a_name_below_a_directory_never_leads_to_another_mount() {
        let directory = TempDir::new();
        std::fs::create_dir(directory.join("inner")).unwrap();
        std::fs::write(directory.join("inner/file"), "x").unwrap();
        symlink("inner", directory.join("near")).unwrap();
        symlink("/proc", directory.join("far")).unwrap();
        symlink("/proc/self/fd/0", directory.join("magic")).unwrap();
        let place = open_place(directory.path()).unwrap();
        let open = |name: &str| open_unnoticed_below(&place, Path::new(name));
        assert!(open("inner/file").is_ok());
        assert!(open("near/file").is_ok());
        assert!(open("absent").is_err());
        assert!(open("magic").is_err());
        if open("far/version").is_ok() {
            return testkit::skip("openat2 (Linux 5.6)");
        }
        assert!(open("../../../../../../proc/version").is_err());
    }

    #[test]
    fn a_special_file_below_a_directory_is_not_opened() {
        let directory = TempDir::new();
        let made = std::process::Command::new("mkfifo").arg(directory.join("fifo")).status();
        if !made.is_ok_and(|status| status.success()) {
            return testkit::skip("mkfifo");
        }
        let place = open_place(directory.path()).unwrap();
        let error = open_unnoticed_below(&place, Path::new("fifo")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
}
