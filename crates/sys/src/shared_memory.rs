//! Files that live in memory and have no name: a file of shared memory, and one on a RAM disk of
//! its own that asks for huge pages.
//!
//! The idea: both are the kernel's tmpfs. A file system that was made by `fsopen` and is mounted
//! nowhere changes nothing that others see, and is gone with the last descriptor.

use crate::error::{Result, failed};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use std::fs::File;
use std::os::fd::OwnedFd;

/// An empty file of shared memory, readable and writable; its memory is free again on drop.
///
/// # Errors
/// `Unsupported` where the kernel has no such files.
pub fn file() -> Result<File> {
    memfd_create(c"terrace", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(failed("make a file of shared memory"))
}

/// An empty file on a RAM disk of `bytes` bytes that is mounted nowhere and takes huge pages
/// wherever it can (`huge=always`). Needs CAP_SYS_ADMIN.
///
/// # Errors
/// `Denied` without the right; `Unsupported` before Linux 5.2; `Invalid` where the kernel has no
/// huge pages for RAM disks.
pub fn huge_file(bytes: u64) -> Result<File> {
    const OPERATION: &str = "make a RAM disk of huge pages";
    let size = bytes.to_string();
    let options = [("size", size.as_str()), ("huge", "always")];
    let mount = mount_detached("tmpfs", &options).map_err(failed(OPERATION))?;
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    openat(mount, ".", flags, Mode::RUSR | Mode::WUSR).map(File::from).map_err(failed(OPERATION))
}

/// Mounts a file system without attaching it to the tree: it goes away with this descriptor and
/// those below it.
pub(crate) fn mount_detached(
    fs_type: &str,
    options: &[(&str, &str)],
) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
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
