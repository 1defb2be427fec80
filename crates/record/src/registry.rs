//! The columns of a recording: every series gets a number when it is first seen, and keeps
//! it; a row holds one value for each.
//!
//! A device that appears in the middle of a run adds columns at the end, so a row may be
//! longer than the one before it, never shorter, and no column ever changes its meaning.

use model::recording::{Schema, SeriesKind};
use std::collections::HashMap;

/// The value of a column that the machine does not have now. No counter reaches it.
pub const ABSENT: i64 = i64::MIN;

/// The most series of one recording: more would be a fault in a collector, or a machine
/// with thousands of disks, where the later ones are left out.
pub const MAX_SERIES: usize = 32_768;

/// The series that were seen so far.
#[derive(Debug, Default)]
pub struct Registry {
    schemas: Vec<Schema>,
    ids: HashMap<String, u32>,
}

impl Registry {
    /// No series yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the series `name`, which is added if it is new. Not for every tick: it
    /// looks a name up, and allocates for a new one. `None` once there are 32,768.
    pub fn id(&mut self, name: &str, unit: &str, kind: SeriesKind, source: &str) -> Option<u32> {
        self.id_refreshed(name, unit, kind, source, None)
    }

    /// As [`Registry::id`], for a value that the kernel refreshes only every `refresh_ns`.
    pub fn id_refreshed(
        &mut self,
        name: &str,
        unit: &str,
        kind: SeriesKind,
        source: &str,
        refresh_ns: Option<u64>,
    ) -> Option<u32> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        if self.schemas.len() >= MAX_SERIES {
            return None;
        }
        let id = u32::try_from(self.schemas.len()).ok()?;
        self.ids.insert(name.to_owned(), id);
        self.schemas.push(Schema {
            id,
            name: name.to_owned(),
            unit: unit.to_owned(),
            kind,
            source: source.to_owned(),
            refresh_ns,
        });
        Some(id)
    }

    /// All series, in the order of their numbers.
    #[must_use]
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }
}

/// The values of one sample; a column that no collector has set yet is [`ABSENT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    values: Vec<i64>,
}

impl Row {
    /// Notes the value of a series; it holds until it is set again, so that a source that
    /// is read once a second need not be read for every row.
    pub fn set(&mut self, id: u32, value: i64) {
        let index = id as usize;
        if index >= self.values.len() {
            self.values.resize(index + 1, ABSENT);
        }
        self.values[index] = value;
    }

    /// As [`Row::set`] for a count, which stops at the largest number a column holds.
    pub fn count(&mut self, id: u32, value: u64) {
        self.set(id, i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// The values by series number.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_keeps_its_number() {
        let mut registry = Registry::new();
        let first = registry.id("a.b", "count", SeriesKind::Counter, "/proc/a");
        let second = registry.id("a.c", "count", SeriesKind::Gauge, "/proc/a");
        assert_eq!((first, second), (Some(0), Some(1)));
        assert_eq!(registry.id("a.b", "count", SeriesKind::Counter, "/proc/a"), first);
        assert_eq!(registry.schemas()[1].name, "a.c");
    }

    #[test]
    fn the_number_of_series_has_an_end() {
        let mut registry = Registry::new();
        for number in 0..MAX_SERIES {
            assert!(registry.id(&format!("s{number}"), "count", SeriesKind::Gauge, "x").is_some());
        }
        assert_eq!(registry.id("one more", "count", SeriesKind::Gauge, "x"), None);
        assert_eq!(registry.id("s7", "count", SeriesKind::Gauge, "x"), Some(7));
    }

    #[test]
    fn a_row_is_absent_where_nothing_was_set() {
        let mut row = Row::default();
        row.count(2, u64::MAX);
        assert_eq!(row.values(), [ABSENT, ABSENT, i64::MAX]);
    }
}
