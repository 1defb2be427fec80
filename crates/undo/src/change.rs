//! The kinds of changes: what each is, how its present state is read, and how it is put back.
//!
//! There is one kind so far, a setting: the text of a file below /proc/sys or /sys. A new kind
//! (a mount, a swap area, a device) is a variant of [`Change`] with a word of its own, which is
//! the first word of the names of its files in the journal. A version that does not know the word
//! keeps these files.

use crate::UndoOutcome;
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::{Error, ErrorKind, Result};

/// A change of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The text of a file of the kernel.
    Setting(Setting),
}

/// One setting of the system, and the change of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its file, below /proc/sys or /sys.
    pub path: PathBuf,
    /// What was there, without the end of the line.
    pub before: String,
    /// What was set.
    pub after: String,
}

/// The word of the kind [`Change::Setting`].
pub(crate) const SETTING: &str = "setting";

impl Change {
    /// What was changed.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Setting(setting) => &setting.path,
        }
    }

    /// The state before the change, as text.
    #[must_use]
    pub fn before(&self) -> &str {
        match self {
            Self::Setting(setting) => &setting.before,
        }
    }

    /// The state that the change made, as text.
    #[must_use]
    pub fn after(&self) -> &str {
        match self {
            Self::Setting(setting) => &setting.after,
        }
    }

    /// The state now, as text.
    ///
    /// # Errors
    /// As for reading it.
    pub fn now(&self) -> Result<String> {
        match self {
            Self::Setting(setting) => read_setting(&setting.path),
        }
    }

    /// The word of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Setting(_) => SETTING,
        }
    }

    /// Puts the old state back if the change is still in place.
    pub(crate) fn undo(&self) -> Result<UndoOutcome> {
        if is_gone(self.path()) {
            return Ok(UndoOutcome::Gone);
        }
        let now = self.now()?;
        if now == self.after() {
            match self {
                Self::Setting(setting) => {
                    must_not_kill(setting)?;
                    write_setting(&setting.path, &setting.before)?;
                }
            }
            Ok(UndoOutcome::Restored)
        } else if now == self.before() {
            Ok(UndoOutcome::AlreadyRestored)
        } else {
            Ok(UndoOutcome::ChangedSince { now })
        }
    }
}

/// Whether a setting went with what it is of: its directory is not there either.
fn is_gone(path: &Path) -> bool {
    let is_absent = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    is_absent(path) && path.parent().is_some_and(is_absent)
}

/// The value of a setting without the end of its line.
pub(crate) fn read_setting(path: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| failed("read the setting", path, error))?;
    Ok(chosen(&text).to_owned())
}

/// The value of a setting by its text: of a list of words the one in brackets (`always [madvise]
/// never`), else the text without the end of its line.
#[must_use]
pub fn chosen(text: &str) -> &str {
    let text = text.trim_end();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(word, _)| word)
}

/// Refuses to lower the memory limit of a group of version 2 below what it holds and cannot free:
/// the kernel would kill its processes for that. Version 1 refuses by itself.
fn must_not_kill(setting: &Setting) -> Result<()> {
    let limit = setting.before.parse::<u64>().ok();
    let is_limit = setting.path.file_name().is_some_and(|name| name == "memory.max");
    let Some(limit) = limit.filter(|_| is_limit) else { return Ok(()) };
    let text = std::fs::read_to_string(setting.path.with_file_name("memory.stat"));
    let held: u64 = text
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| matches!(*name, "anon" | "shmem" | "kernel" | "unevictable"))
        .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
        .sum();
    if held < limit {
        return Ok(());
    }
    let why = format!("the group holds {held} bytes that cannot be freed, and less would kill it");
    Err(Error::new("lower the limit", std::io::Error::other(why)).at(&setting.path))
}

/// Writes a setting in one call, as the kernel requires. Never makes a file.
pub(crate) fn write_setting(path: &Path, value: &str) -> Result<()> {
    let opened = std::fs::OpenOptions::new().write(true).truncate(true).open(path);
    opened
        .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
        .map_err(|error| failed("change the setting", path, error))
}

/// An error of a file of the kernel: if it does not exist, the kernel does not have the facility.
pub(crate) fn failed(operation: &'static str, path: &Path, source: std::io::Error) -> Error {
    let mut error = Error::new(operation, source).at(path);
    if error.kind == ErrorKind::NotFound {
        error.kind = ErrorKind::Unsupported;
    }
    error
}

/// The refusal to change what live processes rely on.
pub(crate) fn in_use(path: &Path, by: &[u32]) -> Error {
    let numbers: Vec<String> = by.iter().map(u32::to_string).collect();
    let why = format!("another value is in use by process {}", numbers.join(", "));
    Error::new("change the setting", std::io::Error::other(why)).at(path)
}
