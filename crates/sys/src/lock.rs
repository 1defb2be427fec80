//! `flock`: a lock on a file that the kernel releases when its holder is gone, however.
//!
//! The lock belongs to the open file, so two openings of one file by one process exclude
//! each other too, and a child that was forked shares it until it executes something. Nothing
//! here makes, reads or removes the file.

use crate::error::{ErrorKind, Result, check};
use std::fs::File;
use std::os::fd::AsRawFd;

/// How a file is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// With others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// Waits until `file` is locked; the lock ends with the file's last descriptor.
///
/// # Errors
/// `Unsupported` or `Other` on file systems that have no locks.
pub fn take(file: &File, mode: LockMode) -> Result<()> {
    loop {
        match apply(file, number(mode)) {
            Err(error) if error.kind == ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// Locks `file` if that needs no waiting; whether it is locked now.
///
/// # Errors
/// As [`take`].
pub fn try_take(file: &File, mode: LockMode) -> Result<bool> {
    match apply(file, number(mode) | libc::LOCK_NB) {
        Ok(()) => Ok(true),
        Err(error) if error.number() == Some(libc::EWOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the lock back before the file is closed.
///
/// # Errors
/// None on Linux for a file that could be locked.
pub fn release(file: &File) -> Result<()> {
    apply(file, libc::LOCK_UN)
}

fn number(mode: LockMode) -> libc::c_int {
    match mode {
        LockMode::Shared => libc::LOCK_SH,
        LockMode::Exclusive => libc::LOCK_EX,
    }
}

fn apply(file: &File, operation: libc::c_int) -> Result<()> {
    // SAFETY: takes an open descriptor, which `file` keeps open, and a number.
    let answer = unsafe { libc::flock(file.as_raw_fd(), operation) };
    check("lock a file", answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn two_openings_exclude_each_other() {
        let directory = TempDir::new();
        let path = directory.path().join("lock");
        let first = File::create(&path).unwrap();
        let second = File::open(&path).unwrap();
        take(&first, LockMode::Exclusive).unwrap();
        assert!(!try_take(&second, LockMode::Shared).unwrap());
        release(&first).unwrap();
        assert!(try_take(&second, LockMode::Shared).unwrap());
        assert!(try_take(&first, LockMode::Shared).unwrap());
        assert!(!try_take(&first, LockMode::Exclusive).unwrap());
        drop(second);
        assert!(try_take(&first, LockMode::Exclusive).unwrap());
    }
}
