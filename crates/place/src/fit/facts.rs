//! What is known of a target file system, by its type and its numbers. Nothing is created to find
//! out, and a type that is not known here is taken to hold all that Linux has.

use super::names::{CaseFolding, NameRules};
use sys::directory::Directory;
use sys::file_stat::FileStat;

/// A file of FAT has a length of 32 bits.
const FAT_FILE_BYTES: u64 = (4 << 30) - 1;

/// What a target can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFacts {
    /// Its type; `None` if that is not known here.
    pub file_system: Option<&'static str>,
    /// What an ordinary user can still write, in bytes.
    pub free_bytes: u64,
    /// How many inodes can still be made; `None` where they are not counted.
    pub free_inodes: Option<u64>,
    /// What the content of a file is rounded up to; `None` where that is not known.
    pub allocation_bytes: Option<u64>,
    /// Whether it may hold more than its free bytes, by compression.
    pub may_compress: bool,
    /// The longest file; `None` if no file of another file system can be too long.
    pub largest_file_bytes: Option<u64>,
    /// The names that it holds.
    pub names: NameRules,
    /// The owners that a file can get.
    pub owners: OwnerRule,
    /// Whether there are extended attributes and access control lists.
    pub has_extended: bool,
    /// Whether there are symbolic links.
    pub has_links: bool,
    /// Whether there are pipes, sockets and devices.
    pub has_special_files: bool,
    /// Whether an inode can have several names.
    pub has_hard_links: bool,
    /// Whether a hole takes no room.
    pub has_holes: bool,
}

/// The owners that a file of the target can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRule {
    /// All.
    Any,
    /// This user, with a group of this user's.
    User(u32),
    /// This user and this group: those that the mount gives to all files.
    Fixed(u32, u32),
}

impl OwnerRule {
    /// Whether a file can belong to them.
    #[must_use]
    pub fn holds(&self, user: u32, group: u32) -> bool {
        match self {
            Self::Any => true,
            Self::User(only) => user == *only,
            Self::Fixed(only, only_group) => (user, group) == (*only, *only_group),
        }
    }
}

impl TargetFacts {
    /// Those of the file system of an open directory, for this user.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn of(directory: &Directory) -> sys::Result<Self> {
        let system = sys::file::file_system(directory.file())?;
        let about = FileStat::of(directory.file())?;
        let mut facts = Self::of_type(system.name);
        facts.free_bytes = system.free_bytes;
        facts.free_inodes = system.free_inodes;
        let is_known = ["ext4", "xfs", "tmpfs", "vfat", "exfat"];
        let has_blocks = system.name.is_some_and(|name| is_known.contains(&name));
        facts.allocation_bytes = has_blocks.then_some(system.block_bytes);
        if matches!(facts.owners, OwnerRule::Fixed(..)) {
            facts.owners = OwnerRule::Fixed(about.user, about.group);
        } else if sys::process::effective_uid() != 0 {
            facts.owners = OwnerRule::User(sys::process::effective_uid());
        }
        if sys::file::folds_case(directory.file()) {
            facts.names.folding = CaseFolding::Full;
        }
        Ok(facts)
    }

    /// What follows from the type alone: nothing is free, and all may be owners.
    #[must_use]
    pub fn of_type(file_system: Option<&'static str>) -> Self {
        let all = Self {
            file_system,
            free_bytes: 0,
            free_inodes: None,
            allocation_bytes: None,
            may_compress: false,
            largest_file_bytes: None,
            names: NameRules::UNIX,
            owners: OwnerRule::Any,
            has_extended: true,
            has_links: true,
            has_special_files: true,
            has_hard_links: true,
            has_holes: true,
        };
        let dos = |names, largest_file_bytes| Self {
            names,
            largest_file_bytes,
            owners: OwnerRule::Fixed(0, 0),
            has_extended: false,
            has_links: false,
            has_special_files: false,
            has_hard_links: false,
            has_holes: false,
            ..all.clone()
        };
        match file_system {
            Some("vfat") => dos(NameRules::FAT, Some(FAT_FILE_BYTES)),
            Some("exfat") => dos(NameRules::EXFAT, None),
            Some("ntfs" | "ntfs3") => Self { names: NameRules::NTFS, may_compress: true, ..all },
            Some("btrfs" | "zfs" | "bcachefs" | "f2fs") => Self { may_compress: true, ..all },
            // A server or a program behind it may do anything.
            None | Some("fuse" | "overlay" | "ecryptfs" | "nfs" | "cifs" | "smb2" | "9p") => {
                Self { may_compress: true, ..all }
            }
            Some(_) => all,
        }
    }
}
