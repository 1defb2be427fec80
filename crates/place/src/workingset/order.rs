//! The order of the reads, which is the whole trick: by device, then by where on it.
//!
//! Pure. Pages of processes that were named first come first; within them the area, then the
//! slot. Neighbours on the device are read together.

use super::anonymous::SwappedPage;

/// Sorts `pages`: those of targets in `first` before all others, then by area, then by slot.
pub fn by_slot(pages: &mut [SwappedPage], first: &[u32]) {
    pages.sort_unstable_by_key(|page| {
        let later = !first.contains(&page.target);
        // Pages share a slot after a fork: the address makes the order unique.
        (later, page.area, page.slot, page.target, page.address)
    });
}

/// How many runs of neighbouring slots these pages have; they must be sorted.
#[must_use]
pub fn runs(pages: &[SwappedPage]) -> u64 {
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
        assert_eq!(runs(&pages), 3);
        assert_eq!(runs(&[]), 0);
    }

    proptest! {
        #[test]
        fn the_head_never_goes_back(
            drawn in prop::collection::vec((0u32..6, 0u8..3, 1u64..500), 0..200),
            first in prop::collection::vec(0u32..6, 0..3),
        ) {
            let mut pages: Vec<_> = drawn.iter().map(|(t, a, s)| page(*t, *a, *s)).collect();
            by_slot(&mut pages, &first);
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
            by_slot(&mut one, &[2]);
            by_slot(&mut other, &[2]);
            prop_assert_eq!(one, other);
        }
    }
}
