//! `flock`: a lock on a file that the kernel releases when its holder is gone, however.
//!
//! The lock belongs to the open file, so two openings of one file by one process exclude
//! each other too, and a child that was forked shares it until it executes something. Nothing
//! here makes, reads or removes the file.

use crate::error::{Result, failed};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;

const OPERATION: &str = "lock a file";

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
    let operation = match mode {
        LockMode::Shared => FlockOperation::LockShared,
        LockMode::Exclusive => FlockOperation::LockExclusive,
    };
    retry_on_intr(|| flock(file, operation)).map_err(failed(OPERATION))
}

/// Locks `file` if that needs no waiting; whether it is locked now.
///
/// # Errors
/// As [`take`].
pub fn try_take(file: &File, mode: LockMode) -> Result<bool> {
    let operation = match mode {
        LockMode::Shared => FlockOperation::NonBlockingLockShared,
        LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(failed(OPERATION)(errno)),
    }
}

/// Gives the lock back before the file is closed.
///
/// # Errors
/// None on Linux for a file that could be locked.
pub fn release(file: &File) -> Result<()> {
    flock(file, FlockOperation::Unlock).map_err(failed(OPERATION))
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
