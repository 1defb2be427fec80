//! `--verify` with `--eject`: when the target is unmounted, its file system is mounted again where
//! only this process sees it, read-only, and each file is found by its path, read and compared.
//!
//! Nothing of it was cached then: what is read comes from the device, directories and inodes too.
//! The mount is in no tree and ends with its descriptor, so a kill leaves nothing behind. It is one
//! of the kernel, so a type that a program serves (FUSE) cannot be checked so.

use super::checksum_log::ChecksumLog;
use super::verify::{self, Compared, ReadBack};
use crate::{EntryFailure, Error, ErrorKind, Result};
use machine::mounts::Mount;
use model::progress::Control;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::mount::{DetachedMount, FileSystemOptions, MountRestrictions};

/// So many files that differ are named.
const MOST_NAMED: usize = 1000;
/// Options that say which names files have.
const NAME_OPTIONS: [&str; 5] = ["iocharset", "codepage", "utf8", "nls", "shortname"];
/// Of what is mounted nothing is run, and nothing is a device.
const RESTRICTIONS: MountRestrictions = MountRestrictions {
    no_set_user_id: true,
    no_devices: true,
    no_execution: true,
    read_only: true,
};

/// A copy that has its name and was not read back.
#[derive(Debug)]
pub struct Unverified {
    log: ChecksumLog,
    /// The directory that got the copies, as it was typed.
    into: PathBuf,
    /// The same, absolute: the working directory may be left before it is read.
    real: PathBuf,
}

/// What reading back showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedCheck {
    /// Whether it was read through a new mount; else through the one that could not be unmounted.
    pub is_after_mount: bool,
    /// Files that are equal.
    pub verified_files: u64,
    /// Their bytes.
    pub verified_bytes: u64,
    /// Files that are not what was copied, with the reason; the first 1,000.
    pub differing: Vec<EntryFailure>,
    /// How many there are.
    pub differing_count: u64,
    /// Why not all files were read back.
    pub reason: Option<String>,
}

impl Unverified {
    pub(super) fn new(log: ChecksumLog, into: &Path) -> Self {
        let real = into.canonicalize().unwrap_or_else(|_| into.to_owned());
        Self { log, into: into.to_owned(), real }
    }

    /// Mounts the file system again and reads the copy back; `below` is the path of the directory
    /// that got it in its file system.
    pub(super) fn check_by_mount(
        &self,
        mount: &Mount,
        below: &Path,
        ask: &mut dyn FnMut() -> Control,
    ) -> MountedCheck {
        let mut check = MountedCheck { is_after_mount: true, ..MountedCheck::default() };
        let opened = mount_again(mount).and_then(|mounted| {
            let top = mounted.top(&mount.mount_point)?;
            Ok((verify::below(&top, below)?, mounted))
        });
        match opened {
            Ok((top, _mounted)) => self.check_below(top, &mut check, ask),
            Err(error) => {
                let reason = sys::plain_reason(&error.source);
                check.reason = Some(format!("it cannot be mounted again: {reason}"));
            }
        }
        check
    }

    /// Reads the copy back where it is mounted.
    pub(super) fn check_in_place(&self, ask: &mut dyn FnMut() -> Control) -> MountedCheck {
        let mut check = MountedCheck::default();
        match Directory::open(&self.real) {
            Ok(top) if self.log.is_of_target(&top) => self.check_below(top, &mut check, ask),
            Ok(_) => check.reason = Some("it is not mounted there any more".to_owned()),
            Err(error) => check.reason = Some(sys::plain_reason(&error.source)),
        }
        check
    }

    fn check_below(
        &self,
        top: Directory,
        check: &mut MountedCheck,
        ask: &mut dyn FnMut() -> Control,
    ) {
        if let Err(error) = self.compare_all(top, check, ask) {
            check.reason = Some(error.to_string());
        }
    }

    fn compare_all(
        &self,
        top: Directory,
        check: &mut MountedCheck,
        ask: &mut dyn FnMut() -> Control,
    ) -> Result<()> {
        let mut unreadable = None;
        let mut reader = ReadBack::below(top, None)?;
        let mut records = self.log.records().map_err(|error| verify::unreadable(&error))?;
        while let Some(file) = records.next().map_err(|error| verify::unreadable(&error))? {
            if self.log.is_unplaced(&self.into, &file.path) {
                continue;
            }
            match reader.compare(&file, &mut || ask().is_stop()) {
                Compared::Equal => {
                    check.verified_files += 1;
                    check.verified_bytes += file.bytes;
                }
                Compared::Different(reason) => {
                    check.differing_count += 1;
                    if check.differing.len() < MOST_NAMED {
                        let path = self.into.join(&file.path);
                        check.differing.push(EntryFailure { path, reason });
                    }
                }
                Compared::Unreadable(reason) => {
                    unreadable.get_or_insert((self.into.join(&file.path), reason, 0_u64)).2 += 1;
                }
                Compared::Stopped => {
                    check.reason = Some("interrupted".to_owned());
                    break;
                }
            }
        }
        if let Some((path, why, count)) = unreadable {
            let path = path.display();
            let reason = match count {
                1 => format!("{path}: {why}"),
                _ => format!("{count} files, the first of them {path}: {why}"),
            };
            check.reason.get_or_insert(reason);
        }
        Ok(())
    }
}

/// Whether the kernel can mount this file system again, unseen.
///
/// # Errors
/// `Impossible` with the reason.
pub(super) fn may_mount_again(mount: &Mount) -> Result<()> {
    let refuse = |why: String| {
        let error = Error::new(ErrorKind::Impossible, "verify after a new mount", why);
        Err(error.at(&mount.mount_point))
    };
    if mount.fs_type.starts_with("fuse") {
        return refuse("a program serves it, and not the kernel".to_owned());
    }
    match FileSystemOptions::new(&mount.fs_type) {
        Ok(_) => Ok(()),
        Err(error) => refuse(sys::plain_reason(&error.source)),
    }
}

fn mount_again(mount: &Mount) -> sys::Result<DetachedMount> {
    let options = FileSystemOptions::new(&mount.fs_type)?;
    options.set("source", &mount.source)?;
    options.set_flag("ro")?;
    if mount.fs_type == "btrfs" {
        // The paths of its mounts begin at the top of all subvolumes.
        options.set("subvol", "/")?;
    }
    for option in mount.super_options.split(',') {
        let (key, value) =
            option.split_once('=').map_or((option, None), |(key, value)| (key, Some(value)));
        if NAME_OPTIONS.contains(&key) {
            value.map_or_else(|| options.set_flag(key), |value| options.set(key, value))?;
        }
    }
    options.mount(RESTRICTIONS)
}
