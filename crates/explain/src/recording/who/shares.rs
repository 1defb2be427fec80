//! What rules ask of single processes: which part of the waits was for what had been evicted, and
//! whether one of them streamed through the page cache.
//!
//! Shared out over a whole machine, the waits of a victim drown in those of the one that streams:
//! it reads most and reads nothing again.

use super::quantity::Quantity;
use super::sums::{ProcessSum, SharedSum};
use model::recording::ProcessFigure as Figure;

/// A process that reads more than this share of its data again has a working set, no stream.
/// Picked.
const MOST_AGAIN: f64 = 0.1;

/// How long processes waited for what had been evicted moments before: of each its waits for block
/// I/O, by the share that it read again. `None` where no process has such figures.
pub fn refault_wait_ns(sums: &[ProcessSum]) -> Option<u64> {
    let people = sums.iter().filter(|sum| !sum.process.is_kernel);
    let waits = people.filter_map(|sum| {
        let again = sum.get(Figure::Refaulted).value;
        let read = sum.get(Figure::ReadBytes).value.max(again);
        let share = again as f64 / read as f64;
        (again > 0).then(|| (sum.get(Figure::BlockWait).value as f64 * share) as u64)
    });
    waits.reduce(u64::saturating_add)
}

/// All waits of processes for block I/O: reads, writes and swap.
pub fn block_wait_ns(sums: &[ProcessSum]) -> u64 {
    let people = sums.iter().filter(|sum| !sum.process.is_kernel);
    people.map(|sum| sum.get(Figure::BlockWait).value).fold(0, u64::saturating_add)
}

/// How long a process waited for what had been evicted or swapped: its waits for block I/O, by the
/// share of what it read.
pub fn waited_again(sum: &ProcessSum) -> SharedSum {
    let again = sum.get(Figure::Refaulted).value.saturating_add(sum.get(Figure::SwappedIn).value);
    let read = sum.get(Figure::ReadBytes).value.max(again).max(1);
    let part = |ns: u64| (ns as f64 * (again as f64 / read as f64)) as u64;
    let waited = sum.get(Figure::BlockWait);
    SharedSum { value: part(waited.value), shared: part(waited.shared) }
}

/// The bytes of the largest stream: what one process added to the page cache once, while it read
/// hardly anything again. `None` without one.
pub fn largest_stream_bytes(sums: &[ProcessSum]) -> Option<u64> {
    let streams = sums.iter().filter(|sum| {
        let (added, again) = (sum.get(Figure::CacheAdded).value, sum.get(Figure::Refaulted).value);
        added > 0 && again as f64 <= added as f64 * MOST_AGAIN
    });
    streams.map(|sum| Quantity::CacheFilled.of(sum).value).max()
}
