//! What kernel events become: a reducer takes events, or sums that are kept elsewhere, and yields
//! series.
//!
//! The reducers of a recording are one type, a chain of pairs, so each event reaches all of them by
//! direct calls. Their number is fixed when the program is compiled.

use super::Family;
use super::event::Event;
use super::threads::Threads;
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// What is summed up outside of the reducers: by the kernel, or by the tracer for all of them.
#[derive(Clone, Copy, Debug)]
pub struct TraceSums<'a> {
    /// The subject's threads, settled to the instant of the sample.
    pub threads: &'a Threads,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel had to drop.
    pub lost: u64,
    /// Whether the events were stopped because they came too fast.
    pub stopped: bool,
    /// Page faults of user code that the kernel counted.
    pub faults: u64,
}

/// Reduces events to series.
pub trait Reducer: Debug + Default {
    /// Adds the columns of the families that are open; without its family a reducer stays idle.
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry);

    /// Takes one event; events come in order of time. Skips those that it does not know.
    fn take(&mut self, _event: &Event, _threads: &Threads) {}

    /// Writes its values; may add columns for what has appeared.
    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row);
}

impl<A: Reducer, B: Reducer> Reducer for (A, B) {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0.open(families, registry);
        self.1.open(families, registry);
    }

    fn take(&mut self, event: &Event, threads: &Threads) {
        self.0.take(event, threads);
        self.1.take(event, threads);
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        self.0.fill(sums, registry, row);
        self.1.fill(sums, registry, row);
    }
}
