//! Settings that a run changed because it was asked to (`--apply`), and how they are put
//! back: a journal that survives a crash, reference-counted over concurrent runs.
//!
//! 1. A change is written down before it is made: the path, what was there, what was set.
//! 2. Each run that relies on it holds a lock on a file of its own; the kernel releases the
//!    lock when the run is gone, however it ended.
//! 3. The last one puts the value back, unless it is no longer the one that was set: then
//!    somebody else changed it, and it is left alone.
//! 4. What a crash leaves is adopted by the next run, or put back by [`all`].

mod journal;

use crate::{Error, Kind, Result};
pub use journal::Journal;
use std::fs::File;
use std::path::{Path, PathBuf};

/// One setting of the system, and the change to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its file, below /proc/sys or /sys.
    pub path: PathBuf,
    /// What was there, without the end of the line.
    pub before: String,
    /// What was set.
    pub after: String,
}

/// A setting that is on, for as long as this lives.
#[derive(Debug)]
pub struct Applied {
    journal: Journal,
    path: PathBuf,
    /// The lock that shows others that somebody relies on it; `None` where the setting had
    /// the value without us, or after it was given back.
    hold: Option<Hold>,
}

/// A file whose lock says that its owner lives.
#[derive(Debug)]
struct Hold {
    path: PathBuf,
    /// Closing it ends the lock.
    _file: File,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was changed.
    pub setting: Setting,
    /// What is there now; `None` if it cannot be read.
    pub now: Option<String>,
    /// The processes that rely on it now.
    pub holders: Vec<u32>,
}

/// What became of one entry.
#[derive(Debug)]
pub enum Outcome {
    /// The value from before is back.
    Restored,
    /// It had been put back already.
    WasBack,
    /// Others rely on it still; the last of them puts it back.
    Held {
        /// Their numbers.
        by: Vec<u32>,
    },
    /// Somebody else has changed it since, to this; it was left alone.
    Foreign {
        /// What is there now.
        now: String,
    },
    /// Nothing was done, and nothing is lost: why.
    Failed(Error),
}

/// An entry, and what became of it.
#[derive(Debug)]
pub struct Undone {
    /// The setting's file; the journal's where that is damaged.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: Outcome,
}

/// The switch of delay accounting.
const DELAY_ACCOUNTING: &str = "/proc/sys/kernel/task_delayacct";

impl Applied {
    /// Switches `kernel.task_delayacct` on where it is off. Threads that begin after this
    /// are charged.
    ///
    /// # Errors
    /// `Impossible` without the right to, or where the kernel has no such switch; `Failed`
    /// where the journal is damaged or cannot be written: then nothing was changed.
    pub fn delay_accounting() -> Result<Self> {
        Self::setting(&Journal::usual()?, Path::new(DELAY_ACCOUNTING), "1")
    }

    /// Sets the file `path` to `value`, written down in `journal`; nothing is written down
    /// or put back if it has that value without us.
    ///
    /// # Errors
    /// As [`Applied::delay_accounting`]; `Usage` for a path where no settings are.
    pub fn setting(journal: &Journal, path: &Path, value: &str) -> Result<Self> {
        journal.permits(path)?;
        let lock = journal.lock()?;
        let now = read_value(path)?;
        let setting = match journal.entry(path)? {
            // Ours, from a run that lives or one that crashed.
            Some(entry) if entry.after == value && now == value => entry,
            _ if now == value => return Ok(Self::holding(journal, path, None)),
            // Whatever is there now is somebody's wish: that is what will be put back.
            _ => Setting {
                path: path.to_owned(),
                before: now.clone(),
                after: value.to_owned(),
            },
        };
        // In this order: what is not written down is not changed, and no entry of a run that
        // lives is without a holder.
        let hold = journal.hold(path)?;
        let applied = Self::holding(journal, path, Some(hold));
        let changed = journal.write(&setting).and_then(|()| match now == value {
            true => Ok(()),
            false => write_value(path, value),
        });
        // What failed is taken back by the drop, which needs the lock.
        drop(lock);
        changed.map(|()| applied)
    }

