//! Evicts the probe's own file from the page cache and checks the result; reports what the cache
//! has of it.
//!
//! Dirty pages cannot be dropped, so the file is synced first. The advice is only a request to the
//! kernel; `cachestat` shows whether it was followed.

use std::fs::File;
use sys::file::CacheAdvice;

/// How often the advice is repeated while pages are still under write-back.
const TRIES: u32 = 3;

/// Drops the file's pages; returns the bytes that stayed, or `None` if the kernel does not report
/// them (before Linux 6.5).
///
/// # Errors
/// Of the sync before, and of the advice where the file system refuses it.
pub(super) fn evict(file: &File) -> sys::Result<Option<u64>> {
    sys::file::sync_data(file)?;
    let mut left = None;
    for _ in 0..TRIES {
        sys::file::advise(file, 0, 0, CacheAdvice::DontNeed)?;
        left = cached_bytes(file, 0, 0);
        if left == Some(0) {
            break;
        }
    }
    Ok(left)
}

/// Bytes of a range in the page cache; 0 bytes means to the end of the file.
pub(super) fn cached_bytes(file: &File, offset: u64, bytes: u64) -> Option<u64> {
    let stat = sys::cachestat::of(file, offset, bytes).ok()?;
    Some(stat.cached * sys::process::page_bytes() as u64)
}

/// Bytes of the file that are only in the page cache, or on their way out of it.
pub(super) fn dirty_bytes(file: &File) -> Option<u64> {
    let stat = sys::cachestat::of(file, 0, 0).ok()?;
    Some((stat.dirty + stat.writeback) * sys::process::page_bytes() as u64)
}
