//! How much free memory this guest has handed back to its host ("free page reporting").
//!
//! Such memory is slow at its next touch, since the host must find it anew. Mainline
//! kernels do it without a counter; where one exists, it is read.

use crate::root::Root;

/// Where counters have been seen.
const COUNTERS: [&str; 2] = [
    "/sys/module/page_reporting/parameters/reported_kib",
    "/sys/module/virtio_balloon/parameters/reported_kib",
];

/// Bytes reported to the host since boot, including those that were taken again; `None` if not
/// counted.
#[must_use]
pub fn to_host_bytes(root: &Root) -> Option<u64> {
    COUNTERS.iter().find_map(|path| root.number::<u64>(path)).and_then(|kib| kib.checked_mul(1024))
}
