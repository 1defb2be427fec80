//! The one process that keeps a directory in a store, and whether it is still that directory.
//!
//! The lock is on a file of the store, so a second keeper is refused however the first was started,
//! and learns which process it is. It is not the lock of a save: others may save in between.

use super::hidden;
use super::identity::DirectoryIdentity;
use super::restore::RESTORE_PREFIX;
use super::save::{SaveReport, SaveRequest, open_source, refuse_own_store, save};
use super::store::Store;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::progress::ProgressSink;
use model::recording::date_and_time;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use sys::file_stat::FileStat;
use sys::local_time::utc_offset_s;
use sys::lock::{self, LockMode};

const NAME: &str = "keeper";
/// A process and a time are shorter.
const LONGEST_TEXT: u64 = 64;

/// Keeps one directory in one store.
#[derive(Debug)]
pub struct Keeper {
    request: SaveRequest,
    identity: DirectoryIdentity,
    /// Holds the lock.
    _lock: File,
}

impl Keeper {
    /// Begins to keep a directory; nothing is saved yet.
    ///
    /// # Errors
    /// `Impossible` beside another keeper, which is named; `Usage` for a store on the directory
    /// itself; else as [`Store::open_or_create`].
    pub fn start(root: &Root, request: SaveRequest) -> Result<Self> {
        let source = open_source(&request.source)?;
        let stat = FileStat::of(source.file())?;
        refuse_own_store(root, &source, &stat, &request.store)?;
        let directory = Store::directory_of(&request.store)?;
        let file = directory.open_or_create(OsStr::new(NAME), 0o600)?;
        if !lock::try_take(&file, LockMode::Exclusive)? {
            let why = format!("{} keeps it already", words_of(&file));
            return Err(Error::new(ErrorKind::Impossible, "keep", why).at(&request.source));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // Only for the words of a refusal: not synced, and a failure of it is none of the keeper.
        let _ = file.set_len(0).and_then(|()| {
            (&file).write_all(format!("{}\t{since}\n", std::process::id()).as_bytes())
        });
        Ok(Self { request, identity: DirectoryIdentity::new(root, &stat), _lock: file })
    }

    /// Whether the directory is empty, and another one than the store saved or restored last, which
    /// has a generation.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn is_to_be_restored(&self, root: &Root) -> Result<bool> {
        let source = open_source(&self.request.source)?;
        // What a restore that was killed left there.
        hidden::sweep(&source, RESTORE_PREFIX);
        if !source.names()?.is_empty() {
            return Ok(false);
        }
        let identity = DirectoryIdentity::new(root, &FileStat::of(source.file())?);
        let store = Store::open(&self.request.store)?;
        let Some(newest) = store.generations()?.last().copied() else { return Ok(false) };
        let is_from_it = || store.manifest(newest).is_ok_and(|manifest| manifest.from == identity);
        Ok(store.restored() != Some(identity.clone()) && !is_from_it())
    }

    /// Whether another process uses the store now.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        let opened = Store::open_or_create(&self.request.store, false);
        opened.is_err_and(|error| error.kind == ErrorKind::Impossible)
    }

    /// From now on the directory is the one that is there now: a restore may have replaced it.
    ///
    /// # Errors
    /// If there is none.
    pub fn look_again(&mut self, root: &Root) -> Result<()> {
        let source = open_source(&self.request.source)?;
        self.identity = DirectoryIdentity::new(root, &FileStat::of(source.file())?);
        Ok(())
    }

    /// Whether the directory is the one that it was at the start: neither unmounted, nor replaced,
    /// nor covered by another mount.
    #[must_use]
    pub fn is_same(&self, root: &Root) -> bool {
        let stat = open_source(&self.request.source)
            .and_then(|source| FileStat::of(source.file()).map_err(Error::from));
        stat.is_ok_and(|stat| DirectoryIdentity::new(root, &stat) == self.identity)
    }

    /// Saves it. [`save`] itself compares the directory that it opened with that of the store.
    ///
    /// # Errors
    /// `Impossible` if it is another directory by now; else as [`save`].
    pub fn save(&self, root: &Root, progress: &mut ProgressSink<'_>) -> Result<SaveReport> {
        if !self.is_same(root) {
            return Err(self.gone());
        }
        save(root, &self.request, progress)
    }

    /// What is to be said of a directory that is another one.
    #[must_use]
    pub fn gone(&self) -> Error {
        let why = "it was unmounted or replaced: what is there now is not what was kept, and is not \
                   saved over it";
        Error::new(ErrorKind::Failed, "keep", why).at(&self.request.source)
    }
}

/// The process in a lock's file, and since when.
fn words_of(file: &File) -> String {
    let mut text = String::new();
    let known = file.take(LONGEST_TEXT).read_to_string(&mut text).ok().and_then(|_| {
        let (pid, since) = text.trim_end().split_once('\t')?;
        let (pid, since): (u32, i64) = (pid.parse().ok()?, since.parse().ok()?);
        Some((pid, date_and_time(since, utc_offset_s(since))))
    });
    known.map_or_else(
        || "another process".to_owned(),
        |(pid, since)| format!("process {pid}, since {since},"),
    )
}
