//! What is known of RAM disks while a recorder runs: the series `ramdisk.*` of a recording.
//!
//! A thread of low priority walks each RAM disk, opens no file that has nothing in swap to be
//! counted, and takes no lock of a store. It rests a hundred times as long as it worked. RAM disks
//! that appear later are not among them.
//!
//! What is not saved is counted by files: those that changed since the newest generation got its
//! name. Nothing is compared by content, so it is the most that a crash now would cost.

use super::record::{RamdiskRecord, RamdiskRecords};
use super::store::Generation;
use crate::Result;
use crate::tree::{TreeWalk, WalkEvent, WalkLimits};
use machine::{Root, memory};
use model::recording::SeriesKind;
use model::{Gauge, GaugeName, GaugeSet};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sys::attributes::FileTime;
use sys::background::Background;
use sys::cachestat;
use sys::directory::Directory;
use sys::file;
use sys::file_stat::InodeKind;

/// RAM disks with series of their own.
const MOST_RAMDISKS: usize = 16;
/// Of one processor the thread takes at most one part in so many.
const REST_FACTOR: u32 = 100;
/// Levels that change slowly.
const LEAST_REST: Duration = Duration::from_secs(5);
/// The series of each RAM disk, with their units.
const LEVELS: [(&str, &str); 4] = [
    ("used_bytes", "bytes"),
    ("swapped_bytes", "bytes"),
    ("unsaved_bytes", "bytes"),
    ("generation_age_ns", "ns"),
];

/// The gauges of the RAM disks that are here.
#[derive(Debug)]
pub struct RamdiskGauges {
    names: Vec<GaugeName>,
    /// In the order of the names.
    values: Vec<Gauge>,
}

/// What a walk finds.
#[derive(Debug, Default)]
struct RamdiskLevels {
    used_bytes: Option<u64>,
    swapped_bytes: Option<u64>,
    unsaved_bytes: Option<u64>,
    generation_age_ns: Option<u64>,
}

impl RamdiskGauges {
    /// Starts to look at the RAM disks that are here; `None` without any and for ordinary users. It
    /// goes on until the gauges are dropped.
    #[must_use]
    pub fn start(root: &Root) -> Option<Arc<Self>> {
        let mut ramdisks = RamdiskRecords::known(root).ok()?;
        ramdisks.truncate(MOST_RAMDISKS);
        if ramdisks.is_empty() {
            return None;
        }
        let mut taken = HashSet::new();
        let mut names = Vec::new();
        for ramdisk in &ramdisks {
            let name = series_name(&ramdisk.mount_point, &mut taken);
            for (level, unit) in LEVELS {
                // A recorder starts once in the life of a process.
                let name = String::leak(format!("ramdisk.{name}.{level}"));
                names.push(GaugeName { name, unit, kind: SeriesKind::Gauge });
            }
        }
        let values = names.iter().map(|_| Gauge::absent()).collect();
        let gauges = Arc::new(Self { names, values });
        let (root, watched) = (root.clone(), Arc::downgrade(&gauges));
        let started = thread::Builder::new().name("ramdisks".to_owned());
        started.spawn(move || watch(&root, &ramdisks, &watched)).ok()?;
        Some(gauges)
    }

    fn set(&self, ramdisk: usize, levels: &RamdiskLevels) {
        let all = [
            levels.used_bytes,
            levels.swapped_bytes,
            levels.unsaved_bytes,
            levels.generation_age_ns,
        ];
        for (gauge, level) in self.values[ramdisk * LEVELS.len()..].iter().zip(all) {
            match level {
                Some(level) => gauge.set(level),
                None => gauge.clear(),
            }
        }
    }
}

impl GaugeSet for RamdiskGauges {
    fn names(&self) -> &[GaugeName] {
        &self.names
    }

    fn value(&self, place: usize) -> Option<u64> {
        self.values.get(place)?.get()
    }
}

