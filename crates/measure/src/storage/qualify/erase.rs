//! The erase block by the time of reads across boundaries, as flashbench finds it.
//!
//! A read of 8 KiB across the end of an erase block asks two of them and takes longer than one
//! beside it. So boundaries of every power of two are tried (odd multiples of it, so that each has
//! exactly that alignment), and the difference to a read just before is taken. From the erase block
//! on all differences are larger; below none is. Anything else: it cannot be seen.

use super::candidate::Candidate;
use crate::Budget;
use model::device::BlockDevice;
use model::qualification::EraseBlock;
use model::random::mix;
use model::statistics;
use std::ops::Range;
use sys::memory::AlignedBuffer;

/// The smallest and the largest that are tried, as powers of two: 64 KiB to 64 MiB.
const POWERS: Range<u32> = 16..27;
/// Half of the read: what is before the boundary, and what is behind it.
const HALF: u64 = 4096;
/// Boundaries of each power, at least and at most.
const LEAST_SAMPLES: usize = 7;
const MOST_SAMPLES: usize = 48;
/// The differences must be this part of a read apart.
const LEAST_STEP: f64 = 0.05;

/// The differences at the boundaries of one power of two.
#[derive(Clone, Debug, PartialEq)]
struct Differences {
    bytes: u64,
    sorted_ns: Vec<f64>,
}

/// Finds it by reading the whole disk; within the own file of `file_bytes` where its place is
/// known, because a flash answers for places that were never written without its cells.
pub(super) fn find(
    candidate: &Candidate<'_>,
    file_bytes: Option<u64>,
    budget: &Budget,
) -> EraseBlock {
    let unseen = |reason: String| EraseBlock {
        unseen: Some(format!("cannot be seen here: {reason}")),
        ..EraseBlock::default()
    };
    let disk = match candidate.raw() {
        Ok(disk) => disk,
        Err(reason) => return unseen(reason),
    };
    let Ok(disk_bytes) = disk.size_bytes() else {
        return unseen("the size of the disk is not known".to_owned());
    };
    let areas = file_bytes.map_or_else(Vec::new, |bytes| file_areas(candidate, bytes));
    let whole = 0..disk_bytes;
    let areas = if areas.is_empty() { vec![whole] } else { areas };
    let (differences, read_ns) = match sample(&disk, &areas, budget) {
        Ok(sampled) => sampled,
        Err(reason) => return unseen(reason),
    };
    match judge(&differences, read_ns) {
        Some(bytes) => {
            EraseBlock { bytes: Some(bytes), source: Some("read times".to_owned()), unseen: None }
        }
        None => unseen("reads across boundaries of every size take the same time".to_owned()),
    }
}

/// Where the own file is on the disk.
fn file_areas(candidate: &Candidate<'_>, bytes: u64) -> Vec<Range<u64>> {
    let device = candidate.target.device();
    let start =
        device.map(|(major, minor)| machine::block::start_on_disk(candidate.root, major, minor));
    let is_plain = candidate.disk.as_ref().is_some_and(|disk| disk.members.is_empty());
    let places_known = matches!(candidate.facts.file_system.as_deref(), Some("ext4" | "xfs"));
    let (Some(start), true, true) = (start, is_plain, places_known) else {
        return Vec::new();
    };
    let extents = sys::fiemap::extents(candidate.target.file(), 0..bytes).unwrap_or_default();
    let places = extents.iter().filter(|extent| !extent.unwritten).filter_map(|extent| {
        let from = extent.physical? + start;
        Some(from..from + extent.bytes)
    });
    places.collect()
}

/// Times reads across and beside boundaries in turn until the budget ends.
fn sample(
    disk: &impl BlockDevice,
    areas: &[Range<u64>],
    budget: &Budget,
) -> Result<(Vec<Differences>, f64), String> {
    let words = |what: String| move |error: sys::Error| format!("{what}: {}", error.source);
    let mut buffer =
        AlignedBuffer::new(2 * HALF as usize).map_err(words("no buffer".to_owned()))?;
    let seed = sys::random::seed().map_err(words("no seed".to_owned()))?;
    let mut all: Vec<Differences> =
        POWERS.map(|bits| Differences { bytes: 1 << bits, sorted_ns: Vec::new() }).collect();
    let mut beside_ns = Vec::new();
    for round in 0..MOST_SAMPLES as u64 {
        for power in &mut all {
            if budget.over() {
                break;
            }
            let Some(boundary) = boundary(areas, power.bytes, mix(seed ^ mix(round) ^ power.bytes))
            else {
                continue;
            };
            let mut timed = |from: u64| {
                let start_ns = sys::clock::now_ns();
                let read = disk.read_at(&mut buffer, from);
                let ns = sys::clock::now_ns() - start_ns;
                read.map(|_| ns as f64).map_err(|error| format!("a read failed: {}", error.source))
            };
            // In turn first the one and first the other: what a device keeps helps both alike.
            let beside = boundary - 4 * HALF;
            let (across_ns, quiet_ns) = if round % 2 == 0 {
                let across = timed(boundary - HALF)?;
                (across, timed(beside)?)
            } else {
                let quiet = timed(beside)?;
                (timed(boundary - HALF)?, quiet)
            };
            power.sorted_ns.push(across_ns - quiet_ns);
            beside_ns.push(quiet_ns);
        }
    }
    for power in &mut all {
        power.sorted_ns = statistics::sorted(&power.sorted_ns);
    }
    all.retain(|power| power.sorted_ns.len() >= LEAST_SAMPLES);
    let read_ns = statistics::median(&statistics::sorted(&beside_ns));
    Ok((all, read_ns.unwrap_or(0.0)))
}

