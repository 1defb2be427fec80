//! /proc/pressure and the same files of groups: how long some tasks, or all of them, were stalled
//! for lack of a resource.
//!
//! Totals only: the kernel's own averages are slower than any recording.

use super::keyed::Keyed;
use super::table::{Column, LineTable};
use machine::Root;

/// All that the kernel knows; `irq` has only "full".
pub(super) const RESOURCES: [&str; 4] = ["cpu", "memory", "io", "irq"];

const NS_PER_US: u64 = 1_000;
/// "avg10= avg60= avg300= total=".
const TOTAL: usize = 3;

/// The machine's file for one resource.
pub(super) fn open(root: &Root, resource: &str) -> Option<LineTable<Keyed>> {
    file(root, format!("/proc/pressure/{resource}"), format!("pressure.{resource}"))
}

/// Any such file; its series are `<prefix>.some_ns` and `<prefix>.full_ns`.
pub(super) fn file(root: &Root, path: String, prefix: String) -> Option<LineTable<Keyed>> {
    LineTable::open(root, path, Keyed::new(prefix, columns))
}

fn columns(prefix: &str, key: &str) -> Vec<Column> {
    match key {
        "some" | "full" => {
            let name = format!("{prefix}.{key}_ns");
            vec![Column::counter(TOTAL, name, "ns", NS_PER_US)]
        }
        _ => Vec::new(),
    }
}