/// The last part of a path, in characters that a series may have; with a number if it is taken.
fn series_name(path: &Path, taken: &mut HashSet<String>) -> String {
    let last = path.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut name = plain.clone();
    for number in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{plain}-{number}");
    }
    name
}

/// Looks at all RAM disks again and again, until nothing holds the gauges.
fn watch(root: &Root, ramdisks: &[RamdiskRecord], watched: &Weak<RamdiskGauges>) {
    // Without it the thread runs like any other, and rests as long.
    let _background = Background::take();
    loop {
        let started = Instant::now();
        for (at, ramdisk) in ramdisks.iter().enumerate() {
            let levels = levels_of(root, ramdisk);
            let Some(gauges) = watched.upgrade() else { return };
            gauges.set(at, &levels);
        }
        thread::sleep((started.elapsed() * REST_FACTOR).max(LEAST_REST));
    }
}

/// The levels of one; all are absent once it is not mounted any more.
fn levels_of(root: &Root, ramdisk: &RamdiskRecord) -> RamdiskLevels {
    let mut levels = RamdiskLevels::default();
    let Some(top) = ramdisk.state(root).1 else { return levels };
    levels.used_bytes = file::file_system(top.file()).ok().and_then(|space| space.used_bytes);
    let saved = ramdisk.persist.as_ref().and_then(|persist| newest_generation(&persist.store));
    let since = saved.map_or(0, nanoseconds);
    levels.generation_age_ns = saved.map(|saved| now_ns().saturating_sub(nanoseconds(saved)));
    // What btrfs evicted was only cached.
    let has_swap = ramdisk.kind.device().is_none()
        && memory::read(root).swap_total.is_some_and(|swap| swap.0 > 0);
    if let Ok((swapped, unsaved)) = walk(top, since, has_swap) {
        levels.swapped_bytes = swapped;
        levels.unsaved_bytes = ramdisk.persist.as_ref().map(|_| unsaved);
    }
    levels
}

/// Bytes in swap, and bytes of files that changed after `since`.
fn walk(top: Directory, since: u64, has_swap: bool) -> Result<(Option<u64>, u64)> {
    let (mut swapped_pages, mut unsaved, mut linked) = (Some(0), 0, HashSet::new());
    let mut walk = TreeWalk::below(top, WalkLimits { one_file_system: true, reach: None })?;
    while let Some(event) = walk.next() {
        let WalkEvent::Entry(entry) = event else { continue };
        let stat = entry.stat;
        let is_known = stat.links > 1 && !linked.insert(stat.inode);
        if stat.kind != InodeKind::File || stat.allocated_bytes == 0 || is_known {
            continue;
        }
        if nanoseconds(stat.changed) > since {
            unsaved += stat.bytes;
        }
        // One that is gone by now holds nothing.
        if has_swap && let Ok(file) = entry.directory.open_found(entry.name, stat) {
            let pages = cachestat::of(&file, 0, 0).ok().map(|pages| pages.evicted);
            swapped_pages = swapped_pages.zip(pages).map(|(all, more)| all + more);
        }
    }
    Ok((swapped_pages.map(|pages: u64| pages * sys::process::page_bytes() as u64), unsaved))
}

/// When the newest generation of a store got its name.
fn newest_generation(store: &Path) -> Option<FileTime> {
    let store = Directory::open_private(store).ok()?;
    let names = store.names().ok()?;
    let newest = names.iter().filter_map(|name| Generation::of_name(name)).max()?;
    store.stat(&newest.name()).ok().map(|stat| stat.changed)
}

fn nanoseconds(time: FileTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.nanoseconds).unwrap_or(0)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_differ() {
        let mut taken = HashSet::new();
        let mut name = |path: &str| series_name(Path::new(path), &mut taken);
        assert_eq!(name("/ram/db.1"), "db_1");
        assert_eq!(name("/other/db_1"), "db_1-2");
        assert_eq!(name("/"), "root");
    }
}
