//! The memory of another process: a byte read from each of many pages makes the kernel bring
//! them back, advice does it without waiting, or pushes them out.
//!
//! Owns `process_vm_readv` and `process_madvise`. What is read is overwritten by the next byte
//! and never returned. The first needs the right to trace the process (same user and a Yama
//! setting that permits it, or CAP_SYS_PTRACE); the second needs that and CAP_SYS_NICE.

use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The most addresses or ranges of one call: `UIO_MAXIOV` of linux/uio.h is 1,024.
pub const MAX_AT_ONCE: usize = 512;

/// What is to be done with another process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAdvice {
    /// It will be used: reading from swap or from files starts now.
    WillNeed,
    /// It will not: reclaim it now, to swap or to its file.
    PageOut,
}

/// Reads one byte at each of `addresses` (at most [`MAX_AT_ONCE`]) in the process `pid`, in
/// this order, and waits for it. The number of them that could be read before the first that
/// could not: nothing is mapped there, it may not be read, or its device failed.
///
/// # Errors
/// `Denied` without the right to trace the process; `Other` (no such process) where it has
/// ended; `Invalid` for more addresses than that.
pub fn touch(pid: u32, addresses: &[u64]) -> Result<usize> {
    const OPERATION: &str = "read the memory of the process";
    let pid = libc::pid_t::try_from(pid)
        .map_err(|_| Error::invalid(OPERATION, "no process has such a number"))?;
    let mut buffer = [0u8; MAX_AT_ONCE];
    let bytes = buffer
        .get_mut(..addresses.len())
        .ok_or_else(|| Error::invalid(OPERATION, "too many addresses"))?;
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = vectors(addresses.iter().map(|address| *address..*address + 1));
    // SAFETY: `local` names a buffer of ours that has a byte for each address and is written to
    // only; the addresses are looked up in the other process, whatever they are.
    let read = unsafe {
        libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    match usize::try_from(read) {
        Ok(count) => Ok(count),
        Err(_) => none_if_unmapped(Error::last(OPERATION), libc::EFAULT),
    }
}

/// Gives `advice` for `ranges` (at most [`MAX_AT_ONCE`], page-aligned) of the process behind
/// the descriptor. The number of bytes, counted from the first range on, that took it: fewer
/// than all where something is not mapped.
///
/// # Errors
/// `Denied` without the rights; `Unsupported` before Linux 5.10; `Other` (no such process)
/// where it has ended; `Invalid` for more ranges than that.
pub fn advise(process: BorrowedFd<'_>, ranges: &[Range<u64>], advice: MemoryAdvice) -> Result<u64> {
    const OPERATION: &str = "advise on the memory of the process";
    if ranges.len() > MAX_AT_ONCE {
        return Err(Error::invalid(OPERATION, "too many ranges"));
    }
    let number = match advice {
        MemoryAdvice::WillNeed => libc::MADV_WILLNEED,
        MemoryAdvice::PageOut => libc::MADV_PAGEOUT,
    };
    let remote = vectors(ranges.iter().cloned());
    // SAFETY: the ranges are looked up in the other process; `remote` is live for the call.
    let advised = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            remote.as_ptr(),
            remote.len(),
            number,
            0,
        )
    };
    match u64::try_from(advised) {
        Ok(bytes) => Ok(bytes),
        Err(_) => none_if_unmapped(Error::last(OPERATION), libc::ENOMEM),
    }
}

/// An unmapped range is an answer, not a failure.
fn none_if_unmapped<T: Default>(error: Error, unmapped: i32) -> Result<T> {
    match error.number() {
        Some(number) if number == unmapped => Ok(T::default()),
        // The kernel's EINVAL here is a range or an advice that it does not know.
        Some(libc::EINVAL) => Err(Error { kind: ErrorKind::Unsupported, ..error }),
        _ => Err(error),
    }
}

/// Ranges of another process's addresses as the kernel takes them.
fn vectors(ranges: impl Iterator<Item = Range<u64>>) -> Vec<libc::iovec> {
    ranges
        .map(|range| libc::iovec {
            iov_base: std::ptr::without_provenance_mut(range.start as usize),
            iov_len: range.end.saturating_sub(range.start) as usize,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Mapping, Pages};
    use crate::pidfd;
    use std::os::fd::AsFd;

    const PAGES: u64 = 16;

    #[test]
    fn each_page_is_reached_up_to_the_first_that_is_not_there() {
        let page_bytes = crate::process::page_bytes() as u64;
        let memory = Mapping::anonymous((PAGES * page_bytes) as usize, Pages::Base).unwrap();
        let start = memory.address() as u64;
        let mut addresses: Vec<u64> = (0..PAGES).map(|page| start + page * page_bytes).collect();
        let own = std::process::id();
        assert_eq!(touch(own, &addresses).unwrap(), PAGES as usize);
        // The first page of any address space is never mapped.
        addresses[5] = 0;
        assert_eq!(touch(own, &addresses).unwrap(), 5);
        assert_eq!(touch(own, &[0]).unwrap(), 0);
        assert_eq!(touch(own, &[]).unwrap(), 0);
    }

    #[test]
    fn a_process_that_is_gone_and_too_many_are_errors() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let error = touch(child.id(), &[4096]).unwrap_err();
        assert_eq!(error.number(), Some(libc::ESRCH));
        let many = vec![4096; MAX_AT_ONCE + 1];
        assert_eq!(touch(1, &many).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(touch(u32::MAX, &[1]).unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn advice_is_taken_for_what_is_mapped() {
        let page_bytes = crate::process::page_bytes() as u64;
        let bytes = PAGES * page_bytes;
        let memory = Mapping::anonymous(bytes as usize, Pages::Base).unwrap();
        let start = memory.address() as u64;
        let own = pidfd::open(std::process::id()).unwrap();
        let ranges = [start..start + page_bytes, start + page_bytes..start + bytes];
        match advise(own.as_fd(), &ranges, MemoryAdvice::WillNeed) {
            Ok(advised) => assert_eq!(advised, bytes),
            Err(error) if error.kind == ErrorKind::Denied => return testkit::skip("CAP_SYS_NICE"),
            Err(error) => panic!("{error}"),
        }
        let unmapped = 0..page_bytes;
        assert_eq!(
            advise(own.as_fd(), std::slice::from_ref(&unmapped), MemoryAdvice::WillNeed).unwrap(),
            0
        );
    }
}
