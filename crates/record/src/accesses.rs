//! Single accesses: requests to block devices, and pages of files that enter the page cache, leave
//! it, or are asked for by a read. Numbers only, no names.
//!
//! A recording keeps them only where that was asked for. They come in batches, each with the share
//! that was kept and how many were lost. What is kept is decided by the place alone, so the same
//! page is followed for the whole recording, and a share of one in 2^k contains that of one in
//! 2^(k + 1).

use crate::device_number::joined;

/// What a request asks of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// The device may forget the range.
    Discard,
}

impl RequestKind {
    /// All of them; a file numbers them so.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Discard];
}

/// A request to a block device that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// When it was completed, since the start of the recording, in whole microseconds.
    pub at_ns: u64,
    /// From its issue to its completion, in whole microseconds.
    pub latency_ns: u64,
    /// Major and minor number of the whole disk.
    pub device: (u32, u32),
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// How many sectors.
    pub sectors: u32,
    /// What it asks for.
    pub kind: RequestKind,
}

/// What happened to pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageEventKind {
    /// They entered the page cache.
    Added,
    /// Reclaim took them away.
    Evicted,
    /// They were truncated, dropped, or replaced: no lack of memory was the reason.
    Removed,
    /// A read or a page fault asked for them, whether they were there or not.
    Touched,
}

impl PageEventKind {
    /// All of them; a file numbers them so.
    pub const ALL: [Self; 4] = [Self::Added, Self::Evicted, Self::Removed, Self::Touched];
}

/// Something that happened to pages of one file that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// When, since the start of the recording, in whole microseconds.
    pub at_ns: u64,
    /// Major and minor number of the file system's device; of a block device its own.
    pub device: (u32, u32),
    /// The file on it; 0 for a block device itself.
    pub inode: u64,
    /// The first page, counted from the start of the file.
    pub index: u64,
    /// How many pages, from 1 to [`PageEvent::MAX_PAGES`].
    pub pages: u32,
    /// What.
    pub kind: PageEventKind,
}

impl PageEvent {
    /// The most pages of one event: more than one read can ask for, which is 2 GiB.
    pub const MAX_PAGES: u32 = 1 << 20;

    /// The pages of this event that are followed when one page in 2^`shift` is.
    pub fn followed(&self, shift: u8) -> impl Iterator<Item = u64> + use<> {
        let shift = shift.min(MAX_SHIFT);
        let hash = place_hash(self.inode ^ u64::from(joined(self.device)) << 40);
        let last = self.index.saturating_add(u64::from(self.pages.max(1)) - 1);
        let range = self.index..=last;
        (self.index >> shift..=last >> shift)
            .map(move |group| followed_place(hash, group << shift, shift))
            .filter(move |page| range.contains(page))
    }
}

impl DeviceRequest {
    /// Whether this request is kept when the regions of 1 MiB of one in 2^`shift` are.
    #[must_use]
    pub fn is_followed(&self, shift: u8) -> bool {
        let region = self.sector >> REGION_SHIFT;
        let hash = place_hash(u64::from(joined(self.device)));
        followed_place(hash, region, shift.min(MAX_SHIFT)) == region
    }
}

/// Sectors of the region that is kept or not as one, as a power of two: runs stay runs.
const REGION_SHIFT: u32 = 11;

/// The smallest share: one in four million.
pub(crate) const MAX_SHIFT: u8 = 22;

/// The hash of `bpf/returns.h`.
fn place_hash(number: u64) -> u64 {
    const ODD: u64 = 0xd6e8_feb8_6659_fd93;
    let mixed = (number ^ number >> 32).wrapping_mul(ODD);
    (mixed ^ mixed >> 29).wrapping_mul(ODD)
}

/// Bits of a place that are drawn at once, and how many can be: `bpf/returns.h` has the same.
const DRAWN_BITS: u32 = 4;
const DRAWN_MOST: u32 = 24;

/// Of the 2^`shift` places around `place` the one that is followed: `followed_page` of
/// `bpf/returns.h`, where it says why.
fn followed_place(hash: u64, place: u64, shift: u8) -> u64 {
    let mask = (1_u64 << shift) - 1;
    let mut followed = place & !mask;
    for bit in (0..DRAWN_MOST).step_by(DRAWN_BITS as usize).rev() {
        let above = followed >> (bit + DRAWN_BITS);
        let drawn = place_hash(hash.wrapping_add(above << 5 | u64::from(bit))) >> (64 - DRAWN_BITS);
        followed |= drawn << bit & mask;
    }
    followed
}

