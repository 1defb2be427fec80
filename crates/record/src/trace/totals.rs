//! Series of what was counted elsewhere: events by their source, page faults by the
//! kernel.

use super::Family;
use super::columns::{ColumnId, SOURCE, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::registry::{Registry, Row};
use model::recording::SeriesKind;
use std::collections::BTreeSet;

/// How many events there were, how many were lost, and whether they were stopped.
#[derive(Debug, Default)]
pub struct EventTotals {
    events: ColumnId,
    lost: ColumnId,
    stopped: ColumnId,
}

impl Reducer for EventTotals {
    fn open(&mut self, _: &BTreeSet<Family>, registry: &mut Registry) {
        self.events = counter(registry, "trace.events", "count");
        self.lost = counter(registry, "trace.lost", "count");
        self.stopped = registry.id("trace.stopped", "count", SeriesKind::Gauge, SOURCE);
    }

    fn fill(&mut self, sums: &TraceSums<'_>, _: &mut Registry, row: &mut Row) {
        set(row, self.events, sums.events);
        set(row, self.lost, sums.lost);
        set(row, self.stopped, u64::from(sums.stopped));
    }
}

/// Page faults of user code.
#[derive(Debug, Default)]
pub struct FaultTotal(ColumnId);

impl Reducer for FaultTotal {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        if families.contains(&Family::Faults) {
            self.0 = counter(registry, "trace.faults.user", "count");
        }
    }

    fn fill(&mut self, sums: &TraceSums<'_>, _: &mut Registry, row: &mut Row) {
        set(row, self.0, sums.faults);
    }
}
