//! Locks of an open file description (`F_OFD_SETLK`): the mark of a writer on its file.
//!
//! It is held until the last descriptor of that opening is closed, however its process ends, and is
//! independent of `flock`. Asking for it (`F_OFD_GETLK`) takes nothing and needs no right to write.

use crate::error::{Error, Result};
use std::fs::File;
use std::os::fd::AsRawFd;

const OPERATION: &str = "mark a file as being written";

/// Marks `file`, which must be open for writing, as being written by this opening of it. Whether
/// that could be done: another opening may have marked it.
///
/// # Errors
/// On file systems without locks.
pub fn mark_as_written(file: &File) -> Result<bool> {
    let lock = lock_of(libc::F_WRLCK);
    // SAFETY: the descriptor is open for the length of the call, and `lock` is a valid `flock`.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if answer == 0 {
        return Ok(true);
    }
    let error = Error::last(OPERATION);
    match error.number() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

/// Whether another opening of `file` marked it as being written; false where that cannot be known.
#[must_use]
pub fn is_being_written(file: &File) -> bool {
    // A lock for reading is in the way of writers only, which takes the right to write.
    let mut lock = lock_of(libc::F_RDLCK);
    // SAFETY: the descriptor is open for the length of the call, and `lock` is a valid `flock` that
    // is written to by the call alone.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    answer == 0 && i32::from(lock.l_type) == libc::F_WRLCK
}

/// A lock of a whole file, however it grows.
fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: `flock` is made of integers, for which zero is a value; the kernel asks for a zero
    // in `l_pid` of such a lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn a_mark_is_seen_by_other_openings_until_its_own_is_closed() {
        let directory = TempDir::new();
        let path = directory.path().join("written");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert!(!is_being_written(&reader));
        assert!(mark_as_written(&writer).unwrap());
        assert!(is_being_written(&reader));
        assert!(!is_being_written(&writer), "its own");
        // `flock` is another kind of lock.
        assert!(crate::lock::try_take(&reader, crate::lock::LockMode::Exclusive).unwrap());
        let second = writer.try_clone().unwrap();
        drop(writer);
        assert!(is_being_written(&reader));
        drop(second);
        assert!(!is_being_written(&reader));
    }
}
