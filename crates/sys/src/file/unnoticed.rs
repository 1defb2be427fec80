//! Opening files of others so that nothing about them changes, not even when they were last
//! read, and without crossing to a file system that was not meant.

use super::refuse_special;
use crate::error::{Error, ErrorKind, Result};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `RESOLVE_NO_XDEV` and `RESOLVE_NO_MAGICLINKS` of linux/openat2.h.
const RESOLVE_ON_THIS_MOUNT: u64 = 0x01 | 0x02;

/// Opens a regular file or directory for reading. Reading it does not touch its access time
/// where the kernel allows that: to the owner and to root (`O_NOATIME`).
///
/// # Errors
/// `Invalid` for any other kind of file, which is not opened.
pub fn open_unnoticed(path: &Path) -> Result<File> {
    let fail = |source| Error::new("open", source).at(path);
    refuse_special(&std::fs::metadata(path).map_err(fail)?).map_err(fail)?;
    unnoticed(&mut |flags| {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags).open(path)
    })
    .map_err(fail)
}

/// Names a file or directory without opening it: no driver, server or peer is asked to open
/// anything. Only its place in the tree can be used.
///
/// # Errors
/// `NotFound`, `Denied` as for looking the path up.
pub fn open_place(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
        .map_err(|source| Error::new("find", source).at(path))
}

/// As [`open_unnoticed`], of the relative path `name` below `directory`. No component of it leads
/// to another mount, neither by a mount point nor by a link.
///
/// # Errors
/// `Invalid` for any other kind of file and for a path that leads to another mount. Before Linux
/// 5.6, and where a filter forbids the call, the path is opened as any other.
pub fn open_unnoticed_below(directory: &File, name: &Path) -> Result<File> {
    let fail = |source| Error::new("open", source).at(name);
    let place = open_on_mount(directory, name, libc::O_PATH).map_err(fail)?;
    refuse_special(&place.metadata().map_err(fail)?).map_err(fail)?;
    unnoticed(&mut |flags| open_on_mount(directory, name, libc::O_RDONLY | flags)).map_err(fail)
}

/// Opens by `open`, without touching the access time where that is permitted.
fn unnoticed(open: &mut dyn FnMut(libc::c_int) -> io::Result<File>) -> io::Result<File> {
    let harmless = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = open(harmless | libc::O_NOATIME).or_else(|error| match ErrorKind::of(&error) {
        ErrorKind::Denied => open(harmless),
        _ => Err(error),
    })?;
    // The name may have been exchanged in between, and O_NONBLOCK kept that harmless. To what
    // is opened here it means nothing, so it stays: files are opened by the ten thousand.
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

/// `struct open_how` of linux/openat2.h.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn open_on_mount(directory: &File, name: &Path, flags: libc::c_int) -> io::Result<File> {
    let text = CString::new(name.as_os_str().as_bytes())?;
    let how = OpenHow {
        flags: (flags | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve: RESOLVE_ON_THIS_MOUNT,
    };
    // SAFETY: the text is terminated, `how` has the kernel's layout and the size given; both live
    // across the call and are only read.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            directory.as_raw_fd(),
            text.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    };
    if answer >= 0 {
        // SAFETY: the call made this descriptor, and nothing else owns it.
        return Ok(unsafe { File::from_raw_fd(answer as libc::c_int) });
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // With O_NOATIME the latter is the word for a file of another user.
        Some(libc::ENOSYS | libc::EPERM) if flags & libc::O_NOATIME == 0 => {
            let known = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
            let mut options = OpenOptions::new();
            let path = known.join(name);
            options.read(true).custom_flags(flags).open(path)
        }
        _ => Err(error),
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