/// An odd multiple of `bytes` inside of one of `areas`, with room for the reads around it.
fn boundary(areas: &[Range<u64>], bytes: u64, random: u64) -> Option<u64> {
    let usable = areas.iter().filter_map(|area| {
        // Odd multiples are 2 * bytes apart.
        let first = (area.start + 4 * HALF).saturating_sub(bytes).div_ceil(2 * bytes);
        let end = area.end.checked_sub(HALF + bytes)?;
        let count = (end / (2 * bytes) + 1).checked_sub(first)?;
        (count > 0).then_some((first, count))
    });
    let all: Vec<(u64, u64)> = usable.collect();
    let total: u64 = all.iter().map(|(_, count)| count).sum();
    let mut index = random.checked_rem(total)?;
    for (first, count) in all {
        if index < count {
            return Some((first + index) * 2 * bytes + bytes);
        }
        index -= count;
    }
    None
}

/// The power of two from which on reads across take longer; `None` without a clear one.
fn judge(all: &[Differences], read_ns: f64) -> Option<u64> {
    let median = |power: &Differences| statistics::median(&power.sorted_ns);
    let interval = |power: &Differences| statistics::median_interval(&power.sorted_ns);
    let medians: Vec<f64> = all.iter().filter_map(median).collect();
    // Two on each side: one that differs can be anything.
    let cut = (2..all.len().saturating_sub(1))
        .max_by(|&a, &b| gap(&medians, a).total_cmp(&gap(&medians, b)))?;
    let (below, above) = all.split_at(cut);
    let highest_below =
        below.iter().filter_map(|power| Some(interval(power)?.1)).fold(f64::MIN, f64::max);
    let lowest_above =
        above.iter().filter_map(|power| Some(interval(power)?.0)).fold(f64::MAX, f64::min);
    let is_clear = gap(&medians, cut) > read_ns * LEAST_STEP && lowest_above > highest_below;
    is_clear.then_some(above.first()?.bytes)
}

fn gap(medians: &[f64], cut: usize) -> f64 {
    let below = medians[..cut].iter().copied().fold(f64::MIN, f64::max);
    let above = medians[cut..].iter().copied().fold(f64::MAX, f64::min);
    above - below
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn differences(of: impl Fn(u64) -> f64) -> Vec<Differences> {
        let noise = |index: usize| (index as f64 - 10.0) * 1000.0;
        POWERS
            .map(|bits| {
                let sorted_ns = (0..21).map(|index| of(1 << bits) + noise(index)).collect();
                Differences { bytes: 1 << bits, sorted_ns }
            })
            .collect()
    }

    #[test]
    fn the_block_is_where_reads_across_begin_to_take_longer() {
        let of = |bytes| if bytes >= 4 << 20 { 300_000.0 } else { 0.0 };
        assert_eq!(judge(&differences(of), 900_000.0), Some(4 << 20));
        assert_eq!(judge(&differences(|_| 0.0), 900_000.0), None, "a disk without flash");
        assert_eq!(judge(&differences(|_| 300_000.0), 900_000.0), None, "smaller than all");
        let one = |bytes| if bytes == 1 << 20 { 300_000.0 } else { 0.0 };
        assert_eq!(judge(&differences(one), 900_000.0), None, "an exception");
        assert_eq!(judge(&[], 0.0), None);
    }

    proptest! {
        #[test]
        fn boundaries_are_odd_multiples_inside(
            start in 0_u64..1 << 30, length in 0_u64..1 << 28, bits in POWERS, random: u64,
        ) {
            let area = start..start + length;
            if let Some(at) = boundary(std::slice::from_ref(&area), 1 << bits, random) {
                prop_assert_eq!(at.trailing_zeros(), bits);
                prop_assert!(at >= area.start + 4 * HALF && at + HALF <= area.end);
            }
        }
    }
}
