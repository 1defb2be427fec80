//! /proc/swaps: the size and the use of each swap area.
//!
//! An area is named by its device, a swap file by the last part of its path, so that no
//! directory's name gets into a recording.

use super::keyed::Keyed;
use super::table::{Column, LineTable};
use machine::Root;

/// The file, where there is one.
pub(super) fn open(root: &Root) -> Option<LineTable<Keyed>> {
    LineTable::open(root, "/proc/swaps", Keyed::new("swap", columns))
}

/// The name of the area at this path, as /proc/swaps prints it.
pub(super) fn area_name(path: &str) -> &str {
    let name = path.strip_prefix("/dev/").or_else(|| path.rsplit('/').next());
    name.filter(|name| !name.is_empty()).unwrap_or(path)
}

/// "/dev/zram0 partition 8388604 524288 100": type, size, used, priority.
fn columns(prefix: &str, key: &str) -> Vec<Column> {
    if !key.starts_with('/') {
        return Vec::new();
    }
    let name = area_name(key);
    vec![
        Column::gauge(1, format!("{prefix}.{name}.size_bytes"), "bytes", 1024),
        Column::gauge(2, format!("{prefix}.{name}.used_bytes"), "bytes", 1024),
    ]
}
