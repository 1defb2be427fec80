//! A window of a file, mapped so that the kernel can be asked about its pages or asked to
//! fetch them. The content is never looked at: no byte can be read through it.
//!
//! `mincore` answers correctly only if the caller owns the file, may write it, or is root; for all
//! others it reports every page as resident. The caller must check that; this file does not.

use crate::error::{Error, Result, check};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The mapping; removed on drop.
#[derive(Debug)]
pub struct Window {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

impl Window {
    /// Maps `bytes` bytes from `offset`, a multiple of the page size. The file may be shorter:
    /// pages behind its end are not resident and are not fetched.
    ///
    /// # Errors
    /// `Invalid` for 0 bytes or an offset within a page; `Denied` without the right to read.
    pub fn map(file: &File, offset: u64, bytes: u64) -> Result<Self> {
        const OPERATION: &str = "map a file";
        let offset = crate::file::signed(OPERATION, offset)?;
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::invalid(OPERATION, "it is larger than the address space"))?;
        // SAFETY: a fresh range chosen by the kernel; the descriptor is live for the call, and
        // the mapping keeps its own reference to the file afterwards.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(Error::last(OPERATION)),
        }
    }

    /// Which pages are in memory, one answer for each.
    ///
    /// # Errors
    /// `NoMemory` or `Other` where the kernel is too short of memory to say.
    pub fn resident(&self) -> Result<Vec<bool>> {
        let pages = self.bytes.div_ceil(crate::process::page_bytes());
        let mut residency = vec![0u8; pages];
        // SAFETY: the range is this value's own mapping, and `residency` has a byte for each page.
        let answer =
            unsafe { libc::mincore(self.start.as_ptr(), self.bytes, residency.as_mut_ptr()) };
        check("ask which pages are in memory", answer)?;
        // The other bits are reserved.
        Ok(residency.into_iter().map(|page| page & 1 != 0).collect())
    }

    /// Asks the kernel to begin to fetch the pages that are not there, from the file or, for
    /// shared memory, from swap. Does not wait.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn will_need(&self) -> Result<()> {
        // SAFETY: the range is this value's own mapping; the advice changes no byte.
        let answer = unsafe { libc::madvise(self.start.as_ptr(), self.bytes, libc::MADV_WILLNEED) };
        check("ask for pages of a file", answer).map(drop)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrowed from it can be alive.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use testkit::TempDir;

    #[test]
    fn pages_that_were_written_are_resident_and_those_behind_the_end_are_not() {
        let directory = TempDir::new();
        let path = directory.join("file");
        std::fs::write(&path, vec![1; 3 * 4096 + 1]).unwrap();
        let window = Window::map(&File::open(&path).unwrap(), 0, 6 * 4096).unwrap();
        let resident = window.resident().unwrap();
        assert_eq!(resident, [true, true, true, true, false, false]);
        // A file cut under the window does no harm: its bytes are not accessed.
        std::fs::write(&path, []).unwrap();
        assert_eq!(window.resident().unwrap(), [false; 6]);
        window.will_need().unwrap();
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(Window::map(&file, 0, 0).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(Window::map(&file, 1, 4096).unwrap_err().kind, ErrorKind::Invalid);
        assert!(Window::map(&file, u64::MAX, 4096).is_err());
    }
}
