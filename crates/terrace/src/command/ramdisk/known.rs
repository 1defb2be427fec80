//! Which RAM disk `keep`, `install`, `save` and `restore` work on: what was typed goes before what
//! is known of it.
//!
//! A name without a store is one of a RAM disk that is known. With a store it is a path, so that
//! nothing of a name decides what is saved where.

use crate::args::ramdisk::KnownScheduleArgs;
use crate::error::{Error, Result};
use machine::Root;
use place::ramdisk::record::{RamdiskPersist, RamdiskRecord};
use std::path::{Path, PathBuf};

const USUAL_EVERY_SECONDS: u64 = 300;
/// Generations that stay unless asked otherwise.
pub(super) const USUAL_KEEP: u16 = 3;

/// A RAM disk, or another directory, and how it is saved.
#[derive(Debug)]
pub(super) struct Known {
    /// Its path.
    pub(super) point: PathBuf,
    /// Where and how often it is saved.
    pub(super) persist: RamdiskPersist,
    /// What is known of it.
    pub(super) ramdisk: Option<RamdiskRecord>,
}

/// Finds a RAM disk by its name, or, with a store, a directory by its path.
///
/// # Errors
/// `Usage` if no store was typed and none is known.
pub(super) fn find(
    root: &Root,
    name: &Path,
    store: Option<&Path>,
    schedule: &KnownScheduleArgs,
) -> Result<Known> {
    let (point, store, ramdisk) = match store {
        Some(store) => (name.to_owned(), store.to_owned(), place::ramdisk::known_at(root, name)),
        None => {
            let (ramdisk, persist) = place::ramdisk::known(root, name, "keep")?;
            (ramdisk.mount_point.clone(), persist.store, Some(ramdisk))
        }
    };
    let before = ramdisk.as_ref().and_then(|ramdisk| ramdisk.persist.as_ref());
    let every = schedule.every.map(|every| every.as_secs());
    let every_seconds = every.or(before.map(|persist| persist.every_seconds));
    let keep = schedule.keep.or(before.map(|persist| persist.keep)).unwrap_or(USUAL_KEEP);
    let every_seconds = every_seconds.unwrap_or(USUAL_EVERY_SECONDS);
    Ok(Known { point, persist: RamdiskPersist { store, every_seconds, keep }, ramdisk })
}

/// A directory and its store, and how many generations stay there, if that is known: as [`find`].
///
/// # Errors
/// As [`find`]; `Impossible` for others than root who typed no store.
pub(super) fn stored(
    root: &Root,
    name: &Path,
    store: Option<&Path>,
    operation: &str,
) -> Result<(PathBuf, PathBuf, Option<u16>)> {
    if let Some(store) = store {
        let persist = place::ramdisk::known_persist(root, name, store);
        return Ok((name.to_owned(), store.to_owned(), persist.map(|persist| persist.keep)));
    }
    let found = place::ramdisk::known(root, name, operation);
    let (ramdisk, persist) = found
        .map_err(|error| Error::from(error).hint("with --persist STORE it may be any directory"))?;
    Ok((ramdisk.mount_point, persist.store, Some(persist.keep)))
}

/// The mount point of a RAM disk that is known by this name.
pub(super) fn point(root: &Root, name: &Path) -> Option<PathBuf> {
    let records = place::ramdisk::record::RamdiskRecords::lock(root).ok()?;
    records.find(name).ok().map(|ramdisk| ramdisk.mount_point)
}
