//! The file system that is mounted from a served volume: which bytes of the volume its files have,
//! and which of them are in the page cache now, ranked.
//!
//! Only file systems whose extents (FIEMAP) are bytes of their device: ext2 to ext4, and XFS
//! without a real-time device. btrfs reports addresses of its own.
//!
//! Files are those of any user, so what is kept of them is bounded: parts of one file by the room
//! that the caller has, extents by asking for a window at a time.

use crate::cached::CacheQueries;
use crate::ranges;
use crate::tree::{TreeEntry, TreeWalk, WalkEvent, WalkLimits};
use crate::{Error, ErrorKind, Result};
use machine::{Root, mounts};
use model::progress::{Progress, ProgressSink};
use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::block::device_numbers;
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};

const OPERATION: &str = "find out where files are on";
/// Bytes of a file whose extents are asked for at a time: 65,536 extents of 4 KiB, 3 MB.
const WINDOW_BYTES: u64 = 256 << 20;
/// Parts of the volume that are kept: 40 bytes each.
const PARTS_MAX: usize = 1 << 20;
/// Files with several names that are known by their inode, each counted once: 8 bytes each.
const LINKED_MAX: usize = 1 << 20;

/// The file system that is mounted from a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// Where.
    pub point: PathBuf,
    /// Its type.
    pub fs_type: String,
    /// The device.
    device: PathBuf,
    numbers: (u32, u32),
}

/// Where bytes of a file are on the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileParts {
    /// In the order of the file; adjacent ones are joined.
    pub parts: Vec<Range<u64>>,
    /// There are more parts than there was room for.
    pub is_cut: bool,
}

/// What of a volume is in the page cache, what a cache gains most from first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedParts {
    /// Parts of the volume in the order of their rank; two may overlap where files share blocks.
    pub parts: Vec<Range<u64>>,
    /// Files of which something is in the page cache.
    pub files: u64,
    /// What was left out, each in a line.
    pub notes: Vec<String>,
}

impl MountedVolume {
    /// Finds where the block device is mounted.
    ///
    /// # Errors
    /// `Impossible` if it is not mounted, and for a file system that does not say where its files
    /// are.
    pub fn find(root: &Root, device: &Path) -> Result<Self> {
        let about = std::fs::metadata(device)
            .map_err(|error| failed(device, ErrorKind::Failed, sys::plain_reason(&error)))?;
        let numbers = device_numbers(about.rdev());
        let table = mounts::read(root);
        let is_of = |mount: &&mounts::Mount| {
            (mount.major, mount.minor) == numbers
                || mount.major == 0 && Path::new(&mount.source) == device
        };
        let is_seen = |mount: &&mounts::Mount| {
            mounts::behind(&table, &mount.mount_point).is_some_and(|top| top.id == mount.id)
        };
        // The whole file system, rather than a directory of it that is mounted elsewhere too.
        let mut found: Vec<_> = table.iter().filter(is_of).filter(is_seen).collect();
        found.sort_by_key(|mount| mount.root != Path::new("/"));
        let refused = |why: String| failed(device, ErrorKind::Impossible, why);
        let Some(mount) = found.first() else {
            return Err(refused("no file system is mounted from it here".to_owned()));
        };
        let has_places = match mount.fs_type.as_str() {
            "ext2" | "ext3" | "ext4" => true,
            "xfs" => !mount.super_options.contains("rtdev="),
            _ => false,
        };
        if !has_places {
            let why = format!("{} does not say where its files are on the disk", mount.fs_type);
            return Err(refused(why));
        }
        Ok(Self {
            point: mount.mount_point.clone(),
            fs_type: mount.fs_type.clone(),
            device: device.to_owned(),
            numbers,
        })
    }

    /// Whether an open file is on it.
    ///
    /// # Errors
    /// Where the file cannot be examined.
    pub fn has(&self, file: &File) -> Result<bool> {
        let stat = FileStat::of(file)
            .map_err(|error| failed(&self.point, ErrorKind::Failed, error.to_string()))?;
        Ok(device_numbers(stat.device) == self.numbers)
    }

