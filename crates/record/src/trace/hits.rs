//! Pages of files that were used again while they were in memory: what less memory would cost.
//!
//! The programs in the kernel (`bpf/hits.h`) keep one page in 16 in the order of the last use. When
//! one is used again they count how many pages that are in memory were used after it: its distance.
//! A page cache that holds no more than that would have lost it, if pages leave in that order.
//!
//! `trace.hits.file.again_lt_<n>kib` has the bytes that were used again while less than `n` KiB of
//! other pages had been used since, and not less than the class before; `first_lt_<n>kib` those
//! that were in memory before, of which the distance is at least that. What was used a moment ago
//! is not counted. A class gets its series when something falls into it.

use super::Family;
use super::columns::{ColumnId, counter, set};
use super::reducer::{Reducer, TraceSums};
use super::returns::{DISTANCE_CLASSES, bound_of};
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;

/// What is known of the use before: when it was, or only that it was before anything was watched.
const ORDERS: [&str; 2] = ["again", "first"];

/// Pages that were used again, by order of counting and class of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitSums(pub [[u64; DISTANCE_CLASSES]; ORDERS.len()]);

impl Default for HitSums {
    fn default() -> Self {
        Self([[0; DISTANCE_CLASSES]; ORDERS.len()])
    }
}

impl HitSums {
    /// What came since `base`.
    #[must_use]
    pub fn since(mut self, base: &Self) -> Self {
        for (value, base) in self.0.as_flattened_mut().iter_mut().zip(base.0.as_flattened()) {
            *value = value.wrapping_sub(*base);
        }
        self
    }
}

/// Their series.
#[derive(Debug, Default)]
pub struct HitSeries(Option<HitColumns>);

#[derive(Debug)]
struct HitColumns {
    page_bytes: u64,
    /// Those that something fell into, in the order of [`HitSums`]. The first one is there always:
    /// hits were watched.
    classes: Vec<Option<ColumnId>>,
}

impl Reducer for HitSeries {
    fn open(&mut self, families: &BTreeSet<Family>, _: &mut Registry) {
        self.0 = families.contains(&Family::Hits).then(|| HitColumns {
            page_bytes: sys::process::page_bytes() as u64,
            classes: vec![None; ORDERS.len() * DISTANCE_CLASSES],
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        let (Some(columns), Some(sums)) = (&mut self.0, sums.hits) else {
            return;
        };
        let bytes = columns.page_bytes;
        let classes = columns.classes.iter_mut().zip(sums.0.as_flattened());
        for (index, (column, pages)) in classes.enumerate() {
            if *pages == 0 && column.is_none() && index > 0 {
                continue;
            }
            let name = || class_name(index, bytes);
            let id = *column.get_or_insert_with(|| counter(registry, &name(), "bytes"));
            set(row, id, pages * bytes);
        }
    }
}

/// The name of a series by its place in [`HitSums`].
fn class_name(index: usize, page_bytes: u64) -> String {
    let (order, class) = (ORDERS[index / DISTANCE_CLASSES], index % DISTANCE_CLASSES);
    match bound_of(class) {
        Some(pages) => format!("trace.hits.file.{order}_lt_{}kib", pages * page_bytes / 1024),
        None => format!("trace.hits.file.{order}_too_far"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_named_by_their_class() {
        assert_eq!(class_name(3, 4096), "trace.hits.file.again_lt_128kib");
        assert_eq!(class_name(DISTANCE_CLASSES, 4096), "trace.hits.file.first_lt_80kib");
        assert_eq!(class_name(DISTANCE_CLASSES - 1, 4096), "trace.hits.file.again_too_far");
    }

    #[test]
    fn what_was_counted_before_is_subtracted() {
        let (mut base, mut now) = (HitSums::default(), HitSums::default());
        (base.0[1][3], now.0[1][3]) = (7, 9);
        assert_eq!(now.since(&base).0[1][3], 2);
    }
}
