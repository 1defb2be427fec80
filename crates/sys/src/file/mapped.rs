//! A file mapped into memory: the kernel is asked about its pages or asked to fetch them, or single
//! bytes are read, the way of databases and of executables, where each first touch of a page is a
//! fault.
//!
//! Bytes are given by volatile reads: the file may change or shrink under the mapping, so no
//! reference to its content can be lent. `mincore` answers correctly only if the caller owns the
//! file, may write it, or is root; for all others it reports every page as resident. The caller
//! must check that; this file does not.

use crate::error::{Error, Result, check};
use crate::region::Region;
use std::fs::File;
use std::os::fd::AsFd;

const OPERATION: &str = "map a file";

/// The mapping; removed on drop.
#[derive(Debug)]
pub struct MappedFile(Region);

impl MappedFile {
    /// Maps `bytes` bytes from `offset`, a multiple of the page size. The file may be shorter:
    /// pages behind its end are not resident and are not fetched.
    ///
    /// # Errors
    /// `Invalid` for 0 bytes or an offset within a page; `Denied` without the right to read.
    pub fn part(file: &File, offset: u64, bytes: u64) -> Result<Self> {
        let length = usize::try_from(bytes)
            .map_err(|_| Error::invalid(OPERATION, "it is larger than the address space"))?;
        Region::of_file(OPERATION, file.as_fd(), libc::PROT_READ, offset, length).map(Self)
    }

    /// Maps all of `file`, without read-ahead around a fault: what was not touched is not
    /// read.
    ///
    /// # Errors
    /// `Invalid` for an empty file or one that cannot be mapped.
    pub fn random(file: &File) -> Result<Self> {
        let metadata = file.metadata().map_err(|error| Error::new(OPERATION, error))?;
        if metadata.len() == 0 {
            return Err(Error::invalid(OPERATION, "it is empty"));
        }
        let mapped = Self::part(file, 0, metadata.len())?;
        // A kernel that does not take the advice reads more.
        let _ = mapped.0.advise(OPERATION, libc::MADV_RANDOM);
        Ok(mapped)
    }

    /// The byte at `offset`; `None` outside of the mapping. A file that was cut shorter meanwhile
    /// kills the process with SIGBUS, as mappings do.
    #[must_use]
    pub fn byte(&self, offset: usize) -> Option<u8> {
        // SAFETY: the offset was checked to lie inside the mapping, which is readable for the
        // life of `self`; volatile, since the file may change at any time.
        (offset < self.len())
            .then(|| unsafe { self.0.start().as_ptr().add(offset).read_volatile() })
    }

    /// The mapped length in bytes; never 0.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Which pages are in memory, one answer for each.
    ///
    /// # Errors
    /// `NoMemory` or `Other` where the kernel is too short of memory to say.
    pub fn resident(&self) -> Result<Vec<bool>> {
        let pages = self.len().div_ceil(crate::process::page_bytes());
        let mut residency = vec![0u8; pages];
        let start = self.0.start().as_ptr().cast();
        // SAFETY: the range is this value's own mapping, and `residency` has a byte for each page.
        let answer = unsafe { libc::mincore(start, self.len(), residency.as_mut_ptr()) };
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
        self.0.advise("ask for pages of a file", libc::MADV_WILLNEED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::io::Write;
    use testkit::TempDir;

    #[test]
    fn pages_that_were_written_are_resident_and_those_behind_the_end_are_not() {
        let directory = TempDir::new();
        let path = directory.join("file");
        let page = crate::process::page_bytes();
        // Of a page that is larger than a block, a part alone does not count.
        std::fs::write(&path, vec![1; 4 * page]).unwrap();
        let mapped = MappedFile::part(&File::open(&path).unwrap(), 0, 6 * page as u64).unwrap();
        let resident = mapped.resident().unwrap();
        assert_eq!(resident, [true, true, true, true, false, false]);
        // A file cut under the mapped does no harm: its bytes are not accessed.
        std::fs::write(&path, []).unwrap();
        assert_eq!(mapped.resident().unwrap(), [false; 6]);
        mapped.will_need().unwrap();
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(MappedFile::part(&file, 0, 0).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(MappedFile::part(&file, 1, 4096).unwrap_err().kind, ErrorKind::Invalid);
        assert!(MappedFile::part(&file, u64::MAX, 4096).is_err());
    }

    #[test]
    fn bytes_are_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("terrace-mapped-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(b"abc").unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mapped = MappedFile::random(&file).unwrap();
        assert_eq!(mapped.len(), 3);
        assert_eq!(
            [0, 1, 2, 3].map(|at| mapped.byte(at)),
            [Some(b'a'), Some(b'b'), Some(b'c'), None]
        );
    }

    #[test]
    fn an_empty_file_is_refused() {
        let null = File::open("/dev/null").unwrap();
        assert!(MappedFile::random(&null).is_err());
    }
}
