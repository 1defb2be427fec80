//! What of the metadata of a file a target does not hold, and why: a typed list, which a copier
//! counts and names. An error of the target itself is not a loss.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use sys::ErrorKind;
use sys::attributes::FileTime;

/// Something that the copy of a file lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataLoss {
    /// Its owner.
    Owner {
        /// The number of the user.
        wanted: u32,
        /// Why.
        reason: LossReason,
    },
    /// Its group.
    Group {
        /// The number of the group.
        wanted: u32,
        /// Why.
        reason: LossReason,
    },
    /// Its permissions.
    Mode {
        /// Those of the source: 12 bits.
        wanted: u32,
        /// What the target has.
        held: u32,
        /// Why.
        reason: LossReason,
    },
    /// An access control list.
    AccessList {
        /// Whether it is the one that a directory hands down.
        is_default: bool,
        /// Why.
        reason: LossReason,
    },
    /// Another extended attribute.
    Attribute {
        /// Its name.
        name: OsString,
        /// Why.
        reason: LossReason,
    },
    /// When it was last read.
    Accessed {
        /// That of the source.
        wanted: FileTime,
        /// What the target has.
        held: FileTime,
        /// Why.
        reason: LossReason,
    },
    /// When its content last changed.
    Modified {
        /// That of the source.
        wanted: FileTime,
        /// What the target has.
        held: FileTime,
        /// Why.
        reason: LossReason,
    },
}

/// The kinds of [`MetadataLoss`], to count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// Owners and groups.
    Owner,
    /// Permissions.
    Mode,
    /// Access control lists.
    AccessList,
    /// Extended attributes.
    Attribute,
    /// Times.
    Time,
}

/// Why a target does not hold something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// This user may not set it, or the file system answers so.
    Denied,
    /// The file system has nothing of the kind.
    Unsupported,
    /// It takes more room than the file system has for it.
    NoSpace,
    /// The target accepts it, and keeps something else.
    NotHeld,
    /// The target's times are coarser, or do not reach as far.
    Rounded,
    /// Bits that run a program as its owner are left out without that owner.
    WithoutOwner,
}

/// Metadata that a target does not hold, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCount {
    /// What: `owner`, `permissions`, `times`.
    pub what: String,
    /// Why, in words.
    pub reason: String,
    /// Of how many entries.
    pub entries: u64,
}

/// The losses of one entry. An owner and its group are one loss of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LossSet(BTreeSet<(LossKind, String)>);

impl LossSet {
    pub(crate) fn of(losses: &[MetadataLoss]) -> Self {
        Self(losses.iter().map(|loss| (loss.kind(), loss.reason().to_string())).collect())
    }
}

/// Counts the losses of many entries by kind and reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossTally(BTreeMap<(LossKind, String), u64>);

impl LossTally {
    /// Counts those of one entry.
    pub(crate) fn add(&mut self, losses: &[MetadataLoss]) {
        for loss in LossSet::of(losses).0 {
            *self.0.entry(loss).or_default() += 1;
        }
    }

    /// Of an entry that was counted nothing counts any more.
    pub(crate) fn remove(&mut self, losses: &LossSet) {
        for loss in &losses.0 {
            if let Some(entries) = self.0.get_mut(loss) {
                *entries = entries.saturating_sub(1);
            }
        }
        self.0.retain(|_, entries| *entries > 0);
    }

    /// Adds what another one counted.
    pub(crate) fn add_all(&mut self, other: Self) {
        for (loss, entries) in other.0 {
            *self.0.entry(loss).or_default() += entries;
        }
    }

    pub(crate) fn counts(&self) -> Vec<LossCount> {
        let count = |((kind, reason), entries): (&(LossKind, String), &u64)| LossCount {
            what: kind.name().to_owned(),
            reason: reason.clone(),
            entries: *entries,
        };
        self.0.iter().map(count).collect()
    }
}

impl LossKind {
    fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Mode => "permissions",
            Self::AccessList => "access control list",
            Self::Attribute => "extended attributes",
            Self::Time => "times",
        }
    }
}

impl MetadataLoss {
    /// What it is, to count.
    #[must_use]
    pub fn kind(&self) -> LossKind {
        match self {
            Self::Owner { .. } | Self::Group { .. } => LossKind::Owner,
            Self::Mode { .. } => LossKind::Mode,
            Self::AccessList { .. } => LossKind::AccessList,
            Self::Attribute { .. } => LossKind::Attribute,
            Self::Accessed { .. } | Self::Modified { .. } => LossKind::Time,
        }
    }

    pub(super) fn is_of_owner(&self) -> bool {
        self.kind() == LossKind::Owner
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> LossReason {
        match self {
            Self::Owner { reason, .. }
            | Self::Group { reason, .. }
            | Self::Mode { reason, .. }
            | Self::AccessList { reason, .. }
            | Self::Attribute { reason, .. }
            | Self::Accessed { reason, .. }
            | Self::Modified { reason, .. } => *reason,
        }
    }
}

impl fmt::Display for MetadataLoss {
    /// "owner 1000: not permitted"
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner { wanted, .. } => write!(out, "owner {wanted}"),
            Self::Group { wanted, .. } => write!(out, "group {wanted}"),
            Self::Mode { wanted, held, .. } => write!(out, "mode {wanted:04o}, is {held:04o}"),
            Self::AccessList { is_default: false, .. } => write!(out, "access control list"),
            Self::AccessList { is_default: true, .. } => write!(out, "default access control list"),
            // A name may hold anything.
            Self::Attribute { name, .. } => write!(out, "extended attribute {name:?}"),
            Self::Accessed { .. } => write!(out, "time of the last access"),
            Self::Modified { .. } => write!(out, "time of the last change"),
        }?;
        write!(out, ": {}", self.reason())
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Denied => "not permitted",
            Self::Unsupported => "not supported there",
            Self::NoSpace => "no room for it there",
            Self::NotHeld => "not kept there",
            Self::Rounded => "coarser times or a shorter range there",
            Self::WithoutOwner => "set-user-ID and set-group-ID need the owner",
        })
    }
}

/// Why the target does not hold something, or the error where it failed.
pub(super) fn reason_of(error: sys::Error) -> sys::Result<LossReason> {
    Ok(match error.kind {
        // A file system that is read-only by now holds nothing more at all.
        ErrorKind::Denied if error.number() != Some(EROFS) => LossReason::Denied,
        ErrorKind::Unsupported => LossReason::Unsupported,
        // An attribute or a list of a kind, or of a user, that the file system does not know.
        ErrorKind::Invalid => LossReason::Unsupported,
        // An attribute is bounded by a block, so this is said with terabytes free.
        ErrorKind::NoSpace => LossReason::NoSpace,
        ErrorKind::Other if [Some(E2BIG), Some(ERANGE)].contains(&error.number()) => {
            LossReason::NoSpace
        }
        _ => return Err(error),
    })
}

const E2BIG: i32 = 7;
const EROFS: i32 = 30;
const ERANGE: i32 = 34;
