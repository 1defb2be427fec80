//! How busy the disk is while a way works, and when it was quiet again: the clock of 2012.
//! A thread looks; what its looks say is decided by pure functions.

use machine::{Root, diskstats, memory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::clock::now_ns;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The time over which the disk's share is taken, as performance counters of 2012 did.
const WINDOW_NS: u64 = 1_000_000_000;
/// The disk is back to normal when it is busy at most this share of the time.
const QUIET_PERCENT: u64 = 30;
/// Or when so much is cached.
const CACHED_BYTES: u64 = 300_000_000;

/// What was seen at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    at_ns: u64,
    busy_ms: u64,
    cached_bytes: Option<u64>,
}

/// A thread that looks until it is dropped.
#[derive(Debug)]
pub struct DiskWatch {
    looks: Arc<Mutex<Vec<Look>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DiskWatch {
    /// Looks at the disk with this number from now on; at the page cache only of a whole machine.
    pub fn start(device: (u32, u32), whole_machine: bool) -> Self {
        let looks = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, ends) = (Arc::clone(&looks), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let root = Root::system();
            while !ends.load(Ordering::Relaxed) {
                let look = look(&root, device, whole_machine);
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(look);
                std::thread::sleep(PAUSE);
            }
        });
        Self { looks, stop, thread: Some(thread) }
    }

    /// When the disk was quiet and when enough was cached, ns after the start; `None` if not yet.
    pub fn back_to_normal(&self) -> (Option<u64>, Option<u64>) {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        (first_quiet(&looks), first_cached(&looks))
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn look(root: &Root, (major, minor): (u32, u32), whole_machine: bool) -> Option<Look> {
    let busy_ms = diskstats::of(root, major, minor)?.busy_ms;
    let cached = whole_machine.then(|| memory::page_cache(root)).flatten();
    Some(Look { at_ns: now_ns(), busy_ms, cached_bytes: cached.map(|bytes| bytes.0) })
}

/// The end of the first window in which the disk was quiet.
fn first_quiet(looks: &[Look]) -> Option<u64> {
    let start_ns = looks.first()?.at_ns;
    let ends = looks.iter().enumerate().find(|(index, end)| {
        let mut before =
            looks[..*index].iter().rev().filter(|look| end.at_ns - look.at_ns >= WINDOW_NS);
        before.next().is_some_and(|begin| {
            let busy_ns = end.busy_ms.saturating_sub(begin.busy_ms) * 1_000_000;
            busy_ns * 100 <= QUIET_PERCENT * (end.at_ns - begin.at_ns)
        })
    });
    ends.map(|(_, end)| end.at_ns - start_ns)
}

fn first_cached(looks: &[Look]) -> Option<u64> {
    let start_ns = looks.first()?.at_ns;
    let enough = |look: &&Look| look.cached_bytes.is_some_and(|bytes| bytes >= CACHED_BYTES);
    looks.iter().find(enough).map(|look| look.at_ns - start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look every 500 ms, the disk busy for so many ms of each.
    fn looks(busy: &[u64]) -> Vec<Look> {
        let mut busy_ms = 0;
        let instants = (0..).map(|index| index * 500_000_000 + 7);
        let looks = instants.zip(busy).map(|(at_ns, more)| {
            busy_ms += more;
            Look { at_ns, busy_ms, cached_bytes: Some(busy_ms * 1_000_000) }
        });
        looks.collect()
    }

    #[test]
    fn the_disk_is_quiet_at_the_end_of_the_first_second_of_at_most_30_percent() {
        assert_eq!(first_quiet(&looks(&[0, 500, 500, 200, 100, 0])), Some(2_000_000_000));
        assert_eq!(first_quiet(&looks(&[0, 500, 500, 200, 101])), None);
        assert_eq!(first_quiet(&looks(&[0, 0])), None, "half a second tells nothing");
        assert_eq!(first_quiet(&[]), None);
    }

    #[test]
    fn enough_is_cached_from_300_mb_on() {
        assert_eq!(first_cached(&looks(&[299, 0, 1, 9])), Some(1_000_000_000));
        assert_eq!(first_cached(&looks(&[299])), None);
    }
}
