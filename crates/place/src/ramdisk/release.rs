//! Gives a directory back that was moved onto a RAM disk.
//!
//! 1. The RAM disk becomes read-only and is saved. From the store a copy is restored beside the
//!    covered directory, in a hidden one, synced, and all of it compared with what was saved.
//! 2. The record of the RAM disk says that this copy is ready.
//! 3. The RAM disk is unmounted, and one call exchanges the copy and the covered directory. The old
//!    one is removed.
//!
//! Killed before it was unmounted, the next command for RAM disks makes it writable again and
//! removes the copy; killed later, that command goes on with step 3. After a power cut the store
//! has everything.

use super::change::{change, in_use, unmount};
use super::hidden;
use super::identity::DirectoryIdentity;
use super::record::{PendingRelease, PreparedCopy, RamdiskRecord, RamdiskRecords, RamdiskState};
use super::restore::{RamdiskRestore, RamdiskRestoreReport, restore};
use super::save::{SaveReport, SaveRequest, compare_directory, save};
use super::store::Store;
use crate::tree::remove_below;
use crate::{EntryFailure, Error, ErrorKind, Result};
use machine::Root;
use model::progress::ProgressSink;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::directory::Directory;
use sys::file;
use sys::file_stat::FileStat;
use xxhash_rust::xxh3::xxh3_64;

const RELEASE: &str = "give back the directory";
/// What the names of hidden directories begin with.
const PREFIX: &str = ".terrace-release.";
/// The copy in a hidden directory.
const COPY: &str = "copy";

/// A directory that was given back.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskReleaseReport {
    /// The RAM disk, as it was.
    pub ramdisk: RamdiskRecord,
    /// Whether it was not interrupted. If it was, the RAM disk is as it was.
    pub is_complete: bool,
    /// What was saved of it at the end.
    pub saved: SaveReport,
    /// What is in the directory now; absent if it was interrupted before.
    pub restored: Option<RamdiskRestoreReport>,
}

