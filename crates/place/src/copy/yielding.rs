//! `--background`: full depth while the disks are quiet, one request in flight while others use
//! them, and processor time within the allowance of background work.
//!
//! The idea: a disk does not say whose requests it serves. So ten times a second this copy holds
//! all of its own back for a moment and looks whether the disks still complete some: those are of
//! others. Priorities are lowered too, but most schedulers do not look at them.
//!
//! Every thread asks before it uses a disk, and the ring before each request.

use super::CopyShared;
use crate::background::ProcessorShare;
use machine::block::Disk;
use machine::{Root, diskstats};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a look is taken: another program meets the full depth for so long at its start.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a look takes: longer than one request of a program that reads block after block.
const LOOK_FLASH: Duration = Duration::from_millis(3);
const LOOK_ROTATING: Duration = Duration::from_millis(30);
/// What is in flight is waited for at most so long; else the look is taken another time.
const LONGEST_DRAIN: Duration = Duration::from_millis(500);
/// So many quiet looks in a row before the full depth returns.
const QUIET_LOOKS: u32 = 2;
/// How often a thread that is held back looks again.
const HELD_NAP: Duration = Duration::from_millis(1);
/// The largest request while others use a disk, in bytes: theirs wait for it.
pub(super) const PIECE_BYTES: usize = 128 << 10;
/// After a request the disk is left to others for as long as it took, and at least for this.
const LEAST_REST: Duration = Duration::from_millis(1);
/// What takes less did not wait for a disk.
const FROM_MEMORY: Duration = Duration::from_micros(200);
/// The longest part of a pause for the processors: a stop is seen this soon.
const LONGEST_NAP: Duration = Duration::from_millis(20);

/// How many requests of the copy may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    None,
    One,
    Full,
}

/// How much the threads of a copy may do now; `None` inside if it is no background work.
#[derive(Debug)]
pub(super) struct Yielding(Option<Mutex<YieldState>>);

#[derive(Debug)]
struct YieldState {
    depth: Depth,
    /// Threads that use a disk.
    steps: usize,
    /// Requests of the ring.
    ring: usize,
    /// When the only request began.
    began: Instant,
    rest_until: Instant,
    is_over: bool,
}

impl YieldState {
    fn may_start(&self) -> bool {
        match self.depth {
            Depth::Full => true,
            Depth::One => self.steps + self.ring == 0 && Instant::now() >= self.rest_until,
            Depth::None => false,
        }
    }

    /// The only request has ended: others are served before the next.
    fn rest(&mut self, is_surely_from_disk: bool) {
        let took = self.began.elapsed();
        if self.depth != Depth::Full && (is_surely_from_disk || took >= FROM_MEMORY) {
            self.rest_until = Instant::now() + took.max(LEAST_REST);
        }
    }
}

/// While it lives, its thread may use the disks.
#[derive(Debug)]
pub(super) struct Step<'a>(Option<&'a Mutex<YieldState>>);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.0 {
            let mut state = locked(state);
            state.steps -= 1;
            state.rest(false);
        }
    }
}

fn locked(state: &Mutex<YieldState>) -> MutexGuard<'_, YieldState> {
    // Numbers: a panic in between breaks nothing.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Yielding {
    pub(super) fn new(is_background: bool) -> Self {
        let now = Instant::now();
        // Until the first look others may be there.
        let state = YieldState {
            depth: Depth::One,
            steps: 0,
            ring: 0,
            began: now,
            rest_until: now,
            is_over: false,
        };
        Self(is_background.then(|| Mutex::new(state)))
    }

    /// Whether requests are to be small and few.
    pub(super) fn is_one_at_a_time(&self) -> bool {
        self.0.as_ref().is_some_and(|state| locked(state).depth != Depth::Full)
    }

    /// Waits until this thread may use the disks.
    pub(super) fn step(&self) -> Step<'_> {
        let Some(shared) = &self.0 else { return Step(None) };
        loop {
            let mut state = locked(shared);
            if state.may_start() || state.is_over {
                state.steps += 1;
                state.began = Instant::now();
                return Step(Some(shared));
            }
            drop(state);
            std::thread::sleep(HELD_NAP);
        }
    }

    /// Whether the ring may start another request beside the `now` that it has in flight.
    pub(super) fn ring_may_start(&self, now: usize) -> bool {
        let Some(shared) = &self.0 else { return true };
        let mut state = locked(shared);
        if now == 0 && state.ring > 0 {
            state.rest(true);
        }
        state.ring = now;
        let may = state.may_start() || state.is_over;
        if may {
            state.ring += 1;
            state.began = Instant::now();
        }
        may
    }

    /// The ring has nothing in flight, and nothing to do.
    pub(super) fn ring_is_empty(&self) {
        if let Some(shared) = &self.0 {
            locked(shared).ring = 0;
        }
    }

    /// Holds nothing back any more once the answer is dropped.
    pub(super) fn over_on_drop(&self) -> YieldEnd<'_> {
        YieldEnd(self)
    }
}

