//! What Terrace changes on the system, and how that is put back. No other crate writes below
//! /proc/sys or /sys.
//!
//! 1. A change is written to a journal before it is made: what it was and what it becomes.
//! 2. Each process that relies on the change holds a lock on a file of its own; the kernel
//!    releases the lock when the process ends, however it ends.
//! 3. The last of these processes puts the old state back, unless another program has changed it
//!    since. What a crash leaves is adopted by the next process, or put back by [`undo_all`].
//!
//! Errors are those of `sys`: this crate only adds `Unsupported` for a setting that the kernel
//! does not have, and `Invalid` for a path that is not a setting.

mod change;
mod journal;
#[cfg(test)]
mod tests;
pub mod zram;

pub use change::{Change, Setting, chosen};
pub use journal::Journal;

use journal::Hold;
use std::path::{Path, PathBuf};
use sys::{Error, ErrorKind, Result};

/// The switch of delay accounting.
const DELAY_ACCOUNTING: &str = "/proc/sys/kernel/task_delayacct";

/// A change that stays in place while this lives.
#[derive(Debug)]
pub struct AppliedChange {
    journal: Journal,
    change: Change,
    /// The lock that shows others that this process relies on the change; `None` if the system was
    /// so without Terrace, or after the release.
    hold: Option<Hold>,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// A change that this program can put back.
    Known {
        /// What was changed.
        change: Change,
        /// What is there now; `None` if it cannot be read.
        now: Option<String>,
        /// The processes that rely on it now.
        holders: Vec<u32>,
    },
    /// An entry that a newer version of Terrace wrote. It is kept for that version.
    Newer {
        /// Its file.
        path: PathBuf,
    },
}

/// What became of one entry.
#[derive(Debug)]
pub enum UndoOutcome {
    /// The old state is back.
    Restored,
    /// It had been put back already.
    AlreadyRestored,
    /// Other processes still rely on the change; the last of them puts the old state back.
    InUse {
        /// Their process numbers.
        by: Vec<u32>,
    },
    /// Another program has set it to this since; it was left alone.
    ChangedSince {
        /// What is there now.
        now: String,
    },
    /// What was changed does not exist any more, with its control group or device.
    Gone,
    /// A newer version of Terrace wrote the entry; it was kept.
    Newer,
    /// Nothing was done, and the entry is kept: why.
    Failed(Error),
}

/// An entry, and what became of it.
#[derive(Debug)]
pub struct UndoReport {
    /// What was changed; the file of the journal if that cannot be read.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: UndoOutcome,
}

impl AppliedChange {
    /// Switches `kernel.task_delayacct` on if it is off. Threads that begin after this are
    /// charged.
    ///
    /// # Errors
    /// `Denied` or `Unsupported` if this user or kernel cannot; otherwise the journal is damaged
    /// or cannot be written. Nothing was changed then.
    pub fn delay_accounting() -> Result<Self> {
        Self::setting(&Journal::of_user()?, Path::new(DELAY_ACCOUNTING), "1")
    }

    /// Sets the file `path` to `value`, with an entry in `journal`. If the file has that value
    /// without Terrace, there is no entry and nothing to put back.
    ///
    /// # Errors
    /// As [`AppliedChange::delay_accounting`]; `Invalid` for a path that is not a setting;
    /// `Other` if a live process relies on another value.
    pub fn setting(journal: &Journal, path: &Path, value: &str) -> Result<Self> {
        journal.check_path(path)?;
        let lock = journal.lock()?;
        let now = change::read_setting(path)?;
        let mut setting =
            Setting { path: path.to_owned(), before: now.clone(), after: value.to_owned() };
        match journal.entry(&Change::Setting(setting.clone()))? {
            // The change of a run that still lives or one that crashed.
            Some(entry) if entry.after() == now => {
                let by = journal.holders(&entry)?;
                if now != value && !by.is_empty() {
                    return Err(change::in_use(path, &by));
                }
                setting.before = entry.before().to_owned();
            }
            _ if now == value => {
                return Ok(Self {
                    journal: journal.clone(),
                    change: Change::Setting(setting),
                    hold: None,
                });
            }
            // Another program has set what is there now: that is what will be put back.
            _ => {}
        }
        // The hold comes before the entry, so that no entry of a live run lacks one, and the entry
        // before the change.
        let change = Change::Setting(setting);
        let applied = Self { hold: Some(journal.hold(&change)?), journal: journal.clone(), change };
        let made = journal
            .write(&applied.change)
            .and_then(|()| if now == value { Ok(()) } else { change::write_setting(path, value) });
        // On an error the drop of `applied` takes this lock to undo what was done.
        drop(lock);
        made.map(|()| applied)
    }