/// Gives a directory back as it is now, and takes the RAM disk away.
///
/// # Errors
/// `Usage` for a RAM disk that covers no directory, `Impossible` while files are in use; the RAM
/// disk is as it was then.
pub fn release(
    root: &Root,
    name: &Path,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskReleaseReport> {
    let records = RamdiskRecords::lock(root)?;
    let ramdisk = records.find(name)?;
    let point = ramdisk.mount_point.clone();
    let refused = |kind, why: String| Error::new(kind, RELEASE, why).at(&point);
    let (true, Some(persist)) = (ramdisk.adopted, ramdisk.persist.clone()) else {
        let why = "no directory was moved onto it; `terrace ramdisk remove` takes it away";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    };
    let (Some(above), Some(name)) = (point.parent(), point.file_name()) else {
        return Err(refused(ErrorKind::Usage, "it is the top of the whole tree".to_owned()));
    };
    let top = ramdisk.open(root, RELEASE)?;
    let parent = Directory::open(above)?;
    let mut pending = RamdiskRecord { release: Some(PendingRelease::default()), ..ramdisk.clone() };
    records.write(&pending)?;
    let read_only = change(&top, &ramdisk.options, |all| all.set_flag("ro"))
        .map_err(|error| in_use(root, RELEASE, &point, &error));
    drop(top);
    let released = read_only.and_then(|()| {
        let report =
            release_read_only(root, &records, &mut pending, &persist.store, &parent, progress)?;
        if report.is_complete {
            unmount(&parent, name).map_err(|error| in_use(root, RELEASE, &point, &error))?;
        }
        Ok(report)
    });
    // Goes on, or takes it back: by what is mounted now.
    put_right(&records, root, &pending)?;
    released
}

/// Saves it, makes the copy, compares it and notes that it is ready: then the report is complete.
fn release_read_only(
    root: &Root,
    records: &RamdiskRecords,
    pending: &mut RamdiskRecord,
    store: &Path,
    parent: &Directory,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskReleaseReport> {
    let point = pending.mount_point.clone();
    let keep = pending.persist.as_ref().map_or(1, |persist| persist.keep.into());
    let request = SaveRequest {
        source: point.clone(),
        store: store.to_owned(),
        keep,
        force: false,
        wait: true,
        freeze: None,
    };
    let saved = save(root, &request, progress)?;
    refuse_failure(&point, "saved", &saved.failures)?;
    let ramdisk = RamdiskRecord { release: None, ..pending.clone() };
    let mut report = RamdiskReleaseReport { ramdisk, is_complete: false, saved, restored: None };
    if !report.saved.is_complete {
        return Ok(report);
    }
    let (hidden_name, hidden) = hidden::make(parent, &prefix(&point))?;
    let made = make_copy(root, &point, store, &hidden, &mut report, progress)
        .and_then(|inode| inode.map(|inode| try_exchange(&hidden).map(|()| inode)).transpose());
    if !matches!(made, Ok(Some(_))) {
        remove_below(&hidden)?;
        parent.remove_directory(&hidden_name)?;
    }
    if let Some(inode) = made? {
        let hidden = hidden_name.to_string_lossy().into_owned();
        pending.release = Some(PendingRelease { copy: Some(PreparedCopy { hidden, inode }) });
        records.write(pending)?;
        report.is_complete = true;
    }
    Ok(report)
}

/// Of this RAM disk alone: the copy of another one may be waiting in the same directory.
fn prefix(point: &Path) -> String {
    format!("{PREFIX}{:016x}.", xxh3_64(point.as_os_str().as_bytes()))
}

/// Makes the copy, durable and compared; its inode, or `None` if it was interrupted.
fn make_copy(
    root: &Root,
    point: &Path,
    store: &Path,
    hidden: &Directory,
    report: &mut RamdiskReleaseReport,
    progress: &mut ProgressSink<'_>,
) -> Result<Option<u64>> {
    let request = RamdiskRestore {
        store: store.to_owned(),
        target: hidden.path().join(COPY),
        generation: None,
        below: None,
        is_attached: false,
    };
    let restored = restore(root, &request, progress)?;
    refuse_failure(point, "restored", &restored.failures)?;
    let is_complete = restored.is_complete;
    report.restored = Some(restored);
    if !is_complete {
        return Ok(None);
    }
    let copy = hidden.subdirectory(OsStr::new(COPY))?;
    file::sync_file_system(copy.file())?;
    let inode = FileStat::of(copy.file())?.inode;
    let compared = compare_directory(root, copy, store, true, progress)?;
    if compared.is_complete && !compared.is_saved() {
        let why = format!("{} not as saved in the copy on the disk", compared.unsaved_words());
        return Err(Error::new(ErrorKind::Failed, RELEASE, why).at(point));
    }
    Ok(compared.is_complete.then_some(inode))
}

fn refuse_failure(point: &Path, what: &str, failures: &[EntryFailure]) -> Result<()> {
    let Some(failure) = failures.first() else { return Ok(()) };
    let why = format!("{} cannot be {what}: {}", failure.path.display(), failure.reason);
    Err(Error::new(ErrorKind::Failed, RELEASE, why).at(point))
}

/// Puts the copy in the place of the directory, which nothing covers, and removes that.
fn exchange(parent: &Directory, name: &OsStr, copy: &PreparedCopy) -> Result<()> {
    let hidden_name = OsStr::new(&copy.hidden);
    let hidden = match parent.subdirectory(hidden_name) {
        Err(error) if error.kind == sys::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    if parent.stat(name)?.inode != copy.inode {
        hidden.exchange_with(OsStr::new(COPY), parent, name)?;
        parent.sync()?;
        hidden.sync()?;
    }
    // What is left of the old directory, as an immutable file, is no reason to stay pending.
    let _ = remove_below(&hidden).and_then(|()| parent.remove_directory(hidden_name));
    Ok(())
}

/// Whether the file system exchanges two names: known before the RAM disk is unmounted.
fn try_exchange(hidden: &Directory) -> Result<()> {
    let (copy, other) = (OsStr::new(COPY), OsStr::new("other"));
    hidden.create_subdirectory(other, 0o700)?;
    hidden.exchange_with(copy, hidden, other)?;
    hidden.exchange_with(copy, hidden, other)?;
    Ok(hidden.remove_directory(other)?)
}

/// Goes on with a release whose RAM disk is unmounted; takes it back while it is mounted.
///
/// # Errors
/// Where the file system refuses; the next command tries again.
pub(super) fn put_right(
    records: &RamdiskRecords,
    root: &Root,
    record: &RamdiskRecord,
) -> Result<()> {
    let (point, Some(release)) = (&record.mount_point, &record.release) else { return Ok(()) };
    let (Some(above), Some(name)) = (point.parent(), point.file_name()) else { return Ok(()) };
    let parent = Directory::open(above)?;
    let not_pending = RamdiskRecord { release: None, ..record.clone() };
    match (record.state(root), &release.copy) {
        ((RamdiskState::Mounted, top), copy) => {
            if let Some(top) = top {
                change(&top, &record.options, |all| all.set_flag("rw"))?;
            }
            if let Some(name) = copy.as_ref().map(|copy| OsStr::new(&copy.hidden))
                && let Ok(hidden) = parent.subdirectory(name)
            {
                remove_below(&hidden)?;
                parent.remove_directory(name)?;
            }
            records.write(&not_pending)
        }
        ((RamdiskState::Unmounted, _), Some(copy)) => {
            exchange(&parent, name, copy)?;
            if let Some(persist) = &record.persist {
                // Else the next `adopt` wants another store: this one is of the RAM disk.
                let directory = parent.subdirectory(name)?;
                let identity = DirectoryIdentity::new(root, &FileStat::of(directory.file())?);
                let _ =
                    Store::open(&persist.store).and_then(|store| store.note_restored(&identity));
            }
            records.remove(record)
        }
        ((RamdiskState::Unmounted, _), None) => records.write(&not_pending),
        // What is mounted there now is not ours: the copy waits.
        ((RamdiskState::Replaced, _), _) => Ok(()),
    }
}
