//! Reads pieces of data files and compares each with its hash.
//!
//! Pieces that follow each other are read together, up to 1 MiB at a time: a small file has one
//! piece of its own.

use crate::ramdisk::content::read_whole;
use crate::ramdisk::manifest::StoredPiece;
use crate::ramdisk::store::{Store, data_name};
use std::collections::BTreeMap;
use std::fs::File;
use sys::file::{self, CacheAdvice};
use xxhash_rust::xxh3::xxh3_64;

/// Data files that are open at a time. Few: four readers must do with 64 descriptors, each with its
/// entries and its [`super::large_reader`].
const MOST_OPEN: usize = 4;
/// Bytes that are read at a time.
const MOST_WINDOW_BYTES: usize = 1 << 20;

/// Whether these are the bytes of a piece.
pub(super) fn is_intact(piece: &StoredPiece, content: &[u8]) -> bool {
    xxh3_64(content) == piece.hash
}

/// Reads pieces.
#[derive(Debug)]
pub(super) struct PieceReader<'s> {
    store: &'s Store,
    data: BTreeMap<u64, File>,
    window: Vec<u8>,
    /// The data file that the window is of, where it begins there, and how much of it is read.
    place: (u64, u64, usize),
    /// How much is read next if the window is gone on with.
    next_bytes: usize,
}

impl<'s> PieceReader<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Self { store, data: BTreeMap::new(), window: Vec::new(), place: (0, 0, 0), next_bytes: 0 }
    }

    /// The bytes of a piece; `None` if they are not what was saved.
    pub(super) fn read(&mut self, piece: &StoredPiece) -> Option<&[u8]> {
        let bytes = piece.bytes as usize;
        let start = match self.start_in_window(piece) {
            Some(start) => start,
            None => {
                self.fill(piece)?;
                0
            }
        };
        let part = &self.window[start..start + bytes];
        is_intact(piece, part).then_some(part)
    }

    fn start_in_window(&self, piece: &StoredPiece) -> Option<usize> {
        let (data, offset, read) = self.place;
        let start = usize::try_from(piece.offset.checked_sub(offset)?).ok()?;
        let is_within = start.checked_add(piece.bytes as usize)? <= read;
        (piece.data == data && is_within).then_some(start)
    }

    /// Reads a piece, and what follows it if the one before was followed by it.
    fn fill(&mut self, piece: &StoredPiece) -> Option<()> {
        let (data, offset, read) = self.place;
        let is_next = piece.data == data
            && (offset..=offset + read as u64).contains(&piece.offset)
            && read > 0;
        let ahead = if is_next { self.next_bytes } else { 0 };
        let bytes = piece.bytes as usize;
        let wanted = bytes.max(ahead);
        self.next_bytes = (2 * wanted).min(MOST_WINDOW_BYTES);
        self.place = (0, 0, 0);
        if self.window.len() < wanted {
            self.window.resize(wanted, 0);
        }
        self.open(piece.data)?;
        let file = self.data.get(&piece.data)?;
        let mut read = 0;
        while read < wanted {
            match file::read_at(file, &mut self.window[read..wanted], piece.offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                // What follows may be damaged and the piece itself not.
                Err(_) if read >= bytes => break,
                Err(_) if wanted > bytes => {
                    let whole = read_whole(file, &mut self.window[..bytes], piece.offset);
                    read = if whole.unwrap_or(false) { bytes } else { 0 };
                    break;
                }
                Err(_) => return None,
            }
        }
        self.place = (piece.data, piece.offset, read);
        (read >= bytes).then_some(())
    }

    fn open(&mut self, number: u64) -> Option<()> {
        if self.data.contains_key(&number) {
            return Some(());
        }
        let opened = self.store.directory().open_regular(&data_name(number)).ok()?;
        // Only courtesies: most of it is read once, from the beginning to the end.
        let _ = file::advise(&opened, 0, 0, CacheAdvice::Sequential);
        if self.data.len() >= MOST_OPEN
            && let Some((_, closed)) = self.data.pop_first()
        {
            let _ = file::advise(&closed, 0, 0, CacheAdvice::DontNeed);
        }
        self.data.insert(number, opened);
        Some(())
    }
}

impl Drop for PieceReader<'_> {
    fn drop(&mut self) {
        for data in self.data.values() {
            let _ = file::advise(data, 0, 0, CacheAdvice::DontNeed);
        }
    }
}
