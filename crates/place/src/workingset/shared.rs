//! Shared memory and tmpfs pages in swap. They are invisible in pagemap: each
//! mapping is opened through /proc/PID/map_files; what is data and not resident is in swap. Only
//! mappings of a RAM disk are looked at, by the number of their device: a file of a server that no
//! longer answers is not asked what it is.
//!
//! Its slots cannot be seen at all, so it is restored in the order of its own offsets,
//! which is the order in which it went, where one thing pushed it out.

use super::targets::TargetProcess;
use crate::background::batch::next_size;
use crate::{Error, ErrorKind, Result};
use crate::{cached, ranges};
use machine::Root;
use machine::maps::{self, Mapping};
use machine::reach::Reach;
use model::{Progress, ProgressSink};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sys::file::MappedFile;

/// The first batch: 16 pages, which the slowest disk reads at random in about 100 ms.
const FIRST_BATCH_BYTES: u64 = 16 * 4096;
/// More is no faster on any device.
const MAX_BATCH_BYTES: u64 = 16 << 20;

/// One shared object and its parts in swap.
#[derive(Debug)]
pub struct SharedObject {
    /// Its name in the mapping (`/dev/shm/x`, `/memfd:y`, `/SYSV...`).
    pub name: String,
    /// Opened for reading.
    pub file: File,
    /// Device and inode: the same object in several processes is counted once.
    pub identity: (u64, u64),
    /// Which processes have it mapped: indices into the targets.
    pub targets: Vec<u32>,
    /// The byte ranges that are in swap, page-aligned, ascending.
    pub swapped: Vec<Range<u64>>,
    /// Bytes of it that are in memory.
    pub present_bytes: u64,
}

/// Finds the shared objects that `targets` have mapped, each once.
///
/// # Errors
/// `Impossible` where map_files is closed to this user (`CAP_SYS_ADMIN` or
/// `CAP_CHECKPOINT_RESTORE`).
pub fn find(root: &Root, targets: &[TargetProcess]) -> Result<Vec<SharedObject>> {
    let mut objects: Vec<SharedObject> = Vec::new();
    let mut by_identity: HashMap<(u64, u64), usize> = HashMap::new();
    let mut reach = Reach::new(root);
    let nameless = nameless_device();
    // What was looked at and is no shared memory, by the numbers in maps.
    let mut others = HashSet::new();
    for (index, target) in (0..).zip(targets) {
        let mut in_ram = reach.ram_devices(target.pid);
        in_ram.extend(nameless);
        // A process that has ended meanwhile has nothing mapped.
        for mapping in maps::read(root, target.pid).unwrap_or_default() {
            if sys::interrupt::requested() {
                return Ok(objects);
            }
            let key = (mapping.device, mapping.inode);
            let is_ram = may_be_shared(&mapping) && in_ram.contains(&mapping.device);
            if !is_ram || others.contains(&key) {
                continue;
            }
            let link = link_of(root, target.pid, &mapping);
            match identity_of(&link)? {
                None => {}
                Some(identity) => match by_identity.get(&identity).map(|at| &mut objects[*at]) {
                    Some(known) if known.targets.last() == Some(&index) => {}
                    Some(known) => known.targets.push(index),
                    None => match open(&link, &mapping, identity, index) {
                        Some(object) => {
                            by_identity.insert(identity, objects.len());
                            objects.push(object);
                        }
                        None => drop(others.insert(key)),
                    },
                },
            }
        }
    }
    Ok(objects)
}

/// Restores the swapped parts of `object`, and reports the bytes asked for to `progress` after
/// each batch, which may stop it. The pages stay charged to the group that
/// they were charged to. Gives the bytes asked for and, of these, those present afterwards.
pub fn restore(object: &SharedObject, progress: &mut ProgressSink<'_>) -> (u64, u64) {
    let page_bytes = sys::process::page_bytes() as u64;
    let total = ranges::total(&object.swapped);
    let (mut asked_bytes, mut present_bytes) = (0, 0);
    let mut batch_bytes = FIRST_BATCH_BYTES;
    let mut left = object.swapped.iter().cloned();
    let mut rest = None;
    loop {
        let began = Instant::now();
        let batch = next_batch(&mut rest, &mut left, batch_bytes);
        let length = ranges::total(&batch);
        if length == 0 {
            break;
        }
        fetch(&object.file, &batch, page_bytes);
        asked_bytes += length;
        present_bytes += present_of(&object.file, &batch);
        batch_bytes = next_size(length, began.elapsed(), page_bytes..=MAX_BATCH_BYTES)
            .next_multiple_of(page_bytes);
        if progress(Progress::bytes("restoring", asked_bytes, Some(total))).is_stop() {
            break;
        }
    }
    (asked_bytes, present_bytes)
}

