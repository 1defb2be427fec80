//! Which parts of an address space are in use, by the `PAGEMAP_SCAN` call (Linux 6.7).
//!
//! It walks the page tables, which are empty for what was reserved and never touched, so its time
//! goes with the memory in use and not with the size of the reservation.

use crate::error::{Result, check};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `PAGEMAP_SCAN`, from linux/fs.h.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// `PAGE_IS_PRESENT | PAGE_IS_SWAPPED`.
const IN_USE: u64 = 1 << 3 | 1 << 4;
/// How many parts one call gives; the answer then takes 12 KiB.
const PARTS_A_CALL: usize = 512;

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    wanted: u64,
}

/// The first parts of `range` whose pages are in memory or in swap, ascending, and the address from
/// which on it was not looked. `pagemap` is the open file of that name, `range` is of whole pages.
///
/// # Errors
/// `Unsupported` before Linux 6.7; `Invalid` for addresses that no process has.
pub fn used(pagemap: &File, range: Range<u64>) -> Result<(Vec<Range<u64>>, u64)> {
    let mut regions = [Region::default(); PARTS_A_CALL];
    let mut question = Question {
        size: size_of::<Question>() as u64,
        start: range.start,
        end: range.end,
        regions: regions.as_mut_ptr() as u64,
        regions_length: PARTS_A_CALL as u64,
        any_of: IN_USE,
        wanted: IN_USE,
        ..Question::default()
    };
    // SAFETY: the structure has the kernel's layout and says its own size; it names `regions` with
    // the length that it has. Both live across the call.
    let answer = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut question) };
    let count = check("find the pages in use", answer)?;
    let found = &regions[..PARTS_A_CALL.min(usize::try_from(count).unwrap_or(0))];
    let parts = found.iter().map(|region| region.start..region.end).collect();
    Ok((parts, question.walk_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Mapping, Pages};

    #[test]
    fn only_touched_pages_of_a_reservation_are_in_use() {
        const RESERVED: usize = 1 << 32;
        let page_bytes = crate::process::page_bytes();
        let mut memory = Mapping::anonymous(RESERVED, Pages::Base).unwrap();
        let start = memory.address() as u64;
        memory.as_mut_slice()[RESERVED / 2] = 1;
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let touched = start + RESERVED as u64 / 2;
        match used(&pagemap, start..start + RESERVED as u64) {
            Ok((parts, end)) => {
                assert_eq!(parts, vec![touched..touched + page_bytes as u64]);
                assert_eq!(end, start + RESERVED as u64);
            }
            Err(error) => testkit::skip(format!("PAGEMAP_SCAN (Linux 6.7): {error}")),
        }
    }
}
