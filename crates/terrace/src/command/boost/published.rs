//! What a served cache counts, as a file that recorders read: the series `boost.<name>.*`.
//!
//! It is replaced whenever something changed, at most ten times a second, and in memory only. A
//! successor goes on where the process before it ended.

use super::control::COUNTERS;
use model::BoostCounters;
use std::ffi::OsStr;
use std::io::Read;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};

/// As often as recorders look.
const EVERY: Duration = Duration::from_millis(100);
/// The file of a process before is shorter.
const MOST_BYTES: u64 = 4096;

/// The file and what it says.
#[derive(Debug)]
pub(super) struct PublishedCounters {
    directory: Directory,
    /// Of the processes before this one.
    earlier: BoostCounters,
    written: Option<(Instant, BoostCounters)>,
}

impl PublishedCounters {
    /// In the directory of a cache, where a process before may have left its file.
    pub(super) fn open(directory: Directory) -> Self {
        let mut text = String::new();
        if let Ok(file) = directory.open_regular(OsStr::new(COUNTERS)) {
            let _ = file.take(MOST_BYTES).read_to_string(&mut text);
        }
        Self { earlier: BoostCounters::from_text(&text), directory, written: None }
    }

    /// Whether enough time has passed since the last time.
    pub(super) fn are_due(&self) -> bool {
        self.written.is_none_or(|(at, _)| at.elapsed() >= EVERY)
    }

    /// Replaces the file if something changed. What fails is tried again: no request waits for it.
    pub(super) fn put(&mut self, counters: &BoostCounters) {
        let all = counters.after(&self.earlier);
        let is_known = self.written.is_some_and(|(_, known)| known == all);
        let put = || {
            let mode = FileMode::OwnerOnly;
            let (name, text) = (OsStr::new(COUNTERS), all.to_text());
            file::replace(&self.directory, name, text.as_bytes(), mode, Durability::Unsynced)
        };
        if is_known || put().is_ok() {
            self.written = Some((Instant::now(), all));
        }
    }
}
