//! A directory that is tried in two places: on its disk and in memory, each time as a fresh copy
//! that only this process and its children see in the place of the directory.
//!
//! 1. The mounts of this process are separated from those of others. The directory is saved once to
//!    a store in a hidden directory beside it.
//! 2. For each turn a copy is restored from there, on the disk or on a new tmpfs, synced, and
//!    mounted over the directory. So both begin with the same files, all of them in memory.
//! 3. After a turn the copy is removed. The directory itself is never changed.
//!
//! Killed, the mounts go with the process. The hidden directory stays, and the next trial there
//! removes it.

use super::hidden;
use super::restore::{RamdiskRestore, restore};
use super::save::{SaveReport, SaveRequest, save};
use super::snapshot::is_in_memory;
use crate::tree::remove_below;
use crate::{Error, ErrorKind, Result};
use machine::{Root, memory};
use model::Bytes;
use model::progress::ProgressSink;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file;
use sys::file_stat::FileStat;
use sys::mount::{self, DetachedMount, FileSystemOptions, MountRestrictions};

const TRY: &str = "make copies of";
/// What the names of hidden directories begin with.
const PREFIX: &str = ".terrace-try.";
const OWNER_ONLY: u32 = 0o700;
const STORE: &str = "store";
/// The copies of a turn.
const ON_DISK: &str = "disk";
const IN_MEMORY: &str = "memory";
/// A copy in its place.
const COPY: &str = "copy";

/// Where a directory is during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialPlace {
    /// On its disk.
    Disk,
    /// On a tmpfs.
    Memory,
}

/// A directory that is tried. Dropped, nothing of the trial is left.
#[derive(Debug)]
pub struct RamdiskTrial {
    root: Root,
    /// The directory itself, below what is mounted over it.
    directory: Directory,
    restrictions: MountRestrictions,
    holder: Directory,
    hidden_name: OsString,
    hidden: Directory,
    bytes: u64,
    turn: Option<TrialPlace>,
}

impl RamdiskTrial {
    /// Saves the directory and separates the mounts of the calling thread. `None` if it was
    /// interrupted.
    ///
    /// # Errors
    /// `Usage` for what is no directory, or the top of a mount; `Impossible` for others than root,
    /// and without the memory or the room on the disk for a copy.
    pub fn prepare(
        root: &Root,
        path: &Path,
        progress: &mut ProgressSink<'_>,
    ) -> Result<Option<Self>> {
        let refused = |kind, why: &str| Error::new(kind, TRY, why.to_owned()).at(path);
        if sys::process::effective_uid() != 0 {
            let why = "only root may mount a copy in its place";
            return Err(refused(ErrorKind::Impossible, why));
        }
        // First: a directory that was opened before is on a mount of the others.
        mount::separate_mounts()?;
        let real = path
            .canonicalize()
            .map_err(|error| refused(ErrorKind::Usage, &sys::plain_reason(&error)))?;
        let (Some(above), Some(_)) = (real.parent(), real.file_name()) else {
            return Err(refused(ErrorKind::Usage, "it is the top of the whole tree"));
        };
        let directory = Directory::open(&real)
            .map_err(|error| refused(ErrorKind::Usage, &sys::plain_reason(&error.source)))?;
        let holder = Directory::open(above)?;
        let (inside, outside) = (FileStat::of(directory.file())?, FileStat::of(holder.file())?);
        if inside.device != outside.device || inside.mount != outside.mount {
            let why = "it is the top of a mount, and a copy of it would be on another disk; name a \
                       directory below it";
            return Err(refused(ErrorKind::Usage, why));
        }
        if is_in_memory(root, &directory)? {
            return Err(refused(ErrorKind::Usage, "it is in memory already"));
        }
        let (hidden_name, hidden) = hidden::make(&holder, PREFIX)?;
        let restrictions = MountRestrictions::of(directory.file())?;
        let (root, bytes, turn) = (root.clone(), 0, None);
        let mut trial =
            Self { root, directory, restrictions, holder, hidden_name, hidden, bytes, turn };
        let saved = trial.save(progress)?;
        if !saved.is_complete {
            return Ok(None);
        }
        trial.bytes = saved.read_bytes;
        trial.refuse_without_room()?;
        Ok(Some(trial))
    }

