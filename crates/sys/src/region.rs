//! A range of address space: reserved, or a part of a file or of what acts as one. The kernel
//! chooses its place, and it is unmapped on drop.
//!
//! The only place that calls `mmap` for a new range. What may be read or written in it is for its
//! user to decide: this gives no reference to the bytes.

use crate::error::{Error, Result, check};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// The range; unmapped on drop.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory is not tied to a thread, and only `unsafe` code reaches it through this.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Takes address space that may not be accessed, without memory behind it.
    ///
    /// # Errors
    /// `NoMemory` if there is not so much.
    pub(crate) fn reserve(bytes: usize) -> Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::map("reserve address space", bytes, libc::PROT_NONE, flags, -1, 0)
    }

    /// Maps `bytes` bytes from `offset` of what `file` is, shared with all who map it; the mapping
    /// keeps its own reference to it. `access` is `PROT_READ`, also with `PROT_WRITE`.
    ///
    /// # Errors
    /// `Invalid` for 0 bytes or an offset within a page; `Denied` without the right.
    pub(crate) fn of_file(
        operation: &'static str,
        file: BorrowedFd<'_>,
        access: libc::c_int,
        offset: u64,
        bytes: usize,
    ) -> Result<Self> {
        let offset = crate::file::signed(operation, offset)?;
        Self::map(operation, bytes, access, libc::MAP_SHARED, file.as_raw_fd(), offset)
    }

    fn map(
        operation: &'static str,
        bytes: usize,
        access: libc::c_int,
        flags: libc::c_int,
        file: libc::c_int,
        offset: libc::off_t,
    ) -> Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let got = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, offset) };
        if got == libc::MAP_FAILED {
            return Err(Error::last(operation));
        }
        NonNull::new(got.cast())
            .map(|start| Self { start, bytes })
            .ok_or_else(|| Error::invalid(operation, "the kernel chose address 0"))
    }

    /// Its first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes; never 0.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Gives the kernel an advice that changes no byte.
    ///
    /// # Errors
    /// The kernel's word.
    pub(crate) fn advise(&self, operation: &'static str, advice: libc::c_int) -> Result<()> {
        // SAFETY: the range is this value's own mapping; the advice changes no byte.
        let answer = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        check(operation, answer).map(drop)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrowed from it can be alive. It
        // cannot fail for a range that was mapped; if it did, the memory would merely stay.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
