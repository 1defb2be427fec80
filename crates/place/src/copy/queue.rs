//! One copy at a time for a disk that copies at the same time would make slow: one that rotates or
//! can be taken out. The next copy waits, and names the one that it waits for.
//!
//! The lock is a `flock` on a file of the disk in sysfs. Every user can open it, no user can make
//! or replace one, nothing is left behind, and the kernel gives it back however its holder ends.
//! /proc/locks names the holder. A copy takes the locks of all its disks or none, in the order of
//! their numbers, so two copies never wait for each other.
//!
//! Containers with a network of their own have a sysfs of their own: their copies are not seen. A
//! virtual disk says that it rotates whatever it is on, so that is not believed.

use super::disks;
use super::plan::CopyPlan;
use super::{ASK_EVERY, CopyRequest, tree};
use crate::Result;
use machine::Root;
use machine::block::Disk;
use model::progress::Control;
use std::fs::File;
use std::time::{Duration, Instant};
use sys::file_stat::FileStat;
use sys::lock::{self, LockMode};

/// So much data never waits: it is done before it disturbs.
pub const NEVER_WAITS_BYTES: u64 = 16 << 20;
/// What an entry counts at least: its metadata is written too.
const LEAST_ENTRY_BYTES: u64 = 4096;
/// How often a copy that waits tries again.
const TRY_EVERY: Duration = Duration::from_millis(50);
/// Who holds a lock is looked up this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Ticks a second of process times in /proc, on every architecture.
const USER_HZ: f64 = 100.0;
/// Disks of hosts that do not say what they are.
const VIRTUAL: [&str; 3] = ["virtio", "xen", "nbd"];

/// The turn of a copy on its disks; given back when dropped.
#[derive(Debug)]
pub struct DiskTurn {
    /// Open and locked, as long as this lives.
    _locks: Vec<File>,
    /// How long it was waited for.
    pub waited: Duration,
    /// Why a disk has no lock, in words.
    pub unlocked: Vec<String>,
}

/// The copy that another one waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnHolder {
    /// The disk that both use.
    pub disk: String,
    /// The process that has it, if it can be seen from here.
    pub pid: Option<u32>,
    /// The command line of that process, which says what it copies; any text.
    pub command: Option<String>,
    /// How long it has been running.
    pub running: Option<Duration>,
}

/// Waits until no other copy uses a disk of this one that is to be used by one at a time. A small
/// copy, and one with `now`, does not wait.
///
/// `waiting` is called many times a second while it waits; `None` if it says stop.
///
/// # Errors
/// Where a source cannot be walked.
pub fn take_turn(
    root: &Root,
    request: &CopyRequest,
    plan: &CopyPlan,
    waiting: &mut dyn FnMut(Option<&TurnHolder>) -> Control,
) -> Result<Option<DiskTurn>> {
    let started = Instant::now();
    let mut disks = disks::disks_of(root, plan);
    disks.retain(is_for_one);
    let (locks, unlocked) = lock_files(root, &disks);
    if locks.is_empty() || is_small(request, plan, waiting)? {
        return Ok(Some(DiskTurn { _locks: Vec::new(), waited: Duration::ZERO, unlocked }));
    }
    let turn = |locks: Vec<(&Disk, File)>| DiskTurn {
        _locks: locks.into_iter().map(|(_, file)| file).collect(),
        waited: started.elapsed(),
        unlocked,
    };
    let mut holder = TurnHolder::default();
    let mut looked = None;
    loop {
        let Some(taken) = first_taken(&locks) else { return Ok(Some(turn(locks))) };
        if request.now {
            // What is free is taken, so that others wait for this one.
            let free = |lock: &(&Disk, File)| is_locked(&lock.1);
            return Ok(Some(turn(locks.into_iter().filter(free).collect())));
        }
        let (disk, file) = &locks[taken];
        if looked.is_none_or(|at: Instant| at.elapsed() >= LOOK_EVERY) {
            holder = holder_of(root, disk, file);
            looked = Some(Instant::now());
        }
        if waiting(Some(&holder)).is_stop() {
            return Ok(None);
        }
        std::thread::sleep(TRY_EVERY);
    }
}

/// Locks all files, or none and says which another process has.
fn first_taken(locks: &[(&Disk, File)]) -> Option<usize> {
    let taken = locks.iter().position(|(_, file)| !is_locked(file))?;
    for (_, file) in &locks[..taken] {
        // It was locked a moment ago.
        let _ = lock::release(file);
    }
    Some(taken)
}

/// Whether the file is locked now, or has no locks.
fn is_locked(file: &File) -> bool {
    lock::try_take(file, LockMode::Exclusive).unwrap_or(true)
}