    /// Whether this run relies on a change that will be put back.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.hold.is_some()
    }

    /// Gives it back now, and tells what became of it; `None` if there was nothing to do.
    /// Dropping does the same and tells nothing.
    #[must_use]
    pub fn release(mut self) -> Option<Undone> {
        self.give_back()
    }

    fn holding(journal: &Journal, path: &Path, hold: Option<Hold>) -> Self {
        Self {
            journal: journal.clone(),
            path: path.to_owned(),
            hold,
        }
    }

    fn give_back(&mut self) -> Option<Undone> {
        let hold = self.hold.take()?;
        let outcome = self.journal.lock().and_then(|_lock| {
            self.journal.let_go(hold)?;
            match self.journal.entry(&self.path)? {
                Some(setting) => put_back(&self.journal, &setting),
                None => Ok(Outcome::WasBack),
            }
        });
        Some(Undone {
            path: self.path.clone(),
            outcome: outcome.unwrap_or_else(Outcome::Failed),
        })
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // What fails here stays in the journal for `terrace undo`.
        let _ = self.give_back();
    }
}

/// What the journal holds.
///
/// # Errors
/// `Failed` for a damaged entry, naming its file.
pub fn list() -> Result<Vec<Entry>> {
    of_usual(list_in)
}

/// What `look` finds in this user's journal: nothing for a user who cannot have one, and so
/// has changed nothing.
fn of_usual<T>(look: impl FnOnce(&Journal) -> Result<Vec<T>>) -> Result<Vec<T>> {
    match Journal::usual() {
        Err(error) if error.kind == Kind::Impossible => Ok(Vec::new()),
        journal => look(&journal?),
    }
}

/// As [`list`], of another journal.
///
/// # Errors
/// As [`list`].
pub fn list_in(journal: &Journal) -> Result<Vec<Entry>> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let _lock = journal.lock()?;
    let read = |path: PathBuf| {
        let setting = journal.read(&path)?;
        Ok(Entry {
            now: read_value(&setting.path).ok(),
            holders: journal.holders(&setting.path)?,
            setting,
        })
    };
    journal.entries()?.into_iter().map(read).collect()
}

/// Puts back whatever runs that are gone have left.
///
/// # Errors
/// Where the journal cannot be read at all; what is wrong with one entry is its outcome.
pub fn all() -> Result<Vec<Undone>> {
    of_usual(all_in)
}

/// As [`all`], of another journal.
///
/// # Errors
/// As [`all`].
pub fn all_in(journal: &Journal) -> Result<Vec<Undone>> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let _lock = journal.lock()?;
    let undo = |file: PathBuf| match journal.read(&file) {
        Ok(setting) => Undone {
            outcome: put_back(journal, &setting).unwrap_or_else(Outcome::Failed),
            path: setting.path,
        },
        Err(error) => Undone {
            path: file,
            outcome: Outcome::Failed(error),
        },
    };
    Ok(journal.entries()?.into_iter().map(undo).collect())
}

/// Puts one setting back if nobody relies on it and it is what was set. The journal is
/// locked.
fn put_back(journal: &Journal, setting: &Setting) -> Result<Outcome> {
    journal.permits(&setting.path)?;
    let by = journal.holders(&setting.path)?;
    if !by.is_empty() {
        return Ok(Outcome::Held { by });
    }
    let now = read_value(&setting.path)?;
    let outcome = if now == setting.after {
        write_value(&setting.path, &setting.before)?;
        Outcome::Restored
    } else if now == setting.before {
        Outcome::WasBack
    } else {
        Outcome::Foreign { now }
    };
    journal.remove(setting)?;
    Ok(outcome)
}

/// The value of a setting without the end of its line.
fn read_value(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| failed("read the setting", path, error))?;
    Ok(text.trim_end().to_owned())
}

/// Writes a setting in one call, as the kernel wants it. Never makes a file.
fn write_value(path: &Path, value: &str) -> Result<()> {
    use std::io::Write;
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path);
    opened
        .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
        .map_err(|error| failed("change the setting", path, error))
}

/// An error of a file; that a right or the file is missing makes it `Impossible`.
fn failed(operation: &str, path: &Path, error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Kind::Impossible,
        _ => Kind::Failed,
    };
    let mut error = Error::io(operation, path, error);
    error.kind = kind;
    error
}

#[cfg(test)]
mod tests;
