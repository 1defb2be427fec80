//! Which directory a generation was saved from: an inode of a file system that was mounted once.
//!
//! A RAM disk that was mounted again is another one, and empty: saving it over the store would lose
//! what it held. A device number and an inode number are given again, so the boot and the time when
//! the directory was made belong to it.

use super::manifest::{escape, parse_time, time_text, unescape};
use machine::Root;
use serde::{Deserialize, Serialize};
use sys::attributes::FileTime;
use sys::file_stat::FileStat;

/// Where the kernel says which boot this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A directory of one mounted file system of one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryIdentity {
    boot: String,
    device: u64,
    inode: u64,
    made: Option<FileTime>,
}

impl DirectoryIdentity {
    pub(super) fn new(root: &Root, stat: &FileStat) -> Self {
        let boot = root.read(BOOT).unwrap_or_default().trim().to_owned();
        Self { boot, device: stat.device, inode: stat.inode, made: stat.created }
    }

    /// The device number of its file system.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// Whether the time when it was made is known: then no other directory has the same numbers.
    pub(super) fn is_dated(&self) -> bool {
        self.made.is_some()
    }

    pub(super) fn to_fields(&self) -> String {
        let made = self.made.map_or_else(|| "-".to_owned(), time_text);
        format!("{}\t{}\t{}\t{made}", escape(self.boot.as_bytes()), self.device, self.inode)
    }

    pub(super) fn from_fields(fields: &str) -> Option<Self> {
        let fields: Vec<&str> = fields.split('\t').collect();
        let &[boot, device, inode, made] = fields.as_slice() else {
            return None;
        };
        let made = if made == "-" { None } else { Some(parse_time(made)?) };
        let boot = String::from_utf8(unescape(boot)?).ok()?;
        Some(Self { boot, device: device.parse().ok()?, inode: inode.parse().ok()?, made })
    }

    #[cfg(test)]
    pub(super) fn of_fields(boot: &str, device: u64, inode: u64, made: Option<FileTime>) -> Self {
        Self { boot: boot.to_owned(), device, inode, made }
    }
}
