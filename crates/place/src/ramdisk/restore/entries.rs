//! Makes the entries of a generation below the hidden directory: directories, then all else in the
//! order of the data files, then the metadata of directories.

use super::RamdiskRestoreReport;
use super::target::RestoreTarget;
use crate::metadata::{FileMetadata, LossTally};
use crate::ramdisk::catalog::Catalog;
use crate::ramdisk::content::{BLOCK_BYTES, read_whole};
use crate::ramdisk::manifest::{Entry, StoredPiece};
use crate::ramdisk::store::{Store, data_name};
use crate::{EntryFailure, Error, ErrorKind, Result};
use model::progress::{Progress, ProgressSink};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use sys::directory::Directory;
use sys::file::{self, CacheAdvice};
use sys::file_stat::InodeKind;
use xxhash_rust::xxh3::xxh3_64;

/// Failures that are named; the others are counted.
const MOST_NAMED: usize = 1000;
/// Data files that are open at a time.
const MOST_OPEN: usize = 8;
/// Progress is reported once for so many entries.
const REPORT_EVERY: u64 = 64;

/// Makes entries.
#[derive(Debug)]
pub(super) struct EntryMaker<'r> {
    store: &'r Store,
    top: &'r Directory,
    report: &'r mut RamdiskRestoreReport,
    /// The directory that the last entry was made in.
    current: Option<(Vec<u8>, Directory)>,
    data: BTreeMap<u64, File>,
    /// The first path of each inode that has several names.
    linked: HashMap<u64, Vec<u8>>,
    buffer: Vec<u8>,
    losses: LossTally,
}

impl<'r> EntryMaker<'r> {
    pub(super) fn new(
        store: &'r Store,
        target: &'r RestoreTarget,
        report: &'r mut RamdiskRestoreReport,
    ) -> Self {
        Self {
            store,
            top: target.hidden(),
            report,
            current: None,
            data: BTreeMap::new(),
            linked: HashMap::new(),
            buffer: vec![0; BLOCK_BYTES as usize],
            losses: LossTally::default(),
        }
    }

    /// Makes all entries at or below a path; whether it was not interrupted.
    pub(super) fn make(
        &mut self,
        catalog: &Catalog,
        below: Option<&Path>,
        progress: &mut ProgressSink<'_>,
    ) -> Result<bool> {
        let typed = below.map_or(&[][..], |below| below.as_os_str().as_bytes());
        let wanted = typed.strip_suffix(b"/").unwrap_or(typed);
        let Some(found) = catalog.entry(wanted) else {
            let why = format!("generation {} has no such path", self.report.generation);
            let path = OsStr::from_bytes(wanted);
            return Err(Error::new(ErrorKind::Usage, "restore", why).at(path));
        };
        // A directory stands for what is below it, all else for itself under its name.
        let is_directory = found.stat.kind == InodeKind::Directory;
        let below = if is_directory { wanted } else { split(wanted).0 };
        let is_wanted = |path: &[u8]| is_directory || path == wanted;
        let mut directories = Vec::new();
        // The path and the place of the content: entries are understood when they are made.
        let mut others = Vec::new();
        let mut understood = 0;
        for (_, entry) in catalog.entries() {
            understood += 1;
            let Some(path) = path_below(&entry.path, below).filter(|_| is_wanted(&entry.path))
            else {
                continue;
            };
            if entry.stat.kind == InodeKind::Directory {
                directories.push((path, entry));
            } else {
                let first = entry.pieces.first();
                others.push((first.map(|piece| (piece.data, piece.offset)), entry.path));
            }
        }
        if understood != catalog.len() {
            let why = "some of its lines cannot be understood: it is damaged";
            return Err(Error::new(ErrorKind::Failed, "read the manifest", why));
        }
        directories.sort_by(|one, other| one.0.cmp(&other.0));
        for (path, _) in directories.iter().filter(|(path, _)| !path.is_empty()) {
            if let Err(error) = self.directory(path) {
                self.fail(path, sys::plain_reason(&error.source));
            }
        }
        others.sort_unstable();
        let total = others.len() as u64;
        for (done, (_, path)) in others.into_iter().enumerate() {
            if let (Some(entry), Some(place)) = (catalog.entry(&path), path_below(&path, below)) {
                self.entry(&place, &entry);
            }
            if (done as u64).is_multiple_of(REPORT_EVERY)
                && progress(Progress::items("restoring", done as u64, Some(total))).is_stop()
            {
                return Ok(false);
            }
        }
        self.current = None;
        for (path, entry) in directories.iter().rev() {
            if let Err(error) = self.dress(path, entry) {
                self.fail(path, sys::plain_reason(&error.source));
            }
        }
        self.report.losses = self.losses.counts();
        Ok(true)
    }

    fn directory(&mut self, path: &[u8]) -> sys::Result<()> {
        let (parent, name) = split(path);
        self.enter(parent)?;
        self.here().create_subdirectory(name, 0o700)?;
        self.report.entries += 1;
        Ok(())
    }

    fn dress(&mut self, path: &[u8], entry: &Entry) -> sys::Result<()> {
        let directory = open_below(self.top, path)?;
        self.give(entry, directory.file())
    }

    /// Gives a made entry its metadata.
    fn give(&mut self, entry: &Entry, made: &File) -> sys::Result<()> {
        let metadata = FileMetadata { stat: entry.stat, extended: entry.extended.clone() };
        let mut losses = metadata.apply(made)?;
        losses.extend(metadata.seal(made)?);
        self.losses.add(&losses);
        Ok(())
    }

