//! Brings a generation back: whole and under its name at once, or not at all.
//!
//! 1. The entries grow in a hidden directory beside the target, on its file system; in the target
//!    if that is a mount. Files are made in the order of the data files, each piece is compared
//!    with its hash. A damaged piece costs its file.
//! 2. Directories get their metadata, from the lowest up.
//! 3. One rename gives the directory its name. The top of a mount has a name already: its entries
//!    get theirs one after the other.
//!
//! The target must not exist or be empty: nothing is ever replaced.

mod entries;
mod entry_maker;
mod large_reader;
mod pieces;
mod target;

use super::identity::DirectoryIdentity;
use super::store::{Generation, Loaded, Store};
use crate::metadata::LossCount;
use crate::{EntryFailure, Error, ErrorKind, Result};
use entries::make_entries;
use machine::Root;
use model::progress::ProgressSink;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sys::directory::Directory;
use sys::file_stat::FileStat;
use target::RestoreTarget;

pub(super) use target::PREFIX as RESTORE_PREFIX;

/// What is to be restored.
#[derive(Clone, Debug)]
pub struct RamdiskRestore {
    /// The directory of the store.
    pub store: PathBuf,
    /// Where to; must not exist, or be an empty directory.
    pub target: PathBuf,
    /// The number of the generation; the newest without one.
    pub generation: Option<u64>,
    /// Only what is at or below this path of the RAM disk.
    pub below: Option<PathBuf>,
    /// Whether the target is the RAM disk from now on, so that it is saved to the store. Only if
    /// nothing is missing.
    pub is_attached: bool,
}

/// What was restored.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RamdiskRestoreReport {
    /// The generation.
    pub generation: u64,
    /// When it was saved, seconds since 1970.
    pub saved_at: i64,
    /// Whether it was not interrupted. If it was there is no target.
    pub is_complete: bool,
    /// Entries that were restored.
    pub entries: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// Metadata that the target does not hold.
    pub losses: Vec<LossCount>,
    /// Entries that were not restored: the first 1,000.
    pub failures: Vec<EntryFailure>,
    /// How many there are.
    pub failure_count: u64,
    /// The generation to take damaged files from.
    pub generation_before: Option<u64>,
}

/// Restores a generation.
///
/// # Errors
/// `Usage` for a target that is not empty and a generation that is not there; `Failed` for a
/// damaged manifest, naming the generation before. Nothing has the name of the target then.
pub fn restore(
    root: &Root,
    request: &RamdiskRestore,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskRestoreReport> {
    restore_to(root, request, RestoreTarget::prepare, progress)
}

/// As [`restore`], into an open directory that no other process sees. What is in it after an error
/// or an interruption is the caller's to throw away.
///
/// # Errors
/// As [`restore`].
pub(super) fn restore_into(
    root: &Root,
    request: &RamdiskRestore,
    hidden: &Directory,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskRestoreReport> {
    restore_to(root, request, |_| RestoreTarget::hidden_already(hidden), progress)
}

fn restore_to(
    root: &Root,
    request: &RamdiskRestore,
    prepare: impl FnOnce(&Path) -> Result<RestoreTarget>,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskRestoreReport> {
    let started = Instant::now();
    let store = Store::open(&request.store)?;
    let all = store.generations()?;
    let generation = choose(&store, &all, request.generation)?;
    let before = all.iter().rev().find(|other| other.number < generation.number).copied();
    let Loaded { manifest, catalog, .. } =
        store.load(generation).map_err(|error| match before {
            Some(before) => offer(error, before),
            None => error,
        })?;
    let mut report = RamdiskRestoreReport {
        generation: generation.number,
        saved_at: manifest.saved.seconds,
        generation_before: before.map(|before| before.number),
        ..RamdiskRestoreReport::default()
    };
    let target = prepare(&request.target)?;
    let below = request.below.as_deref();
    let made = make_entries(&store, &target, &catalog, below, &mut report, progress);
    if !matches!(made, Ok(true)) {
        target.give_up()?;
        report.seconds = started.elapsed().as_secs_f64();
        return made.map(|_| report);
    }
    let placed = target.place()?;
    // Else the next save would take what is missing for removed.
    if request.is_attached && report.failure_count == 0 {
        let stat = FileStat::of(placed.file())?;
        store.note_restored(&DirectoryIdentity::new(root, &stat))?;
    }
    report.is_complete = true;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn choose(store: &Store, all: &[Generation], wanted: Option<u64>) -> Result<Generation> {
    let failed = |why: String| {
        Error::new(ErrorKind::Usage, "restore from", why).at(store.directory().path())
    };
    let Some(number) = wanted else {
        return all.last().copied().ok_or_else(|| failed("nothing was saved to it".to_owned()));
    };
    let found = all.iter().find(|generation| generation.number == number).copied();
    found.ok_or_else(|| {
        let numbers: Vec<String> = all.iter().map(|found| found.number.to_string()).collect();
        failed(format!("it has no generation {number}, but {}", numbers.join(", ")))
    })
}

fn offer(error: Error, before: Generation) -> Error {
    let why = format!("{}; `--generation {}` is the one before", error.source, before.number);
    let offered = Error::new(error.kind, error.operation, why);
    match error.path {
        Some(path) => offered.at(path),
        None => offered,
    }
}