/// A number for each class of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Requests to block devices.
    pub requests: u64,
    /// Pages that were added, evicted or removed.
    pub moves: u64,
    /// Pages that were asked for.
    pub touched: u64,
}

/// The share of each class that is kept: one in two to this power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessShifts {
    /// Of requests, by region of 1 MiB: see [`DeviceRequest::is_followed`].
    pub requests: u8,
    /// Of pages that were added, evicted or removed: see [`PageEvent::followed`].
    pub moves: u8,
    /// Of pages that were asked for.
    pub touched: u8,
}

/// What was kept of one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessBatch {
    /// The interval, since the start of the recording.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// The share that was kept.
    pub shifts: AccessShifts,
    /// Events of the share that were lost all the same.
    pub lost: AccessCounts,
    /// Requests in the order of their completion.
    pub requests: Vec<DeviceRequest>,
    /// Events of pages in order of time.
    pub pages: Vec<PageEvent>,
}

impl AccessBatch {
    /// The most requests, and the most events of pages, of one batch.
    pub const MAX_EVENTS: usize = 1 << 16;

    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len() + self.pages.len()
    }

    /// Whether it has no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(inode: u64, index: u64, pages: u32) -> PageEvent {
        let kind = PageEventKind::Added;
        PageEvent { at_ns: 0, device: (8, 1), inode, index, pages, kind }
    }

    #[test]
    fn folios_of_any_order_have_the_same_followed_pages() {
        for inode in 0..64 {
            for shift in 0..8 {
                let single: Vec<u64> =
                    (0..1024).flat_map(|index| event(inode, index, 1).followed(shift)).collect();
                let large: Vec<u64> = (0..1024)
                    .step_by(16)
                    .flat_map(|index| event(inode, index, 16).followed(shift))
                    .collect();
                assert_eq!(single, large);
                assert_eq!(single.len(), 1024 >> shift);
                let ranges: Vec<u64> = (0..1020)
                    .step_by(51)
                    .flat_map(|index| event(inode, index, 51).followed(shift))
                    .collect();
                assert_eq!(single[..ranges.len()], ranges, "also of what is not aligned");
                let finer: Vec<u64> = event(inode, 0, 1024).followed(shift + 1).collect();
                assert!(finer.iter().all(|index| single.contains(index)), "shares are nested");
            }
        }
    }

    #[test]
    fn of_pages_at_any_stride_the_share_is_followed() {
        for shift in [4, 6] {
            for stride in (1..=64).chain([127, 128, 257, 512, 1000, 4096, 262_144]) {
                let expected = 8 << (10 - shift);
                let of_file = |inode| {
                    let is_followed = |place: u64| {
                        event(inode, place * stride, 1).followed(shift).next().is_some()
                    };
                    (0..1024_u64).filter(|place| is_followed(*place)).count()
                };
                let seen: usize = (100..108).map(of_file).sum();
                // Five times what chance gives.
                let most = 5.0 * (expected as f64).sqrt();
                assert!(
                    (seen.abs_diff(expected) as f64) < most,
                    "stride {stride}, one in 2^{shift}: {seen} of {expected}"
                );
            }
        }
    }

    #[test]
    fn pages_in_pairs_are_followed_as_often_as_single_ones() {
        // A database's pages of 8 KiB, each second one of them.
        let pairs = (0..4096).map(|pair| event(7, pair * 4, 2).followed(4).count());
        let followed: usize = pairs.sum();
        assert!(followed.abs_diff(512) < 100, "{followed} of 512");
    }

    #[test]
    fn files_begin_with_any_page() {
        let firsts = (0..4096).filter(|inode| event(*inode, 0, 1).followed(4).next().is_some());
        let count = firsts.count();
        assert!((192..320).contains(&count), "{count} of 4096 / 16");
    }

    #[test]
    fn a_region_is_kept_whole() {
        let request = |sector| DeviceRequest {
            at_ns: 0,
            latency_ns: 0,
            device: (8, 0),
            sector,
            sectors: 8,
            kind: RequestKind::Read,
        };
        let kept: Vec<u64> =
            (0..1 << 20).step_by(8).filter(|at| request(*at).is_followed(3)).collect();
        assert_eq!(kept.len(), (1 << 20) / 8 / 8);
        assert_eq!(kept[0] % 2048, 0);
        assert!(kept[..256].windows(2).all(|pair| pair[1] == pair[0] + 8));
    }
}
