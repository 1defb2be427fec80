//! The files of the journal: one entry for each change, one locked file for each process that
//! relies on it, and one lock for reading and writing.
//!
//! `/run/terrace/undo` is gone after a restart of the machine, as the changes are. An entry is
//! replaced whole or not at all. Its name is the kind of the change, `-`, and what was changed;
//! an entry of a kind or version that this program does not know is kept. Only the crate's root
//! decides what is put back.

use crate::change::{Change, SETTING, Setting, failed};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use sys::directory::Directory;
use sys::file::{Durability, FileMode};
use sys::lock::{LockMode, take, try_take};
use sys::{Error, ErrorKind, Result};

/// Where changes are written down.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
    /// Below these, settings may be changed.
    roots: Vec<PathBuf>,
}

/// A file whose lock says that its process lives.
#[derive(Debug)]
pub(crate) struct Hold {
    path: PathBuf,
    /// Closing it ends the lock.
    _file: File,
}

/// What every version of an entry says.
#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

/// An entry of the kind "setting" as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSetting {
    version: u32,
    path: PathBuf,
    before: String,
    after: String,
}

/// The version of an entry's form.
const VERSION: u32 = 1;

/// An entry is a path and two short values; a larger file is something else.
const ENTRY_BYTES_MAX: u64 = 64 << 10;

const HOLDER: &str = "holder";
const LOCK: &str = "lock";
/// All files of the journal are their owner's only.
const MODE: u32 = 0o600;
const READ: &str = "read the journal";
const WRITE: &str = "write the journal";

impl Journal {
    /// The journal of this user: `/run/terrace/undo` for root, below `$XDG_RUNTIME_DIR` for
    /// others.
    ///
    /// # Errors
    /// `Unsupported` for an ordinary user without such a directory.
    pub fn of_user() -> Result<Self> {
        let roots = ["/proc/sys", "/sys"].map(PathBuf::from).to_vec();
        let base = match sys::process::effective_uid() {
            0 => PathBuf::from("/run"),
            _ => std::env::var_os("XDG_RUNTIME_DIR")
                .map(PathBuf::from)
                .filter(|base| base.is_absolute())
                .ok_or_else(|| {
                    let why = "only root may change it, and XDG_RUNTIME_DIR is not set";
                    refused(ErrorKind::Unsupported, "change a setting", why)
                })?,
        };
        Ok(Self::at(base.join("terrace/undo"), roots))
    }

