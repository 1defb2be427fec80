//! What uses a block device: mounts, swap and devices on top of it, of the device itself, of its
//! partitions, and of the disk that it is a partition of.
//!
//! For words: whether a device is free is decided by the kernel, when it is claimed (`sys::block`).

use crate::block::{directory_of_number, name_of_directory, whole_of};
use crate::parse::device_numbers;
use crate::{Root, mounts, swap};
use std::fmt;
use std::path::{Path, PathBuf};

/// One use of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// It is mounted.
    Mounted {
        /// The device, as `sdb1`.
        device: String,
        /// Where.
        point: PathBuf,
    },
    /// It is swap.
    Swap {
        /// The device, as `sdb2`.
        device: String,
    },
    /// Another device is made of it.
    Held {
        /// The device, as `sdb3`.
        device: String,
        /// The other one, as `dm-0`.
        by: String,
    },
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, point } if point == Path::new("/") => {
                write!(f, "{device} holds the root file system")
            }
            Self::Mounted { device, point } => {
                write!(f, "{device} is mounted at {}", point.display())
            }
            Self::Swap { device } => write!(f, "{device} is swap"),
            Self::Held { device, by } => write!(f, "{device} is a part of {by}"),
        }
    }
}

/// The uses of the device with this number, of its partitions, and of the disk that it is a
/// partition of. Mounts that this process does not see are not among them.
#[must_use]
pub fn uses(root: &Root, major: u32, minor: u32) -> Vec<DeviceUse> {
    let Some(directory) = directory_of_number(root, major, minor) else { return Vec::new() };
    let mut family = vec![directory.clone()];
    match whole_of(root, &directory) {
        Some(whole) if whole != directory => family.push(whole.to_owned()),
        _ => family.extend(
            root.names(&directory)
                .into_iter()
                .map(|name| directory.join(name))
                .filter(|below| root.has(below.join("partition"))),
        ),
    }
    let (mounts, areas) = (mounts::read(root), swap::areas(root));
    let mut found = Vec::new();
    for directory in family {
        let Some(device) = name_of_directory(&directory) else { continue };
        let word = root.word(directory.join("dev"));
        let Some(numbers) = word.and_then(|word| device_numbers(&word)) else { continue };
        let is_mounted = |mount: &&mounts::Mount| {
            // A file system with numbers of its own (btrfs) says what it is mounted from.
            (mount.major, mount.minor) == numbers
                || mount.major == 0 && mount.source == format!("/dev/{device}")
        };
        found.extend(mounts.iter().filter(is_mounted).map(|mount| DeviceUse::Mounted {
            device: device.clone(),
            point: mount.mount_point.clone(),
        }));
        let is_swap = |area: &&swap::Area| area.kind == "partition" && area.device == Some(numbers);
        found.extend(
            areas.iter().filter(is_swap).map(|_| DeviceUse::Swap { device: device.clone() }),
        );
        let holders = root.names(directory.join("holders")).into_iter();
        found.extend(holders.map(|by| DeviceUse::Held { device: device.clone(), by }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn a_disk_is_used_by_its_partitions_and_a_partition_by_its_disk() {
        let disk = "/sys/devices/pci/block/sdb";
        let mut fake = FakeRoot::new()
            .file(&format!("{disk}/dev"), "8:16\n")
            .file(&format!("{disk}/holders/md0/x"), "")
            .link("/sys/dev/block/8:16", "../../devices/pci/block/sdb");
        for number in 1..=3 {
            let place = format!("{disk}/sdb{number}");
            fake = fake
                .file(&format!("{place}/dev"), format!("8:{}\n", 16 + number))
                .file(&format!("{place}/partition"), number.to_string())
                .link(
                    &format!("/sys/dev/block/8:{}", 16 + number),
                    &format!("../../devices/pci/block/sdb/sdb{number}"),
                )
                .link(
                    &format!("/sys/class/block/sdb{number}"),
                    &format!("../../devices/pci/block/sdb/sdb{number}"),
                );
        }
        let fake = fake
            .file(
                "/proc/self/mountinfo",
                "20 1 8:17 / / rw - ext4 /dev/sdb1 rw\n21 20 0:40 / /b rw - btrfs /dev/sdb3 rw\n",
            )
            .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/sdb2 partition 9 0 -2\n");
        let root = Root::at(fake.path());
        let words = |minor| -> Vec<String> {
            uses(&root, 8, minor).iter().map(ToString::to_string).collect()
        };
        let all = [
            "sdb is a part of md0",
            "sdb1 holds the root file system",
            "sdb2 is swap",
            "sdb3 is mounted at /b",
        ];
        assert_eq!(words(16), all);
        assert_eq!(words(18), ["sdb2 is swap", "sdb is a part of md0"]);
        assert!(words(99).is_empty());
    }
}
