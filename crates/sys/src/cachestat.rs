//! How many pages of a file the page cache holds, by the `cachestat` call (Linux 6.5).
//!
//! On files of others an ordinary user is refused; the older `mincore` would answer there
//! with "all resident", which is untrue, so it is not used as a stand-in.

use crate::error::{Result, check};
use crate::process::page_bytes;
use std::fs::File;
use std::os::fd::AsRawFd;

/// The call's number on every architecture; not in all C libraries yet.
const SYS_CACHESTAT: libc::c_long = 451;

/// Page counts of a range, in base pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// In the cache.
    pub cached: u64,
    /// Of these, changed and not yet being written.
    pub dirty: u64,
    /// Of these, being written now.
    pub writeback: u64,
    /// Not in the cache but once were.
    pub evicted: u64,
    /// Of these, evicted so recently that a read now would count as a refault.
    pub recently_evicted: u64,
}

impl CacheStat {
    /// In the cache, bytes.
    #[must_use]
    pub fn cached_bytes(&self) -> u64 {
        self.cached * page_bytes() as u64
    }

    /// In the cache and not on the device yet, bytes.
    #[must_use]
    pub fn unwritten_bytes(&self) -> u64 {
        (self.dirty + self.writeback) * page_bytes() as u64
    }
}

#[repr(C)]
struct Range {
    offset: u64,
    bytes: u64,
}

/// The state of `bytes` bytes from `offset`; 0 bytes means to the end of the file.
///
/// # Errors
/// `Unsupported` before Linux 6.5 and on file systems without a page cache; `Denied` for a
/// file that the user neither owns nor may write.
pub fn of(file: &File, offset: u64, bytes: u64) -> Result<CacheStat> {
    let mut range = Range { offset, bytes };
    let mut stat = CacheStat::default();
    // SAFETY: both structures have the kernel's layout and live across the call.
    let answer = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd() as libc::c_uint,
            &raw mut range,
            &raw mut stat,
            0 as libc::c_uint,
        )
    };
    check("read the cache state of the file", answer as libc::c_int)?;
    Ok(stat)
}
