//! The series of what the subject's threads did: time by state, and the wall's time.
//! The sums are kept by `threads`, which every other reducer may ask as well.

use super::Family;
use super::columns::{ColumnId, counter, set};
use super::event::{Io, Sleep, State};
use super::reducer::{Reducer, TraceSums};
use super::threads::{ThreadSums, WALL};
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;

/// Times of threads by state, and of the whole subject by the wall clock.
#[derive(Debug, Default)]
pub struct ThreadSeries(Option<Sched>);

impl Reducer for ThreadSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0 = families.contains(&Family::Sched).then(|| Sched::new(registry));
    }

    fn fill(&mut self, sums: &TraceSums<'_>, _: &mut Registry, row: &mut Row) {
        if let Some(sched) = &self.0 {
            sched.fill(&sums.threads, row);
        }
    }
}

#[derive(Debug)]
struct Sched {
    /// Run, queue, block I/O, children, sleep.
    states: [ColumnId; 5],
    switches: ColumnId,
    block_io_waits: ColumnId,
    waits: ColumnId,
    untold_wakeups: ColumnId,
    threads: ColumnId,
    sampled: ColumnId,
    wall: [ColumnId; WALL.len()],
    sleeps: [(Sleep, ColumnId); Sleep::ALL.len()],
    ios: [(Io, ColumnId); Io::ALL.len()],
}

impl Sched {
    fn new(registry: &mut Registry) -> Self {
        let mut column = |name: &str, unit: &str| counter(registry, &format!("trace.{name}"), unit);
        Self {
            states: ["run", "queue", "block_io", "children", "sleep"]
                .map(|name| column(&format!("sched.{name}_ns"), "ns")),
            switches: column("sched.switches", "count"),
            block_io_waits: column("sched.block_io_waits", "count"),
            waits: column("sched.waits", "count"),
            untold_wakeups: column("sched.untold_wakeups", "count"),
            threads: column("sched.threads", "count"),
            sampled: column("sched.sampled_ns", "ns"),
            wall: WALL.map(|name| column(&format!("wall.{name}_ns"), "ns")),
            sleeps: Sleep::ALL
                .map(|(sleep, name)| (sleep, column(&format!("sleep.{name}_ns"), "ns"))),
            ios: Io::ALL.map(|(io, name)| (io, column(&format!("block_io.{name}_ns"), "ns"))),
        }
    }

    fn fill(&self, threads: &ThreadSums, row: &mut Row) {
        let of = |state: State| threads.states_ns[state.index()];
        let mut sleep_ns = 0;
        for (sleep, column) in &self.sleeps {
            let sum_ns = of(State::Sleep(*sleep));
            sleep_ns += sum_ns;
            set(row, *column, sum_ns);
        }
        let mut block_io_ns = 0;
        for (io, column) in &self.ios {
            let sum_ns = of(State::BlockIo(*io));
            block_io_ns += sum_ns;
            set(row, *column, sum_ns);
        }
        let [run, queue, children] = [State::Run, State::Queue, State::Children].map(of);
        let sums = [run, queue, block_io_ns, children, sleep_ns];
        for (column, sum_ns) in self.states.iter().zip(sums) {
            set(row, *column, sum_ns);
        }
        for (column, sum_ns) in self.wall.iter().zip(threads.wall_ns) {
            set(row, *column, sum_ns);
        }
        set(row, self.switches, threads.switches);
        set(row, self.block_io_waits, threads.block_io_waits);
        set(row, self.waits, threads.waits);
        set(row, self.untold_wakeups, threads.untold_wakeups);
        set(row, self.threads, threads.seen);
        set(row, self.sampled, threads.sampled_ns);
    }
}
