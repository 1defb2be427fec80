//! Which pages the kernel really granted to a range of this process's memory.
//!
//! Asking for huge pages is no proof of getting them; /proc/self/smaps is. The range
//! should be a mapping of its own, since the kernel counts per mapping.

use crate::parse::kib_of;
use crate::root::Root;
use model::Bytes;
use serde::Serialize;

/// What backs a range, summed over the mappings that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// In RAM, huge pages of the pool excluded (the kernel counts these apart).
    pub resident: Bytes,
    /// Of these, in transparent huge pages of anonymous memory.
    pub anon_huge: Bytes,
    /// In huge pages of the reserved pool.
    pub hugetlb: Bytes,
    /// The page size of the mapping; of the first one where they differ.
    pub kernel_page_bytes: Option<u64>,
}

/// What backs `len` bytes from `address` in this process; `None` if nothing is mapped there
/// or the kernel does not say.
#[must_use]
pub fn of_range(root: &Root, address: usize, len: usize) -> Option<Granted> {
    parse(&root.read("/proc/self/smaps").ok()?, address as u64, len as u64)
}

/// The same from the text of smaps.
#[must_use]
pub fn parse(text: &str, address: u64, len: u64) -> Option<Granted> {
    let end = address.checked_add(len)?;
    let mut sum = None;
    for block in blocks(text) {
        let Some((start, stop)) = block.lines().next().and_then(range_of_header) else {
            continue;
        };
        if start >= end || stop <= address {
            continue;
        }
        let bytes = |key| kib_of(block, key).map_or(0, |bytes| bytes.0);
        let sum = sum.get_or_insert(Granted {
            resident: Bytes(0),
            anon_huge: Bytes(0),
            hugetlb: Bytes(0),
            kernel_page_bytes: kib_of(block, "KernelPageSize").map(|bytes| bytes.0),
        });
        sum.resident.0 = sum.resident.0.saturating_add(bytes("Rss"));
        sum.anon_huge.0 = sum.anon_huge.0.saturating_add(bytes("AnonHugePages"));
        let hugetlb = bytes("Private_Hugetlb").saturating_add(bytes("Shared_Hugetlb"));
        sum.hugetlb.0 = sum.hugetlb.0.saturating_add(hugetlb);
    }
    sum
}

/// Splits the text before every line that is a header.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut at = rest.find('\n').map_or(rest.len(), |end| end + 1);
        while at < rest.len() {
            let line_end = rest[at..].find('\n').map_or(rest.len(), |end| at + end + 1);
            if range_of_header(&rest[at..line_end]).is_some() {
                break;
            }
            at = line_end;
        }
        let (block, tail) = rest.split_at(at);
        rest = tail;
        Some(block)
    })
}

/// "7f10-7f20 rw-p ..." as numbers; the lines below a header have a colon after their first word.
fn range_of_header(line: &str) -> Option<(u64, u64)> {
    let (start, stop) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(stop, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
1000-3000 rw-p 00000000 00:00 0
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   4 kB
AnonHugePages:         0 kB
200000-400000 rw-p 00000000 00:00 0 [heap]
KernelPageSize:        4 kB
Rss:                2048 kB
AnonHugePages:      2048 kB
VmFlags: rd wr hg
400000-600000 rw-p 00000000 00:00 0 /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
Private_Hugetlb:    2048 kB
";

    #[test]
    fn one_mapping_is_not_confused_with_its_neighbours() {
        let granted = parse(TEXT, 0x20_0000, 0x20_0000).unwrap();
        assert_eq!(granted.resident, Bytes(2 << 20));
        assert_eq!(granted.anon_huge, Bytes(2 << 20));
        assert_eq!(granted.hugetlb, Bytes(0));
        let pool = parse(TEXT, 0x40_0000, 1).unwrap();
        assert_eq!(pool.hugetlb, Bytes(2 << 20));
        assert_eq!(pool.kernel_page_bytes, Some(2 << 20));
    }

    #[test]
    fn a_range_over_several_is_their_sum() {
        let granted = parse(TEXT, 0x1000, 0x60_0000).unwrap();
        assert_eq!(granted.resident, Bytes((2 << 20) + 4096));
        assert_eq!(granted.kernel_page_bytes, Some(4096));
    }

    #[test]
    fn nothing_mapped_is_none() {
        assert_eq!(parse(TEXT, 0x80_0000, 4096), None);
        assert_eq!(parse("", 0, 4096), None);
        assert_eq!(parse(TEXT, u64::MAX, 2), None);
    }

    #[test]
    fn the_kernel_counts_touched_pages_of_a_mapping_of_its_own() {
        let root = Root::system();
        let mut memory =
            sys::memory::Mapping::anonymous(1 << 20, sys::memory::Pages::Base).unwrap();
        let resident = |memory: &sys::memory::Mapping| {
            of_range(&root, memory.address(), memory.len()).unwrap().resident
        };
        assert_eq!(resident(&memory), Bytes(0));
        let touched = 2 * sys::process::page_bytes();
        memory.as_mut_slice()[..touched].fill(1);
        assert_eq!(resident(&memory), Bytes(touched as u64));
        memory.populate_write().unwrap();
        assert_eq!(resident(&memory), Bytes(1 << 20));
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,200}", lines in "([0-9a-f]{1,3}-[0-9a-f]{1,3} x\n(Rss: [0-9]{1,25} kB\n)?){0,6}") {
            let _ = parse(&text, 0, 100);
            let _ = parse(&lines, 0x10, 0x400);
        }
    }
}
