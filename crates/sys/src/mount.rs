//! `umount2`: takes a file system out of the tree of this mount namespace. It makes no mounts, and
//! a file system that is in use stays.

use crate::error::{Error, Result};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Unmounts what is mounted last at `point`, which must not be a link. What is not written yet is
/// written first, so it may take long.
///
/// # Errors
/// `Other` with `EBUSY` while it is used, `Invalid` where nothing is mounted, `Denied` without
/// `CAP_SYS_ADMIN`.
pub fn unmount(point: &Path) -> Result<()> {
    const OPERATION: &str = "unmount";
    let text = CString::new(point.as_os_str().as_bytes())
        .map_err(|error| Error::new(OPERATION, error.into()).at(point))?;
    // SAFETY: `text` is a string that ends with a zero, and lives as long as the call.
    let answer = unsafe { libc::umount2(text.as_ptr(), libc::UMOUNT_NOFOLLOW) };
    if answer == 0 { Ok(()) } else { Err(Error::last(OPERATION).at(point)) }
}

/// Whether an unmount failed because the file system is in use.
#[must_use]
pub fn is_busy(error: &Error) -> bool {
    error.number() == Some(libc::EBUSY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Tmpfs;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let tmpfs = match Tmpfs::mount(1 << 20) {
            Ok(tmpfs) => tmpfs,
            Err(need) => return testkit::skip(need),
        };
        let held = std::fs::File::create(tmpfs.path().join("held")).unwrap();
        assert!(is_busy(&unmount(tmpfs.path()).unwrap_err()));
        drop(held);
        unmount(tmpfs.path()).unwrap();
        assert!(!tmpfs.path().join("held").exists());
        assert!(!is_busy(&unmount(tmpfs.path()).unwrap_err()));
    }
}
