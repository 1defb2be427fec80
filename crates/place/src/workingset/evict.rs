//! Evicts a process's memory to swap, or a file from the page cache, for experiments. Touches only
//! what was named; dirty pages of files are written first.

use crate::cached;
use crate::tree::{self, WalkEvent};
use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::maps;
use machine::pagemap::{Page, Pagemap};
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use sys::file::CacheAdvice;
use sys::file_stat::InodeKind;
use sys::process_memory;

/// What is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictTarget {
    /// A process's anonymous memory and mapped files (`MADV_PAGEOUT`).
    Process(u32),
    /// A file, or all files below a directory on its file system.
    Path(PathBuf),
}

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    /// Bytes that were in memory before.
    pub before_bytes: u64,
    /// Bytes that still are.
    pub after_bytes: u64,
    /// Why something stayed, in words; empty if nothing did.
    pub kept: Vec<String>,
}

/// Evicts `victim`.
///
/// # Errors
/// `Usage` for one that is not there, `Impossible` without the right.
pub fn evict(root: &Root, victim: &EvictTarget) -> Result<Evicted> {
    match victim {
        EvictTarget::Process(pid) => evict_process(root, *pid),
        EvictTarget::Path(path) => evict_path(root, path),
    }
}

/// The kernel takes less than 2 GiB in one call.
const ADVISE_BYTES: u64 = 1 << 30;

/// Why files stay.
const BUSY: &str = "mapped, locked or in use by a process";
const DIRTY: &str = "still being written";
const IN_RAM: &str = "on a file system in RAM, where they have no other place";
const REFUSED: &str = "not this user's to read, or the kernel does not say";

fn evict_path(root: &Root, path: &Path) -> Result<Evicted> {
    let mut evicted = Evicted::default();
    let mut kept: BTreeMap<&str, u64> = BTreeMap::new();
    tree::walk(root, path, &mut |met| {
        let why = match met {
            WalkEvent::Entry(entry) if entry.stat.kind == InodeKind::File => {
                evict_file(&entry.path(), &mut evicted)
            }
            WalkEvent::Refused(..) => Some(REFUSED),
            _ => None,
        };
        if let Some(why) = why {
            *kept.entry(why).or_default() += 1;
        }
        tree::unless_interrupted()
    })?;
    evicted.kept = kept
        .iter()
        .map(|(why, files)| format!("{files} {}: {why}", plural(*files, "file", "files")))
        .collect();
    Ok(evicted)
}

fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Evicts one file and adds to `evicted`; why some of it stayed, if it did.
fn evict_file(path: &Path, evicted: &mut Evicted) -> Option<&'static str> {
    let Ok(file) = sys::file::open_unnoticed(path) else {
        return Some(REFUSED);
    };
    if sys::file::file_system(&file).is_ok_and(|system| system.in_ram) {
        return Some(IN_RAM);
    }
    let Some(before_bytes) = cached_bytes(&file) else {
        return Some(REFUSED);
    };
    // Writing its data needs no right to write: the kernel would do so in half a minute. Where
    // it fails, the pages stay and are seen to.
    let _ = sys::file::sync_range_wait(&file, 0, 0);
    let _ = sys::file::advise(&file, 0, 0, CacheAdvice::DontNeed);
    let after_bytes = cached_bytes(&file).unwrap_or(before_bytes);
    evicted.before_bytes += before_bytes;
    evicted.after_bytes += after_bytes;
    let is_dirty = sys::cachestat::of(&file, 0, 0).is_ok_and(|now| now.dirty + now.writeback > 0);
    match (after_bytes, is_dirty) {
        (0, _) => None,
        (_, true) => Some(DIRTY),
        (_, false) => Some(BUSY),
    }
}

/// Bytes of the whole file in the page cache.
fn cached_bytes(file: &File) -> Option<u64> {
    let length = file.metadata().ok()?.len();
    cached::bytes_of(file, &(0..length))
}

fn evict_process(root: &Root, pid: u32) -> Result<Evicted> {
    let failed = |kind, source: &_| {
        let reason = sys::plain_reason(source);
        Error::new(kind, format!("push the process {pid} out"), reason)
    };
    let gone = |error: sys::Error| failed(ErrorKind::Usage, &error.source);
    let refused = |error: machine::Error| failed(ErrorKind::Impossible, &error.source);
    let process = sys::pidfd::open(pid).map_err(gone)?;
    let ranges: Vec<Range<u64>> = maps::read(root, pid)
        .map_err(refused)?
        .into_iter()
        .filter(|mapping| mapping.kind != maps::MappingKind::Special)
        .map(|mapping| mapping.range)
        .collect();
    let mut pagemap = Pagemap::open(root, pid).map_err(refused)?;
    let before_bytes = present_bytes(&mut pagemap, &ranges).map_err(refused)?;
    let cached_before = swap_cached_bytes(root);
    let locked = page_out(process.as_fd(), &ranges)?;
    let after_bytes = present_bytes(&mut pagemap, &ranges).map_err(refused)?;
    let counters = swap_cached_bytes(root).zip(cached_before);
    let grown = counters.map_or(0, |(now, then)| now.saturating_sub(then));
    // The counter is of the whole machine: what others evict is not this process's.
    let cached = grown.min(before_bytes.saturating_sub(after_bytes));
    let mut kept = Vec::new();
    if locked > 0 {
        let mappings = plural(locked, "mapping is", "mappings are");
        kept.push(format!("{locked} {mappings} locked or of a kind that stays"));
    }
    if after_bytes > 0 {
        kept.push(
            "pages that others have mapped as well, that the process uses at this moment, or \
             for which swap has no room"
                .to_owned(),
        );
    }
    if cached > 0 {
        kept.push(format!(
            "of what went {} are in swap and, until memory gets short, in the swap cache as well: \
             who touches them waits for no disk",
            Bytes(cached)
        ));
    }
    Ok(Evicted { before_bytes, after_bytes, kept })
}

/// Bytes that are both in swap and in memory; `None` before Linux 5.12.
fn swap_cached_bytes(root: &Root) -> Option<u64> {
    let pages = machine::vmstat::counter(root, "nr_swapcached")?;
    Some(pages * sys::process::page_bytes() as u64)
}

/// Evicts the ranges one by one, since a range that cannot go (locked, of huge pages) must not stop
/// the others. Returns how many could not.
fn page_out(process: BorrowedFd<'_>, ranges: &[Range<u64>]) -> Result<u64> {
    let mut locked = 0;
    for range in ranges {
        for start in range.clone().step_by(ADVISE_BYTES as usize) {
            if sys::interrupt::requested() {
                return Ok(locked);
            }
            let part = start..range.end.min(start + ADVISE_BYTES);
            match process_memory::advise(process, &[part], process_memory::MemoryAdvice::PageOut) {
                Ok(_) => {}
                Err(error) if error.kind == sys::ErrorKind::Unsupported => {
                    locked += 1;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    if locked > 0 && locked == ranges.len() as u64 {
        return Err(Error::new(
            ErrorKind::Impossible,
            "push memory of a process out",
            "this kernel does not do that for another process (Linux 5.10)",
        ));
    }
    Ok(locked)
}

/// How much of these address ranges is in memory.
fn present_bytes(pagemap: &mut Pagemap, ranges: &[Range<u64>]) -> machine::Result<u64> {
    let mut pages = 0;
    for range in ranges {
        pagemap.read(range.clone(), |_, page| {
            pages += u64::from(matches!(page, Page::Present { .. }));
        })?;
    }
    Ok(pages * sys::process::page_bytes() as u64)
}
