//! What the recording program counts of itself while it works, as series beside the machine's.
//!
//! The values are atomic numbers that the work changes; reading them takes no lock and, once a
//! gauge has its series, allocates nothing. A gauge gets its series when it first has a value, so
//! what a program does not know has none.

use crate::registry::{ABSENT, Registry, Row};
use model::GaugeSet;
use std::sync::Arc;

/// Where the values come from, as the schema of each series says.
const SOURCE: &str = "this program";

/// The gauges of this program, with the numbers of their series.
#[derive(Debug)]
pub(super) struct OwnGauges {
    gauges: Arc<dyn GaugeSet>,
    /// By the place of the gauge; `None` until it has a value.
    ids: Vec<Option<u32>>,
}

impl OwnGauges {
    /// Without a series yet.
    pub fn new(gauges: Arc<dyn GaugeSet>) -> Self {
        let ids = vec![None; gauges.names().len()];
        Self { gauges, ids }
    }

    /// Writes all values into `row`; what is absent now is absent there.
    pub fn read(&mut self, registry: &mut Registry, row: &mut Row) {
        for (place, id) in self.ids.iter_mut().enumerate() {
            let value = self.gauges.value(place);
            if id.is_none() && value.is_some() {
                let Some(named) = self.gauges.names().get(place) else { continue };
                *id = registry.id(named.name, named.unit, named.kind, SOURCE);
            }
            match (*id, value) {
                (Some(id), Some(value)) => row.count(id, value),
                (Some(id), None) => row.set(id, ABSENT),
                (None, _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CopyGauges;

    #[test]
    fn a_gauge_has_a_series_from_its_first_value_on_and_can_become_absent() {
        let gauges = Arc::new(CopyGauges::default());
        let mut own = OwnGauges::new(Arc::clone(&gauges) as Arc<dyn GaugeSet>);
        let (mut registry, mut row) = (Registry::new(), Row::default());
        own.read(&mut registry, &mut row);
        let names = |registry: &Registry| -> Vec<String> {
            registry.schemas().iter().map(|schema| schema.name.clone()).collect()
        };
        let always =
            ["copy.read_bytes", "copy.written_bytes", "copy.durable_bytes", "copy.files_done"];
        assert_eq!(names(&registry), always);
        assert_eq!(row.values(), [0, 0, 0, 0]);
        gauges.read_bytes.add(7);
        gauges.dirty_bytes.set(3);
        own.read(&mut registry, &mut row);
        assert_eq!(names(&registry)[4..], ["copy.dirty_bytes"]);
        assert_eq!(row.values(), [7, 0, 0, 0, 3]);
        gauges.dirty_bytes.clear();
        own.read(&mut registry, &mut row);
        assert_eq!(row.values(), [7, 0, 0, 0, ABSENT]);
    }
}
