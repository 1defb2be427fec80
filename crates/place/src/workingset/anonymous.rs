//! Anonymous memory in swap: the area and the slot of each page of a process, and the order of the
//! reads: by device, then by where on it, so that neighbours on the device are read together.
//!
//! /proc/PID/pagemap reports both. The kernel shows the slot only with `CAP_SYS_ADMIN`; without it
//! the pages can be counted but not ordered.

use super::targets::TargetProcess;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::maps::{self, Mapping};
use machine::pagemap::{Page, Pagemap};

/// A page in swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwappedPage {
    /// The process: an index into the scanned targets.
    pub target: u32,
    /// The kernel's number of the area.
    pub area: u8,
    /// The slot within the area, in pages; 0 for all where slots are hidden.
    pub slot: u64,
    /// Its address in the process.
    pub address: u64,
}

/// The anonymous pages of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymousPages {
    /// Its pages in swap.
    pub swapped: Vec<SwappedPage>,
    /// Anonymous pages that are present.
    pub present_pages: u64,
}

/// Finds the anonymous pages of `target`; each page in swap gets `index` as its target.
///
/// # Errors
/// `Impossible` where this user may not read its pagemap; `Failed` where it has ended.
pub fn scan(root: &Root, target: &TargetProcess, index: u32) -> Result<AnonymousPages> {
    let failed = |error: machine::Error| failure(target, &error);
    // Opened first: it stays with this memory if the process executes another program.
    let mut pagemap = Pagemap::open(root, target.pid).map_err(failed)?;
    let mappings = maps::read(root, target.pid).map_err(failed)?;
    let mut scan = AnonymousPages::default();
    for mapping in mappings.into_iter().filter(may_hold_private_pages) {
        if sys::interrupt::requested() {
            break;
        }
        pagemap
            .read(mapping.range, |address, page| match page {
                Page::Swapped { area, slot } => {
                    scan.swapped.push(SwappedPage { target: index, area, slot, address })
                }
                Page::Present { file_or_shared } => {
                    scan.present_pages += u64::from(!file_or_shared);
                }
                Page::Absent => {}
            })
            .map_err(failed)?;
    }
    if !target.lives() {
        return Err(failure_of(target, ErrorKind::Failed, "it has ended"));
    }
    Ok(scan)
}

/// Scans all `targets` until an interrupt and hands each one's index and pages to `visit`; returns
/// what was refused. A process that has ended has none.
pub(super) fn scan_all(
    root: &Root,
    targets: &[TargetProcess],
    mut visit: impl FnMut(u32, AnonymousPages),
) -> Refusals {
    let mut refusals = Refusals::default();
    for (index, target) in (0..).zip(targets) {
        if sys::interrupt::requested() {
            break;
        }
        match scan(root, target, index) {
            Ok(pages) => visit(index, pages),
            Err(error) if error.kind == ErrorKind::Impossible => {
                refusals.count += 1;
                refusals.first.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    refusals
}

/// Processes that this user may not look into.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    pub count: usize,
    pub first: Option<Error>,
}

impl Refusals {
    /// A note about them; `None` without any. If `all_named` were refused, that is an error.
    pub(super) fn note(self, all_named: bool) -> Result<Option<String>> {
        match self.first {
            Some(error) if all_named => Err(error),
            first => {
                Ok(first.map(|error| format!("{} processes are left out: {error}", self.count)))
            }
        }
    }
}

/// A mapping that cannot be read cannot be restored by reading. Reservations of address space,
/// which may be terabytes, are not readable.
fn may_hold_private_pages(mapping: &Mapping) -> bool {
    mapping.readable && !mapping.shared && mapping.kind != maps::MappingKind::Special
}

fn failure(target: &TargetProcess, error: &machine::Error) -> Error {
    let kind = match error.kind {
        machine::ErrorKind::Denied => ErrorKind::Impossible,
        _ => ErrorKind::Failed,
    };
    failure_of(target, kind, &sys::plain_reason(&error.source))
}

fn failure_of(target: &TargetProcess, kind: ErrorKind, reason: &str) -> Error {
    let operation = format!("see where the pages of {} ({}) lie", target.pid, target.name);
    Error::new(kind, operation, reason)
}

/// Sorts `pages`: those of targets in `first` before all others, then by area, then by slot.
pub fn sort_by_slot(pages: &mut [SwappedPage], first: &[u32]) {
    pages.sort_unstable_by_key(|page| {
        let later = !first.contains(&page.target);
        // Pages share a slot after a fork: the address makes the order unique.
        (later, page.area, page.slot, page.target, page.address)
    });
}

/// How many runs of neighbouring slots these pages have; they must be sorted.
#[must_use]
pub fn count_runs(pages: &[SwappedPage]) -> u64 {
    let follows = |before: &SwappedPage, after: &SwappedPage| {
        before.area == after.area && after.slot.saturating_sub(before.slot) <= 1
    };
    pages.chunk_by(follows).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(target: u32, area: u8, slot: u64) -> SwappedPage {
        let address = slot.wrapping_mul(7919) % 1000 * 4096;
        SwappedPage { target, area, slot, address }
    }

    #[test]
    fn runs_end_where_a_slot_is_left_out_and_where_an_area_ends() {
        let slots = [(0, 5), (0, 6), (0, 6), (0, 8), (1, 9), (1, 10)];
        let pages = slots.map(|(area, slot)| page(0, area, slot));
        assert_eq!(count_runs(&pages), 3);
        assert_eq!(count_runs(&[]), 0);
    }

    proptest! {
        #[test]
        fn the_head_never_goes_back(
            drawn in prop::collection::vec((0u32..6, 0u8..3, 1u64..500), 0..200),
            first in prop::collection::vec(0u32..6, 0..3),
        ) {
            let mut pages: Vec<_> = drawn.iter().map(|(t, a, s)| page(*t, *a, *s)).collect();
            sort_by_slot(&mut pages, &first);
            let named = pages.iter().take_while(|page| first.contains(&page.target)).count();
            prop_assert!(pages[named..].iter().all(|page| !first.contains(&page.target)));
            for part in [&pages[..named], &pages[named..]] {
                prop_assert!(part.is_sorted_by_key(|page| (page.area, page.slot)));
            }
            let key = |page: &SwappedPage| (page.target, page.area, page.slot);
            let mut before = drawn;
            let mut after: Vec<_> = pages.iter().map(key).collect();
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
        }

        #[test]
        fn the_order_does_not_depend_on_the_one_before(
            drawn in prop::collection::vec((0u32..6, 0u8..3, 1u64..50), 0..100),
        ) {
            let mut one: Vec<_> = drawn.iter().map(|(t, a, s)| page(*t, *a, *s)).collect();
            let mut other: Vec<_> = one.iter().rev().copied().collect();
            sort_by_slot(&mut one, &[2]);
            sort_by_slot(&mut other, &[2]);
            prop_assert_eq!(one, other);
        }
    }
}