    /// Makes an entry that is no directory.
    fn entry(&mut self, path: &[u8], entry: &Entry) {
        match self.try_entry(path, entry) {
            Ok(None) => self.report.entries += 1,
            Ok(Some(why)) => self.fail(path, why),
            Err(error) => self.fail(path, sys::plain_reason(&error.source)),
        }
    }

    /// Makes an entry; `Some` says why its content is not to be had.
    fn try_entry(&mut self, path: &[u8], entry: &Entry) -> sys::Result<Option<String>> {
        let (parent, name) = split(path);
        self.enter(parent)?;
        if entry.stat.links > 1
            && let Some(first) = self.linked.get(&entry.stat.inode)
        {
            let (first_parent, first_name) = split(first);
            let from = open_below(self.top, first_parent)?;
            self.here().create_hard_link(name, &from, first_name)?;
            return Ok(None);
        }
        let made = match (entry.stat.kind, entry.stat.special(), &entry.link_target) {
            (InodeKind::File, ..) => {
                let file = self.here().create_new(name, 0o600)?;
                if let Some(why) = self.content(&file, entry)? {
                    self.here().remove(name)?;
                    return Ok(Some(why));
                }
                file
            }
            (_, Some(special), _) => {
                self.here().create_special(name, special, 0o600)?;
                self.here().hold(name)?
            }
            (_, _, Some(target)) => {
                self.here().create_link(name, OsStr::from_bytes(target))?;
                self.here().hold(name)?
            }
            _ => return Ok(Some("it is of no kind that is known".to_owned())),
        };
        self.give(entry, &made)?;
        if entry.stat.links > 1 {
            self.linked.insert(entry.stat.inode, path.to_vec());
        }
        Ok(None)
    }

    fn content(&mut self, file: &File, entry: &Entry) -> sys::Result<Option<String>> {
        for piece in &entry.pieces {
            let bytes = piece.bytes as usize;
            if self.buffer.len() < bytes {
                self.buffer.resize(bytes, 0);
            }
            if !self.read(piece) {
                let name = data_name(piece.data);
                return Ok(Some(format!(
                    "its bytes from {} on are damaged in {}",
                    piece.at,
                    name.display()
                )));
            }
            let mut done = 0;
            while done < bytes {
                let at = piece.at + done as u64;
                done += file::write_at(file, &self.buffer[done..bytes], at)?;
            }
            self.report.bytes += bytes as u64;
        }
        let end = entry.pieces.last().map_or(0, StoredPiece::end);
        if end < entry.stat.bytes {
            let longer = file.set_len(entry.stat.bytes);
            longer.map_err(|source| sys::Error::new("make longer", source))?;
        }
        Ok(None)
    }

    /// Reads a piece into the buffer; whether it is what was saved.
    fn read(&mut self, piece: &StoredPiece) -> bool {
        if !self.data.contains_key(&piece.data) {
            let Ok(opened) = self.store.directory().open_regular(&data_name(piece.data)) else {
                return false;
            };
            // Only courtesies: most of it is read once, from the beginning to the end.
            let _ = file::advise(&opened, 0, 0, CacheAdvice::Sequential);
            if self.data.len() >= MOST_OPEN
                && let Some((_, closed)) = self.data.pop_first()
            {
                let _ = file::advise(&closed, 0, 0, CacheAdvice::DontNeed);
            }
            self.data.insert(piece.data, opened);
        }
        let Some(data) = self.data.get(&piece.data) else { return false };
        let part = &mut self.buffer[..piece.bytes as usize];
        read_whole(data, part, piece.offset).unwrap_or(false) && xxh3_64(part) == piece.hash
    }

    /// Makes the directory with this path the current one.
    fn enter(&mut self, path: &[u8]) -> sys::Result<()> {
        if self.current.as_ref().is_none_or(|(current, _)| current != path) {
            self.current = Some((path.to_vec(), open_below(self.top, path)?));
        }
        Ok(())
    }

    fn here(&self) -> &Directory {
        self.current.as_ref().map_or(self.top, |(_, directory)| directory)
    }

    fn fail(&mut self, path: &[u8], reason: String) {
        self.report.failure_count += 1;
        if self.report.failures.len() < MOST_NAMED {
            let path = PathBuf::from(OsStr::from_bytes(path));
            self.report.failures.push(EntryFailure { path, reason });
        }
    }
}

impl Drop for EntryMaker<'_> {
    fn drop(&mut self) {
        for data in self.data.values() {
            let _ = file::advise(data, 0, 0, CacheAdvice::DontNeed);
        }
    }
}

/// What is left of a path at or below `top`.
fn path_below(path: &[u8], top: &[u8]) -> Option<Vec<u8>> {
    if top.is_empty() {
        return Some(path.to_vec());
    }
    let rest = path.strip_prefix(top)?;
    match rest.first() {
        None => Some(Vec::new()),
        Some(b'/') => Some(rest[1..].to_vec()),
        Some(_) => None,
    }
}

fn split(path: &[u8]) -> (&[u8], &OsStr) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], OsStr::from_bytes(&path[slash + 1..])),
        None => (&[], OsStr::from_bytes(path)),
    }
}

/// Opens a directory component by component: no link is followed, and a path may have any length.
fn open_below(top: &Directory, path: &[u8]) -> sys::Result<Directory> {
    let mut current = top.reopen()?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        current = current.subdirectory(OsStr::from_bytes(name))?;
    }
    Ok(current)
}