/// Ends the looks at the disks when dropped: the copy is done, or failed.
#[derive(Debug)]
pub(super) struct YieldEnd<'a>(&'a Yielding);

impl Drop for YieldEnd<'_> {
    fn drop(&mut self) {
        if let Some(shared) = &self.0.0 {
            locked(shared).is_over = true;
        }
    }
}

/// Looks at the disks until the copy is over.
pub(super) fn watch(shared: &CopyShared<'_>, root: &Root, disks: &[Disk]) {
    let Some(state) = &shared.yielding.0 else { return };
    let is_rotating = disks.iter().any(|disk| disk.rotational == Some(true));
    let look = if is_rotating { LOOK_ROTATING } else { LOOK_FLASH };
    let mut processors = ProcessorShare::start(root);
    let mut quiet_looks = QUIET_LOOKS;
    let is_over = || locked(state).is_over || shared.is_stopped();
    while !is_over() {
        let before = std::mem::replace(&mut locked(state).depth, Depth::None);
        let mut depth = before;
        if has_drained(state) {
            let first = requests(root, disks);
            std::thread::sleep(look);
            let is_busy = requests(root, disks) != first || in_flight(root, disks) > 0;
            quiet_looks = if is_busy { 0 } else { quiet_looks + 1 };
            depth = if quiet_looks >= QUIET_LOOKS { Depth::Full } else { Depth::One };
            pause(&mut processors, is_over);
        }
        let most = if depth == Depth::Full { u64::from(shared.disks.depth()) } else { 1 };
        shared.gauges.read_depth_limit.set(most);
        shared.gauges.write_depth_limit.set(most);
        locked(state).depth = depth;
        let looked = Instant::now();
        while looked.elapsed() < LOOK_EVERY && !is_over() {
            std::thread::sleep(LONGEST_NAP.min(LOOK_EVERY));
        }
    }
    locked(state).is_over = true;
}

/// Waits until nothing of the copy is in flight; whether that came soon.
fn has_drained(state: &Mutex<YieldState>) -> bool {
    let started = Instant::now();
    while started.elapsed() < LONGEST_DRAIN {
        let now = locked(state);
        if now.steps + now.ring == 0 {
            return true;
        }
        if now.is_over {
            return false;
        }
        drop(now);
        std::thread::sleep(HELD_NAP);
    }
    false
}

/// Leaves the processors to others for as long as background work has to.
fn pause(processors: &mut ProcessorShare, is_over: impl Fn() -> bool) {
    loop {
        let left = processors.pause();
        if left.is_zero() || is_over() {
            return;
        }
        std::thread::sleep(left.min(LONGEST_NAP));
    }
}

/// Requests that the disks have completed since they appeared.
fn requests(root: &Root, disks: &[Disk]) -> u64 {
    let of = |disk: &Disk| diskstats::of(root, disk.major, disk.minor);
    let sum = |stats: diskstats::DiskStats| {
        stats.reads + stats.writes + stats.discards.unwrap_or(0) + stats.flushes.unwrap_or(0)
    };
    disks.iter().filter_map(of).map(sum).sum()
}

fn in_flight(root: &Root, disks: &[Disk]) -> u64 {
    let of = |disk: &Disk| diskstats::of(root, disk.major, disk.minor);
    disks.iter().filter_map(of).map(|stats| stats.in_flight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(yielding: &Yielding, depth: Depth) {
        locked(yielding.0.as_ref().unwrap()).depth = depth;
    }

    #[test]
    fn threads_and_the_ring_have_one_request_together_while_others_use_the_disk() {
        let yielding = Yielding::new(true);
        assert!(yielding.is_one_at_a_time());
        let step = yielding.step();
        assert!(!yielding.ring_may_start(0), "a thread has it");
        drop(step);
        std::thread::sleep(LEAST_REST * 2);
        assert!(yielding.ring_may_start(0));
        assert!(!yielding.ring_may_start(1), "it has one already");
        assert!(!yielding.ring_may_start(0), "it has ended, and the disk is left to others");
        std::thread::sleep(LEAST_REST * 200);
        assert!(yielding.ring_may_start(0));
        yielding.ring_is_empty();
        set(&yielding, Depth::Full);
        let (_one, _two) = (yielding.step(), yielding.step());
        assert!(yielding.ring_may_start(31) && !yielding.is_one_at_a_time());
        set(&yielding, Depth::None);
        assert!(!yielding.ring_may_start(0));
        drop(yielding.over_on_drop());
        assert!(yielding.ring_may_start(5), "a stop waits for nothing");
    }

    #[test]
    fn without_background_nothing_is_asked() {
        let yielding = Yielding::new(false);
        assert!(yielding.ring_may_start(31) && !yielding.is_one_at_a_time());
        let (_one, _two) = (yielding.step(), yielding.step());
    }
}
