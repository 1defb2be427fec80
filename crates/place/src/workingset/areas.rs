//! The swap areas behind the kernel's numbers, and what kind of device each is on.
//!
//! pagemap names an area by the kernel's number. /proc/swaps lists the areas in ascending order
//! of it without naming it: where one was switched off, those behind it keep their numbers.

use super::anonymous::SwappedPage;
use machine::Root;
use machine::block::{self, Disk};
use machine::swap::{self, Area};
use std::collections::BTreeMap;

/// How an area wants to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwapMedium {
    /// Compressed memory: nothing is to be gained.
    CompressedRam,
    /// Each jump costs: one reader, in order.
    SeeksCost,
    /// Many requests at once are served faster.
    Flash,
}

/// An area that is in use.
#[derive(Clone, Debug)]
pub(super) struct SwapSource {
    /// Its line of /proc/swaps.
    pub area: Area,
    /// How it wants to be read.
    pub medium: SwapMedium,
}

/// The areas in use, by the kernel's numbers as they are in `pages`. Entries with a number
/// that no area can have are pages on their way within memory and are not in here.
pub(super) fn of_pages(root: &Root, pages: &[SwappedPage]) -> BTreeMap<u8, SwapSource> {
    let mut last_slots: BTreeMap<u8, u64> = BTreeMap::new();
    for page in pages {
        let last = last_slots.entry(page.area).or_default();
        *last = (*last).max(page.slot);
    }
    let areas = swap::areas(root);
    let page_bytes = sys::process::page_bytes() as u64;
    assign(&last_slots, &areas, page_bytes)
        .into_iter()
        .map(|(number, area)| {
            let medium = medium_of(root, area);
            let area = area.clone();
            (number, SwapSource { area, medium })
        })
        .collect()
}

/// Gives each number of the kernel its line of /proc/swaps: from the highest down, the last
/// line that is not above the number, not taken, and large enough for the slot seen.
fn assign<'a>(
    last_slots: &BTreeMap<u8, u64>,
    areas: &'a [Area],
    page_bytes: u64,
) -> Vec<(u8, &'a Area)> {
    let mut free = areas.len();
    let mut found = Vec::new();
    for (number, last_slot) in last_slots.iter().rev() {
        let fits = |area: &Area| {
            // Slot 0 is the header, which the size does not count.
            area.used.0 > 0 && *last_slot <= area.size.0 / page_bytes
        };
        let below = free.min(usize::from(*number) + 1);
        let line = (0..below).rev().find(|line| fits(&areas[*line]));
        if let Some(line) = line {
            free = line;
            found.push((*number, &areas[line]));
        }
    }
    found
}

/// Whether an area is in RAM, compressed: a restore leaves it out.
pub(super) fn is_in_ram(root: &Root, area: &Area) -> bool {
    medium_of(root, area) == SwapMedium::CompressedRam
}

/// By what the disks at the bottom say; what no disk is known of is taken for a slow one, whose
/// order does no harm on a fast one.
fn medium_of(root: &Root, area: &Area) -> SwapMedium {
    let disk = area.device.and_then(|(major, minor)| block::of_device(root, major, minor));
    let Some(disk) = disk else {
        return SwapMedium::SeeksCost;
    };
    let is = |disk: &Disk, name| disk.transport.as_deref() == Some(name);
    let disks = block::physical(root, &disk);
    if disks.iter().all(|disk| is(disk, "zram") || is(disk, "brd")) {
        return SwapMedium::CompressedRam;
    }
    let seeks =
        |disk: &Disk| is(disk, "nbd") || is(disk, "iscsi") || disk.rotational != Some(false);
    if seeks(&disk) || disks.iter().any(seeks) { SwapMedium::SeeksCost } else { SwapMedium::Flash }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Bytes;

    fn area(name: &str, pages: u64, used: u64) -> Area {
        Area {
            path: name.into(),
            kind: "partition".to_owned(),
            size: Bytes(pages * 4096),
            used: Bytes(used * 4096),
            priority: -2,
            device: None,
        }
    }

    fn names(seen: &[(u8, u64)], areas: &[Area]) -> Vec<(u8, String)> {
        let seen = seen.iter().copied().collect();
        let name = |(number, area): (u8, &Area)| (number, area.path.display().to_string());
        assign(&seen, areas, 4096).into_iter().rev().map(name).collect()
    }

    #[test]
    fn without_a_hole_numbers_count_the_lines() {
        let areas = [area("a", 100, 5), area("b", 100, 5), area("c", 100, 5)];
        let both = [(0, "a".to_owned()), (2, "c".to_owned())];
        assert_eq!(names(&[(0, 7), (2, 100)], &areas), both);
        assert_eq!(names(&[], &areas), []);
    }

    #[test]
    fn behind_an_area_that_was_switched_off_numbers_stay() {
        let areas = [area("a", 100, 5), area("c", 100, 5)];
        let both = [(0, "a".to_owned()), (2, "c".to_owned())];
        assert_eq!(names(&[(0, 7), (2, 9)], &areas), both);
    }

    #[test]
    fn an_area_that_is_too_small_or_empty_is_not_meant() {
        let areas = [area("small", 10, 5), area("empty", 100, 0), area("large", 100, 9)];
        assert_eq!(names(&[(2, 50)], &areas), [(2, "large".to_owned())]);
        let areas = [area("large", 100, 9), area("small", 10, 5)];
        assert_eq!(names(&[(1, 50)], &areas), [(1, "large".to_owned())]);
        // A page that is being moved within memory has a number that no area has.
        assert_eq!(names(&[(1, 5000)], &areas), []);
    }
}
