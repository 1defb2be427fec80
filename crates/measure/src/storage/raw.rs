//! Own fresh file against the raw device: does a host's cache serve what was just written?
//!
//! In a guest the "disk" is often a file of the host, whose cache holds what the
//! guest wrote a moment ago. Random reads over the whole raw device reach blocks
//! that were not touched lately; when the own file is much faster, the difference is
//! that cache. Both are read in turn, direct, one request at a time; the device is
//! opened for reading only. It needs the right to do that (root).

use super::failed;
use super::iolat::{IolatPlan, Prober};
use super::latency::RequestLatency;
use crate::{Budget, Result};
use model::Histogram;
use std::fs::File;
use std::path::Path;
use sys::device::FileDevice;

/// Requests to one side before the other has its turn.
const TURN: u32 = 8;

/// How many times slower the raw device must be. Picked: never-written blocks are
/// answered without a disk by thin volumes, so the ratio only ever errs low.
const SUSPICIOUS: f64 = 2.0;

/// A rotating disk answers no sooner than this when the head has to move, even over
/// a small file; above it, longer ways of the head explain a slower raw device.
const HEAD_MOVED_NS: f64 = 1_000_000.0;

/// What the comparison gave.
#[derive(Clone, Debug)]
pub struct RawComparison {
    /// 4 KiB random direct reads of the own file.
    pub own: RequestLatency,
    /// The same over the whole device.
    pub raw: RequestLatency,
    /// Whether a cache of the host is the likely reason why the own file is faster.
    pub host_cache_suspected: bool,
}

/// Reads `own` (opened with `O_DIRECT`, `own_bytes` long) and `device` in turn until
/// `budget` ends; `rotational` is what the device says of itself.
///
/// # Errors
/// `Impossible` where the device may not be opened; `Failed` when a read fails.
pub fn raw_compare(
    device: &Path,
    own: &File,
    own_bytes: u64,
    rotational: Option<bool>,
    budget: &Budget,
) -> Result<RawComparison> {
    let raw_file = sys::file::open_read(device, true).map_err(|e| failed("open", device, e))?;
    let raw_bytes =
        sys::block::size_bytes(&raw_file).map_err(|e| failed("measure the size of", device, e))?;
    let seed = sys::random::seed().map_err(|e| failed("draw a seed for", device, e))?;
    let plan = IolatPlan::default();
    let own_device = FileDevice::over(own).map_err(|e| failed("open", device, e))?;
    let raw_device = FileDevice::new(raw_file).map_err(|e| failed("open", device, e))?;
    let mut own_prober = Prober::new(own_device, own_bytes, &plan, seed)?;
    let mut raw_prober = Prober::new(raw_device, raw_bytes, &plan, seed)?;
    let (mut own_times, mut raw_times) = (Histogram::new(), Histogram::new());
    while !budget.over() {
        for (prober, times) in
            [(&mut own_prober, &mut own_times), (&mut raw_prober, &mut raw_times)]
        {
            for _ in 0..TURN {
                times.add(prober.request().map_err(|error| error.at(device))?);
            }
        }
    }
    Ok(compare(&own_times, &raw_times, rotational))
}

fn compare(own: &Histogram, raw: &Histogram, rotational: Option<bool>) -> RawComparison {
    let (own, raw) = (RequestLatency::from(own), RequestLatency::from(raw));
    // The ends of the intervals that are nearest to each other.
    let nearest = raw.p50_low_ns.zip(own.p50_high_ns);
    let proven = nearest.is_some_and(|(raw, own)| raw / own >= SUSPICIOUS);
    let head_moved = rotational == Some(true) && own.p50_ns.is_some_and(|ns| ns > HEAD_MOVED_NS);
    RawComparison { own, raw, host_cache_suspected: proven && !head_moved }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(ns: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (0..100).for_each(|i| histogram.add(ns + ns * (i % 11) / 100));
        histogram
    }

    fn suspected(own_ns: u64, raw_ns: u64, rotational: Option<bool>) -> bool {
        compare(&around(own_ns), &around(raw_ns), rotational).host_cache_suspected
    }

    #[test]
    fn a_much_faster_own_file_is_suspicious() {
        assert!(suspected(40_000, 400_000, Some(false)));
        assert!(suspected(40_000, 400_000, None));
        assert!(!suspected(40_000, 60_000, None));
        assert!(!suspected(400_000, 40_000, None), "thin blocks answer at once");
    }

    #[test]
    fn long_ways_of_a_head_are_not() {
        assert!(!suspected(4_000_000, 12_000_000, Some(true)));
        assert!(suspected(100_000, 12_000_000, Some(true)), "no head is that fast");
    }

    #[test]
    fn nothing_measured_proves_nothing() {
        let none = Histogram::new();
        assert!(!compare(&none, &none, None).host_cache_suspected);
    }
}
