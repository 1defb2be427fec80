//! Makes entries that are no directories, one after the other: a file with its content, a link, a
//! device, each with its metadata. Each worker has one.

use super::large_reader::{LARGE_BYTES, LargeReader, LazyReader};
use super::pieces::{PieceReader, is_intact};
use crate::EntryFailure;
use crate::metadata::{FileMetadata, LossTally, hands_lists_down};
use crate::ramdisk::current::{CurrentDirectory, split};
use crate::ramdisk::manifest::{Entry, StoredPiece};
use crate::ramdisk::store::{Store, data_name};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::directory::Directory;
use sys::file;
use sys::file_stat::InodeKind;

/// Failures that are named; the others are counted.
const MOST_NAMED: usize = 1000;

/// What was made, and what was not.
#[derive(Debug, Default)]
pub(super) struct RestoreTally {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) failures: Vec<EntryFailure>,
    pub(super) failure_count: u64,
    pub(super) losses: LossTally,
}

impl RestoreTally {
    pub(super) fn fail(&mut self, path: &[u8], reason: String) {
        self.failure_count += 1;
        if self.failures.len() < MOST_NAMED {
            let path = PathBuf::from(OsStr::from_bytes(path));
            self.failures.push(EntryFailure { path, reason });
        }
    }

    /// Adds what another one counted.
    pub(super) fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.failure_count += other.failure_count;
        self.failures.extend(other.failures);
        self.failures.truncate(MOST_NAMED);
        self.losses.add_all(other.losses);
    }
}

/// Makes entries below the hidden directory.
#[derive(Debug)]
pub(super) struct EntryMaker<'s> {
    parent: CurrentDirectory,
    pieces: PieceReader<'s>,
    large: LazyReader<'s>,
    /// The first path of each inode that has several names.
    linked: HashMap<u64, Vec<u8>>,
    /// Whether what is made may get an access control list. Directories get theirs at the end, and
    /// until then hand down what the top has.
    hands_lists_down: bool,
    tally: RestoreTally,
}

impl<'s> EntryMaker<'s> {
    pub(super) fn new(store: &'s Store, top: Directory) -> Self {
        Self {
            hands_lists_down: hands_lists_down(&top),
            parent: CurrentDirectory::new(top),
            pieces: PieceReader::new(store),
            large: LazyReader::new(store),
            linked: HashMap::new(),
            tally: RestoreTally::default(),
        }
    }

    pub(super) fn into_tally(self) -> RestoreTally {
        self.tally
    }

    /// Makes an empty directory that its owner only may use.
    pub(super) fn make_directory(&mut self, path: &[u8]) {
        let (parent, name) = split(path);
        let made =
            self.parent.enter(parent).and_then(|parent| parent.create_subdirectory(name, 0o700));
        match made {
            Ok(_) => self.tally.entries += 1,
            Err(error) => self.tally.fail(path, sys::plain_reason(&error.source)),
        }
    }

    /// Gives a directory its metadata.
    pub(super) fn finish_directory(&mut self, path: &[u8], entry: &Entry) {
        // The top was made before, and counts as it does when it is saved.
        self.tally.entries += u64::from(path.is_empty());
        let given = self
            .parent
            .enter(path)
            .and_then(|directory| give(entry, directory.file(), &mut self.tally.losses));
        if let Err(error) = given {
            self.tally.fail(path, sys::plain_reason(&error.source));
        }
    }

    /// Makes an entry that is no directory. A large file ends early once it is stopped.
    pub(super) fn make(&mut self, path: &[u8], entry: &Entry, is_stopped: &AtomicBool) {
        match self.try_make(path, entry, is_stopped) {
            Ok(None) => self.tally.entries += 1,
            Ok(Some(why)) => self.tally.fail(path, why),
            Err(error) => self.tally.fail(path, sys::plain_reason(&error.source)),
        }
    }

