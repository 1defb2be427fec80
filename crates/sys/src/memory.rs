//! Anonymous memory of a chosen page kind, 2 MiB aligned, with explicit control over when
//! pages come and go.
//!
//! The idea: measured memory must be in its own kernel mapping, so that its page size can
//! be verified in smaps. Each mapping is therefore between two inaccessible guard pages,
//! which keep neighbours from merging and stop an overrun. Whether huge pages were really
//! granted is not known here; `machine::smaps` reads that.

use crate::error::{Error, ErrorKind, Result, check};
use crate::region::Region;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of every mapping and the size of a huge page on x86-64 and 4 KiB-page aarch64.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Alignment and granularity of an [`AlignedBuffer`]: enough for direct I/O on any disk seen.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// `MADV_POPULATE_WRITE` (Linux 5.14); not in every C library.
const MADV_POPULATE_WRITE: libc::c_int = 23;

/// The kind of pages that back a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Base pages (4 KiB), transparent huge pages refused.
    Base,
    /// Transparent huge pages asked for; the kernel may decline page by page.
    Transparent,
    /// Pages of 2 MiB from the reserved pool; all of them or an error.
    Huge,
}

/// A private anonymous mapping: zero-filled, untouched, writable, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    /// What the caller asked for.
    bytes: usize,
    /// What is mapped: `bytes` rounded up to whole pages of the kind.
    mapped_bytes: usize,
    /// The range around it, guards included; unmapped on drop.
    _reserved: Region,
}

