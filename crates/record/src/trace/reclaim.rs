//! How long threads of the subject freed memory for themselves, compacted it, or were made
//! to wait because too much of it was dirty.
//!
//! An interval counts when it ends, so one that still goes on is not in the sums.

use super::event::{Event, Leave, What};
use std::collections::HashMap;

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
            // Reclaim of a group can lie within that of the machine: the outer one counts.
            self.begun.entry(thread).or_insert(time_ns);
        }
    }
}

/// All sums.
#[derive(Debug, Default)]
pub struct Reclaim {
    reclaims: Intervals,
    compactions: Intervals,
    throttles: Sum,
    dirty_waits: Sum,
}

impl Reclaim {
    /// Notes one event if its process belongs to the subject.
    pub fn apply(&mut self, event: &Event, includes: impl Fn(u32) -> bool) {
        let time_ns = event.time_ns;
        match event.what {
            What::Reclaim {
                process,
                thread,
                begins,
            } if includes(process) => self.reclaims.note(thread, begins, time_ns),
            What::Compaction {
                process,
                thread,
                begins,
            } if includes(process) => self.compactions.note(thread, begins, time_ns),
            What::Throttled { process, delay_ns } if includes(process) => {
                self.throttles.add(delay_ns);
            }
            What::DirtyWait { process, pause_ns } if includes(process) => {
                self.dirty_waits.add(pause_ns);
            }
            What::Exit { thread }
            | What::Switch {
                thread,
                leave: Leave::Ended,
                ..
            } => {
                self.reclaims.begun.remove(&thread);
                self.compactions.begun.remove(&thread);
            }
            _ => {}
        }
    }

    /// Direct reclaim, of a group's limit too.
    pub fn reclaims(&self) -> Sum {
        self.reclaims.sum
    }

    /// Compaction.
    pub fn compactions(&self) -> Sum {
        self.compactions.sum
    }

    /// Waits that reclaim imposed.
    pub fn throttles(&self) -> Sum {
        self.throttles
    }

    /// Pauses that write-back imposed, as the kernel planned them.
    pub fn dirty_waits(&self) -> Sum {
        self.dirty_waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reclaim(time_ns: u64, process: u32, begins: bool) -> Event {
        let thread = process;
        let what = What::Reclaim {
            process,
            thread,
            begins,
        };
        Event { time_ns, what }
    }

    #[test]
    fn nested_intervals_count_once_and_strangers_never() {
        let mut sums = Reclaim::default();
        for event in [
            reclaim(1, 5, false),
            reclaim(10, 5, true),
            reclaim(12, 5, true),
            reclaim(13, 9, true),
            reclaim(20, 5, false),
            reclaim(21, 5, false),
            reclaim(22, 9, false),
        ] {
            sums.apply(&event, |process| process == 5);
        }
        let expected = Sum {
            count: 1,
            time_ns: 10,
        };
        assert_eq!(sums.reclaims(), expected);
        assert_eq!(sums.compactions(), Sum::default());
    }
}
