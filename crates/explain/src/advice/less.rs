//! What less memory would have cost.
//!
//! A page that was used again while it was in memory would have been lost if the page cache held no
//! more than what was used after it. How much it holds, free memory included, is known of each
//! block of time; less memory is taken from that. What would have been lost costs what the disk
//! took for the bytes that came back, or else for all that was read.
//!
//! The estimate takes pages as leaving in the order of their last use. Its lower end leaves out
//! what was used before more than the order reaches; its upper end counts as lost all that was in
//! memory before the recording began, at its first use.

use super::blocks::{Distances, Observation, TimeBlock, part_of, total};
use super::memory::{RETURNS_MIN, kept, sampling_error};
use super::{answer, interval};
use model::advice::{MemoryGain, SparedTime};

/// Less that was read says nothing of what a disk takes: 256 pages of 4 KiB. Picked.
const READ_BYTES_MIN: u64 = 1 << 20;

/// Which pages count as lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// Those of which the distance is known.
    Known,
    /// Also those that were used before the order reaches, or at least so far back: the estimate.
    Likely,
    /// Also all that was in memory before.
    Possible,
}

/// What the page cache holds of one block, and what was used again in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheUse {
    /// Whether hits were followed.
    pub(super) is_followed: bool,
    /// Why not, if they were asked for.
    pub(super) closed: Option<String>,
    /// What it held and what was free, on average; `None` if not known.
    pub(super) room_bytes: Option<u64>,
    /// Bytes used again by distance: since their last use, and since the recording began at least.
    pub(super) distances: [Distances; 2],
}

impl CacheUse {
    /// What would have been lost if so much less fitted.
    fn lost_bytes(&self, less: u64, lost: Lost) -> u64 {
        let left = self.room_bytes.unwrap_or(0).saturating_sub(less);
        let all = |distances: &Distances| total(distances.values().copied());
        let beyond = |distances: &Distances| all(distances).saturating_sub(kept(distances, left));
        let [again, first] = &self.distances;
        let too_far = again.get(&u64::MAX).copied().unwrap_or(0);
        match lost {
            Lost::Known => beyond(again).saturating_sub(too_far),
            Lost::Likely => beyond(again).saturating_add(beyond(first)),
            Lost::Possible => beyond(again).saturating_add(all(first)),
        }
    }
}

/// What `less` bytes less memory would have cost.
pub(super) fn of_size(seen: &Observation, less: u64) -> MemoryGain {
    let more_bytes = i64::try_from(less).map_or(i64::MIN, |less| -less);
    let gain = MemoryGain { more_bytes, ..MemoryGain::default() };
    let unproven = |why: String| MemoryGain { unproven: Some(why), ..gain.clone() };
    if seen.blocks.is_empty() || !seen.blocks.iter().all(|block| block.cache.is_followed) {
        let why = seen.blocks.iter().find_map(|block| block.cache.closed.as_deref());
        return unproven(why.map_or_else(|| answer::NO_HITS.to_owned(), answer::hits_closed));
    }
    let Some(room) = seen.blocks.iter().map(|block| block.cache.room_bytes).min().flatten() else {
        return unproven(answer::NO_ROOM.to_owned());
    };
    if less >= room {
        return unproven(answer::beyond_cache(room));
    }
    let lost_bytes = seen.sum(|block| block.cache.lost_bytes(less, Lost::Likely));
    let gain = MemoryGain { lost_bytes: Some(lost_bytes), ..gain.clone() };
    let unproven = |why: String| MemoryGain { unproven: Some(why), ..gain.clone() };
    let Some((ns, bytes)) = price(seen) else {
        return unproven(answer::no_price(lost_bytes));
    };
    match cost(seen, less, (ns, bytes)) {
        Some((cost, threads_ns)) => {
            MemoryGain { cost: Some(cost), threads_ns: Some(threads_ns), ..gain }
        }
        None => unproven(answer::FEW_PIECES.to_owned()),
    }
}

/// What threads waited for so many bytes: those that came back, else all that was read.
fn price(seen: &Observation) -> Option<(u64, u64)> {
    let returned = seen.sum(|block| block.returns[0].all_bytes());
    if returned >= RETURNS_MIN.saturating_mul(seen.page_bytes) {
        return Some((seen.sum(|block| block.returns[0].waited_ns), returned));
    }
    let read = seen.sum(|block| block.read_bytes);
    (read >= READ_BYTES_MIN).then(|| (seen.sum(|block| block.read_ns), read))
}

/// The wall time with its range, and the waits of all threads.
fn cost(seen: &Observation, less: u64, (ns, bytes): (u64, u64)) -> Option<(SparedTime, u64)> {
    let threads_ns = |block: &TimeBlock, lost| {
        let lost = block.cache.lost_bytes(less, lost);
        let all = u128::from(ns) * u128::from(lost) / u128::from(bytes.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    };
    // Of the waits of threads the wall bar has the share that it has of those that were seen.
    let (waited, disk) = (seen.waited_ns(), seen.disk_ns());
    let wall = |ns: u64| if waited == 0 { ns } else { part_of(ns, disk.min(waited), waited) };
    let walls = |lost| -> Vec<f64> {
        seen.blocks.iter().map(|block| wall(threads_ns(block, lost)) as f64).collect()
    };
    let lost_bytes = seen.sum(|block| block.cache.lost_bytes(less, Lost::Likely));
    let error = sampling_error(lost_bytes, seen.page_bytes) + seen.lost_share();
    let ns = walls(Lost::Likely).iter().sum::<f64>();
    let (low, _) = interval::of_sum(&walls(Lost::Known))?;
    let (_, high) = interval::of_sum(&walls(Lost::Possible))?;
    let low = (low * (1.0 - error)).clamp(0.0, ns);
    let high = (high * (1.0 + error)).max(ns);
    let [ns, low_ns, high_ns] = [ns, low, high].map(|ns| ns as u64);
    let threads = seen.sum(|block| threads_ns(block, Lost::Likely));
    Some((SparedTime { ns, low_ns, high_ns }, threads))
}
