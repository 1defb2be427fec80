//! The files of the journal: one entry for each changed setting, one locked file for each
//! process that relies on it, and one lock for whoever reads or writes.
//!
//! `/run/terrace/undo` goes away with the machine's start, as the settings do. An entry
//! appears complete or not at all. Only [`super`] decides what is put back.

use super::{Hold, Setting, failed};
use crate::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use sys::directory::Directory;
use sys::file::{Durability, FileMode};
use sys::lock::{Mode, take, try_take};

/// Where changes are written down.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
    /// Below these, settings may be changed.
    roots: Vec<PathBuf>,
}

/// An entry as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    path: PathBuf,
    before: String,
    after: String,
}

/// The version of an entry's form.
const VERSION: u32 = 1;

/// An entry is a path and two short values; a larger file is none.
const ENTRY_BYTES_MAX: u64 = 64 << 10;

const ENTRY: &str = "setting-";
const HOLDER: &str = "holder-";
const LOCK: &str = "lock";
/// All files of the journal are their owner's only.
const MODE: u32 = 0o600;

impl Journal {
    /// The journal of this user: `/run/terrace/undo` for root, `$XDG_RUNTIME_DIR` has the
    /// one of others.
    ///
    /// # Errors
    /// `Impossible` where an ordinary user has no such directory.
    pub fn usual() -> Result<Self> {
        let roots = ["/proc/sys", "/sys"].map(PathBuf::from).to_vec();
        let base = match sys::process::effective_uid() {
            0 => PathBuf::from("/run"),
            _ => std::env::var_os("XDG_RUNTIME_DIR")
                .map(PathBuf::from)
                .filter(|base| base.is_absolute())
                .ok_or_else(|| {
                    let why = "only root may change it, and XDG_RUNTIME_DIR is not set";
                    Error::new(Kind::Impossible, "change a setting", why)
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
    pub(super) fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Refuses paths where no settings are, also those of a journal that somebody forged.
    pub(super) fn permits(&self, path: &Path) -> Result<()> {
        let plain = path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let below = self.roots.iter().any(|root| path.starts_with(root));
        if plain && below && path.is_absolute() {
            return Ok(());
        }
        let why = "it is not below a directory of settings";
        Err(Error::new(Kind::Usage, "change the setting", why).at(path))
    }

    /// Waits until nobody else reads or writes the journal; makes it first if need be.
    pub(super) fn lock(&self) -> Result<File> {
        let file = self.open()?.open_or_create(OsStr::new(LOCK), MODE)?;
        take(&file, Mode::Exclusive)?;
        Ok(file)
    }

    /// The files of all entries, in order.
    pub(super) fn entries(&self) -> Result<Vec<PathBuf>> {
        self.files(ENTRY)
    }

    /// The entry of a setting, if there is one.
    pub(super) fn entry(&self, setting: &Path) -> Result<Option<Setting>> {
        let file = self.entry_file(setting);
        match self.open()?.metadata(name_of(&file)) {
            Err(error) if error.kind == sys::Kind::NotFound => Ok(None),
            _ => self.read(&file).map(Some),
        }
    }

    /// Reads one entry.
    pub(super) fn read(&self, file: &Path) -> Result<Setting> {
        let damaged = |why: String| {
            let why = format!("the entry is damaged ({why}); remove it when you have read it");
            Error::new(Kind::Failed, "read the journal", why).at(file)
        };
        let opened = self.open()?.open_regular(name_of(file));
        let opened = opened.map_err(|error| failed("read the journal", file, error.source))?;
        let mut text = Vec::new();
        let mut limited = opened.take(ENTRY_BYTES_MAX + 1);
        let read = limited.read_to_end(&mut text);
        let bytes = read.map_err(|error| failed("read the journal", file, error))? as u64;
        if bytes > ENTRY_BYTES_MAX {
            return Err(damaged(format!("more than {ENTRY_BYTES_MAX} bytes")));
        }
        let written: Written =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if written.version != VERSION {
            return Err(damaged(format!("version {}", written.version)));
        }
        if self.entry_file(&written.path) != file {
            return Err(damaged("it is another setting's".to_owned()));
        }
        Ok(Setting {
            path: written.path,
            before: written.before,
            after: written.after,
        })
    }

    /// Writes one entry, complete or not at all.
    pub(super) fn write(&self, setting: &Setting) -> Result<()> {
        let path = self.entry_file(&setting.path);
        let written = Written {
            version: VERSION,
            path: setting.path.clone(),
            before: setting.before.clone(),
            after: setting.after.clone(),
        };
        let text = serde_json::to_vec(&written)
            .map_err(|error| Error::new(Kind::Failed, "write the journal", error).at(&path))?;
        let directory = self.open()?;
        sys::file::replace(
            &directory,
            name_of(&path),
            &text,
            FileMode::OwnerOnly,
            Durability::Synced,
        )
        .map_err(|error| failed("write the journal", &path, error.source))
    }

    /// Removes the entry of a setting that was put back, and what dead holders left.
    pub(super) fn remove(&self, setting: &Setting) -> Result<()> {
        let directory = self.open()?;
        for file in self.holder_files(&setting.path)? {
            // No process holds it; the next removal would take it.
            let _ = directory.remove(name_of(&file));
        }
        let path = self.entry_file(&setting.path);
        directory
            .remove(name_of(&path))
            .map_err(|error| failed("write the journal", &path, error.source))
    }

    /// Shows that this process relies on a setting, as long as the hold lives.
    pub(super) fn hold(&self, setting: &Path) -> Result<Hold> {
        let pid = std::process::id();
        let directory = self.open()?;
        // A process may rely on one setting several times.
        let mut number = 0;
        let (path, mut file) = loop {
            let path = self
                .directory
                .join(format!("{HOLDER}{}-{pid}-{number}", escaped(setting)));
            match directory.create_new(name_of(&path), MODE) {
                Ok(file) => break (path, file),
                Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                    number += 1;
                }
                Err(error) => return Err(failed("write the journal", &path, error.source)),
            }
        };
        take(&file, Mode::Exclusive)?;
        // For people; that somebody lives is known by the lock.
        let began = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let began = began.rsplit(' ').nth(30).unwrap_or_default().to_owned();
        file.write_all(format!("pid {pid}, began at tick {began}\n").as_bytes())
            .map_err(|error| failed("write the journal", &path, error))?;
        Ok(Hold { path, _file: file })
    }

    /// Ends a hold.
    pub(super) fn let_go(&self, hold: Hold) -> Result<()> {
        match self.open()?.remove(name_of(&hold.path)) {
            Err(error) if error.kind != sys::Kind::NotFound => {
                Err(failed("write the journal", &hold.path, error.source))
            }
            _ => Ok(()),
        }
    }

    /// The processes that rely on a setting now.
    pub(super) fn holders(&self, setting: &Path) -> Result<Vec<u32>> {
        let directory = self.open()?;
        let mut holders = Vec::new();
        for path in self.holder_files(setting)? {
            let Ok(file) = directory.open_regular(name_of(&path)) else {
                continue;
            };
            if !try_take(&file, Mode::Shared)? {
                let pid = path.to_str().and_then(|text| text.rsplit('-').nth(1));
                holders.push(pid.and_then(|pid| pid.parse().ok()).unwrap_or(0));
            }
        }
        Ok(holders)
    }

    fn holder_files(&self, setting: &Path) -> Result<Vec<PathBuf>> {
        self.files(&format!("{HOLDER}{}-", escaped(setting)))
    }

    fn entry_file(&self, setting: &Path) -> PathBuf {
        self.directory.join(format!("{ENTRY}{}", escaped(setting)))
    }

    fn files(&self, prefix: &str) -> Result<Vec<PathBuf>> {
        let names = self.open()?.names()?.into_iter();
        let found = names.filter(|name| name.to_string_lossy().starts_with(prefix));
        Ok(found.map(|name| self.directory.join(name)).collect())
    }

    /// The directory, made if need be; one that another user can change is not trusted.
    fn open(&self) -> Result<Directory> {
        Directory::create_private(&self.directory).map_err(|error| match error.kind {
            sys::Kind::Denied if error.number().is_none() => {
                let path = error.path.unwrap_or_default();
                Error::new(Kind::Failed, "trust the journal in", error.source).at(path)
            }
            _ => failed("open the journal", &self.directory, error.source),
        })
    }
}

/// The name of a file of the journal.
fn name_of(file: &Path) -> &OsStr {
    file.file_name().unwrap_or_default()
}

/// A path as one name of a file: no two paths have the same.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.strip_prefix('/').unwrap_or(&text);
    text.replace('%', "%25").replace('/', "%2f")
}