    /// A journal in `directory` for settings below `roots`.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>, roots: Vec<PathBuf>) -> Self {
        let directory = directory.into();
        Self { directory, roots }
    }

    /// Whether anything was ever written down.
    pub(crate) fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Refuses a path that is not below the roots, also one in an entry that another program
    /// wrote.
    pub(crate) fn check_path(&self, path: &Path) -> Result<()> {
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_below = self.roots.iter().any(|root| path.starts_with(root));
        if is_plain && is_below && path.is_absolute() {
            return Ok(());
        }
        let why = "it is not below a directory of settings";
        Err(refused(ErrorKind::Invalid, "change the setting", why).at(path))
    }

    /// Waits until no other process reads or writes the journal; makes the journal if needed.
    pub(crate) fn lock(&self) -> Result<File> {
        let file = self.open()?.open_or_create(OsStr::new(LOCK), MODE)?;
        take(&file, LockMode::Exclusive)?;
        Ok(file)
    }

    /// The files of all entries, in order: those whose names begin with a word and `-`.
    pub(crate) fn entries(&self) -> Result<Vec<PathBuf>> {
        self.files(|name| {
            let kind = name.split_once('-').map_or("", |(kind, _)| kind);
            let is_word = kind.bytes().all(|byte| byte.is_ascii_lowercase());
            !kind.is_empty() && is_word && kind != HOLDER
        })
    }

    /// The entry of what `change` changes, if it exists.
    ///
    /// # Errors
    /// If it is damaged, or a newer version wrote it.
    pub(crate) fn entry(&self, change: &Change) -> Result<Option<Change>> {
        let file = self.entry_file(change);
        if let Err(error) = self.open()?.metadata(name_of(&file))
            && error.kind == ErrorKind::NotFound
        {
            return Ok(None);
        }
        match self.read(&file)? {
            Some(change) => Ok(Some(change)),
            None => {
                let why = "a newer version of Terrace wrote the entry";
                Err(refused(ErrorKind::Other, READ, why).at(file))
            }
        }
    }

    /// Reads one entry; `None` for a kind or version that this program does not know.
    pub(crate) fn read(&self, file: &Path) -> Result<Option<Change>> {
        let is_setting = |name: &str| name.split_once('-').is_some_and(|(kind, _)| kind == SETTING);
        if !name_of(file).to_str().is_some_and(is_setting) {
            return Ok(None);
        }
        let damaged = |why: String| {
            let why = format!("the entry is damaged ({why}); remove it when you have read it");
            refused(ErrorKind::Other, READ, why).at(file)
        };
        let opened = self
            .open()?
            .open_regular(name_of(file))
            .map_err(|error| failed(READ, file, error.source))?;
        let mut text = Vec::new();
        let mut limited = opened.take(ENTRY_BYTES_MAX + 1);
        let read = limited.read_to_end(&mut text);
        let bytes = read.map_err(|error| failed(READ, file, error))? as u64;
        if bytes > ENTRY_BYTES_MAX {
            return Err(damaged(format!("more than {ENTRY_BYTES_MAX} bytes")));
        }
        let stored: StoredVersion =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        match stored.version {
            VERSION => {}
            0 => return Err(damaged("version 0".to_owned())),
            _ => return Ok(None),
        }
        let stored: StoredSetting =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let change = Change::Setting(Setting {
            path: stored.path,
            before: stored.before,
            after: stored.after,
        });
        if self.entry_file(&change) != file {
            return Err(damaged("it is another setting's".to_owned()));
        }
        Ok(Some(change))
    }

    /// Writes one entry.
    pub(crate) fn write(&self, change: &Change) -> Result<()> {
        let path = self.entry_file(change);
        let Change::Setting(setting) = change;
        let stored = StoredSetting {
            version: VERSION,
            path: setting.path.clone(),
            before: setting.before.clone(),
            after: setting.after.clone(),
        };
        let text = serde_json::to_vec(&stored)
            .map_err(|error| refused(ErrorKind::Other, WRITE, error.to_string()).at(&path))?;
        sys::file::replace(
            &self.open()?,
            name_of(&path),
            &text,
            FileMode::OwnerOnly,
            Durability::Synced,
        )
        .map_err(|error| failed(WRITE, &path, error.source))
    }

    /// Removes the entry of a change that was put back, and what dead holders left.
    pub(crate) fn remove(&self, change: &Change) -> Result<()> {
        let directory = self.open()?;
        for file in self.holder_files(change)? {
            // No process holds it; the next removal would take it.
            let _ = directory.remove(name_of(&file));
        }
        let path = self.entry_file(change);
        directory.remove(name_of(&path)).map_err(|error| failed(WRITE, &path, error.source))
    }

    /// Shows that this process relies on a change, as long as the hold lives.
    pub(crate) fn hold(&self, change: &Change) -> Result<Hold> {
        let pid = std::process::id();
        let directory = self.open()?;
        // A process may rely on one change several times.
        let mut number = 0;
        let (path, mut file) = loop {
            let name = format!("{}{pid}-{number}", holder_prefix(change));
            let path = self.directory.join(&name);
            match directory.create_new(OsStr::new(&name), MODE) {
                Ok(file) => break (path, file),
                Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                    number += 1;
                }
                Err(error) => return Err(failed(WRITE, &path, error.source)),
            }
        };
        take(&file, LockMode::Exclusive)?;
        // For people; whether the process lives is known by the lock.
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let began = stat.rsplit(' ').nth(30).unwrap_or_default();
        file.write_all(format!("pid {pid}, began at tick {began}\n").as_bytes())
            .map_err(|error| failed(WRITE, &path, error))?;
        Ok(Hold { path, _file: file })
    }

    /// Ends a hold.
    pub(crate) fn release(&self, hold: Hold) -> Result<()> {
        match self.open()?.remove(name_of(&hold.path)) {
            Err(error) if error.kind != ErrorKind::NotFound => {
                Err(failed(WRITE, &hold.path, error.source))
            }
            _ => Ok(()),
        }
    }

    /// The processes that rely on a change now.
    pub(crate) fn holders(&self, change: &Change) -> Result<Vec<u32>> {
        let directory = self.open()?;
        let mut holders = Vec::new();
        for path in self.holder_files(change)? {
            let Ok(file) = directory.open_regular(name_of(&path)) else {
                continue;
            };
            if !try_take(&file, LockMode::Shared)? {
                let pid = path.to_str().and_then(|text| text.rsplit('-').nth(1));
                holders.push(pid.and_then(|pid| pid.parse().ok()).unwrap_or(0));
            }
        }
        Ok(holders)
    }

    fn holder_files(&self, change: &Change) -> Result<Vec<PathBuf>> {
        let prefix = holder_prefix(change);
        self.files(|name| name.starts_with(&prefix))
    }

    fn entry_file(&self, change: &Change) -> PathBuf {
        let name = format!("{}-{}", change.kind(), escaped(change.path()));
        self.directory.join(name)
    }

    fn files(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
        let names = self.open()?.names()?.into_iter();
        let wanted = names.filter(|name| is_wanted(&name.to_string_lossy()));
        Ok(wanted.map(|name| self.directory.join(name)).collect())
    }

    /// The directory, made if needed; one that another user can change is not trusted.
    fn open(&self) -> Result<Directory> {
        Directory::create_private(&self.directory).map_err(|error| match error.kind {
            ErrorKind::Denied if error.number().is_none() => {
                let why = error.source.to_string();
                let error_path = error.path.unwrap_or_default();
                refused(ErrorKind::Other, "trust the journal in", why).at(error_path)
            }
            _ => failed("open the journal", &self.directory, error.source),
        })
    }
}

/// A refusal of this crate, in words.
fn refused(kind: ErrorKind, operation: &'static str, why: impl Into<String>) -> Error {
    let mut error = Error::new(operation, std::io::Error::other(why.into()));
    error.kind = kind;
    error
}

/// The name of a file of the journal.
fn name_of(file: &Path) -> &OsStr {
    file.file_name().unwrap_or_default()
}

/// What the names of the files of all holders of `change` begin with.
fn holder_prefix(change: &Change) -> String {
    // A second kind would need its word here; version 0.1 has none for settings.
    let Change::Setting(setting) = change;
    format!("{HOLDER}-{}-", escaped(&setting.path))
}

/// A path as one name of a file: no two paths have the same.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let below_root = text.strip_prefix('/').unwrap_or(&text);
    below_root.replace('%', "%25").replace('/', "%2f")
}
