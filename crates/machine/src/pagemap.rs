//! Where each page of a process is: in memory, in which slot of swap, or nowhere.
//!
//! /proc/PID/pagemap has 8 bytes for each page of the address space (`Documentation/
//! admin-guide/mm/pagemap.rst`). Slots are shown to holders of `CAP_SYS_ADMIN`; others read zeros
//! in their place, and no page is ever stored in slot 0, which holds the area's header. Shared
//! memory in swap reads as nothing at all.

use crate::root::Root;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use sys::{Error, Result};

/// Bytes for each page.
const ENTRY_BYTES: usize = 8;
/// How many entries are read at once: 256 KiB, that stay in the cache.
const ENTRIES_AT_ONCE: u64 = 32 << 10;
/// From this many pages on the kernel is asked first which parts are in use: a process may reserve
/// 128 TiB at no cost, whose entries take minutes to read.
const LARGE_PAGES: u64 = 4 * ENTRIES_AT_ONCE;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;
const AREA_BITS: u32 = 5;
const FRAME_BITS: u32 = 55;

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Never touched, dropped, or shared memory that is in swap.
    Absent,
    /// In memory and mapped.
    Present {
        /// A page of a file or of shared memory, not the process's own.
        file_or_shared: bool,
    },
    /// In swap, or on its way between two places in memory: the latter has an area number
    /// that no area has.
    Swapped {
        /// The kernel's number of the area.
        area: u8,
        /// The slot, in pages; 0 where the kernel hides it.
        slot: u64,
    },
}

impl Page {
    /// What an entry says.
    fn of_entry(entry: u64) -> Self {
        let frame = entry & ((1 << FRAME_BITS) - 1);
        if entry & PRESENT != 0 {
            let file_or_shared = entry & FILE_OR_SHARED != 0;
            Self::Present { file_or_shared }
        } else if entry & SWAPPED != 0 {
            let area = (frame & ((1 << AREA_BITS) - 1)) as u8;
            let slot = frame >> AREA_BITS;
            Self::Swapped { area, slot }
        } else {
            Self::Absent
        }
    }
}

/// Whether this process is shown the places of pages in memory and in swap: asked of an own page.
///
/// # Errors
/// `NotFound` where the kernel has no such file, `Denied` where it is hidden.
pub fn are_places_shown(root: &Root) -> Result<bool> {
    let path = root.path("/proc/self/pagemap");
    let read = |source| Error::new("read", source).at(&path);
    let own = Box::new(1u8);
    let address = std::hint::black_box(&raw const *own) as u64;
    let mut entry = [0; ENTRY_BYTES];
    let file = File::open(&path).map_err(read)?;
    let page = address / sys::process::page_bytes() as u64;
    file.read_exact_at(&mut entry, page * ENTRY_BYTES as u64).map_err(read)?;
    let entry = u64::from_ne_bytes(entry);
    Ok(entry & PRESENT != 0 && entry & ((1 << FRAME_BITS) - 1) != 0)
}

/// The pagemap of one process, held open: it stays with the memory that the process had then,
/// also when the process runs another program or its number passes on.
#[derive(Debug)]
pub struct Pagemap {
    file: File,
    path: PathBuf,
    page_bytes: u64,
    buffer: Vec<u8>,
}

impl Pagemap {
    /// Opens that of the process `pid`.
    ///
    /// # Errors
    /// `NotFound` for a process that is gone, `Denied` for one that this user may not look into.
    pub fn open(root: &Root, pid: u32) -> Result<Self> {
        let path = root.path(format!("/proc/{pid}/pagemap"));
        let file = File::open(&path).map_err(|source| Error::new("read", source).at(&path))?;
        Ok(Self { file, path, page_bytes: sys::process::page_bytes() as u64, buffer: Vec::new() })
    }

