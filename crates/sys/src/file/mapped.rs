//! A file mapped into memory for reading, byte by byte: the way of databases and of
//! executables, where each first touch of a page is a fault.
//!
//! Only single bytes are given, by volatile reads: the file may change or shrink under the
//! mapping, so no reference to its content can be lent.

use crate::error::{Error, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The mapping; removed on drop.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapped {
    /// Maps all of `file`, without read-ahead around a fault: what was not touched is not
    /// read.
    ///
    /// # Errors
    /// `Invalid` for an empty file or one that cannot be mapped.
    pub fn random(file: &File) -> Result<Self> {
        const OPERATION: &str = "map a file";
        let length = file.metadata().map_err(|error| Error::new(OPERATION, error))?;
        let bytes = usize::try_from(length.len()).unwrap_or(0);
        if bytes == 0 {
            return Err(Error::invalid(OPERATION, "it is empty"));
        }
        // SAFETY: a fresh range chosen by the kernel; the descriptor is live for the call, and
        // the mapping keeps its own reference to the file afterwards.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let Some(start) = start else {
            return Err(Error::last(OPERATION));
        };
        // From here on `Drop` unmaps it.
        let mapped = Self { start, bytes };
        // SAFETY: the range is this value's own mapping; the advice changes no byte.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_RANDOM) };
        Ok(mapped)
    }

    /// The byte at `offset`; `None` outside of the file's length when it was mapped. A file
    /// that was cut shorter meanwhile kills the process with SIGBUS, as mappings do.
    #[must_use]
    pub fn byte(&self, offset: usize) -> Option<u8> {
        // SAFETY: the offset was checked to lie inside the mapping, which is readable for the
        // life of `self`; volatile, since the file may change at any time.
        (offset < self.bytes).then(|| unsafe { self.start.as_ptr().add(offset).read_volatile() })
    }

    /// The mapped length in bytes; never 0.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrowed from it can be alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_are_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("terrace-mapped-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(b"abc").unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mapped = Mapped::random(&file).unwrap();
        assert_eq!(mapped.len(), 3);
        assert_eq!(
            [0, 1, 2, 3].map(|at| mapped.byte(at)),
            [Some(b'a'), Some(b'b'), Some(b'c'), None]
        );
    }

    #[test]
    fn an_empty_file_is_refused() {
        let null = File::open("/dev/null").unwrap();
        assert!(Mapped::random(&null).is_err());
    }
}
