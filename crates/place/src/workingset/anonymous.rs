//! Anonymous memory in swap: the area and the slot of each page of a process.
//!
//! /proc/PID/pagemap reports both. The kernel shows the slot only with `CAP_SYS_ADMIN`; without it
//! the pages can be counted but not ordered.

use super::targets::TargetProcess;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::maps::{self, Mapping};
use machine::pagemap::{Page, Pagemap};

/// A page in swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwappedPage {
    /// The process: an index into the scanned targets.
    pub target: u32,
    /// The kernel's number of the area.
    pub area: u8,
    /// The slot within the area, in pages; 0 for all where slots are hidden.
    pub slot: u64,
    /// Its address in the process.
    pub address: u64,
}

/// The anonymous pages of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymousPages {
    /// Its pages in swap.
    pub swapped: Vec<SwappedPage>,
    /// Anonymous pages that are present.
    pub present_pages: u64,
}

/// Finds the anonymous pages of `target`; each page in swap gets `index` as its target.
///
/// # Errors
/// `Impossible` where this user may not read its pagemap; `Failed` where it has ended.
pub fn scan(root: &Root, target: &TargetProcess, index: u32) -> Result<AnonymousPages> {
    let failed = |error: machine::Error| failure(target, &error);
    // Opened first: it stays with this memory if the process executes another program.
    let mut pagemap = Pagemap::open(root, target.pid).map_err(failed)?;
    let mappings = maps::read(root, target.pid).map_err(failed)?;
    let mut scan = AnonymousPages::default();
    for mapping in mappings.into_iter().filter(may_hold_private_pages) {
        if sys::interrupt::requested() {
            break;
        }
        pagemap
            .read(mapping.range, |address, page| match page {
                Page::Swapped { area, slot } => {
                    scan.swapped.push(SwappedPage { target: index, area, slot, address })
                }
                Page::Present { file_or_shared } => {
                    scan.present_pages += u64::from(!file_or_shared);
                }
                Page::Absent => {}
            })
            .map_err(failed)?;
    }
    if !target.lives() {
        return Err(failure_of(target, ErrorKind::Failed, "it has ended"));
    }
    Ok(scan)
}

/// A mapping that cannot be read cannot be restored by reading. Reservations of address space,
/// which may be terabytes, are not readable.
fn may_hold_private_pages(mapping: &Mapping) -> bool {
    mapping.readable && !mapping.shared && mapping.kind != maps::MappingKind::Special
}

fn failure(target: &TargetProcess, error: &machine::Error) -> Error {
    let kind = match error.kind {
        machine::ErrorKind::Denied => ErrorKind::Impossible,
        _ => ErrorKind::Failed,
    };
    failure_of(target, kind, &sys::plain_reason(&error.source))
}

fn failure_of(target: &TargetProcess, kind: ErrorKind, reason: &str) -> Error {
    let operation = format!("see where the pages of {} ({}) lie", target.pid, target.name);
    Error::new(kind, operation, reason)
}