    /// Tells `each` of every page of `range` with its address, ascending. Ends early, without an
    /// error, where the process has ended or an interrupt came: a reservation may be of terabytes.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn read(&mut self, range: Range<u64>, mut each: impl FnMut(u64, Page)) -> Result<()> {
        let is_large = (range.end - range.start) / self.page_bytes >= LARGE_PAGES;
        let mut start = range.start / self.page_bytes * self.page_bytes;
        while is_large && start < range.end && !sys::interrupt::requested() {
            let end = range.end.next_multiple_of(self.page_bytes);
            // Before Linux 6.7 all of it is read.
            let Ok((used, next)) = sys::pagemap::used(&self.file, start..end) else {
                break;
            };
            for part in used {
                self.read_all(part, &mut each)?;
            }
            if next <= start {
                break;
            }
            start = next;
        }
        if start < range.end {
            self.read_all(start..range.end, &mut each)?;
        }
        Ok(())
    }

    /// As [`Pagemap::read`], entry by entry.
    fn read_all(&mut self, range: Range<u64>, each: &mut impl FnMut(u64, Page)) -> Result<()> {
        let last = range.end.div_ceil(self.page_bytes);
        let mut first = range.start / self.page_bytes;
        while first < last && !sys::interrupt::requested() {
            let entries = (last - first).min(ENTRIES_AT_ONCE);
            self.buffer.resize(entries as usize * ENTRY_BYTES, 0);
            let filled = self
                .file
                .read_at(&mut self.buffer, first * ENTRY_BYTES as u64)
                .map_err(|source| Error::new("read", source).at(&self.path))?;
            let (whole, _) = self.buffer[..filled].as_chunks::<ENTRY_BYTES>();
            for (index, entry) in whole.iter().enumerate() {
                let address = (first + index as u64) * self.page_bytes;
                each(address, Page::of_entry(u64::from_ne_bytes(*entry)));
            }
            if whole.is_empty() {
                break;
            }
            first += whole.len() as u64;
        }
        Ok(())
    }

    /// The page at `address`; `Absent` where the process has ended.
    ///
    /// # Errors
    /// As [`Pagemap::read`].
    pub fn page(&mut self, address: u64) -> Result<Page> {
        let mut found = Page::Absent;
        self.read(address..address + 1, |_, page| found = page)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::{Cgroup, FakeRoot, SwapArea};

    #[test]
    fn places_are_shown_to_an_admin_and_hidden_from_others() {
        let shown = || are_places_shown(&Root::system());
        match shown() {
            Ok(is_shown) => assert_eq!(is_shown, testkit::is_admin()),
            Err(error) => return testkit::skip(error),
        }
        if testkit::is_root() {
            assert!(!sys::process::as_user(65_534, 65_534, shown).unwrap().unwrap_or(false));
        }
        assert!(are_places_shown(&Root::at(FakeRoot::new().path())).is_err());
    }

    #[test]
    fn entries_are_decoded() {
        assert_eq!(Page::of_entry(0), Page::Absent);
        assert_eq!(Page::of_entry(1 << 55 | 1 << 57), Page::Absent);
        let own = Page::Present { file_or_shared: false };
        assert_eq!(Page::of_entry(PRESENT | 77), own);
        let file = Page::Present { file_or_shared: true };
        assert_eq!(Page::of_entry(PRESENT | FILE_OR_SHARED), file);
        let swapped = Page::Swapped { area: 3, slot: 9 };
        assert_eq!(Page::of_entry(SWAPPED | 1 << 55 | 9 << 5 | 3), swapped);
        let hidden = Page::Swapped { area: 0, slot: 0 };
        assert_eq!(Page::of_entry(SWAPPED), hidden);
    }

    /// A tree in which the process 5 has these entries.
    fn tree(entries: &[u64]) -> FakeRoot {
        let bytes: Vec<u8> = entries.iter().flat_map(|one| one.to_ne_bytes()).collect();
        FakeRoot::bare().file("/proc/5/pagemap", bytes)
    }

    #[test]
    fn a_range_is_read_across_buffers_and_ends_with_the_file() {
        let entries: Vec<u64> =
            (0..ENTRIES_AT_ONCE + 3).map(|slot| SWAPPED | slot << AREA_BITS).collect();
        let tree = tree(&entries);
        let page_bytes = sys::process::page_bytes() as u64;
        let mut map = Pagemap::open(&Root::at(tree.path()), 5).unwrap();
        let mut seen = Vec::new();
        let end = (ENTRIES_AT_ONCE + 100) * page_bytes;
        map.read(page_bytes..end, |address, page| seen.push((address, page))).unwrap();
        assert_eq!(seen.len() as u64, ENTRIES_AT_ONCE + 2);
        for (address, page) in seen {
            let slot = address / page_bytes;
            assert_eq!(page, Page::Swapped { area: 0, slot });
        }
        assert_eq!(map.page(end).unwrap(), Page::Absent);
    }

    #[test]
    fn touched_pages_of_this_process_are_present() {
        let mut memory =
            sys::memory::Mapping::anonymous(1 << 20, sys::memory::Pages::Base).unwrap();
        memory.as_mut_slice()[..8192].fill(1);
        let start = memory.address() as u64;
        let mut map = Pagemap::open(&Root::system(), std::process::id()).unwrap();
        let mut present = Vec::new();
        map.read(start..start + (1 << 20), |address, page| {
            if let Page::Present { file_or_shared } = page {
                assert!(!file_or_shared);
                present.push(address - start);
            }
        })
        .unwrap();
        let page_bytes = sys::process::page_bytes();
        let expected: Vec<u64> = (0..8192).step_by(page_bytes).map(|at| at as u64).collect();
        assert_eq!(present, expected);
    }

    #[test]
    fn pages_in_swap_have_a_slot_of_their_own() {
        const PAGES: usize = 1024;
        let swap = SwapArea::on(64 << 20);
        let group = Cgroup::v1_memory(64 << 20);
        let (_swap, group) = match (swap, group) {
            (Ok(swap), Ok(group)) => (swap, group),
            (Err(need), _) | (_, Err(need)) => return testkit::skip(need),
        };
        let page_bytes = sys::process::page_bytes() as u64;
        // `dd` fills its one buffer with random bytes and then sleeps: nothing reads from the pipe.
        let mut child = group
            .command("dd")
            .args(["if=/dev/urandom", "of=/dev/stdout", "count=1", "iflag=fullblock"])
            .arg(format!("bs={}", PAGES as u64 * page_bytes))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let root = Root::system();
        let limit = group.path().join("memory.force_empty");
        let mut slots = BTreeSet::new();
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            // Fails while something cannot go; what could go went.
            let _ = std::fs::write(&limit, "0");
            slots = slots_of(&root, child.id());
            if slots.len() >= PAGES {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(slots.len() >= PAGES, "{} slots", slots.len());
        assert!(slots.iter().all(|(_, slot)| (1..16384).contains(slot)));
    }

    fn slots_of(root: &Root, pid: u32) -> BTreeSet<(u8, u64)> {
        let mut slots = BTreeSet::new();
        let mut map = Pagemap::open(root, pid).unwrap();
        for mapping in crate::maps::read(root, pid).unwrap() {
            map.read(mapping.range, |_, page| {
                if let Page::Swapped { area, slot } = page {
                    assert!(slots.insert((area, slot)), "slot {slot} twice");
                }
            })
            .unwrap();
        }
        slots
    }
}
