//! Kernel events, reduced to series while they happen: who ran, waited and slept, what the
//! sleepers waited for, and how long reclaim, write-back and requests took.

use crate::registry::{Registry, Row};
use model::recording::{Sight, Span};
use std::collections::BTreeMap;

/// A family of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Switches and wake-ups: thread states, exactly.
    Sched,
    /// Requests to block devices.
    Block,
    /// Direct reclaim, its throttling, compaction.
    Vmscan,
    /// Waits of writers for write-back.
    Writeback,
    /// User page faults; every one, so it is not cheap.
    Faults,
}

/// Open events.
#[derive(Debug)]
pub struct Tracer {}

impl Tracer {
    /// Opens the families for the subject `processes` (with their later children; empty:
    /// every process) and says what could be opened under `events.<family>`. `None` where
    /// nothing could.
    pub fn open(
        families: &[Family],
        _processes: &[u32],
        _registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, Sight>) {
        let closed = |_: &Family| Sight::NotAsked;
        let named = families
            .iter()
            .map(|family| (format!("{family:?}"), closed(family)));
        (None, named.collect())
    }

    /// Takes what the kernel has told until now and notes the sums in `row`; at the end too.
    pub fn read(&mut self, _now_ns: u64, _row: &mut Row) {}

    /// Events that the kernel had to drop.
    #[must_use]
    pub fn lost(&self) -> u64 {
        0
    }

    /// What happened to the events: that they were stopped because they came too fast.
    pub fn spans(&mut self) -> Vec<Span> {
        Vec::new()
    }
}
