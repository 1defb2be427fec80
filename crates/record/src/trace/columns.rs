//! Columns that reducers fill: registered once, absent if the recording has too many series.
//! A value without a column is dropped.

use crate::registry::{Registry, Row};
use model::recording::SeriesKind;

/// What series of this module name as their source.
pub const SOURCE: &str = "kernel events";

/// A column; `None` if the recording has too many.
pub type ColumnId = Option<u32>;

/// Adds a counter.
pub fn counter(registry: &mut Registry, name: &str, unit: &str) -> ColumnId {
    registry.id(name, unit, SeriesKind::Counter, SOURCE)
}

/// Writes a value, if it has a column.
pub fn set(row: &mut Row, column: ColumnId, value: u64) {
    if let Some(id) = column {
        row.count(id, value);
    }
}

/// How often, and how long.
#[derive(Debug)]
pub struct CountAndTime {
    count: ColumnId,
    time_ns: ColumnId,
}

impl CountAndTime {
    /// Adds the two columns.
    pub fn new(registry: &mut Registry, count: &str, time: &str) -> Self {
        Self { count: counter(registry, count, "count"), time_ns: counter(registry, time, "ns") }
    }

    /// Writes how often and how long.
    pub fn fill(&self, count: u64, time_ns: u64, row: &mut Row) {
        set(row, self.count, count);
        set(row, self.time_ns, time_ns);
    }
}