    /// Bytes of the files of the directory.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// The directory, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Puts a fresh copy in the place of the directory, after the one before was removed. Whether
    /// it was not interrupted.
    ///
    /// # Errors
    /// Where the copy cannot be made whole.
    pub fn begin(&mut self, place: TrialPlace, progress: &mut ProgressSink<'_>) -> Result<bool> {
        self.clear()?;
        let name = OsStr::new(match place {
            TrialPlace::Disk => ON_DISK,
            TrialPlace::Memory => IN_MEMORY,
        });
        let over = self.hidden.create_subdirectory(name, OWNER_ONLY)?;
        self.turn = Some(place);
        if place == TrialPlace::Memory {
            self.new_memory()?.attach(&over)?;
        }
        let request = RamdiskRestore {
            store: self.path_of(STORE),
            target: self.path_of(name).join(COPY),
            generation: None,
            below: None,
            is_attached: false,
        };
        let restored = restore(&self.root, &request, progress)?;
        if let Some(failure) = restored.failures.first() {
            let why = format!("{} could not be copied: {}", failure.path.display(), failure.reason);
            return Err(Error::new(ErrorKind::Failed, TRY, why).at(self.path()));
        }
        if !restored.is_complete {
            return Ok(false);
        }
        let copy = self.hidden.subdirectory(name)?.subdirectory(OsStr::new(COPY))?;
        // What is still to be written is no part of the turn.
        file::sync_file_system(copy.file())?;
        DetachedMount::of_directory(&copy)?.attach(&self.directory)?;
        Ok(true)
    }

    fn save(&self, progress: &mut ProgressSink<'_>) -> Result<SaveReport> {
        let request = SaveRequest {
            source: self.path().to_owned(),
            store: self.path_of(STORE),
            keep: 1,
            force: false,
            wait: false,
            freeze: None,
        };
        let saved = save(&self.root, &request, progress)?;
        if let Some(failure) = saved.failures.first() {
            let why = format!("{} could not be read: {}", failure.path.display(), failure.reason);
            return Err(Error::new(ErrorKind::Failed, TRY, why).at(self.path()));
        }
        Ok(saved)
    }

    fn refuse_without_room(&self) -> Result<()> {
        let refused = |why| Error::new(ErrorKind::Impossible, TRY, why).at(self.path());
        let bytes = self.bytes();
        let takeable = self.takeable();
        if bytes > takeable {
            let why = format!("its files are {bytes}, and {takeable} of memory can be had");
            return Err(refused(why));
        }
        let free = Bytes(file::file_system(self.holder.file())?.free_bytes);
        if bytes > free {
            let why = format!("its files are {bytes}, and its disk has {free} left for a copy");
            return Err(refused(why));
        }
        Ok(())
    }

    fn takeable(&self) -> Bytes {
        memory::takeable(&self.root).map_or(Bytes(0), |takeable| takeable.bytes)
    }

    /// An empty tmpfs that takes no more than may be taken.
    fn new_memory(&self) -> Result<DetachedMount> {
        let options = FileSystemOptions::new("tmpfs")?;
        options.set("source", "terrace")?;
        options.set("size", &self.takeable().0.max(1 << 20).to_string())?;
        options.set("nr_inodes", "0")?;
        Ok(options.mount(self.restrictions)?)
    }

    /// Removes the copy of the last turn.
    fn clear(&mut self) -> Result<()> {
        let Some(place) = self.turn.take() else { return Ok(()) };
        // There is none if the turn did not begin.
        let _ = mount::detach(self.path());
        let name = OsStr::new(match place {
            TrialPlace::Disk => ON_DISK,
            TrialPlace::Memory => IN_MEMORY,
        });
        match place {
            TrialPlace::Disk => remove_below(&self.hidden.subdirectory(name)?)?,
            TrialPlace::Memory => {
                let _ = mount::detach(&self.path_of(name));
            }
        }
        Ok(self.hidden.remove_directory(name)?)
    }

    fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.hidden.path().join(name.as_ref())
    }
}

impl Drop for RamdiskTrial {
    fn drop(&mut self) {
        // What cannot be removed now the next trial removes.
        let _ = self.clear();
        if remove_below(&self.hidden).is_ok() {
            let _ = self.holder.remove_directory(&self.hidden_name);
        }
    }
}
