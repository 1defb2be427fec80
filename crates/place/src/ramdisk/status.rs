//! The state of RAM disks: what they hold, what of it is in swap, what a crash now would cost, and
//! when they are full. Nothing is written, and no page is read from swap.
//!
//! What would compress is tried on a sample: pieces in even distances over all files. Growth is
//! taken from the generations of the store, and counts only while each was larger than the one
//! before.

use super::create::now;
use super::kind::RamdiskKind;
use super::record::{RamdiskRecord, RamdiskRecords, RamdiskState};
use super::save::{Comparison, compare};
use super::store::Store;
use crate::Result;
use crate::tree::{TreeEntry, TreeWalk, WalkEvent, WalkLimits};
use machine::{Root, memory};
use model::progress::{Progress, ProgressSink};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use sys::cachestat;
use sys::directory::Directory;
use sys::file;
use sys::file_stat::InodeKind;

/// Bytes that are compressed at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Pieces of a sample: 4 MiB take 20 ms at 200 MB/s.
const PIECES: u64 = 64;
/// zstd's quickest: whether there is anything to gain.
const LEVEL: i32 = 1;
/// Generations from which growth is known.
const LEAST_GENERATIONS: usize = 3;
/// A growth is believed for so many times the span in which it was seen.
const BELIEVED_SPANS: f64 = 20.0;

/// A RAM disk and what is known of it.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskStatus {
    /// It.
    pub ramdisk: RamdiskRecord,
    /// Whether it is where it was mounted. The rest is absent if not.
    pub state: RamdiskState,
    /// The most that it holds.
    pub size_bytes: Option<u64>,
    /// What is in use.
    pub used_bytes: Option<u64>,
    /// The memory that an atomic one takes, compressed; absent for a tmpfs, which takes what is in
    /// use.
    pub memory_bytes: Option<u64>,
    /// Of what is in use, in swap.
    pub swapped_bytes: Option<u64>,
    /// What would compress.
    pub sample: Option<CompressedSample>,
    /// How it differs from the newest generation of its store.
    pub compared: Option<Comparison>,
    /// Why it could not be compared.
    pub not_compared: Option<String>,
    /// Seconds since the newest generation was saved.
    pub age_seconds: Option<i64>,
    /// What its store wrote to its disk today (UTC), for new generations.
    pub written_today_bytes: Option<u64>,
    /// How it grows.
    pub growth: Option<RamdiskGrowth>,
}

/// A sample of what is in memory, compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompressedSample {
    /// How much was tried.
    pub bytes: u64,
    /// What it took, each piece by itself.
    pub compressed_bytes: u64,
}

/// How a RAM disk grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RamdiskGrowth {
    /// Bytes in an hour.
    pub bytes_per_hour: f64,
    /// Seconds from the oldest generation to now.
    pub seen_seconds: i64,
    /// Hours until it is full; absent if that is too far off to be said.
    pub hours_until_full: Option<f64>,
}

/// What a walk over all files finds.
struct Inspection {
    /// The distance between two pieces of the sample, in bytes.
    distance: u64,
    /// Bytes of files that were met.
    met: u64,
    /// Where the next piece is.
    next: u64,
    swapped: Option<u64>,
    sample: CompressedSample,
    linked: HashSet<u64>,
    buffer: Vec<u8>,
}

/// The RAM disks that are known here, and whether they are where they were mounted.
///
/// # Errors
/// As [`RamdiskRecords::lock`].
pub fn list(root: &Root) -> Result<Vec<RamdiskStatus>> {
    let all = RamdiskRecords::lock(root)?.all()?;
    all.into_iter().map(|ramdisk| brief(root, ramdisk).map(|(status, _)| status)).collect()
}

/// The state of one RAM disk, or of all.
///
/// # Errors
/// `Usage` for a name that none has; as [`RamdiskRecords::lock`].
pub fn status(
    root: &Root,
    name: Option<&Path>,
    progress: &mut ProgressSink<'_>,
) -> Result<Vec<RamdiskStatus>> {
    let records = RamdiskRecords::lock(root)?;
    let wanted = match name {
        Some(name) => vec![records.find(name)?],
        None => records.all()?,
    };
    // Others need not wait for what follows.
    drop(records);
    wanted.into_iter().map(|ramdisk| whole(root, ramdisk, progress)).collect()
}