    /// Makes an entry; `Some` says why its content is not to be had.
    fn try_make(
        &mut self,
        path: &[u8],
        entry: &Entry,
        is_stopped: &AtomicBool,
    ) -> sys::Result<Option<String>> {
        let (parent, name) = split(path);
        let has_several_names = entry.stat.links > 1;
        if has_several_names && let Some(first) = self.linked.get(&entry.stat.inode) {
            let (first_parent, first_name) = split(first);
            let from = self.parent.open(first_parent)?;
            self.parent.enter(parent)?.create_hard_link(name, &from, first_name)?;
            return Ok(None);
        }
        let here = self.parent.enter(parent)?;
        let mut is_given = false;
        let made = match (entry.stat.kind, entry.stat.special(), &entry.link_target) {
            (InodeKind::File, ..) => {
                let metadata = metadata_of(entry);
                let is_plain = metadata.has_plain_mode() && !self.hands_lists_down;
                let mode = if is_plain { entry.stat.mode } else { 0o600 };
                let file = here.create_new(name, mode)?;
                let is_large = entry.stat.bytes >= LARGE_BYTES;
                let large = is_large.then(|| self.large.reader()).flatten();
                let readers = (&mut self.pieces, large);
                let written = write_content(readers, &file, entry, is_stopped);
                if !matches!(written, Ok(Ok(_))) {
                    here.remove(name)?;
                }
                match written? {
                    Ok(bytes) => self.tally.bytes += bytes,
                    Err(why) => return Ok(Some(why)),
                }
                is_given = is_plain && metadata.seal_plain(&file)?;
                file
            }
            (_, Some(special), _) => {
                here.create_special(name, special, 0o600)?;
                here.hold(name)?
            }
            (_, _, Some(target)) => {
                here.create_link(name, OsStr::from_bytes(target))?;
                here.hold(name)?
            }
            _ => return Ok(Some("it is of no kind that is known".to_owned())),
        };
        if !is_given {
            give(entry, &made, &mut self.tally.losses)?;
        }
        if has_several_names {
            self.linked.insert(entry.stat.inode, path.to_vec());
        }
        Ok(None)
    }
}

/// Gives a made entry its metadata.
fn give(entry: &Entry, made: &File, losses: &mut LossTally) -> sys::Result<()> {
    losses.add(&metadata_of(entry).apply_and_seal(made)?);
    Ok(())
}

fn metadata_of(entry: &Entry) -> FileMetadata {
    FileMetadata { stat: entry.stat, extended: entry.extended.clone() }
}

/// Writes the content of a file: how many bytes, or why it is not to be had.
fn write_content(
    (pieces, large): (&mut PieceReader<'_>, Option<&mut LargeReader<'_>>),
    file: &File,
    entry: &Entry,
    is_stopped: &AtomicBool,
) -> sys::Result<Result<u64, String>> {
    let mut bytes = 0;
    let mut fault = None;
    let mut take = |piece: &StoredPiece, content: Option<&[u8]>| {
        if is_stopped.load(Ordering::Relaxed) {
            fault = Some("interrupted".to_owned());
            return Ok(false);
        }
        let read_at_once = content.filter(|content| is_intact(piece, content));
        let Some(content) = read_at_once.or_else(|| pieces.read(piece)) else {
            let name = data_name(piece.data);
            let (at, name) = (piece.at, name.display());
            fault = Some(format!("its bytes from {at} on are damaged in {name}"));
            return Ok(false);
        };
        let mut done = 0;
        while done < content.len() {
            done += file::write_at(file, &content[done..], piece.at + done as u64)?;
        }
        bytes += content.len() as u64;
        Ok(true)
    };
    match large {
        Some(large) => large.read(&entry.pieces, &mut take)?,
        None => {
            for piece in &entry.pieces {
                if !take(piece, None)? {
                    break;
                }
            }
        }
    }
    if let Some(why) = fault {
        return Ok(Err(why));
    }
    let end = entry.pieces.last().map_or(0, StoredPiece::end);
    if end < entry.stat.bytes {
        let longer = file.set_len(entry.stat.bytes);
        longer.map_err(|source| sys::Error::new("make longer", source))?;
    }
    Ok(Ok(bytes))
}
