//! How long threads of the subject reclaimed memory, compacted it, or had to wait because too much
//! of it was dirty.
//!
//! An interval counts when it ends, so one that still goes on is not in the sums.

use super::Family;
use super::columns::CountAndTime;
use super::event::{Event, EventKind, Leave};
use super::reducer::{Reducer, TraceSums};
use super::threads::Threads;
use crate::registry::{Registry, Row};
use std::collections::{BTreeSet, HashMap};

/// The most threads inside of an interval that are remembered: more than can run at once.
const THREADS_MAX: usize = 4096;

/// How often, and how long together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How often.
    pub count: u64,
    /// How long.
    pub time_ns: u64,
}

impl Sum {
    fn add(&mut self, time_ns: u64) {
        self.count += 1;
        self.time_ns = self.time_ns.saturating_add(time_ns);
    }

    fn fill(self, columns: &CountAndTime, row: &mut Row) {
        columns.fill(self.count, self.time_ns, row);
    }
}

/// Intervals of one kind, by thread.
#[derive(Debug, Default)]
struct Intervals {
    begun: HashMap<u32, u64>,
    sum: Sum,
}

impl Intervals {
    fn note(&mut self, thread: u32, begins: bool, time_ns: u64) {
        if !begins {
            if let Some(begun_ns) = self.begun.remove(&thread) {
                self.sum.add(time_ns.saturating_sub(begun_ns));
            }
        } else if self.begun.len() < THREADS_MAX {
            // Reclaim of a group may be nested in that of the machine: the outer one counts.
            self.begun.entry(thread).or_insert(time_ns);
        }
    }
}

/// Direct reclaim (also of a group's limit), compaction, waits that reclaim imposed, and pauses
/// that write-back imposed as the kernel planned them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReclaimSums {
    /// Direct reclaims.
    pub reclaims: Sum,
    /// Waits that reclaim imposed.
    pub throttles: Sum,
    /// Compactions of memory.
    pub compactions: Sum,
    /// Pauses of writers.
    pub dirty_waits: Sum,
}

/// The same from events.
#[derive(Debug, Default)]
pub struct ReclaimEvents {
    reclaims: Intervals,
    compactions: Intervals,
    throttles: Sum,
    dirty_waits: Sum,
}

impl ReclaimEvents {
    /// Takes what an event says of a thread of the subject.
    pub fn take(&mut self, event: &Event, threads: &Threads) {
        let includes = |process| threads.includes(process);
        let time_ns = event.time_ns;
        match event.what {
            EventKind::Reclaim { process, thread, begins } if includes(process) => {
                self.reclaims.note(thread, begins, time_ns)
            }
            EventKind::Compaction { process, thread, begins } if includes(process) => {
                self.compactions.note(thread, begins, time_ns)
            }
            EventKind::Throttled { process, delay_ns } if includes(process) => {
                self.throttles.add(delay_ns);
            }
            EventKind::DirtyWait { process, pause_ns } if includes(process) => {
                self.dirty_waits.add(pause_ns);
            }
            EventKind::Exit { thread } | EventKind::Switch { thread, leave: Leave::Ended, .. } => {
                self.reclaims.begun.remove(&thread);
                self.compactions.begun.remove(&thread);
            }
            _ => {}
        }
    }

    /// Forgets what has begun and not ended.
    pub fn forget_begun(&mut self) {
        self.reclaims.begun.clear();
        self.compactions.begun.clear();
    }

    /// The sums so far.
    pub fn sums(&self) -> ReclaimSums {
        ReclaimSums {
            reclaims: self.reclaims.sum,
            throttles: self.throttles,
            compactions: self.compactions.sum,
            dirty_waits: self.dirty_waits,
        }
    }
}

/// The series of these sums.
#[derive(Debug, Default)]
pub struct ReclaimSeries {
    vmscan: Option<[CountAndTime; 3]>,
    writeback: Option<CountAndTime>,
}

impl Reducer for ReclaimSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.vmscan = families.contains(&Family::Vmscan).then(|| {
            let mut pair = |count: &str, time: &str| {
                let name = |last: &str| format!("trace.vmscan.{last}");
                CountAndTime::new(registry, &name(count), &name(time))
            };
            [
                pair("direct_reclaims", "direct_reclaim_ns"),
                pair("throttles", "throttled_ns"),
                pair("compactions", "compaction_ns"),
            ]
        });
        self.writeback = families.contains(&Family::Writeback).then(|| {
            let time = "trace.writeback.dirty_wait_ns";
            CountAndTime::new(registry, "trace.writeback.dirty_waits", time)
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, _: &mut Registry, row: &mut Row) {
        let sums = &sums.reclaim;
        if let Some([reclaims, throttles, compactions]) = &self.vmscan {
            sums.reclaims.fill(reclaims, row);
            sums.throttles.fill(throttles, row);
            sums.compactions.fill(compactions, row);
        }
        if let Some(pair) = &self.writeback {
            sums.dirty_waits.fill(pair, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reclaim(time_ns: u64, process: u32, begins: bool) -> Event {
        let thread = process;
        let what = EventKind::Reclaim { process, thread, begins };
        Event { time_ns, what }
    }

    #[test]
    fn nested_intervals_count_once_and_strangers_never() {
        let mut sums = ReclaimEvents::default();
        let mut threads = Threads::new(false);
        threads.expect(5);
        for event in [
            reclaim(1, 5, false),
            reclaim(10, 5, true),
            reclaim(12, 5, true),
            reclaim(13, 9, true),
            reclaim(20, 5, false),
            reclaim(21, 5, false),
            reclaim(22, 9, false),
        ] {
            sums.take(&event, &threads);
        }
        let expected = Sum { count: 1, time_ns: 10 };
        assert_eq!(sums.sums().reclaims, expected);
        assert_eq!(sums.sums().compactions, Sum::default());
    }
}