// SAFETY: the mapping is owned by this value alone and memory is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives read access only (`as_slice`, numbers).
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of zeroes at an address that is a multiple of 2 MiB; no page exists
    /// until it is touched.
    ///
    /// # Errors
    /// `Invalid` for 0 bytes or a size that no address space holds; `NoMemory` if the kernel
    /// refuses the amount, or has too few huge pages in its pool; `Unsupported` where it has no
    /// transparent huge pages at all.
    pub fn anonymous(bytes: usize, pages: Pages) -> Result<Self> {
        const OPERATION: &str = "map memory";
        if bytes == 0 {
            return Err(Error::invalid(OPERATION, "the size is zero"));
        }
        let page =
            if pages == Pages::Huge { HUGE_PAGE_BYTES } else { crate::process::page_bytes() };
        let too_large = || Error::invalid(OPERATION, "the size is too large");
        let mapped_bytes = bytes.checked_next_multiple_of(page).ok_or_else(too_large)?;
        // Room to align, and one huge page more: the rest of it is the guard behind.
        let reserved_bytes = mapped_bytes.checked_add(3 * HUGE_PAGE_BYTES).ok_or_else(too_large)?;
        let reserved = Region::reserve(reserved_bytes)?;
        // At least one page stays in front as a guard: start from the second byte.
        let first = reserved.start().addr().get();
        let offset = (first + 1).next_multiple_of(HUGE_PAGE_BYTES) - first;
        // SAFETY: `offset` is at most one huge page, within the reservation.
        let start = unsafe { reserved.start().add(offset) };
        let mapping = Self { start, bytes, mapped_bytes, _reserved: reserved };
        mapping.back(pages)?;
        Ok(mapping)
    }

    /// Puts real, writable memory into the middle of the reservation.
    fn back(&self, pages: Pages) -> Result<()> {
        const OPERATION: &str = "map memory";
        let huge = if pages == Pages::Huge { libc::MAP_HUGETLB | libc::MAP_HUGE_2MB } else { 0 };
        // SAFETY: MAP_FIXED replaces only `start..start + mapped_bytes`, which lies in this
        // value's own reservation, to which no reference exists yet.
        let got = unsafe {
            libc::mmap(
                self.start.as_ptr().cast(),
                self.mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | huge,
                -1,
                0,
            )
        };
        if got == libc::MAP_FAILED {
            let mut error = Error::last(OPERATION);
            if pages == Pages::Huge && error.kind == ErrorKind::Invalid {
                // A kernel without 2 MiB pages answers EINVAL to the flag.
                error.kind = ErrorKind::Unsupported;
            }
            return Err(error);
        }
        match pages {
            Pages::Huge => Ok(()),
            Pages::Base => match self.advise("refuse huge pages", libc::MADV_NOHUGEPAGE) {
                // A kernel without huge pages has nothing to refuse.
                Err(error) if error.kind == ErrorKind::Invalid => Ok(()),
                other => other,
            },
            Pages::Transparent => {
                unsupported_if_invalid(self.advise("ask for huge pages", libc::MADV_HUGEPAGE))
            }
        }
    }

    /// The bytes that were asked for.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the range is mapped readable for the life of `self`, and zeroed by the kernel.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes that were asked for, to write; touching a page makes it exist.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`, mapped writable, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The first byte's address, a multiple of 2 MiB.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// The size that was asked for, in bytes; never 0.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Makes every page exist and be writable, as if each had been written, in one call.
    ///
    /// # Errors
    /// `Unsupported` before Linux 5.14; `NoMemory` if memory runs out.
    pub fn populate_write(&mut self) -> Result<()> {
        loop {
            let answer = self.advise("populate memory", MADV_POPULATE_WRITE);
            match unsupported_if_invalid(answer) {
                Err(error) if error.kind == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Makes the pages of `bytes` bytes from `offset` exist and be writable, in one call.
    /// Both are multiples of the page size and lie inside the mapping.
    ///
    /// # Errors
    /// `Invalid` for a range outside; else as [`Mapping::populate_write`].
    pub fn populate_write_range(&mut self, offset: usize, bytes: usize) -> Result<()> {
        const OPERATION: &str = "populate memory";
        if offset.checked_add(bytes).is_none_or(|end| end > self.mapped_bytes) {
            return Err(Error::invalid(OPERATION, "the range lies outside the mapping"));
        }
        loop {
            // SAFETY: the range was just checked to lie inside this value's own mapping, which is
            // held exclusively; populating changes no byte that exists.
            let answer = unsafe {
                let start = self.start.as_ptr().add(offset).cast();
                libc::madvise(start, bytes, MADV_POPULATE_WRITE)
            };
            match unsupported_if_invalid(check(OPERATION, answer).map(drop)) {
                Err(error) if error.kind == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Gives all pages back; the bytes read as zero again and the next touch faults.
    ///
    /// # Errors
    /// `Invalid` while the memory is locked; `Unsupported` for [`Pages::Huge`] before Linux 5.18.
    pub fn discard(&mut self) -> Result<()> {
        self.advise("give memory back", libc::MADV_DONTNEED)
    }

    /// Keeps the pages in RAM, making all of them exist.
    ///
    /// # Errors
    /// `NoMemory` or `Denied` beyond RLIMIT_MEMLOCK.
    pub fn lock(&mut self) -> Result<()> {
        // SAFETY: the range is this value's own mapping; locking changes no content.
        let answer = unsafe { libc::mlock(self.start.as_ptr().cast(), self.mapped_bytes) };
        check("lock memory", answer).map(drop)
    }

    /// Advises on the whole mapping. Private: the advice must be one that keeps the bytes
    /// valid, or the caller must hold `&mut self`.
    fn advise(&self, operation: &'static str, advice: libc::c_int) -> Result<()> {
        // SAFETY: the range is this value's own mapping. The advices used here change the page
        // kind or existence; MADV_DONTNEED zeroes the bytes and is reached by `&mut self` only.
        let answer =
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.mapped_bytes, advice) };
        check(operation, answer).map(drop)
    }

    /// A pointer to the first byte, for memory that the kernel fills while it is in flight.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.start
    }
}

/// A zeroed buffer at a multiple of 4,096 bytes, for direct I/O.
#[derive(Debug)]
pub struct AlignedBuffer(Mapping);

impl AlignedBuffer {
    /// A buffer of `bytes` zeroes.
    ///
    /// # Errors
    /// As [`Mapping::anonymous`].
    pub fn new(bytes: usize) -> Result<Self> {
        Mapping::anonymous(bytes, Pages::Base).map(Self)
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

/// EINVAL to a known advice on a valid range means that the kernel does not have it.
fn unsupported_if_invalid(answer: Result<()>) -> Result<()> {
    answer.map_err(|mut error| {
        if error.kind == ErrorKind::Invalid {
            error.kind = ErrorKind::Unsupported;
        }
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident bytes of the mapping that starts at `address`, by the kernel's word.
    fn resident_bytes(address: usize) -> u64 {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{address:x}-");
        let block = text.lines().skip_while(|line| !line.starts_with(&start));
        let line = block.skip(1).find(|line| line.starts_with("Rss:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn memory_is_aligned_zeroed_and_untouched() {
        for bytes in [1, 4096, 5000, HUGE_PAGE_BYTES + 1] {
            let mut memory = Mapping::anonymous(bytes, Pages::Base).unwrap();
            assert_eq!(memory.len(), bytes);
            assert_eq!(memory.address() % HUGE_PAGE_BYTES, 0);
            assert_eq!(resident_bytes(memory.address()), 0);
            assert!(memory.as_slice().iter().all(|byte| *byte == 0));
            memory.as_mut_slice()[bytes - 1] = 1;
            assert_eq!(memory.as_slice()[bytes - 1], 1);
        }
    }

    #[test]
    fn neighbours_do_not_merge() {
        // Without guards the kernel may join equal neighbours into one mapping.
        let all: Vec<_> =
            (0..8).map(|_| Mapping::anonymous(HUGE_PAGE_BYTES, Pages::Base).unwrap()).collect();
        for memory in &all {
            assert_eq!(resident_bytes(memory.address()), 0, "the mapping starts at its address");
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_errors() {
        assert_eq!(Mapping::anonymous(0, Pages::Base).unwrap_err().kind, ErrorKind::Invalid);
        let error = Mapping::anonymous(usize::MAX, Pages::Base).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        let error = Mapping::anonymous(1 << 60, Pages::Transparent).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoMemory);
    }

    #[test]
    fn an_empty_pool_of_huge_pages_is_an_error() {
        let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
        let free = std::fs::read_to_string(path).unwrap_or_default();
        if free.trim() != "0" {
            println!("skipped: needs an empty pool of huge pages");
            return;
        }
        let error = Mapping::anonymous(HUGE_PAGE_BYTES, Pages::Huge).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoMemory);
    }

    #[test]
    fn populated_pages_are_resident_and_discarded_ones_are_zero() {
        let bytes = 1 << 20;
        let mut memory = Mapping::anonymous(bytes, Pages::Base).unwrap();
        memory.populate_write().unwrap();
        assert_eq!(resident_bytes(memory.address()), bytes as u64);
        memory.as_mut_slice().fill(7);
        memory.discard().unwrap();
        assert_eq!(resident_bytes(memory.address()), 0);
        assert!(memory.as_slice().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn dropped_memory_is_given_back() {
        // A process may hold 65,530 mappings by default: these would be more.
        for _ in 0..70_000 {
            drop(Mapping::anonymous(1, Pages::Base).unwrap());
        }
    }

    #[test]
    fn locked_memory_is_resident() {
        let mut memory = Mapping::anonymous(64 << 10, Pages::Base).unwrap();
        match memory.lock() {
            Ok(()) => {
                assert_eq!(resident_bytes(memory.address()), 64 << 10);
                assert_eq!(memory.discard().unwrap_err().kind, ErrorKind::Invalid);
            }
            Err(error) => println!("skipped: needs RLIMIT_MEMLOCK ({error})"),
        }
    }

    #[test]
    fn huge_pages_are_granted_where_the_kernel_has_them() {
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if setting.is_ok_and(|text| text.contains("[never]")) {
            println!("skipped: needs transparent huge pages");
            return;
        }
        let mut memory = Mapping::anonymous(2 * HUGE_PAGE_BYTES, Pages::Transparent).unwrap();
        memory.as_mut_slice()[0] = 1;
        // The kernel may fall back to one base page; never to anything in between.
        let resident = resident_bytes(memory.address());
        let base = crate::process::page_bytes() as u64;
        assert!(resident == HUGE_PAGE_BYTES as u64 || resident == base, "{resident}");
    }

    #[test]
    fn buffers_are_aligned() {
        let mut buffer = AlignedBuffer::new(10_000).unwrap();
        assert_eq!(buffer.as_ptr().addr() % BUFFER_ALIGNMENT, 0);
        buffer[9_999] = 3;
        assert_eq!((buffer.len(), buffer[9_999]), (10_000, 3));
    }
}
