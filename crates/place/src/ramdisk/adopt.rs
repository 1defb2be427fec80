//! Moves a directory onto a RAM disk, which covers it.
//!
//! 1. Refused while a file below is in use. The directory is saved to the store.
//! 2. A RAM disk is filled from there, as by [`super::create`], and covers the directory.
//! 3. The covered directory is compared with what was saved: if it changed meanwhile, or that
//!    cannot be known, the RAM disk goes again.
//!
//! The directory stays as it was, below the RAM disk, until [`super::release`] has put a newer copy
//! in its place. So a restart of the machine shows it again.

use super::change::{change, holder_names, unmount};
use super::create::{RamdiskCreate, RamdiskCreateReport, create};
use super::record::{RamdiskRecord, RamdiskRecords, absolute};
use super::save::{SaveReport, SaveRequest, compare, compare_directory, save};
use super::snapshot::is_in_memory;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::progress::{Control, ProgressSink};
use serde::Serialize;
use std::path::Path;
use sys::directory::Directory;

const ADOPT: &str = "adopt";

/// A directory that was moved onto a RAM disk.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskAdoptReport {
    /// What was saved of it.
    pub saved: SaveReport,
    /// The RAM disk; absent if it was interrupted before. Then nothing is mounted.
    pub created: Option<RamdiskCreateReport>,
}

impl RamdiskAdoptReport {
    /// Whether the directory is on the RAM disk.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.created.as_ref().is_some_and(|created| created.is_complete)
    }
}

/// Moves the directory `request.mount_point` onto a RAM disk. The request has a store.
///
/// # Errors
/// As [`super::create`]; `Impossible` while something uses a file below it, or changes one. Nothing
/// is mounted then.
pub fn adopt(
    root: &Root,
    request: &RamdiskCreate,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskAdoptReport> {
    let refused = |kind, why: String| Error::new(kind, ADOPT, why).at(&request.mount_point);
    if sys::process::effective_uid() != 0 {
        return Err(refused(ErrorKind::Impossible, "only root may mount".to_owned()));
    }
    let Some(persist) = &request.persist else {
        let why = "its files would be lost by a power cut; name a store with --persist";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    };
    let point = absolute(&request.mount_point)
        .map_err(|error| refused(ErrorKind::Usage, sys::plain_reason(&error)))?;
    let covered = Directory::open(&point)
        .map_err(|error| refused(ErrorKind::Usage, sys::plain_reason(&error.source)))?;
    if is_in_memory(root, &covered)? {
        return Err(refused(ErrorKind::Usage, "it is in memory already".to_owned()));
    }
    refuse_in_use(root, &point)?;
    let to_save = SaveRequest {
        source: point.clone(),
        store: persist.store.clone(),
        keep: persist.keep.into(),
        force: false,
        wait: false,
        freeze: None,
    };
    let saved = save(root, &to_save, progress)?;
    if let Some(failure) = saved.failures.first() {
        let why = format!("{} cannot be moved: {}", failure.path.display(), failure.reason);
        return Err(refused(ErrorKind::Impossible, why));
    }
    if !saved.is_complete {
        return Ok(RamdiskAdoptReport { saved, created: None });
    }
    let request = RamdiskCreate { adopted: true, mount_point: point.clone(), ..request.clone() };
    refuse_in_use(root, &point)?;
    let created = create(root, &request, progress)?;
    if created.is_complete {
        undo_if_changed(root, covered, &created, &persist.store, progress)?;
    }
    Ok(RamdiskAdoptReport { saved, created: Some(created) })
}

/// Refuses a directory of which a process has a file open, or which is its working directory.
pub(super) fn refuse_in_use(root: &Root, point: &Path) -> Result<()> {
    let Some(names) = holder_names(root, point) else { return Ok(()) };
    let why = format!("it is in use by {names}: what they have open would stay on the disk");
    Err(Error::new(ErrorKind::Impossible, ADOPT, why).at(point))
}

/// Unmounts the RAM disk again if the covered directory is not what was saved of it.
fn undo_if_changed(
    root: &Root,
    covered: Directory,
    created: &RamdiskCreateReport,
    store: &Path,
    progress: &mut ProgressSink<'_>,
) -> Result<()> {
    let ramdisk = &created.ramdisk;
    let point = &ramdisk.mount_point;
    let compared = compare_directory(root, covered, store, false, progress);
    let words = match &compared {
        Ok(compared) if compared.is_complete && compared.is_saved() => return Ok(()),
        Ok(compared) if compared.is_complete => {
            format!("{} not what was saved: it changed meanwhile", compared.unsaved_words())
        }
        Ok(_) => "it could not be compared at the end: interrupted".to_owned(),
        Err(error) => format!("it could not be compared at the end: {error}"),
    };
    let records = RamdiskRecords::lock(root)?;
    let why = if take_away(root, ramdisk, store)? {
        records.remove(ramdisk)?;
        format!("{words}. Nothing is mounted")
    } else {
        format!(
            "{words}, and the RAM disk is in use by now. `terrace ramdisk remove {} --discard` \
             uncovers the directory",
            point.display()
        )
    };
    Err(Error::new(ErrorKind::Impossible, ADOPT, why).at(point))
}

/// Unmounts the RAM disk, unless something uses it or has written to it. Whether that was done.
fn take_away(root: &Root, ramdisk: &RamdiskRecord, store: &Path) -> Result<bool> {
    let point = &ramdisk.mount_point;
    let top = ramdisk.open(root, ADOPT)?;
    if change(&top, &ramdisk.options, |all| all.set_flag("ro")).is_err() {
        return Ok(false);
    }
    let is_untouched = compare(root, point, store, &mut |_| Control::Continue)
        .is_ok_and(|compared| compared.is_complete && compared.is_saved());
    drop(top);
    if let (true, Some(parent), Some(name)) = (is_untouched, point.parent(), point.file_name())
        && unmount(&Directory::open(parent)?, name).is_ok()
    {
        return Ok(true);
    }
    let top = ramdisk.open(root, ADOPT)?;
    change(&top, &ramdisk.options, |all| all.set_flag("rw"))?;
    Ok(false)
}
