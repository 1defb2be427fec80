//! The disks of a copy: which they are, whether they rotate, and whether source and target are on
//! one. The order of requests and the turns of copies depend on it.
//!
//! The idea: a head that moves costs 10 ms, as much as 1.5 MB. Real disks are believed. A virtual
//! disk says that it rotates whatever it is stored on, so it is tried by a few reads.

use super::plan::CopyPlan;
use crate::workingset::speed::{self, TrialPurpose};
use machine::Root;
use machine::block::{self, Disk};
use machine::mounts;
use machine::reach::Reach;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use sys::directory::Directory;
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

/// Loop devices over files on loop devices are followed this far.
const MAX_LOOPS: usize = 4;

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
        let targets = rotating_disks(&root, target_of(plan));
        let sources = rotating_disks(&root, sources_of(plan));
        Self {
            source_rotates: !sources.is_empty(),
            target_rotates: !targets.is_empty(),
            is_one: sources.intersection(&targets).next().is_some(),
        }
    }

    /// Whether any of them does.
    pub(super) fn rotate(&self) -> bool {
        self.source_rotates || self.target_rotates
    }

    /// Requests in flight at a disk.
    pub(super) fn depth(&self) -> u32 {
        if self.rotate() { ROTATING_DEPTH } else { FLASH_DEPTH }
    }

    /// Buffers of the ring: what was read from a disk with a head may wait for the other one, or
    /// for its turn.
    pub(super) fn buffers(&self, is_in_background: bool) -> u32 {
        if is_in_background { self.depth() } else { FLASH_DEPTH }
    }
}

/// The names of the disks that rotate among those that hold these directories.
fn rotating_disks<'a>(
    root: &Root,
    devices: impl IntoIterator<Item = (u64, &'a Directory)>,
) -> BTreeSet<String> {
    let of_number: BTreeMap<u64, &Directory> = devices.into_iter().collect();
    let leaves = of_number.into_iter().flat_map(|(device, at)| disks_below(root, device, at));
    let rotates = |leaf: &Disk| leaf.rotational == Some(true) && has_head(root, leaf);
    leaves.filter(rotates).map(|leaf| leaf.name).collect()
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

/// The number of the target's file system, and a directory on it.
fn target_of(plan: &CopyPlan) -> Option<(u64, &Directory)> {
    let stat = FileStat::of(plan.into.file()).ok()?;
    Some((stat.device, &plan.into))
}

fn sources_of(plan: &CopyPlan) -> impl Iterator<Item = (u64, &Directory)> {
    plan.items.iter().map(|item| (item.stat.device, &item.parent))
}

/// The disks of a copy, in the order of their numbers.
pub(super) fn disks_of(root: &Root, plan: &CopyPlan) -> Vec<Disk> {
    let mut found = Vec::new();
    for (device, directory) in target_of(plan).into_iter().chain(sources_of(plan)) {
        found.extend(disks_below(root, device, directory));
    }
    found.sort_by_key(|disk: &Disk| (disk.major, disk.minor));
    found.dedup_by_key(|disk| (disk.major, disk.minor));
    found
}

/// The disks that hold a file system, below partitions, stacks and loop devices.
fn disks_below(root: &Root, device: u64, directory: &Directory) -> Vec<Disk> {
    let (major, minor) = sys::block::device_numbers(device);
    let disk = block::of_device(root, major, minor).or_else(|| disk_of_mount(root, directory));
    disk.map(|disk| below_loops(root, &disk, MAX_LOOPS)).unwrap_or_default()
}

/// Of btrfs and others whose files have a number of no disk; of several disks the one that is
/// named in the mount table.
fn disk_of_mount(root: &Root, directory: &Directory) -> Option<Disk> {
    let mounts = mounts::read(root);
    let path = directory.path().canonicalize().ok()?;
    let source = &mounts::behind(&mounts, &path)?.source;
    source.starts_with("/dev/").then(|| block::by_name(root, source)).flatten()
}

fn below_loops(root: &Root, disk: &Disk, loops_left: usize) -> Vec<Disk> {
    let mut found = Vec::new();
    for leaf in block::physical(root, disk) {
        let backing = leaf.backing_file.as_deref().filter(|_| loops_left > 0);
        let below = backing.and_then(|path| disk_of_file(root, Path::new(path)));
        match below {
            // A loop device says of itself what its file's disk says.
            Some(disk) => found.extend(below_loops(root, &disk, loops_left - 1)),
            None => found.push(leaf),
        }
    }
    found
}

fn disk_of_file(root: &Root, path: &Path) -> Option<Disk> {
    if !Reach::new(root).is_safe(path) {
        return None;
    }
    let about = std::fs::metadata(path).ok()?;
    let (major, minor) = sys::block::device_numbers(std::os::unix::fs::MetadataExt::dev(&about));
    block::of_device(root, major, minor)
}