    /// Whether this process relies on a change that will be put back.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.hold.is_some()
    }

    /// Releases the change and returns what became of it; `None` if there was nothing to do.
    /// Dropping does the same without a report.
    #[must_use]
    pub fn release(mut self) -> Option<UndoReport> {
        self.release_hold()
    }

    /// Keeps the change for good: the journal forgets it, unless other processes rely on it.
    ///
    /// # Errors
    /// If the journal cannot be written; the change is then put back.
    pub fn keep(mut self) -> Result<()> {
        let Some(hold) = self.hold.take() else { return Ok(()) };
        let _lock = self.journal.lock()?;
        self.journal.release(hold)?;
        if self.journal.holders(&self.change)?.is_empty() {
            self.journal.remove(&self.change)?;
        }
        Ok(())
    }

    fn release_hold(&mut self) -> Option<UndoReport> {
        let hold = self.hold.take()?;
        let outcome = self.journal.lock().and_then(|_lock| {
            self.journal.release(hold)?;
            match self.journal.entry(&self.change)? {
                Some(change) => undo(&self.journal, &change),
                None => Ok(UndoOutcome::AlreadyRestored),
            }
        });
        Some(UndoReport {
            path: self.change.path().to_owned(),
            outcome: outcome.unwrap_or_else(UndoOutcome::Failed),
        })
    }
}

impl Drop for AppliedChange {
    fn drop(&mut self) {
        // What fails here stays in the journal for `terrace undo`.
        let _ = self.release_hold();
    }
}

/// The entries of this user's journal.
///
/// # Errors
/// If the journal cannot be read; an error of a damaged entry names its file.
pub fn list() -> Result<Vec<JournalEntry>> {
    with_user_journal(list_in)
}

/// The entries of `journal`.
///
/// # Errors
/// As [`list`].
pub fn list_in(journal: &Journal) -> Result<Vec<JournalEntry>> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let _lock = journal.lock()?;
    let entry = |path: PathBuf| match journal.read(&path)? {
        Some(change) => Ok(JournalEntry::Known {
            now: change.now().ok(),
            holders: journal.holders(&change)?,
            change,
        }),
        None => Ok(JournalEntry::Newer { path }),
    };
    journal.entries()?.into_iter().map(entry).collect()
}

/// Puts back what processes that are gone have changed.
///
/// # Errors
/// If the journal cannot be read at all; an error of one entry is its outcome.
pub fn undo_all() -> Result<Vec<UndoReport>> {
    with_user_journal(undo_all_in)
}

/// As [`undo_all`], of `journal`.
///
/// # Errors
/// As [`undo_all`].
pub fn undo_all_in(journal: &Journal) -> Result<Vec<UndoReport>> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let _lock = journal.lock()?;
    let report = |path: PathBuf| match journal.read(&path) {
        Ok(Some(change)) => UndoReport {
            outcome: undo(journal, &change).unwrap_or_else(UndoOutcome::Failed),
            path: change.path().to_owned(),
        },
        Ok(None) => UndoReport { path, outcome: UndoOutcome::Newer },
        Err(error) => UndoReport { path, outcome: UndoOutcome::Failed(error) },
    };
    Ok(journal.entries()?.into_iter().map(report).collect())
}

/// What `read` finds in this user's journal; nothing for a user who cannot have one, and so has
/// changed nothing.
fn with_user_journal<T>(read: impl FnOnce(&Journal) -> Result<Vec<T>>) -> Result<Vec<T>> {
    match Journal::of_user() {
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(Vec::new()),
        journal => read(&journal?),
    }
}

/// Puts the old state back if no process relies on the change and the change is still in place.
/// The journal is locked.
fn undo(journal: &Journal, change: &Change) -> Result<UndoOutcome> {
    journal.check_path(change.path())?;
    let by = journal.holders(change)?;
    if !by.is_empty() {
        return Ok(UndoOutcome::InUse { by });
    }
    let outcome = change.undo()?;
    journal.remove(change)?;
    Ok(outcome)
}
