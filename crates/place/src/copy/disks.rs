//! Whether source and target are on disks that rotate, and whether that is one disk: the order of
//! requests depends on it.
//!
//! The idea: a head that moves costs 10 ms, as much as 1.5 MB. Real disks are believed. A virtual
//! disk says that it rotates whatever it is stored on, so it is tried by a few reads.

use super::plan::CopyPlan;
use crate::workingset::speed::{self, TrialPurpose};
use machine::Root;
use machine::block::{self, Disk};
use std::collections::BTreeSet;
use sys::file_stat::FileStat;

/// Buses of real disks.
const REAL: [&str; 3] = ["sata", "usb", "scsi"];
/// No head is at another place sooner: half a turn at 15,000 turns a minute.
const FASTEST_HEAD_NS: u64 = 2_000_000;
/// A trial for so many bytes reads for some 8 ms.
const TRIAL_BYTES: u64 = 32 << 20;
/// Requests in flight: a head serves one at a time, flash has many channels.
const ROTATING_DEPTH: u32 = 8;
const FLASH_DEPTH: u32 = 32;

/// What the disks of a copy are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyDisks {
    /// Files are read from a disk that rotates.
    pub(super) source_rotates: bool,
    /// They are written to one.
    pub(super) target_rotates: bool,
    /// It is the same one.
    pub(super) is_one: bool,
}

impl CopyDisks {
    /// The disks of a plan. What is mounted below the sources is not looked at.
    pub(super) fn of(plan: &CopyPlan) -> Self {
        let root = Root::system();
        let target = FileStat::of(plan.into.file()).ok().map(|stat| stat.device);
        let targets = rotating_disks(&root, target);
        let sources = rotating_disks(&root, plan.items.iter().map(|item| item.stat.device));
        Self {
            source_rotates: !sources.is_empty(),
            target_rotates: !targets.is_empty(),
            is_one: sources.intersection(&targets).next().is_some(),
        }
    }

    /// Requests in flight.
    pub(super) fn depth(&self) -> u32 {
        let rotates = self.source_rotates || self.target_rotates;
        // Turns need room for what was read; few requests of a turn are in flight.
        if rotates && !self.is_one { ROTATING_DEPTH } else { FLASH_DEPTH }
    }
}

/// The names of the disks that rotate below file systems with these numbers.
fn rotating_disks(root: &Root, devices: impl IntoIterator<Item = u64>) -> BTreeSet<String> {
    let numbers: BTreeSet<u64> = devices.into_iter().collect();
    let mut found = BTreeSet::new();
    for number in numbers {
        let (major, minor) = sys::block::device_numbers(number);
        let Some(disk) = block::of_device(root, major, minor) else { continue };
        for leaf in block::physical(root, &disk) {
            if leaf.rotational == Some(true) && has_head(root, &leaf) {
                found.insert(leaf.name);
            }
        }
    }
    found
}

/// Whether a disk that says that it rotates does.
fn has_head(root: &Root, disk: &Disk) -> bool {
    if disk.transport.as_deref().is_some_and(|bus| REAL.contains(&bus)) {
        return true;
    }
    let purpose = TrialPurpose { bytes: TRIAL_BYTES, start: None, in_order: false };
    // Without the right to read it, nothing is known.
    let tried = speed::of_device(root, (disk.major, disk.minor), purpose).ok();
    tried.and_then(|speed| speed.random_read_ns).is_some_and(|took| took >= FASTEST_HEAD_NS)
}
