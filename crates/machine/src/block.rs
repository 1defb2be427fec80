//! Disks as sysfs describes them: found by device number or name, partitions led back to
//! the whole disk, stacked devices to their members.
//!
//! Only attributes that cost nothing are read: none of them wakes a sleeping disk.

use crate::diskstats::SECTOR_BYTES;
use crate::parse::{device_numbers, selected};
use crate::root::Root;
use model::Bytes;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How deep stacks of devices are followed; real ones have two or three levels.
const MAX_STACK: usize = 8;

/// A whole disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Its kernel name, as `vda`.
    pub name: String,
    /// The partition of it that was asked for, as `vda1`.
    pub partition: Option<String>,
    /// The disk's device number, major part.
    pub major: u32,
    /// The disk's device number, minor part.
    pub minor: u32,
    /// The disk's size.
    pub size: Option<Bytes>,
    /// The model's name; for a stacked device the name that its creator gave.
    pub model: Option<String>,
    /// Whether it says that it rotates.
    pub rotational: Option<bool>,
    /// The selected I/O scheduler.
    pub scheduler: Option<String>,
    /// How far the kernel reads ahead, in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// How many requests the device takes at once, else how many the kernel queues for it.
    pub queue_depth: Option<u32>,
    /// The smallest unit that can be addressed, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// The unit that the device works in, in bytes.
    pub physical_block_bytes: Option<u32>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether the medium can be taken out.
    pub removable: Option<bool>,
    /// What it hangs on: `nvme`, `virtio`, `usb`, `sata`, `scsi`, `mmc`, `xen`, `loop`, `zram`,
    /// `dm`, `md`, `nbd`, `brd`.
    pub transport: Option<String>,
    /// Whether the kernel has put it to sleep. A disk that went to standby by its own timer does
    /// not show here.
    pub asleep: bool,
    /// The devices that it is made of, as `sda3`; empty for a disk of its own.
    pub members: Vec<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

/// The disk with this device number, or the one whose partition has it. `None` for numbers
/// that belong to no block device (tmpfs, btrfs, network).
#[must_use]
pub fn of_device(root: &Root, major: u32, minor: u32) -> Option<Disk> {
    let directory = directory_of_number(root, major, minor)?;
    describe(root, &directory)
}

/// The name alone of what [`of_device`] finds, for a fraction of its price.
#[must_use]
pub fn name_of_device(root: &Root, major: u32, minor: u32) -> Option<String> {
    let directory = directory_of_number(root, major, minor)?;
    file_name(whole_of(root, &directory)?)
}

/// The name of what [`of_device`] finds and whether it rotates, for a fraction of its price.
#[must_use]
pub fn name_and_rotation(root: &Root, major: u32, minor: u32) -> Option<(String, Option<bool>)> {
    let directory = directory_of_number(root, major, minor)?;
    let whole = whole_of(root, &directory)?;
    let rotational = root.word(whole.join("queue/rotational"));
    Some((file_name(whole)?, rotational.and_then(|word| truth(&word))))
}

/// The most that one call of `readahead` brings from the device with this number, in bytes: what
/// it reads ahead or its largest request, whichever is more (`force_page_cache_ra`). `None` where
/// no disk has this number.
#[must_use]
pub fn read_ahead_limit(root: &Root, major: u32, minor: u32) -> Option<u64> {
    let directory = directory_of_number(root, major, minor)?;
    let queue = whole_of(root, &directory)?.join("queue");
    let limits = ["read_ahead_kb", "max_sectors_kb"];
    let kib = limits.iter().filter_map(|file| root.number::<u64>(queue.join(file))).max()?;
    Some(kib << 10)
}

/// What the disk behind the device with this number does by itself, without data sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeCommands {
    /// It gives up the content of a range (trim, unmap).
    pub discard: bool,
    /// It stores zeros in a range. Without that the kernel writes each zero.
    pub write_zeroes: bool,
}

/// What the disk with this number does by itself; what it does not say it does not.
#[must_use]
pub fn range_commands(root: &Root, major: u32, minor: u32) -> RangeCommands {
    let directory = directory_of_number(root, major, minor);
    let Some(whole) = directory.as_deref().and_then(|directory| whole_of(root, directory)) else {
        return RangeCommands::default();
    };
    let has = |file: &str| root.number::<u64>(whole.join("queue").join(file)).unwrap_or(0) > 0;
    RangeCommands { discard: has("discard_max_bytes"), write_zeroes: has("write_zeroes_max_bytes") }
}

/// Where the partition with this number begins on its disk, in bytes; 0 for a whole disk.
#[must_use]
pub fn start_on_disk(root: &Root, major: u32, minor: u32) -> u64 {
    let sectors = root.number::<u64>(format!("/sys/dev/block/{major}:{minor}/start"));
    sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES)
}

/// The disk with this name: `vda1`, `/dev/vda1`, `/dev/mapper/home` or `mapper/home`.
#[must_use]
pub fn by_name(root: &Root, name: &str) -> Option<Disk> {
    describe(root, &directory_of(root, name)?)
}

/// The name alone of what [`by_name`] finds.
#[must_use]
pub fn name_of(root: &Root, name: &str) -> Option<String> {
    file_name(whole_of(root, &directory_of(root, name)?)?)
}

/// The real place below /sys/devices of the device with this number.
pub(crate) fn directory_of_number(root: &Root, major: u32, minor: u32) -> Option<PathBuf> {
    root.resolve(format!("/sys/dev/block/{major}:{minor}"))
}

