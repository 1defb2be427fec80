//! What kernel events become: sums, kept by the kernel itself or from its events, yield series.
//!
//! Whatever made the sums, the series are the same. The reducers of a recording are one type, a
//! chain of pairs, so their number is fixed when the program is compiled.

use super::Family;
use super::block::RequestTotals;
use super::cpu::CpuSums;
use super::hits::HitSums;
use super::reclaim::ReclaimSums;
use super::returns::ReturnSums;
use super::threads::ThreadSums;
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// What was summed up until the instant of the sample.
#[derive(Clone, Copy, Debug)]
pub struct TraceSums<'a> {
    /// The subject's threads.
    pub threads: ThreadSums,
    /// Requests to block devices.
    pub requests: &'a RequestTotals,
    /// Reclaim, compaction and write-back.
    pub reclaim: ReclaimSums,
    /// Samples of the processors.
    pub cpu: &'a CpuSums,
    /// Events that were seen.
    pub events: u64,
    /// Events that the kernel had to drop.
    pub lost: u64,
    /// Whether events are not followed for now, because they came too fast.
    pub stopped: bool,
    /// Page faults of user code that the kernel counted.
    pub faults: u64,
    /// Pages that left memory and came back, where programs in the kernel see that.
    pub returns: Option<&'a ReturnSums>,
    /// Pages that were used again while they were in memory, where that is asked for.
    pub hits: Option<&'a HitSums>,
}

/// Writes sums as series.
pub trait Reducer: Debug + Default {
    /// Adds the columns of the families that are open; without its family a reducer stays idle.
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry);

    /// Writes its values; may add columns for what has appeared.
    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row);
}

impl<A: Reducer, B: Reducer> Reducer for (A, B) {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0.open(families, registry);
        self.1.open(families, registry);
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        self.0.fill(sums, registry, row);
        self.1.fill(sums, registry, row);
    }
}
