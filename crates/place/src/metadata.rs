//! The metadata of a file besides its content: read from an open or held file, and applied to
//! another in the order in which the kernel keeps all of it.
//!
//! The order: owner (the kernel takes set-user-ID and capabilities away), extended attributes with
//! access control lists (they need the right to write, which the mode may take), mode, and last the
//! times. [`FileMetadata::apply`] does all but the times; [`FileMetadata::seal`] sets those, of a
//! file after its content is durable, of a directory after its entries.
//!
//! What the target does not hold is read back and returned as a list of [`MetadataLoss`]: FAT
//! accepts a mode and a time and keeps something else.

mod loss;

pub use loss::{LossCount, LossKind, LossReason, MetadataLoss};
pub(crate) use loss::{LossSet, LossTally};

use loss::reason_of;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use sys::Result;
use sys::attributes::{self, ExtendedAttribute};
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};

/// The bits that run a program as its owner or its group.
const SET_ID: u32 = 0o6000;
/// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o777;
/// Access control lists of POSIX.
const ACCESS_LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// Attributes that are not copied: XFS shows its access control lists a second time, in a form of
/// its own, and the last is a signature that is bound to the inode.
const NOT_COPIED: [&str; 3] = ["trusted.SGI_ACL_FILE", "trusted.SGI_ACL_DEFAULT", "security.evm"];

/// The metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMetadata {
    /// Its kind, owner, mode, sizes and times.
    pub stat: FileStat,
    /// All extended attributes that this user may read, sorted by name, with access control lists
    /// and capabilities.
    pub extended: Vec<ExtendedAttribute>,
}