/// The real place below /sys/devices of the disk with this name.
pub(crate) fn directory_of(root: &Root, name: &str) -> Option<PathBuf> {
    let below_dev = name.strip_prefix("/dev/").unwrap_or(name);
    let name = match below_dev.strip_prefix("mapper/") {
        Some(mapped) => mapper_name(root, mapped)?,
        // In sysfs a slash of a device name is an exclamation mark.
        None => below_dev.replace('/', "!"),
    };
    // A name is one component; anything else would leave the directory.
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    let candidates = [format!("/sys/class/block/{name}"), format!("/sys/block/{name}")];
    candidates.into_iter().find_map(|path| root.resolve(path))
}

/// The directory of the whole disk that a device is or is a part of.
pub(crate) fn whole_of<'a>(root: &Root, directory: &'a Path) -> Option<&'a Path> {
    if root.has(directory.join("partition")) { directory.parent() } else { Some(directory) }
}

/// The disks at the bottom of a stack, each once; the disk itself if it has no members.
#[must_use]
pub fn physical(root: &Root, disk: &Disk) -> Vec<Disk> {
    let mut found: Vec<Disk> = Vec::new();
    let mut layer = vec![disk.clone()];
    for _ in 0..MAX_STACK {
        let (leaves, stacked): (Vec<_>, Vec<_>) =
            layer.into_iter().partition(|disk| disk.members.is_empty());
        for leaf in leaves {
            if !found.iter().any(|known| known.name == leaf.name) {
                found.push(leaf);
            }
        }
        layer = stacked
            .iter()
            .flat_map(|disk| &disk.members)
            .filter_map(|name| by_name(root, name))
            .collect();
        if layer.is_empty() {
            break;
        }
    }
    found
}

/// `directory` is a device's real place below /sys/devices.
fn describe(root: &Root, directory: &Path) -> Option<Disk> {
    let whole = whole_of(root, directory)?;
    let is_partition = whole != directory;
    let file = |name: &str| root.word(whole.join(name));
    let flag = |name: &str| file(name).and_then(|text| truth(&text));
    let number = |name: &str| file(name).and_then(|text| text.parse::<u32>().ok());
    let name = file_name(whole)?;
    let (major, minor) = device_numbers(&file("dev")?)?;
    Some(Disk {
        partition: if is_partition { file_name(directory) } else { None },
        major,
        minor,
        size: root
            .number::<u64>(whole.join("size"))
            .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES))
            .map(Bytes),
        model: file("device/model").or_else(|| file("dm/name")),
        rotational: flag("queue/rotational"),
        scheduler: file("queue/scheduler").and_then(|text| selected(&text).map(str::to_owned)),
        read_ahead_bytes: number("queue/read_ahead_kb").map(|kib| u64::from(kib) * 1024),
        queue_depth: number("device/queue_depth").or_else(|| number("queue/nr_requests")),
        logical_block_bytes: number("queue/logical_block_size"),
        physical_block_bytes: number("queue/physical_block_size"),
        write_cache: file("queue/write_cache"),
        removable: flag("removable"),
        transport: transport(whole, &name).map(str::to_owned),
        asleep: file("device/power/runtime_status").is_some_and(|word| word == "suspended"),
        members: root.names(whole.join("slaves")),
        backing_file: file("loop/backing_file"),
        name,
    })
}

/// The kernel's name of a device-mapper device that people call `mapped`.
fn mapper_name(root: &Root, mapped: &str) -> Option<String> {
    root.names("/sys/block").into_iter().find(|name| {
        name.starts_with("dm-")
            && root.word(format!("/sys/block/{name}/dm/name")).as_deref() == Some(mapped)
    })
}

/// What the device hangs on, by its name and its place in the device tree; the outermost bus
/// that can be distinguished wins, so a SATA disk in a USB case is `usb`.
fn transport(directory: &Path, name: &str) -> Option<&'static str> {
    const BY_NAME: [(&str, &str); 9] = [
        ("nvme", "nvme"),
        ("loop", "loop"),
        ("zram", "zram"),
        ("dm-", "dm"),
        ("md", "md"),
        ("nbd", "nbd"),
        ("ram", "brd"),
        ("xvd", "xen"),
        ("mmcblk", "mmc"),
    ];
    const BY_PLACE: [(&str, &str); 6] = [
        ("usb", "usb"),
        ("virtio", "virtio"),
        ("ata", "sata"),
        ("session", "iscsi"),
        ("vbd", "xen"),
        ("host", "scsi"),
    ];
    let named = BY_NAME.iter().find(|(start, _)| followed_by_digit(name, start));
    let placed = || {
        let parts: Vec<_> = directory.iter().filter_map(|part| part.to_str()).collect();
        BY_PLACE.iter().find(|(start, _)| parts.iter().any(|part| numbered(part, start)))
    };
    named.or_else(placed).map(|(_, transport)| *transport)
}

/// "usb1" and "vbd-768", not "users".
fn numbered(part: &str, start: &str) -> bool {
    followed_by_digit(part, start) || followed_by_digit(part, &format!("{start}-"))
}

fn followed_by_digit(text: &str, start: &str) -> bool {
    let rest = text.strip_prefix(start);
    // Xen counts its disks by letters.
    rest.and_then(|rest| rest.chars().next())
        .is_some_and(|next| next.is_ascii_digit() || start == "xvd")
}

/// The kernel's name of the device with this directory.
pub(crate) fn name_of_directory(directory: &Path) -> Option<String> {
    file_name(directory)
}

fn file_name(directory: &Path) -> Option<String> {
    Some(directory.file_name()?.to_str()?.replace('!', "/"))
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The device number of a block device by its kernel name.
pub(crate) fn numbers_of(root: &Root, name: &str) -> Option<(u32, u32)> {
    let directory = PathBuf::from("/sys/class/block").join(name.replace('/', "!"));
    device_numbers(&root.word(directory.join("dev"))?)
}