/// What is known at once, and the top directory.
fn brief(root: &Root, ramdisk: RamdiskRecord) -> Result<(RamdiskStatus, Option<Directory>)> {
    let (state, top) = ramdisk.state(root);
    let space = top.as_ref().map(|top| file::file_system(top.file())).transpose()?;
    let used_bytes = space.and_then(|space| space.used_bytes);
    let status = RamdiskStatus {
        age_seconds: ramdisk.persist.as_ref().and_then(|persist| newest_age(&persist.store)),
        size_bytes: space.map(|space| space.free_bytes + used_bytes.unwrap_or(0)),
        memory_bytes: ramdisk.kind.memory(root).map(|memory| memory.0),
        ramdisk,
        state,
        used_bytes,
        swapped_bytes: None,
        sample: None,
        compared: None,
        not_compared: None,
        written_today_bytes: None,
        growth: None,
    };
    Ok((status, top))
}

fn whole(
    root: &Root,
    ramdisk: RamdiskRecord,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskStatus> {
    let (mut status, top) = brief(root, ramdisk)?;
    let (Some(top), Some(used)) = (top, status.used_bytes) else {
        return Ok(status);
    };
    if status.ramdisk.kind == RamdiskKind::Tmpfs {
        let inspection = Inspection::of(root, top, used, progress)?;
        status.swapped_bytes = inspection.swapped;
        status.sample = Some(inspection.sample).filter(|sample| sample.bytes > 0);
    } else {
        // The kernel never swaps what zram holds.
        status.swapped_bytes = Some(0);
    }
    if let Some(persist) = &status.ramdisk.persist {
        match compare(root, &status.ramdisk.mount_point, &persist.store, progress) {
            Ok(compared) if compared.is_complete => status.compared = Some(compared),
            Ok(_) => status.not_compared = Some("interrupted".to_owned()),
            Err(error) => status.not_compared = Some(error.to_string()),
        }
        status.written_today_bytes = written_today(&persist.store);
        let points = saved_sizes(&persist.store);
        status.growth = status.size_bytes.and_then(|size| growth(&points, (now(), used), size));
    }
    Ok(status)
}

fn newest_age(store: &Path) -> Option<i64> {
    let store = Store::open(store).ok()?;
    let newest = store.generations().ok()?.last().copied()?;
    Some((now() - store.manifest(newest).ok()?.saved.seconds).max(0))
}

fn written_today(store: &Path) -> Option<u64> {
    let store = Store::open(store).ok()?;
    let Some(newest) = store.generations().ok()?.last().copied() else { return Some(0) };
    let manifest = store.manifest(newest).ok()?;
    let wrote = manifest.wrote.plus(store.manifest_bytes(newest), manifest.saved.seconds);
    Some(wrote.at(now()))
}

/// When each generation was saved, and its bytes. Without those that cannot be read.
fn saved_sizes(store: &Path) -> Vec<(i64, u64)> {
    let Ok(store) = Store::open(store) else { return Vec::new() };
    let all = store.generations().unwrap_or_default();
    let read = all.into_iter().filter_map(|generation| store.manifest(generation).ok());
    read.map(|manifest| (manifest.saved.seconds, manifest.data.values().sum())).collect()
}

/// Growth from the oldest to the newest of at least three points; `None` unless each is larger than
/// the one before. `now` is the time and what is in use.
fn growth(points: &[(i64, u64)], now: (i64, u64), size: u64) -> Option<RamdiskGrowth> {
    let (oldest, newest) = (points.first()?, points.last()?);
    let is_growing = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
    if points.len() < LEAST_GENERATIONS || !is_growing {
        return None;
    }
    let span = newest.0 - oldest.0;
    let bytes_per_hour = (newest.1 - oldest.1) as f64 / span as f64 * 3600.0;
    let hours = size.saturating_sub(now.1) as f64 / bytes_per_hour;
    let seen_seconds = now.0 - oldest.0;
    let is_near = hours * 3600.0 <= span as f64 * BELIEVED_SPANS;
    Some(RamdiskGrowth {
        bytes_per_hour,
        seen_seconds,
        hours_until_full: Some(hours).filter(|_| is_near),
    })
}

impl Inspection {
    fn of(root: &Root, top: Directory, used: u64, progress: &mut ProgressSink<'_>) -> Result<Self> {
        let distance = (used / PIECES).max(PIECE_BYTES);
        let has_swap = memory::read(root).swap_total.is_some_and(|swap| swap.0 > 0);
        let mut this = Self {
            distance,
            met: 0,
            next: distance / 2,
            swapped: (!has_swap).then_some(0),
            sample: CompressedSample::default(),
            linked: HashSet::new(),
            buffer: vec![0; PIECE_BYTES as usize],
        };
        let mut swapped_pages = 0;
        let mut walk = TreeWalk::below(top, WalkLimits { one_file_system: true, reach: None })?;
        let mut done = 0;
        let mut are_all_known = has_swap;
        while let Some(event) = walk.next() {
            let WalkEvent::Entry(entry) = event else { continue };
            done += 1;
            if done % 1024 == 0
                && progress(Progress::items("looking at files", done, None)).is_stop()
            {
                break;
            }
            if entry.stat.kind != InodeKind::File || entry.stat.allocated_bytes == 0 {
                continue;
            }
            match this.file(&entry, has_swap) {
                Some(evicted) => swapped_pages += evicted,
                None => are_all_known = false,
            }
        }
        if are_all_known {
            this.swapped = Some(swapped_pages * sys::process::page_bytes() as u64);
        }
        Ok(this)
    }

    /// Looks at a file; how many of its pages are in swap, `None` if that cannot be known.
    fn file(&mut self, entry: &TreeEntry<'_>, has_swap: bool) -> Option<u64> {
        if entry.stat.links > 1 && !self.linked.insert(entry.stat.inode) {
            return Some(0);
        }
        let begin = self.met;
        self.met += entry.stat.bytes;
        let is_sampled = self.next < self.met;
        if !has_swap && !is_sampled {
            return Some(0);
        }
        // One that is gone by now holds nothing.
        let Ok(file) = entry.directory.open_found(entry.name, entry.stat) else { return Some(0) };
        while self.next < self.met {
            let at = (self.next - begin) / PIECE_BYTES * PIECE_BYTES;
            self.try_piece(&file, at, has_swap);
            self.next += self.distance;
        }
        if has_swap { cachestat::of(&file, 0, 0).ok().map(|pages| pages.evicted) } else { Some(0) }
    }

    /// Compresses a piece, unless reading it would bring it back from swap.
    fn try_piece(&mut self, file: &std::fs::File, at: u64, has_swap: bool) {
        let state = cachestat::of(file, at, PIECE_BYTES);
        let is_in_memory = state.map_or(!has_swap, |pages| pages.evicted == 0 && pages.cached > 0);
        if !is_in_memory {
            return;
        }
        let Ok(bytes) = file::read_at(file, &mut self.buffer, at) else { return };
        if let Ok(compressed) = zstd::bulk::compress(&self.buffer[..bytes], LEVEL) {
            self.sample.bytes += bytes as u64;
            self.sample.compressed_bytes += compressed.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_known_from_generations_that_grow_and_not_believed_for_long() {
        let points = [(0, 100), (1800, 200), (3600, 300)];
        let grown = growth(&points, (3600, 300), 700).unwrap();
        assert_eq!((grown.bytes_per_hour, grown.hours_until_full), (200.0, Some(2.0)));
        assert_eq!(grown.seen_seconds, 3600);
        let far = growth(&points, (3600, 300), 100_000).unwrap();
        assert_eq!(far.hours_until_full, None);
        assert_eq!(growth(&points[..2], (3600, 300), 700), None, "two are a line of any kind");
        assert_eq!(growth(&[(0, 100), (9, 200), (18, 150)], (20, 150), 700), None);
        assert_eq!(growth(&[(0, 100), (9, 200), (9, 300)], (20, 300), 700), None);
    }
}