    /// Where `within` of a file of it is on the volume, at most `room` parts. Holes, what is only
    /// reserved and what has no place yet have none.
    ///
    /// # Errors
    /// Where the file system does not answer.
    pub fn parts_of(
        &self,
        file: &File,
        within: &[Range<u64>],
        room: usize,
    ) -> sys::Result<FileParts> {
        let mut found = FileParts::default();
        for range in within {
            let mut start = range.start;
            while start < range.end && !sys::interrupt::requested() {
                let window = start..start.saturating_add(WINDOW_BYTES).min(range.end);
                for extent in sys::fiemap::extents(file, window.clone())? {
                    let Some(part) = place_of(&extent, &window) else { continue };
                    let is_full = found.parts.len() >= room;
                    match found.parts.last_mut() {
                        Some(last) if last.end == part.start => last.end = part.end,
                        _ if is_full => {
                            found.is_cut = true;
                            return Ok(found);
                        }
                        _ => found.parts.push(part),
                    }
                }
                start = window.end;
            }
        }
        Ok(found)
    }

    /// What of its files, and of the metadata that the kernel reads through the device itself, is
    /// in the page cache. Ranked: metadata, then files by the share of them that is there in
    /// tenths, of those with the same share the smallest first, since a disk is slowest at many
    /// small ones. When a page was last used, the kernel does not say.
    ///
    /// # Errors
    /// Where the file system cannot be walked.
    pub fn cached_parts(&self, progress: &mut ProgressSink<'_>) -> Result<CachedParts> {
        let at_fault = |error: sys::Error| {
            failed(&self.point, ErrorKind::Failed, sys::plain_reason(&error.source))
        };
        let top = Directory::open(&self.point).map_err(at_fault)?;
        if !self.has(top.file())? {
            let why = "it is another file system by now".to_owned();
            return Err(failed(&self.point, ErrorKind::Failed, why));
        }
        let mut search = CacheSearch::new(self);
        search.add_metadata();
        let limits = WalkLimits { one_file_system: true, reach: None };
        let mut walk = TreeWalk::below(top, limits).map_err(at_fault)?;
        let mut examined = 0;
        while let Some(event) = walk.next() {
            match event {
                WalkEvent::Entry(entry) if entry.stat.kind == InodeKind::File => {
                    search.add_file(entry);
                    examined += 1;
                }
                WalkEvent::Refused(..) => search.refused += 1,
                _ => continue,
            }
            let amount = Progress::items("looking for files in the page cache", examined, None);
            if search.is_full || progress(amount).is_stop() || sys::interrupt::requested() {
                break;
            }
        }
        Ok(search.ranked())
    }
}

/// How early a part is filled: the tenths of its file that are not in the page cache, then its
/// file's bytes there.
type Rank = (u64, u64);

/// What was found so far.
struct CacheSearch<'v> {
    volume: &'v MountedVolume,
    questions: CacheQueries,
    found: Vec<(Rank, Range<u64>)>,
    /// Inodes with several names that were met.
    linked: HashSet<u64>,
    files: u64,
    refused: u64,
    is_full: bool,
}

impl<'v> CacheSearch<'v> {
    fn new(volume: &'v MountedVolume) -> Self {
        Self {
            volume,
            questions: CacheQueries::default(),
            found: Vec::new(),
            linked: HashSet::new(),
            files: 0,
            refused: 0,
            is_full: false,
        }
    }

    /// Blocks of the device that the kernel holds by themselves: inodes and directories of ext4.
    fn add_metadata(&mut self) {
        let Ok(device) = sys::file::open_read(&self.volume.device, false) else { return };
        let Ok(bytes) = sys::block::size_bytes(&device) else { return };
        let whole = 0..bytes;
        let asked = self.questions.ranges_of(&device, std::slice::from_ref(&whole));
        if let Ok(Some(parts)) = asked {
            let within = parts.into_iter().map(|part| part.start..part.end.min(bytes));
            self.found.extend(within.take(PARTS_MAX).map(|part| ((0, 0), part)));
        }
    }

