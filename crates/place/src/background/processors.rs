//! How much of the processors the work takes while others want them: it pauses between batches.
//!
//! The idea: the result is needed later, and work that waits for its disk costs others nothing. So
//! its processor time is bounded, not its rate, and only while other tasks run. A low priority
//! alone is not enough: a task on another processor still shares caches and memory with it, and of
//! one processor it takes a tenth. A lower one would make others wait for pages that are in flight
//! (`sys::background`).

use machine::Root;
use machine::demand::{Demand, DemandReader};
use std::time::Duration;
use sys::clock::now_ns;

/// The share of the time of all processors while one is idle: what is read still goes through the
/// caches and the memory of others. Seen with one of two busy in 64 MiB of its own: 2 to 3 % slower
/// at this, 7 to 8 % at twice as much, 21 % unbounded; in its processor's own cache at most 2 %.
const SHARE_BESIDE_IDLE: f64 = 0.1;
/// The share while none is idle: others lose that, about half as much to the kernel's threads and
/// switches, and the content of their caches. Seen with two of two busy, as the others' own run
/// time: 2 points lost here, 5 at twice as much, 6 at nice 10 alone.
const SHARE_WHEN_BUSY: f64 = 0.02;

/// What the work has taken since its last pause.
#[derive(Debug)]
pub(crate) struct ProcessorShare {
    /// `None` if the kernel does not say who runs: then there are no pauses.
    demand: Option<DemandReader>,
    since_ns: u64,
    /// Processor time of all threads of this process by then.
    used_ns: u64,
}

impl ProcessorShare {
    /// Counts from now on.
    pub(crate) fn start(root: &Root) -> Self {
        Self { demand: DemandReader::open(root).ok(), since_ns: now_ns(), used_ns: used_ns() }
    }

    /// How long to pause now; at zero the count starts again. To be called again after a part of
    /// the pause, since the other tasks may have ended.
    pub(crate) fn pause(&mut self) -> Duration {
        let used = Duration::from_nanos(used_ns().saturating_sub(self.used_ns));
        let elapsed = Duration::from_nanos(now_ns() - self.since_ns);
        let demand = self.demand.as_mut().and_then(|reader| {
            let now = reader.now()?;
            Some((now, reader.processors()))
        });
        let due = demand
            .map_or(Duration::ZERO, |(demand, processors)| shortest_time(used, demand, processors));
        let left = due.saturating_sub(elapsed);
        if left.is_zero() {
            self.since_ns = now_ns();
            self.used_ns = used_ns();
        }
        left
    }
}

/// The time in which `used` processor time is not more than the share.
fn shortest_time(used: Duration, demand: Demand, processors: usize) -> Duration {
    let share = match demand {
        Demand::None => return Duration::ZERO,
        Demand::Some => SHARE_BESIDE_IDLE,
        Demand::Full => SHARE_WHEN_BUSY,
    };
    used.div_f64(share * processors.max(1) as f64)
}

/// The processor time of this process; 0 if a filter forbids to ask.
fn used_ns() -> u64 {
    sys::usage::process().map_or(0, |usage| usage.cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// A share beside `running` tasks, itself included, on the processors `online`.
    fn share(running: usize, online: &str) -> (FakeRoot, ProcessorShare) {
        let tree = FakeRoot::bare()
            .file("/proc/loadavg", format!("0.1 0.1 0.1 {running}/99 999\n"))
            .file("/sys/devices/system/cpu/online", online);
        let share = ProcessorShare::start(&Root::at(tree.path()));
        (tree, share)
    }

    fn work(time: Duration) {
        let started_ns = used_ns();
        while used_ns() - started_ns < time.as_nanos() as u64 {}
    }

    #[test]
    fn others_are_left_their_part_of_all_processors() {
        let ms = Duration::from_millis;
        assert_eq!(shortest_time(ms(20), Demand::None, 2), ms(0));
        assert_eq!(shortest_time(ms(20), Demand::Some, 2), ms(100));
        assert_eq!(shortest_time(ms(20), Demand::Full, 2), ms(500));
        assert_eq!(shortest_time(ms(20), Demand::Full, 1), ms(1000));
        assert!(
            shortest_time(ms(20), Demand::Some, 64) < ms(20),
            "no pause for one thread of many processors"
        );
    }

    #[test]
    fn who_worked_beside_others_pauses_and_then_may_go_on() {
        let (_tree, mut share) = share(3, "0-1");
        work(Duration::from_millis(2));
        let since_ns = share.since_ns;
        // Where the host held all up meanwhile, that was the pause.
        let due = share.pause() + Duration::from_nanos(now_ns() - since_ns);
        assert!(due > Duration::from_millis(8), "{due:?}");
        share.since_ns = share.since_ns.saturating_sub(60_000_000_000);
        let before_ns = now_ns();
        assert_eq!(share.pause(), Duration::ZERO, "a minute has passed");
        assert!(share.since_ns >= before_ns, "it counts again from now on");
    }

    #[test]
    fn alone_or_where_nothing_tells_there_is_no_pause() {
        let (_tree, mut alone) = share(1, "0");
        let bare = FakeRoot::bare();
        let mut blind = ProcessorShare::start(&Root::at(bare.path()));
        work(Duration::from_millis(2));
        assert_eq!((alone.pause(), blind.pause()), (Duration::ZERO, Duration::ZERO));
    }
}