impl FileMetadata {
    /// That of an open or held file.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of(file: &File) -> Result<Self> {
        let mut extended = attributes::extended(file)?;
        extended.retain(|(name, _)| !NOT_COPIED.iter().any(|other| name == *other));
        Ok(Self { stat: FileStat::of(file)?, extended })
    }

    /// Gives `target` the owner, the extended attributes and the mode. Returns what it does not
    /// hold afterwards.
    ///
    /// Without the right owner it does not get the set-user-ID and set-group-ID bits: they would
    /// run the program as another user.
    ///
    /// # Errors
    /// `Device` and the like: where the target fails, not where it cannot hold something.
    pub fn apply(&self, target: &File) -> Result<Vec<MetadataLoss>> {
        let mut losses = Vec::new();
        let mode_reason = self.apply_access(target, &mut losses)?;
        if let Some(reason) = mode_reason {
            losses.extend(self.mode_loss(&FileStat::of(target)?, reason));
        }
        Ok(losses)
    }

    /// Gives `target` the times of its last access and its last change. Returns what it does not
    /// hold afterwards.
    ///
    /// # Errors
    /// As [`FileMetadata::apply`].
    pub fn seal(&self, target: &File) -> Result<Vec<MetadataLoss>> {
        let refused = self.set_times(target)?;
        Ok(self.time_losses(&FileStat::of(target)?, refused))
    }

    /// [`FileMetadata::apply`] and [`FileMetadata::seal`] with fewer calls, for what need not be
    /// durable in between.
    ///
    /// # Errors
    /// As [`FileMetadata::apply`].
    pub fn apply_and_seal(&self, target: &File) -> Result<Vec<MetadataLoss>> {
        let mut losses = Vec::new();
        let mode_reason = self.apply_access(target, &mut losses)?;
        let refused = self.set_times(target)?;
        let held = FileStat::of(target)?;
        losses.extend(mode_reason.and_then(|reason| self.mode_loss(&held, reason)));
        losses.extend(self.time_losses(&held, refused));
        Ok(losses)
    }

    /// Whether a file that is made with this mode has it for good, as nothing that is given to it
    /// later takes it away or needs to come before it.
    #[must_use]
    pub fn has_plain_mode(&self) -> bool {
        self.extended.is_empty() && self.stat.mode & !PERMISSIONS == 0
    }

    /// Gives a file that was just made its times, and says whether it has all of this metadata
    /// then: those that are made by the owner with the right mode, where no directory hands lists
    /// down. For others [`FileMetadata::apply_and_seal`] is to be called.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn seal_plain(&self, made: &File) -> Result<bool> {
        if !self.has_plain_mode()
            || attributes::set_times(made, self.stat.accessed, self.stat.modified).is_err()
        {
            return Ok(false);
        }
        let facts =
            |stat: &FileStat| (stat.user, stat.group, stat.mode, stat.accessed, stat.modified);
        Ok(facts(&FileStat::of(made)?) == facts(&self.stat))
    }

    /// Owner, extended attributes and mode. Returns why the mode may be another one afterwards;
    /// `None` for a link, which has none.
    fn apply_access(
        &self,
        target: &File,
        losses: &mut Vec<MetadataLoss>,
    ) -> Result<Option<LossReason>> {
        self.apply_owner(target, losses)?;
        self.apply_extended(target, losses)?;
        if self.stat.kind == InodeKind::Link {
            return Ok(None);
        }
        let has_owner = !losses.iter().any(MetadataLoss::is_of_owner);
        let wanted = self.stat.mode;
        let permitted = if has_owner { wanted } else { wanted & !SET_ID };
        Ok(Some(match attributes::set_mode(target, permitted) {
            Ok(()) if permitted != wanted => LossReason::WithoutOwner,
            Ok(()) => LossReason::NotHeld,
            Err(error) => reason_of(error)?,
        }))
    }

    fn mode_loss(&self, now: &FileStat, reason: LossReason) -> Option<MetadataLoss> {
        let (wanted, held) = (self.stat.mode, now.mode);
        (held != wanted).then_some(MetadataLoss::Mode { wanted, held, reason })
    }

    /// Sets the times. Returns why they may be others afterwards.
    fn set_times(&self, target: &File) -> Result<LossReason> {
        match attributes::set_times(target, self.stat.accessed, self.stat.modified) {
            Ok(()) => Ok(LossReason::Rounded),
            Err(error) => reason_of(error),
        }
    }

    fn time_losses(&self, now: &FileStat, refused: LossReason) -> Vec<MetadataLoss> {
        let (accessed, modified) = (self.stat.accessed, self.stat.modified);
        let reason = |wanted, held| if held == wanted { None } else { Some(refused) };
        let accessed_loss = reason(accessed, now.accessed).map(|reason| MetadataLoss::Accessed {
            wanted: accessed,
            held: now.accessed,
            reason,
        });
        let modified_loss = reason(modified, now.modified).map(|reason| MetadataLoss::Modified {
            wanted: modified,
            held: now.modified,
            reason,
        });
        accessed_loss.into_iter().chain(modified_loss).collect()
    }

    fn apply_owner(&self, target: &File, losses: &mut Vec<MetadataLoss>) -> Result<()> {
        let (user, group) = (self.stat.user, self.stat.group);
        let now = FileStat::of(target)?;
        if (now.user, now.group) == (user, group) {
            return Ok(());
        }
        let Err(error) = attributes::set_owner(target, user, group) else {
            return Ok(());
        };
        let reason = reason_of(error)?;
        // An ordinary user may still give a file to another group of its own.
        if now.group != group
            && let Err(error) = attributes::set_owner(target, now.user, group)
        {
            losses.push(MetadataLoss::Group { wanted: group, reason: reason_of(error)? });
        }
        if now.user != user {
            losses.push(MetadataLoss::Owner { wanted: user, reason });
        }
        Ok(())
    }

    fn apply_extended(&self, target: &File, losses: &mut Vec<MetadataLoss>) -> Result<()> {
        // A directory may hand its default list down to what is made in it.
        for inherited in attributes::extended_names(target)? {
            if is_access_list(&inherited) && !self.extended.iter().any(|(own, _)| *own == inherited)
            {
                attributes::remove_extended(target, &inherited)?;
            }
        }
        let mut there = None;
        for (name, value) in &self.extended {
            let Err(error) = attributes::set_extended(target, name, value) else {
                continue;
            };
            let reason = reason_of(error)?;
            // A security module may have given it the same value already.
            let there = there.get_or_insert_with(|| attributes::extended(target));
            let is_there =
                there.as_ref().is_ok_and(|all| all.contains(&(name.clone(), value.clone())));
            if !is_there {
                losses.push(attribute_loss(name.clone(), reason));
            }
        }
        Ok(())
    }
}

/// Makes a link, a pipe, a socket or a device in `to` as `name` is in `from`, only its owner may
/// use it, and holds it: the rest of its metadata is applied to that. `None` for regular files and
/// directories, which are not made.
///
/// # Errors
/// `Denied` for devices unless root; `Unsupported` or `Denied` where the file system has none;
/// `Other` with `EEXIST` if the name is taken.
pub fn create_like(
    stat: &FileStat,
    from: &Directory,
    name: &OsStr,
    to: &Directory,
    to_name: &OsStr,
) -> Result<Option<File>> {
    match (stat.kind, stat.special()) {
        (InodeKind::Link, _) => to.create_link(to_name, &from.read_link(name)?)?,
        (_, Some(special)) => to.create_special(to_name, special, 0o600)?,
        _ => return Ok(None),
    }
    to.hold(to_name).map(Some)
}

/// Whether what is made in a directory may get an access control list from it.
pub(crate) fn hands_lists_down(directory: &Directory) -> bool {
    attributes::extended_names(directory.file())
        .map_or(true, |names| names.iter().any(|name| name == ACCESS_LISTS[1]))
}

fn is_access_list(name: &OsStr) -> bool {
    ACCESS_LISTS.iter().any(|list| name == *list)
}

fn attribute_loss(name: OsString, reason: LossReason) -> MetadataLoss {
    if is_access_list(&name) {
        MetadataLoss::AccessList { is_default: name.as_bytes().ends_with(b"_default"), reason }
    } else {
        MetadataLoss::Attribute { name, reason }
    }
}