/// Whether there is so little to copy that it is not kept waiting.
fn is_small(
    request: &CopyRequest,
    plan: &CopyPlan,
    waiting: &mut dyn FnMut(Option<&TurnHolder>) -> Control,
) -> Result<bool> {
    let mut asked = Instant::now();
    let mut is_stopped = false;
    let mut sum = 0u64;
    tree::visit(request, plan, &mut |stat| {
        sum = sum.saturating_add(stat.bytes.min(stat.allocated_bytes).max(LEAST_ENTRY_BYTES));
        if asked.elapsed() > ASK_EVERY {
            asked = Instant::now();
            is_stopped = waiting(None).is_stop();
        }
        Control::stop_if(is_stopped || sum > NEVER_WAITS_BYTES)
    })?;
    Ok(sum <= NEVER_WAITS_BYTES && !is_stopped)
}

/// Whether copies at the same time make each other slow on it.
fn is_for_one(disk: &Disk) -> bool {
    let is_virtual = disk.transport.as_deref().is_some_and(|bus| VIRTUAL.contains(&bus));
    !is_virtual && (disk.rotational == Some(true) || disk.removable == Some(true))
}

/// The files whose locks stand for the disks, and why some are not to be had.
fn lock_files<'a>(root: &Root, disks: &'a [Disk]) -> (Vec<(&'a Disk, File)>, Vec<String>) {
    let mut files = Vec::new();
    let mut unlocked = Vec::new();
    for disk in disks {
        let path = root.path(format!("/sys/dev/block/{}:{}/dev", disk.major, disk.minor));
        let opened = sys::file::open_read(&path, false);
        // Whether there are locks at all; another copy's is no fault.
        let lockable = opened.and_then(|file| {
            if lock::try_take(&file, LockMode::Shared)? {
                lock::release(&file)?;
            }
            Ok(file)
        });
        match lockable {
            Ok(file) => files.push((disk, file)),
            Err(error) => {
                let why = sys::plain_reason(&error.source);
                unlocked.push(format!("other copies on {} are not waited for: {why}", disk.name));
            }
        }
    }
    (files, unlocked)
}

/// Who has the lock, as far as it can be seen.
fn holder_of(root: &Root, disk: &Disk, file: &File) -> TurnHolder {
    let pid = FileStat::of(file).ok().and_then(|stat| {
        let (major, minor) = sys::block::device_numbers(stat.device);
        let inode = format!("{major:02x}:{minor:02x}:{}", stat.inode);
        lock_owner(&root.read("/proc/locks").ok()?, &inode)
    });
    let command = pid.and_then(|pid| command_line(root, pid));
    let running = pid.and_then(|pid| running_time(root, pid));
    TurnHolder { disk: disk.name.clone(), pid, command, running }
}

/// The owner of the `flock` on an inode: `1: FLOCK  ADVISORY  WRITE 812 00:15:9876 0 EOF`. Lines
/// of those who wait have an arrow; the owner is 0 or -1 if it has no number here.
fn lock_owner(locks: &str, inode: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, "FLOCK", _, "WRITE", pid, place, ..] if *place == inode => {
                pid.parse().ok().filter(|pid| *pid > 0)
            }
            _ => None,
        }
    })
}

fn command_line(root: &Root, pid: u32) -> Option<String> {
    let words = root.read_bytes(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
    (!text.is_empty()).then_some(text)
}

fn running_time(root: &Root, pid: u32) -> Option<Duration> {
    let start_ticks = machine::process_memory::of(root, pid)?.start_ticks;
    let uptime: f64 = root.read("/proc/uptime").ok()?.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(uptime - start_ticks as f64 / USER_HZ).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_disks_are_not_believed_to_rotate() {
        let disk = |transport: &str, rotational, removable| Disk {
            transport: Some(transport.to_owned()),
            rotational: Some(rotational),
            removable: Some(removable),
            ..Disk::default()
        };
        assert!(is_for_one(&disk("sata", true, false)));
        assert!(is_for_one(&disk("usb", false, true)));
        assert!(!is_for_one(&disk("nvme", false, false)));
        assert!(!is_for_one(&disk("virtio", true, false)));
        assert!(!is_for_one(&Disk::default()));
    }

    #[test]
    fn the_owner_is_found_among_those_who_wait() {
        let locks = "\
1: POSIX  ADVISORY  WRITE 7 00:15:9876 0 EOF
2: FLOCK  ADVISORY  WRITE 812 00:15:9876 0 EOF
2: -> FLOCK  ADVISORY  WRITE 813 00:15:9876 0 EOF
3: FLOCK  ADVISORY  WRITE 0 00:15:77 0 EOF
";
        assert_eq!(lock_owner(locks, "00:15:9876"), Some(812));
        assert_eq!(lock_owner(locks, "00:15:77"), None);
        assert_eq!(lock_owner(locks, "00:15:987"), None);
    }
}
