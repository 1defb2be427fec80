//! The files of the journal: one entry for each changed setting, one locked file for each
//! process that relies on it, and one lock for whoever reads or writes.
//!
//! `/run/terrace/undo` goes away with the machine's start, as the settings do. An entry
//! appears complete or not at all. Only [`super`] decides what is put back.

use super::{Hold, Setting, failed};
use crate::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
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
        self.make()?;
        let path = self.directory.join(LOCK);
        let file = private().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed("open the journal", &path, error))?;
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
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.read(&file).map(Some),
        }
    }

    /// Reads one entry.
    pub(super) fn read(&self, file: &Path) -> Result<Setting> {
        let damaged = |why: String| {
            let why = format!("the entry is damaged ({why}); remove it when you have read it");
            Error::new(Kind::Failed, "read the journal", why).at(file)
        };
        let bytes = fs::metadata(file).map_or(0, |meta| meta.len());
        if bytes > ENTRY_BYTES_MAX {
            return Err(damaged(format!("{bytes} bytes")));
        }
        let text = fs::read(file).map_err(|error| failed("read the journal", file, error))?;
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
        let new = self.directory.join(format!("new-{}", std::process::id()));
        let written = Written {
            version: VERSION,
            path: setting.path.clone(),
            before: setting.before.clone(),
            after: setting.after.clone(),
        };
        let text = serde_json::to_vec(&written)
            .map_err(|error| Error::new(Kind::Failed, "write the journal", error).at(&path))?;
        let file = private().create(true).truncate(true).open(&new);
        file.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| failed("write the journal", &path, error))
    }

    /// Removes the entry of a setting that was put back, and what dead holders left.
    pub(super) fn remove(&self, setting: &Setting) -> Result<()> {
        for file in self.holder_files(&setting.path)? {
            // It is nobody's; the next removal would take it.
            let _ = fs::remove_file(file);
        }
        let path = self.entry_file(&setting.path);
        fs::remove_file(&path).map_err(|error| failed("write the journal", &path, error))
    }

    /// Shows that this process relies on a setting, as long as the hold lives.
    pub(super) fn hold(&self, setting: &Path) -> Result<Hold> {
        let pid = std::process::id();
        // A process may rely on one setting several times.
        let mut number = 0;
        let (path, mut file) = loop {
            let path = self
                .directory
                .join(format!("{HOLDER}{}-{pid}-{number}", escaped(setting)));
            match private().create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed("write the journal", &path, error)),
            }
        };
        take(&file, Mode::Exclusive)?;
        // For people; that somebody lives is known by the lock.
        let began = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let began = began.rsplit(' ').nth(30).unwrap_or_default().to_owned();
        file.write_all(format!("pid {pid}, began at tick {began}\n").as_bytes())
            .map_err(|error| failed("write the journal", &path, error))?;
        Ok(Hold { path, _file: file })
    }

    /// Ends a hold.
    pub(super) fn let_go(&self, hold: Hold) -> Result<()> {
        match fs::remove_file(&hold.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("write the journal", &hold.path, error))
            }
            _ => Ok(()),
        }
    }

    /// The processes that rely on a setting now.
    pub(super) fn holders(&self, setting: &Path) -> Result<Vec<u32>> {
        let mut holders = Vec::new();
        for path in self.holder_files(setting)? {
            let Ok(file) = File::open(&path) else {
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
        let failed = |error| failed("read the journal", &self.directory, error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                files.push(entry.path());
            }
        }
        files.sort();
        Ok(files)
    }

    /// Makes the directory; one that others may write to is not trusted.
    fn make(&self) -> Result<()> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|error| failed("make the journal", &self.directory, error))?;
        let meta = fs::symlink_metadata(&self.directory)
            .map_err(|error| failed("read the journal", &self.directory, error))?;
        let ours = meta.uid() == sys::process::effective_uid();
        if ours && meta.is_dir() && meta.mode() & 0o022 == 0 {
            return Ok(());
        }
        let why = "it belongs to another user, or others may write to it";
        Err(Error::new(Kind::Failed, "trust the journal", why).at(&self.directory))
    }
}

/// How all files of the journal are opened.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// A path as one name of a file: no two paths have the same.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.strip_prefix('/').unwrap_or(&text);
    text.replace('%', "%25").replace('/', "%2f")
}
