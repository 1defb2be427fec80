//! What a target file system can hold, known before the first byte is copied.
//!
//! [`TargetFacts`] are found once for a target. [`misfits`] compares one entry with them and is
//! pure; [`NameCollisions`] finds names of one directory that are the same name there;
//! [`RoomNeeded`] adds up what a tree takes at least, so that a shortage is certain.
//!
//! Nothing is created to find out. A file system that is not known here is taken to hold all that
//! Linux has; what it then refuses is a [`crate::metadata::MetadataLoss`] or an error of the copy.

mod facts;
mod names;
#[cfg(test)]
mod tests;

pub use facts::{OwnerRule, TargetFacts};
pub use names::{CaseFolding, NameCollisions, NameFault, NameLimit, NameRules};

use std::ffi::{OsStr, OsString};
use sys::file_stat::{FileStat, InodeKind};

/// Files up to so many bytes may be stored inside of their inode.
const INSIDE_INODE_BYTES: u64 = 256;

/// An entry that is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct FitEntry<'a> {
    /// The name that it gets.
    pub name: &'a OsStr,
    /// What it is.
    pub stat: &'a FileStat,
    /// The names of its extended attributes, access control lists among them; empty if they are
    /// not known.
    pub extended: &'a [OsString],
}

/// Something of an entry that the target cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Its name.
    Name(NameFault),
    /// Its name, beside another that is the same name there.
    Collision(OsString),
    /// Its length: a file has at most so many bytes there.
    TooLarge(u64),
    /// There are no symbolic links.
    Link,
    /// There are no pipes, sockets and devices.
    SpecialFile,
    /// There are no second names of an inode: each gets a copy.
    HardLink,
    /// There are no holes: they take room.
    Hole,
    /// Its owner or group.
    Owner,
    /// Its extended attributes or access control lists.
    Extended,
}

/// What follows from a [`Misfit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MisfitEffect {
    /// The entry is copied without it.
    Reduced,
    /// The entry is left out: there is nothing of its kind.
    LeftOut,
    /// The copy is refused unless such entries are skipped.
    Refused,
}

impl Misfit {
    /// What follows.
    #[must_use]
    pub fn effect(&self) -> MisfitEffect {
        match self {
            Self::Name(_) | Self::Collision(_) | Self::TooLarge(_) => MisfitEffect::Refused,
            Self::Link | Self::SpecialFile => MisfitEffect::LeftOut,
            Self::HardLink | Self::Hole | Self::Owner | Self::Extended => MisfitEffect::Reduced,
        }
    }
}

impl std::fmt::Display for Misfit {
    /// "the name has the character ':'"
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(fault) => write!(out, "{fault}"),
            // A name may hold anything.
            Self::Collision(with) => write!(out, "the name is the same as {with:?} there"),
            Self::TooLarge(most) => write!(out, "a file has at most {most} bytes there"),
            Self::Link => out.write_str("there are no symbolic links"),
            Self::SpecialFile => out.write_str("there are no pipes, sockets and devices"),
            Self::HardLink => out.write_str("there are no hard links: each name gets a copy"),
            Self::Hole => out.write_str("there are no holes: they take room"),
            Self::Owner => out.write_str("the owner is not kept"),
            Self::Extended => out.write_str("extended attributes are not kept"),
        }
    }
}

/// All that the target cannot hold of `entry`, whatever else is in its directory.
#[must_use]
pub fn misfits(entry: &FitEntry<'_>, facts: &TargetFacts) -> Vec<Misfit> {
    let stat = entry.stat;
    let is_file = stat.kind == InodeKind::File;
    let largest = facts.largest_file_bytes.filter(|most| is_file && stat.bytes > *most);
    let is_sparse = is_file && stat.allocated_bytes < stat.bytes;
    let is_linked = stat.kind != InodeKind::Directory && stat.links > 1;
    let found = [
        facts.names.fault(entry.name).map(Misfit::Name),
        largest.map(Misfit::TooLarge),
        (stat.kind == InodeKind::Link && !facts.has_links).then_some(Misfit::Link),
        (stat.special().is_some() && !facts.has_special_files).then_some(Misfit::SpecialFile),
        (is_linked && !facts.has_hard_links).then_some(Misfit::HardLink),
        (is_sparse && !facts.has_holes).then_some(Misfit::Hole),
        (!facts.owners.holds(stat.user, stat.group)).then_some(Misfit::Owner),
        (!entry.extended.is_empty() && !facts.has_extended).then_some(Misfit::Extended),
    ];
    found.into_iter().flatten().collect()
}

/// What a tree takes of a target at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomNeeded {
    /// Bytes of content.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
    /// Parts of inodes with several names, in 1/2^32: each name counts its share.
    inode_shares: u64,
}

/// What a target lacks for a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomShortage {
    /// So many bytes are needed at least, and so many are free.
    Bytes {
        /// Needed.
        needed: u64,
        /// Free for an ordinary user.
        free: u64,
    },
    /// So many inodes are needed, and so many are free.
    Inodes {
        /// Needed.
        needed: u64,
        /// Free.
        free: u64,
    },
}

impl RoomNeeded {
    /// Adds an entry. Of an inode with several names each adds its share, so that no table of
    /// inodes is needed, and those outside of the tree are not counted.
    pub fn add(&mut self, stat: &FileStat, facts: &TargetFacts) {
        let is_shared = stat.links > 1 && stat.kind != InodeKind::Directory && facts.has_hard_links;
        let names = if is_shared { u64::from(stat.links) } else { 1 };
        let content = facts.least_bytes(stat) / names;
        self.bytes = self.bytes.saturating_add(content);
        self.inode_shares += (1 << 32) / names;
        self.inodes = self.inodes.saturating_add(self.inode_shares >> 32);
        self.inode_shares &= (1 << 32) - 1;
    }

    /// What of it the target lacks; where it may compress, its free bytes decide nothing.
    #[must_use]
    pub fn shortage(&self, facts: &TargetFacts) -> Option<RoomShortage> {
        let inodes = facts.free_inodes.filter(|free| self.inodes > *free);
        if self.bytes > facts.free_bytes && !facts.may_compress {
            Some(RoomShortage::Bytes { needed: self.bytes, free: facts.free_bytes })
        } else {
            inodes.map(|free| RoomShortage::Inodes { needed: self.inodes, free })
        }
    }
}

impl TargetFacts {
    /// What the content of an entry takes at least.
    fn least_bytes(&self, stat: &FileStat) -> u64 {
        let bytes = match stat.kind {
            InodeKind::File if self.has_holes => stat.bytes.min(stat.allocated_bytes),
            InodeKind::File => stat.bytes,
            _ => 0,
        };
        let is_inside = self.has_holes && bytes <= INSIDE_INODE_BYTES;
        match self.allocation_bytes.filter(|unit| *unit > 0 && !is_inside) {
            Some(unit) => bytes.div_ceil(unit).saturating_mul(unit),
            None if is_inside => 0,
            None => bytes,
        }
    }
}
