//! The file system that holds a file, by `fstatfs`: its type, free space, and whether it
//! lives in RAM or across a network.
//!
//! Types are recognised by magic number. FUSE hides what is behind it; the mount table says more.

use super::open_read;
use crate::error::{Result, failed};
use std::fs::File;
use std::path::Path;

/// What `fstatfs` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The kernel's number for the type.
    pub magic: u64,
    /// The type by name; `None` if the number is not known here.
    pub name: Option<&'static str>,
    /// What an ordinary user can still write, in bytes.
    pub free_bytes: u64,
    /// How many inodes an ordinary user can still make; `None` where they are not counted.
    pub free_inodes: Option<u64>,
    /// What is in use, in bytes; `None` where it is not counted.
    pub used_bytes: Option<u64>,
    /// How many inodes are in use; `None` where they are not counted.
    pub used_inodes: Option<u64>,
    /// The size of its blocks, in bytes.
    pub block_bytes: u64,
    /// Whether its files live in memory only (tmpfs, ramfs, hugetlbfs).
    pub in_ram: bool,
    /// Whether its files live on another machine, as far as the type tells.
    pub network: bool,
}

impl FileSystem {
    /// Whether it is FAT, which writes zeroes for space that is reserved.
    #[must_use]
    pub fn is_fat(&self) -> bool {
        self.name == Some("vfat")
    }

    /// Whether a direct write goes past the cache. By their sources FAT, older exFAT, and btrfs
    /// with checksums put it through silently; an unknown type is taken to have them.
    #[must_use]
    pub fn has_direct_writes(&self) -> bool {
        !matches!(self.name, Some("vfat" | "exfat" | "btrfs"))
    }
}

/// `FS_CASEFOLD_FL` of linux/fs.h.
const CASEFOLD: u32 = 0x4000_0000;

#[derive(Clone, Copy, PartialEq)]
enum Home {
    Ram,
    Network,
    Local,
}

/// Magic numbers from linux/magic.h and the file systems' own sources.
const TYPES: [(u64, &str, Home); 30] = [
    (0x0102_1994, "tmpfs", Home::Ram),
    (0x8584_58f6, "ramfs", Home::Ram),
    (0x9584_58f6, "hugetlbfs", Home::Ram),
    (0x0000_6969, "nfs", Home::Network),
    (0xff53_4d42, "cifs", Home::Network),
    (0xfe53_4d42, "smb2", Home::Network),
    (0x00c3_6400, "ceph", Home::Network),
    (0x5346_414f, "afs", Home::Network),
    (0x0102_1997, "9p", Home::Network),
    (0x0bd0_0bd0, "lustre", Home::Network),
    (0x4750_4653, "gpfs", Home::Network),
    (0x0000_ef53, "ext4", Home::Local),
    (0x5846_5342, "xfs", Home::Local),
    (0x9123_683e, "btrfs", Home::Local),
    (0xca45_1a4e, "bcachefs", Home::Local),
    (0xf2f5_2010, "f2fs", Home::Local),
    (0x2fc1_2fc1, "zfs", Home::Local),
    (0x5265_4973, "reiserfs", Home::Local),
    (0x0000_4d44, "vfat", Home::Local),
    (0x2011_bab0, "exfat", Home::Local),
    (0x5346_544e, "ntfs", Home::Local),
    (0x7366_746e, "ntfs3", Home::Local),
    (0x794c_7630, "overlay", Home::Local),
    (0x6573_5546, "fuse", Home::Local),
    (0x7371_7368, "squashfs", Home::Local),
    (0xe0f5_e1e2, "erofs", Home::Local),
    (0x0000_9660, "iso9660", Home::Local),
    (0x0000_9fa0, "proc", Home::Local),
    (0x6265_6572, "sysfs", Home::Local),
    (0x0000_f15f, "ecryptfs", Home::Local),
];

/// The file system that holds an open file.
///
/// # Errors
/// The kernel's word; `Unsupported` for files of no file system.
pub fn file_system(file: &File) -> Result<FileSystem> {
    let stat = rustix::fs::fstatfs(file).map_err(failed("examine the file system"))?;
    // Some architectures sign the type; the magic numbers are 32 bits wide.
    let magic = stat.f_type as u64 & 0xffff_ffff;
    let known = TYPES.iter().find(|(number, ..)| *number == magic);
    let home = known.map_or(Home::Local, |(_, _, home)| *home);
    let block_bytes = stat.f_bsize as u64;
    Ok(FileSystem {
        magic,
        name: known.map(|(_, name, _)| *name),
        free_bytes: stat.f_bavail.saturating_mul(block_bytes),
        // FAT and btrfs make them as they are needed, and report none at all.
        free_inodes: (stat.f_files > 0).then_some(stat.f_ffree),
        used_bytes: (stat.f_blocks > 0)
            .then(|| stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(block_bytes)),
        used_inodes: (stat.f_files > 0).then(|| stat.f_files.saturating_sub(stat.f_ffree)),
        block_bytes,
        in_ram: home == Home::Ram,
        network: home == Home::Network,
    })
}

/// Whether a directory takes names that differ by case only for one (`chattr +F`).
#[must_use]
pub fn folds_case(directory: &File) -> bool {
    rustix::fs::ioctl_getflags(directory).is_ok_and(|flags| flags.bits() & CASEFOLD != 0)
}

/// The file system that holds `path`, a file, directory or block device.
///
/// # Errors
/// As opening it for reading.
pub fn file_system_of(path: &Path) -> Result<FileSystem> {
    file_system(&open_read(path, false)?).map_err(|error| error.at(path))
}
