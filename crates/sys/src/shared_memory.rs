//! Files that live in memory and have no name: a file of shared memory, and one on a RAM disk of
//! its own that asks for huge pages.
//!
//! The idea: both are the kernel's tmpfs. A file system that was made by `fsopen` and is mounted
//! nowhere changes nothing that others see, and is gone with the last descriptor.

use crate::error::{Result, check};
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`, from linux/mount.h.
const CLOSE_ON_EXEC: libc::c_uint = 1;
/// `FSCONFIG_SET_STRING`.
const SET_STRING: libc::c_uint = 1;
/// `FSCONFIG_CMD_CREATE`.
const CREATE: libc::c_uint = 6;

/// An empty file of shared memory, readable and writable; its memory is free again on drop.
///
/// # Errors
/// `Unsupported` where the kernel has no such files.
pub fn file() -> Result<File> {
    // SAFETY: the name is a terminated constant; the call only reads it.
    let answer = unsafe { libc::memfd_create(c"terrace".as_ptr(), libc::MFD_CLOEXEC) };
    owned("make a file of shared memory", answer).map(File::from)
}

/// An empty file on a RAM disk of `bytes` bytes that is mounted nowhere and takes huge pages
/// wherever it can (`huge=always`). Needs CAP_SYS_ADMIN.
///
/// # Errors
/// `Denied` without the right; `Unsupported` before Linux 5.2; `Invalid` where the kernel has no
/// huge pages for RAM disks.
pub fn huge_file(bytes: u64) -> Result<File> {
    const OPERATION: &str = "make a RAM disk of huge pages";
    // SAFETY: the name is a terminated constant; the call only reads it.
    let answer = unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), CLOSE_ON_EXEC) };
    let context = owned(OPERATION, answer as libc::c_int)?;
    let size = std::ffi::CString::new(bytes.to_string()).unwrap_or_default();
    configure(&context, SET_STRING, Some((c"size", &size)))?;
    configure(&context, SET_STRING, Some((c"huge", c"always")))?;
    configure(&context, CREATE, None)?;
    // SAFETY: takes a descriptor and numbers.
    let answer = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) };
    let mount = owned(OPERATION, answer as libc::c_int)?;
    let flags = libc::O_TMPFILE | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path is a terminated constant; the call only reads it.
    let answer = unsafe { libc::openat(mount.as_raw_fd(), c".".as_ptr(), flags, 0o600) };
    owned(OPERATION, answer).map(File::from)
}

fn configure(context: &OwnedFd, command: libc::c_uint, set: Option<(&CStr, &CStr)>) -> Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: both texts are terminated or null, live across the call, and only read.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            command,
            pointer(set.map(|(key, _)| key)),
            pointer(set.map(|(_, value)| value)),
            0,
        )
    };
    check("set up a RAM disk of huge pages", answer as libc::c_int).map(drop)
}

fn owned(operation: &'static str, answer: libc::c_int) -> Result<OwnedFd> {
    let descriptor = check(operation, answer)?;
    // SAFETY: the kernel gave this descriptor a moment ago and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::file::{file_system, write_at};

    #[test]
    fn it_is_a_file_in_memory_without_a_name() {
        let file = file().unwrap();
        assert_eq!(write_at(&file, b"x", 4095).unwrap(), 1);
        assert!(file_system(&file).unwrap().in_ram);
        assert_eq!(file.metadata().unwrap().len(), 4096);
    }

    #[test]
    fn a_private_ram_disk_is_not_in_the_mount_table() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let before = mounts();
        match huge_file(4 << 20) {
            Ok(file) => {
                assert_eq!(mounts(), before);
                let system = file_system(&file).unwrap();
                assert_eq!((system.name, system.free_bytes), (Some("tmpfs"), 4 << 20));
                assert_eq!(write_at(&file, &[1; 8192], 0).unwrap(), 8192);
            }
            Err(error) => {
                assert!(
                    matches!(
                        error.kind,
                        ErrorKind::Denied | ErrorKind::Unsupported | ErrorKind::Invalid
                    ),
                    "{error}"
                );
                println!("skipped: needs CAP_SYS_ADMIN and huge pages for RAM disks ({error})");
            }
        }
    }
}