/// The next ranges, `bytes` bytes together; what is left of the last one goes into `rest`.
fn next_batch(
    rest: &mut Option<Range<u64>>,
    left: &mut dyn Iterator<Item = Range<u64>>,
    bytes: u64,
) -> Vec<Range<u64>> {
    let (mut batch, mut room) = (Vec::new(), bytes);
    while room > 0 {
        let Some(range) = rest.take().or_else(|| left.next()) else {
            break;
        };
        let end = range.end.min(range.start + room);
        room -= end - range.start;
        *rest = (end < range.end).then_some(end..range.end);
        batch.push(range.start..end);
    }
    batch
}

/// First all at once, so that the device has many requests; then each page is waited for.
fn fetch(file: &File, batch: &[Range<u64>], page_bytes: u64) {
    for range in batch {
        if let Ok(window) = MappedFile::part(file, range.start, range.end - range.start) {
            // Where it cannot be asked ahead, the reading below does it page by page.
            let _ = window.will_need();
        }
    }
    for page in batch.iter().flat_map(|range| range.clone().step_by(page_bytes as usize)) {
        // The byte is not looked at. An object that was cut meanwhile gives none.
        let _ = sys::file::read_at(file, &mut [0], page);
    }
}

/// How many bytes of the batch are in memory now.
fn present_of(file: &File, batch: &[Range<u64>]) -> u64 {
    let present = batch.iter().filter_map(|range| cached::resident_of(file, range));
    present.map(|parts| ranges::total(&parts)).sum()
}

/// The device number of shared memory without a name (`memfd`, System V), which is in no mount
/// table.
fn nameless_device() -> Option<(u32, u32)> {
    let metadata = sys::shared_memory::file().ok()?.metadata().ok()?;
    Some(sys::block::device_numbers(metadata.dev()))
}

/// Only mappings of a file system without a disk: cheap to check, before anything is opened.
fn may_be_shared(mapping: &Mapping) -> bool {
    let backed = matches!(mapping.kind, maps::MappingKind::SharedMemory | maps::MappingKind::File);
    backed && mapping.device.0 == 0
}

fn link_of(root: &Root, pid: u32, mapping: &Mapping) -> PathBuf {
    let Range { start, end } = mapping.range;
    root.path(format!("/proc/{pid}/map_files/{start:x}-{end:x}"))
}

/// Device and inode of the mapped file; `None` where the mapping is gone or no regular file.
fn identity_of(link: &Path) -> Result<Option<(u64, u64)>> {
    match std::fs::metadata(link) {
        Ok(metadata) if metadata.is_file() => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Error::new(
            ErrorKind::Impossible,
            "see shared memory in swap",
            "it takes the capability CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE",
        )),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// The object behind a mapping; `None` where it is not on tmpfs or may not be read.
fn open(link: &Path, mapping: &Mapping, identity: (u64, u64), target: u32) -> Option<SharedObject> {
    let file = sys::file::open_unnoticed(link).ok()?;
    if sys::file::file_system(&file).ok()?.name != Some("tmpfs") {
        return None;
    }
    let page_bytes = sys::process::page_bytes() as u64;
    let data = data_ranges(&file, page_bytes)?;
    let (mut swapped, mut present_bytes) = (Vec::new(), 0);
    for range in &data {
        let present = cached::resident_of(&file, range)?;
        present_bytes += ranges::total(&present);
        swapped.extend(ranges::without(std::slice::from_ref(range), &present));
    }
    let name = mapping.path.as_deref().unwrap_or(Path::new(""));
    Some(SharedObject {
        name: name.display().to_string(),
        file,
        identity,
        targets: vec![target],
        swapped,
        present_bytes,
    })
}

/// The parts that are no holes: in memory or in swap.
fn data_ranges(file: &File, page_bytes: u64) -> Option<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(data) = sys::file::next_data(file, from).ok()? {
        if sys::interrupt::requested() {
            return None;
        }
        from = data.end;
        let start = data.start / page_bytes * page_bytes;
        ranges::push(&mut found, start..data.end.next_multiple_of(page_bytes));
    }
    Some(found)
}
