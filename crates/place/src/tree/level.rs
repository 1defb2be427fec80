//! One directory of a walk: what is listed of it, and which of its directories wait to be entered.
//! A batch is bounded, so a directory of any size is walked in pieces.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use sys::directory::{Directory, ListedEntry};
use sys::file_stat::FileStat;

/// How many bytes of entries are sorted at once, names and overhead: bounds the memory that a huge
/// directory costs. A batch ends with the piece of 32 KiB that reaches it. A quarter of what may
/// wait in all: what is listed again was then followed by many more directories.
pub(super) const BATCH_BYTES: usize = super::MOST_PENDING_BYTES / 4;
/// What a waiting name costs besides its bytes.
const NAME_OVERHEAD: usize = 64;

#[derive(Debug)]
pub(super) struct WalkLevel {
    pub(super) stat: FileStat,
    /// The entries of the batch that were not examined yet, the next one last.
    pub(super) entries: Vec<ListedEntry>,
    /// Directories of the batch that are to be entered, in order.
    waiting: VecDeque<OsString>,
    waiting_bytes: usize,
    /// Those whose names were forgotten, by the sums of their names, in order. Not by their
    /// inodes: FAT numbers them anew at each listing.
    forgotten: Vec<u64>,
    hashes: RandomState,
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
            forgotten: Vec::new(),
            hashes: RandomState::new(),
            batch_begin: 0,
            next_place: Some(0),
            is_elsewhere: false,
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        self.next_place.is_none()
    }

    pub(super) fn is_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Nothing more of it is met.
    pub(super) fn end(&mut self) {
        self.entries = Vec::new();
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
        self.forgotten = Vec::new();
        self.next_place = None;
    }

    /// Lists the next batch.
    pub(super) fn list(&mut self, directory: &Directory, batch_bytes: usize) -> sys::Result<()> {
        let Some(begin) = self.next_place else {
            return Ok(());
        };
        if self.is_elsewhere {
            directory.list_from(begin)?;
        }
        let (mut counted, mut bytes) = (0, 0);
        let next_place = loop {
            let place = directory.list_some(&mut self.entries)?;
            let added = self.entries[counted..].iter();
            bytes += added.map(|entry| entry.name.len() + NAME_OVERHEAD).sum::<usize>();
            counted = self.entries.len();
            if place.is_none() || bytes >= batch_bytes {
                break place;
            }
        };
        self.batch_begin = begin;
        self.next_place = next_place;
        self.is_elsewhere = false;
        self.entries
            .sort_unstable_by(|one, two| (two.inode, &two.name).cmp(&(one.inode, &one.name)));
        Ok(())
    }

    /// Lets a directory of the batch wait.
    pub(super) fn wait(&mut self, name: OsString) {
        self.waiting_bytes += name.len() + NAME_OVERHEAD;
        self.waiting.push_back(name);
    }

    /// The next directory that waits.
    pub(super) fn next_waiting(&mut self) -> Option<OsString> {
        let name = self.waiting.pop_front()?;
        self.waiting_bytes -= name.len() + NAME_OVERHEAD;
        self.is_elsewhere = true;
        Some(name)
    }

    /// The directory that was the last to wait does not any more.
    pub(super) fn forget_last(&mut self) {
        if let Some(name) = self.waiting.pop_back() {
            self.waiting_bytes -= name.len() + NAME_OVERHEAD;
        }
    }

    /// Forgets the names of the directories that wait. Returns the bytes.
    pub(super) fn forget(&mut self) -> usize {
        let waiting = std::mem::take(&mut self.waiting);
        self.forgotten.extend(waiting.iter().map(|name| self.hashes.hash_one(name)));
        std::mem::take(&mut self.waiting_bytes)
    }

    /// Lists the batch again, and lets those directories wait whose names were forgotten. One that
    /// was removed meanwhile does not any more.
    pub(super) fn list_again(&mut self, directory: &Directory) -> sys::Result<()> {
        let forgotten = std::mem::take(&mut self.forgotten);
        let order: HashMap<u64, usize> = forgotten.into_iter().zip(0..).collect();
        self.is_elsewhere = true;
        directory.list_from(self.batch_begin)?;
        let mut found = Vec::new();
        let mut piece = Vec::new();
        while found.len() < order.len() {
            let place = directory.list_some(&mut piece)?;
            for entry in piece.drain(..) {
                if let Some(index) = order.get(&self.hashes.hash_one(&entry.name)) {
                    found.push((*index, entry.name));
                }
            }
            if place.is_none() {
                break;
            }
        }
        found.sort_unstable();
        for (_, name) in found {
            self.wait(name);
        }
        Ok(())
    }
}
