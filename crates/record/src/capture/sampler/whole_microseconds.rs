//! Times of a recording of the machine in whole microseconds.
//!
//! What is below one is noise there: the sums of hundreds of threads move by 40 s a second. It does
//! not compress, and was a quarter of what a sample takes. A sum is cut, not its growths, so
//! nothing adds up to an error.

use crate::registry::{ABSENT, Row};
use model::recording::Schema;

const MICROSECOND_NS: i64 = 1000;

/// The columns of times.
#[derive(Debug, Default)]
pub(super) struct WholeMicroseconds {
    columns: Vec<u32>,
    /// Series that were looked at.
    known: usize,
}

impl WholeMicroseconds {
    /// Cuts all times of `row`, whose series are `schemas`; these only ever grow.
    pub fn round(&mut self, schemas: &[Schema], row: &mut Row) {
        let new = schemas.get(self.known..).unwrap_or_default();
        let times = new.iter().filter(|schema| schema.unit == "ns");
        self.columns.extend(times.map(|schema| schema.id));
        self.known = schemas.len();
        for id in &self.columns {
            let value = row.values().get(*id as usize).copied().unwrap_or(ABSENT);
            if value != ABSENT {
                row.set(*id, value - value % MICROSECOND_NS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use model::recording::SeriesKind;

    #[test]
    fn times_are_cut_and_nothing_else_is() {
        let (mut registry, mut row) = (Registry::new(), Row::default());
        let mut whole = WholeMicroseconds::default();
        let id = |registry: &mut Registry, name: &str, unit: &str| {
            registry.id(name, unit, SeriesKind::Counter, "test").unwrap()
        };
        let (time, count) = (id(&mut registry, "a", "ns"), id(&mut registry, "b", "count"));
        row.set(time, 1_234_567);
        row.set(count, 1_234_567);
        let absent = id(&mut registry, "c", "ns");
        whole.round(registry.schemas(), &mut row);
        assert_eq!(row.values(), [1_234_000, 1_234_567]);
        row.set(absent, ABSENT);
        let later = id(&mut registry, "d", "ns");
        row.set(later, 999);
        whole.round(registry.schemas(), &mut row);
        assert_eq!(row.values(), [1_234_000, 1_234_567, ABSENT, 0]);
    }
}
