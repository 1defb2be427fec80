//! RAM disks by name, also those that another program mounted.
//!
//! A tmpfs that a unit of systemd, /etc/fstab or a user mounted gets a record as soon as it is
//! kept, so all commands know it as they know those of `create`. Such a record says nothing that
//! the mount does not say: it goes when the mount does.

use super::create::now;
use super::kind::RamdiskKind;
use super::record::{
    HugePolicy, RECORD_VERSION, RamdiskOptions, RamdiskPersist, RamdiskRecord, RamdiskRecords,
    RamdiskState, RecordedMount, absolute,
};
use crate::{Error, ErrorKind, Result};
use machine::{Root, mounts};
use model::Bytes;
use std::path::Path;
use sys::directory::Directory;
use sys::file_stat::FileStat;

/// The RAM disk of a name or mount point, and where it is saved to.
///
/// # Errors
/// `Usage` if there is none of that name, or it has no store; `Impossible` for others than root.
pub fn known(root: &Root, name: &Path, operation: &str) -> Result<(RamdiskRecord, RamdiskPersist)> {
    let ramdisk = RamdiskRecords::lock(root)?.find(name)?;
    // The directory below one that was unmounted is another one.
    ramdisk.open(root, operation)?;
    let Some(persist) = ramdisk.persist.clone() else {
        let why = "it was made without a store; name one with --persist";
        return Err(Error::new(ErrorKind::Usage, operation, why).at(name));
    };
    Ok((ramdisk, persist))
}

/// The RAM disk that is mounted at a path, if it is known. One that another program unmounted or
/// replaced says nothing of what is there now.
#[must_use]
pub fn known_at(root: &Root, point: &Path) -> Option<RamdiskRecord> {
    if sys::process::effective_uid() != 0 {
        return None;
    }
    let all = RamdiskRecords::lock(root).and_then(|records| records.all()).ok()?;
    mounted_at(root, point, all)
}

/// How the RAM disk that is mounted at a path is saved to a store, if it is known and that is its
/// store. Waits for no other command.
#[must_use]
pub fn known_persist(root: &Root, point: &Path, store: &Path) -> Option<RamdiskPersist> {
    let ramdisk = mounted_at(root, point, RamdiskRecords::known(root).ok()?)?;
    let store = store.canonicalize().ok()?;
    ramdisk.persist.filter(|persist| persist.store == store)
}

fn mounted_at(root: &Root, point: &Path, all: Vec<RamdiskRecord>) -> Option<RamdiskRecord> {
    let point = absolute(point).ok()?;
    let found = all.into_iter().find(|one| one.mount_point == point)?;
    (found.state(root).0 == RamdiskState::Mounted).then_some(found)
}

/// Notes where the tmpfs at a mount point is saved to; it is known from then on. Nothing is noted
/// of another directory, and for others than root.
///
/// # Errors
/// As for the records.
pub fn note_kept(root: &Root, point: &Path, persist: RamdiskPersist) -> Result<()> {
    if sys::process::effective_uid() != 0 {
        return Ok(());
    }
    let made_here = known_at(root, point);
    let Some(mounted) = made_here.map_or_else(|| mounted(root, point), |one| Ok(Some(one)))? else {
        return Ok(());
    };
    let store = persist.store.canonicalize().unwrap_or_else(|_| persist.store.clone());
    let persist = Some(RamdiskPersist { store, ..persist });
    let records = RamdiskRecords::lock(root)?;
    let all = records.all()?;
    let before = all.into_iter().find(|one| one.mount_point == mounted.mount_point);
    let record = match before {
        // A directory waits to be given back.
        Some(before) if before.release.is_some() => return Ok(()),
        Some(before) if before.state(root).0 == RamdiskState::Mounted => {
            RamdiskRecord { persist, ..before }
        }
        _ => {
            records.refuse_to_forget(&mounted.mount_point, "note the RAM disk")?;
            RamdiskRecord { persist, ..mounted }
        }
    };
    records.write(&record)
}

/// What is to be known of a tmpfs that another program mounted at a path; `None` for another path.
fn mounted(root: &Root, point: &Path) -> Result<Option<RamdiskRecord>> {
    let Ok(point) = point.canonicalize() else { return Ok(None) };
    let all = mounts::read(root);
    let is_whole = |mount: &&mounts::Mount| {
        mount.mount_point == point && mount.fs_type == "tmpfs" && mount.root == Path::new("/")
    };
    let Some(mount) = mounts::behind(&all, &point).filter(is_whole) else { return Ok(None) };
    let top = Directory::open(&point)?;
    let FileStat { mode, user, group, .. } = FileStat::of(top.file())?;
    Ok(Some(RamdiskRecord {
        version: RECORD_VERSION,
        mount_point: point,
        created_at: now(),
        mount: RecordedMount::of(root, &top)?,
        is_mounted: true,
        made_directory: false,
        kind: RamdiskKind::Tmpfs,
        mounted_elsewhere: true,
        options: RamdiskOptions { mode, user, group, ..options(&mount.super_options) },
        persist: None,
        adopted: false,
        release: None,
    }))
}

/// Options of tmpfs as the kernel lists them; a size of 0 means unlimited.
fn options(listed: &str) -> RamdiskOptions {
    let value = |key: &str| {
        listed.split(',').filter_map(|one| one.split_once('=')).find(|one| one.0 == key)
    };
    let kib = value("size").and_then(|(_, size)| size.strip_suffix('k')?.parse::<u64>().ok());
    let policies = [HugePolicy::WithinSize, HugePolicy::Always, HugePolicy::Never];
    let huge =
        value("huge").and_then(|(_, word)| policies.into_iter().find(|it| it.word() == word));
    RamdiskOptions {
        size: Bytes(kib.unwrap_or(0) << 10),
        huge,
        noswap: listed.split(',').any(|one| one == "noswap"),
        mode: 0,
        user: 0,
        group: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_that_the_kernel_lists() {
        let found = options("rw,size=16384k,mode=755,huge=within_size,noswap,inode64");
        let size = Bytes(16 << 20);
        let huge = Some(HugePolicy::WithinSize);
        let expected = RamdiskOptions { size, huge, noswap: true, mode: 0, user: 0, group: 0 };
        assert_eq!(found, expected);
        let bare = options("rw,huge=advise");
        assert_eq!((bare.size, bare.huge, bare.noswap), (Bytes(0), None, false));
    }
}
