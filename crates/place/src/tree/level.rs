//! One directory of a walk: what is listed of it, and which of its directories wait to be entered.
//! A batch is bounded, so a directory of any size is walked in pieces.

use std::collections::VecDeque;
use std::ffi::OsString;
use sys::directory::{Directory, ListedEntry};
use sys::file_stat::{FileStat, InodeKind};

/// How many entries are sorted at once, and how many bytes of names: bounds the memory that a huge
/// directory costs. A batch ends with the piece of 32 KiB that reaches one of them.
const ENTRIES_AT_ONCE: usize = 64 << 10;
const NAME_BYTES_AT_ONCE: usize = 4 << 20;
/// What a waiting name costs besides its bytes.
const NAME_OVERHEAD: usize = 64;

/// A directory by the number that it is listed with, and its name.
type Waiting = (u64, OsString);

#[derive(Debug)]
pub(super) struct WalkLevel {
    pub(super) stat: FileStat,
    /// The entries of the batch that were not examined yet, the next one last.
    pub(super) entries: Vec<ListedEntry>,
    /// Directories of the batch that are to be entered, in order.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    is_forgotten: bool,
    /// Whether a directory of the batch is not to be entered: the batch cannot be forgotten then.
    has_skipped: bool,
    last_entered: Option<Waiting>,
    batch_begin: u64,
    /// Where the next batch begins; `None` at the end of the directory.
    next_place: Option<u64>,
    /// Whether the descriptor may be at another place.
    is_elsewhere: bool,
}

impl WalkLevel {
    pub(super) fn new(stat: FileStat) -> Self {
        Self {
            stat,
            entries: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_forgotten: false,
            has_skipped: false,
            last_entered: None,
            batch_begin: 0,
            next_place: Some(0),
            is_elsewhere: false,
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        self.next_place.is_none()
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Nothing more of it is met.
    pub(super) fn end(&mut self) {
        self.entries = Vec::new();
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
        self.is_forgotten = false;
        self.next_place = None;
    }

    /// Lists the next batch.
    pub(super) fn list(&mut self, directory: &Directory) -> sys::Result<()> {
        let Some(begin) = self.next_place else {
            return Ok(());
        };
        if self.is_elsewhere {
            directory.list_from(begin)?;
        }
        let mut counted = 0;
        let mut name_bytes = 0;
        let next_place = loop {
            let place = directory.list_some(&mut self.entries)?;
            name_bytes +=
                self.entries[counted..].iter().map(|entry| entry.name.len()).sum::<usize>();
            counted = self.entries.len();
            if place.is_none() || counted >= ENTRIES_AT_ONCE || name_bytes >= NAME_BYTES_AT_ONCE {
                break place;
            }
        };
        self.batch_begin = begin;
        self.next_place = next_place;
        self.is_elsewhere = false;
        self.has_skipped = false;
        self.last_entered = None;
        self.entries
            .sort_unstable_by(|one, two| (two.inode, &two.name).cmp(&(one.inode, &one.name)));
        Ok(())
    }

    /// Lets a directory of the batch wait.
    pub(super) fn wait(&mut self, inode: u64, name: OsString) {
        self.waiting_bytes += name.len() + NAME_OVERHEAD;
        self.waiting.push_back((inode, name));
    }

    /// The next directory that waits.
    pub(super) fn next_waiting(&mut self) -> Option<OsString> {
        let (inode, name) = self.waiting.pop_front()?;
        self.waiting_bytes -= name.len() + NAME_OVERHEAD;
        self.last_entered = Some((inode, name.clone()));
        self.is_elsewhere = true;
        Some(name)
    }

    /// The directory that was the last to wait does not any more.
    pub(super) fn forget_last(&mut self) {
        if let Some((_, name)) = self.waiting.pop_back() {
            self.waiting_bytes -= name.len() + NAME_OVERHEAD;
            self.has_skipped = true;
        }
    }

    /// Forgets the directories that wait, if they can be listed again. Returns the bytes.
    pub(super) fn forget(&mut self) -> usize {
        if self.waiting.is_empty() || self.has_skipped {
            return 0;
        }
        self.waiting = VecDeque::new();
        self.is_forgotten = true;
        std::mem::take(&mut self.waiting_bytes)
    }

    /// Lists what was forgotten: those directories of the batch that were not entered, on `device`
    /// if that is named. A directory that was changed meanwhile may give one twice, or not at all.
    pub(super) fn list_again(
        &mut self,
        directory: &Directory,
        device: Option<u64>,
    ) -> sys::Result<Vec<Waiting>> {
        self.is_forgotten = false;
        self.is_elsewhere = true;
        directory.list_from(self.batch_begin)?;
        let mut found = Vec::new();
        let mut piece = Vec::new();
        loop {
            let place = directory.list_some(&mut piece)?;
            let end = piece.iter().position(|entry| Some(entry.place) == self.next_place);
            piece.truncate(end.map_or(piece.len(), |end| end + 1));
            for entry in piece.drain(..) {
                if self.is_to_enter(&entry, directory, device) {
                    found.push((entry.inode, entry.name));
                }
            }
            if place.is_none() || end.is_some() {
                break;
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn is_to_enter(&self, entry: &ListedEntry, directory: &Directory, device: Option<u64>) -> bool {
        let key = (entry.inode, &entry.name);
        if self.last_entered.as_ref().is_some_and(|(inode, name)| key <= (*inode, name)) {
            return false;
        }
        match (entry.is_directory, device) {
            (Some(false), _) => false,
            (Some(true), None) => true,
            _ => directory.stat(&entry.name).is_ok_and(|stat| {
                let is_on_device = device.is_none_or(|device| device == stat.device);
                stat.kind == InodeKind::Directory && is_on_device
            }),
        }
    }
}