    fn add_file(&mut self, entry: TreeEntry<'_>) {
        let stat = entry.stat;
        if stat.bytes == 0 || stat.allocated_bytes == 0 {
            return;
        }
        if stat.links > 1 && self.linked.len() < LINKED_MAX && !self.linked.insert(stat.inode) {
            return;
        }
        let Ok(file) = entry.directory.open_found(entry.name, stat) else {
            self.refused += 1;
            return;
        };
        let whole = 0..stat.bytes;
        let asked = self.questions.ranges_of(&file, std::slice::from_ref(&whole));
        let Ok(Some(cached)) = asked else { return };
        if cached.is_empty() {
            return;
        }
        let room = PARTS_MAX - self.found.len().min(PARTS_MAX);
        let Ok(FileParts { parts, is_cut }) = self.volume.parts_of(&file, &cached, room) else {
            self.refused += 1;
            return;
        };
        let bytes = ranges::total(&cached);
        let tenths = (u128::from(bytes) * 10 / u128::from(stat.bytes)).min(10) as u64;
        self.files += u64::from(!parts.is_empty());
        self.is_full |= is_cut;
        self.found.extend(parts.into_iter().map(|part| ((10 - tenths, bytes), part)));
    }

    fn ranked(mut self) -> CachedParts {
        self.found.sort_by_key(|(rank, _)| *rank);
        let mut notes: Vec<String> = self.questions.note().into_iter().collect();
        if self.refused > 0 {
            notes.push(format!("{} files or directories could not be examined", self.refused));
        }
        if self.is_full {
            notes.push(format!("only the first {PARTS_MAX} parts that were found are ranked"));
        }
        let parts = self.found.into_iter().map(|(_, part)| part).collect();
        CachedParts { parts, files: self.files, notes }
    }
}

/// Where the part of an extent that is in `window` is on the device.
fn place_of(extent: &sys::fiemap::FileExtent, window: &Range<u64>) -> Option<Range<u64>> {
    let physical = extent.physical.filter(|_| !extent.unwritten)?;
    let start = extent.offset.max(window.start);
    let end = extent.offset.saturating_add(extent.bytes).min(window.end);
    let place = physical.checked_add(start.checked_sub(extent.offset)?)?;
    (start < end).then(|| place..place.saturating_add(end - start))
}

fn failed(path: &Path, kind: ErrorKind, why: String) -> Error {
    Error::new(kind, OPERATION, why).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    fn find(mountinfo: &str, device: &str) -> Result<MountedVolume> {
        let fake = FakeRoot::new().file("/proc/self/mountinfo", mountinfo);
        MountedVolume::find(&Root::at(fake.path()), Path::new(device))
    }

    #[test]
    fn only_a_part_within_the_window_that_was_written_has_a_place() {
        let extent = sys::fiemap::FileExtent {
            offset: 4096,
            bytes: 8192,
            physical: Some(1 << 20),
            unwritten: false,
        };
        assert_eq!(place_of(&extent, &(0..u64::MAX)), Some(1 << 20..(1 << 20) + 8192));
        assert_eq!(place_of(&extent, &(8192..9000)), Some((1 << 20) + 4096..(1 << 20) + 4904));
        assert_eq!(place_of(&extent, &(0..4096)), None);
        let unwritten = sys::fiemap::FileExtent { unwritten: true, ..extent };
        assert_eq!(place_of(&unwritten, &(0..u64::MAX)), None);
        let hostile = sys::fiemap::FileExtent {
            offset: 0,
            bytes: u64::MAX,
            physical: Some(u64::MAX - 10),
            unwritten: false,
        };
        assert_eq!(place_of(&hostile, &(100..200)), None);
        assert_eq!(place_of(&hostile, &(0..200)), Some(u64::MAX - 10..u64::MAX));
    }

    #[test]
    fn a_file_system_that_says_no_places_is_refused() {
        // /dev/null has a number that no disk has.
        let table = |fs: &str, options: &str| {
            format!(
                "20 1 0:9 / / rw - ext4 /x rw\n21 20 1:3 /d /b rw - {fs} x rw\n22 20 1:3 / /a rw - {fs} x {options}\n"
            )
        };
        let ext = find(&table("ext4", "rw"), "/dev/null").unwrap();
        assert_eq!(ext.point, Path::new("/a"));
        for (fs, options) in [("btrfs", "rw"), ("xfs", "rw,rtdev=/dev/sdc"), ("vfat", "rw")] {
            let refused = find(&table(fs, options), "/dev/null");
            assert!(refused.is_err_and(|it| it.kind == ErrorKind::Impossible), "{fs}");
        }
        let absent = find("20 1 8:1 / / rw - ext4 /x rw\n", "/dev/null").unwrap_err();
        assert!(absent.to_string().contains("no file system is mounted from it"), "{absent}");
    }
}
