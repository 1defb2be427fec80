//! Pages that left memory and came back: what so much more memory would have kept.
//!
//! The programs in the kernel (`bpf/returns.h`) follow one page in 16. When one comes back they
//! count how many pages left after it: all of them, and those that are still out. With room for the
//! latter it would have stayed, if pages leave in the order of their last use; the former is what
//! the kernel's own counter of evictions would say. The truth was seen between the two.
//!
//! `trace.returns.file.still_out_lt_<n>kib` has the bytes that came back while less than `n` KiB of
//! other pages were out since, and not less than the class before. A class gets its series when
//! something falls into it.

use super::Family;
use super::columns::{ColumnId, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::registry::{Registry, Row};
use std::collections::BTreeSet;

/// Pages of files, and of swap.
pub const KINDS: usize = 2;
const KIND_NAMES: [&str; KINDS] = ["file", "swap"];

/// Classes of distance: four for each power of two from 16 pages on, and what is too far to know.
pub const DISTANCE_CLASSES: usize = 81;
const SMALLEST_POWER: usize = 4;

/// How distances are counted.
const ORDERS: [&str; 2] = ["still_out", "left"];

/// Pages that left and came back, since programs in the kernel watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnSums {
    /// Pages that left memory, by kind.
    pub left: [u64; KINDS],
    /// Pages that the subject brought back, by kind.
    pub came_back: [u64; KINDS],
    /// Pages that came back, by order of counting, kind, class.
    pub classes: [[[u64; DISTANCE_CLASSES]; KINDS]; ORDERS.len()],
}

impl ReturnSums {
    /// What came since `base`.
    #[must_use]
    pub fn since(mut self, base: &Self) -> Self {
        let subtract = |from: &mut [u64], base: &[u64]| {
            for (value, base) in from.iter_mut().zip(base) {
                *value = value.wrapping_sub(*base);
            }
        };
        subtract(&mut self.left, &base.left);
        subtract(&mut self.came_back, &base.came_back);
        let all = self.classes.as_flattened_mut().as_flattened_mut();
        subtract(all, base.classes.as_flattened().as_flattened());
        self
    }
}

impl Default for ReturnSums {
    fn default() -> Self {
        Self {
            left: [0; KINDS],
            came_back: [0; KINDS],
            classes: [[[0; DISTANCE_CLASSES]; KINDS]; ORDERS.len()],
        }
    }
}

/// Their series.
#[derive(Debug, Default)]
pub struct ReturnSeries(Option<ReturnColumns>);

#[derive(Debug)]
struct ReturnColumns {
    page_bytes: u64,
    left: [ColumnId; KINDS],
    came_back: [ColumnId; KINDS],
    /// Those that something fell into, in the order of [`ReturnSums::classes`].
    classes: Vec<Option<ColumnId>>,
}

impl Reducer for ReturnSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0 = families.contains(&Family::Who).then(|| ReturnColumns {
            page_bytes: sys::process::page_bytes() as u64,
            left: KIND_NAMES.map(|kind| {
                counter(registry, &format!("trace.returns.{kind}.left_bytes"), "bytes")
            }),
            came_back: KIND_NAMES.map(|kind| {
                counter(registry, &format!("trace.returns.{kind}.came_back_bytes"), "bytes")
            }),
            classes: vec![None; ORDERS.len() * KINDS * DISTANCE_CLASSES],
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        let (Some(columns), Some(sums)) = (&mut self.0, sums.returns) else {
            return;
        };
        let bytes = columns.page_bytes;
        for (columns, pages) in [(&columns.left, sums.left), (&columns.came_back, sums.came_back)] {
            for (column, pages) in columns.iter().zip(pages) {
                set(row, *column, pages * bytes);
            }
        }
        let classes = sums.classes.as_flattened().as_flattened();
        for (index, (column, pages)) in columns.classes.iter_mut().zip(classes).enumerate() {
            if *pages == 0 && column.is_none() {
                continue;
            }
            let name = || class_name(index, bytes);
            let id = *column.get_or_insert_with(|| counter(registry, &name(), "bytes"));
            set(row, id, pages * bytes);
        }
    }
}

/// The name of a series by its place in [`ReturnSums::classes`].
fn class_name(index: usize, page_bytes: u64) -> String {
    let (order, rest) = (index / (KINDS * DISTANCE_CLASSES), index % (KINDS * DISTANCE_CLASSES));
    let (kind, class) = (rest / DISTANCE_CLASSES, rest % DISTANCE_CLASSES);
    let (kind, order) = (KIND_NAMES[kind], ORDERS[order]);
    match bound_of(class) {
        Some(pages) => {
            format!("trace.returns.{kind}.{order}_lt_{}kib", pages * page_bytes / 1024)
        }
        None => format!("trace.returns.{kind}.{order}_too_far"),
    }
}

/// The first number of pages that no longer belongs to a class; `None` for the last one.
pub fn bound_of(class: usize) -> Option<u64> {
    let (power, quarter) = (SMALLEST_POWER + class / 4, class as u64 % 4);
    (class < DISTANCE_CLASSES - 1).then(|| (1 << power) + (((quarter + 1) << power) / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_quarters_of_powers_of_two() {
        assert_eq!(bound_of(0), Some(20), "16 to 19 pages, and all that are nearer");
        assert_eq!(bound_of(3), Some(32));
        assert_eq!(bound_of(4), Some(40));
        assert_eq!(bound_of(79), Some(1 << 24));
        assert_eq!(bound_of(80), None);
        assert_eq!(class_name(3, 4096), "trace.returns.file.still_out_lt_128kib");
        let last = 2 * KINDS * DISTANCE_CLASSES - 1;
        assert_eq!(class_name(last, 4096), "trace.returns.swap.left_too_far");
    }

    #[test]
    fn what_was_counted_before_is_subtracted() {
        let mut base = ReturnSums::default();
        base.left[0] = 3;
        base.classes[1][1][80] = 7;
        let mut now = base;
        now.left[0] = 5;
        now.classes[1][1][80] = 8;
        let since = now.since(&base);
        assert_eq!((since.left[0], since.classes[1][1][80]), (2, 1));
        assert_eq!(since.classes[0][0][0], 0);
    }
}
