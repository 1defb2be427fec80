//! Makes the entries of a generation below the hidden directory: directories, then all else by
//! workers in the order of the data files, then the metadata of directories.

use super::RamdiskRestoreReport;
use super::entry_maker::{EntryMaker, RestoreTally};
use super::target::RestoreTarget;
use crate::ramdisk::catalog::Catalog;
use crate::ramdisk::current::split;
use crate::ramdisk::manifest::Entry;
use crate::ramdisk::store::Store;
use crate::{Error, ErrorKind, Result};
use model::progress::{Progress, ProgressSink};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use sys::file_stat::InodeKind;

/// Workers at most: more of them wait for each other in the file system.
const MOST_WORKERS: usize = 4;
/// A worker takes so many entries at a time, or as many as have so much content.
const CHUNK_ENTRIES: usize = 256;
const CHUNK_BYTES: u64 = 1 << 20;
/// How often the caller is asked whether to go on. It may watch memory that becomes short: in this
/// time a worker writes some 20 MB.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is to be made, in order.
struct RestorePlan {
    /// Paths below the target, those of parents first.
    directories: Vec<(Vec<u8>, Entry)>,
    /// Paths in the generation of files with one name, links and devices.
    others: Vec<Vec<u8>>,
    /// Parts of `others` that a worker takes at a time.
    chunks: Vec<Range<usize>>,
    /// Paths in the generation of what has several names.
    linked: Vec<Vec<u8>>,
    /// What is left out of a path in the generation.
    below: Vec<u8>,
}

/// Makes all entries at or below a path; whether it was not interrupted.
pub(super) fn make_entries(
    store: &Store,
    target: &RestoreTarget,
    catalog: &Catalog,
    below: Option<&Path>,
    report: &mut RamdiskRestoreReport,
    progress: &mut ProgressSink<'_>,
) -> Result<bool> {
    let plan = RestorePlan::new(catalog, below, report.generation)?;
    let top = || target.hidden().reopen();
    let mut maker = EntryMaker::new(store, top()?);
    for (path, _) in plan.directories.iter().filter(|(path, _)| !path.is_empty()) {
        maker.make_directory(path);
    }
    let mut makers = Vec::new();
    for _ in 0..workers().min(plan.chunks.len()) {
        makers.push(EntryMaker::new(store, top()?));
    }
    let Some(tallies) = make_others(&plan, catalog, makers, progress)? else {
        return Ok(false);
    };
    for path in &plan.linked {
        if let (Some(entry), Some(place)) = (catalog.entry(path), path_below(path, &plan.below)) {
            let is_stopped = AtomicBool::new(false);
            maker.make(&place, &entry, &is_stopped);
            let done = plan.others.len() as u64;
            if progress(Progress::items("restoring", done, Some(done))).is_stop() {
                return Ok(false);
            }
        }
    }
    for (path, entry) in plan.directories.iter().rev() {
        maker.finish_directory(path, entry);
    }
    let mut tally = maker.into_tally();
    for other in tallies {
        tally.add(other);
    }
    (report.entries, report.bytes) = (tally.entries, tally.bytes);
    tally.failures.sort_by(|one, other| one.path.cmp(&other.path));
    (report.failures, report.failure_count) = (tally.failures, tally.failure_count);
    report.losses = tally.losses.counts();
    Ok(true)
}

/// Makes all but directories and what has several names. `None` if it was interrupted.
fn make_others(
    plan: &RestorePlan,
    catalog: &Catalog,
    makers: Vec<EntryMaker<'_>>,
    progress: &mut ProgressSink<'_>,
) -> Result<Option<Vec<RestoreTally>>> {
    let next = AtomicUsize::new(0);
    let is_stopped = AtomicBool::new(false);
    let (sender, done) = channel();
    let stop = || is_stopped.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for mut maker in makers {
            let sender = sender.clone();
            let (next, is_stopped) = (&next, &is_stopped);
            let work = move || {
                make_chunks(plan, catalog, &mut maker, next, is_stopped, &sender);
                maker.into_tally()
            };
            let started = thread::Builder::new().name("restore".to_owned());
            match started.spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    stop();
                    let why = sys::plain_reason(&error);
                    return Err(Error::new(ErrorKind::Failed, "start a thread", why));
                }
            }
        }
        drop(sender);
        if !wait(&done, plan.others.len(), progress) {
            stop();
            return Ok(None);
        }
        let join = |worker: thread::ScopedJoinHandle<'_, RestoreTally>| {
            worker.join().map_err(|_| {
                Error::new(ErrorKind::Failed, "restore", "one of its threads ended early")
            })
        };
        workers.into_iter().map(join).collect::<Result<Vec<_>>>().map(Some)
    })
}

/// Makes one part after the other, and sends how many entries each had.
fn make_chunks(
    plan: &RestorePlan,
    catalog: &Catalog,
    maker: &mut EntryMaker<'_>,
    next: &AtomicUsize,
    is_stopped: &AtomicBool,
    sender: &Sender<usize>,
) {
    while let Some(chunk) = plan.chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
        for path in &plan.others[chunk.clone()] {
            if is_stopped.load(Ordering::Relaxed) {
                return;
            }
            if let (Some(entry), Some(place)) = (catalog.entry(path), path_below(path, &plan.below))
            {
                maker.make(&place, &entry, is_stopped);
            }
        }
        // Without a receiver the restore was interrupted.
        let _ = sender.send(chunk.len());
    }
}

/// Waits until all workers have ended; whether it was not interrupted.
fn wait(done: &Receiver<usize>, total: usize, progress: &mut ProgressSink<'_>) -> bool {
    let mut entries = 0;
    loop {
        match done.recv_timeout(LOOK_EVERY) {
            Ok(more) => entries += more as u64,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
        }
        if progress(Progress::items("restoring", entries, Some(total as u64))).is_stop() {
            return false;
        }
    }
}

impl RestorePlan {
    fn new(catalog: &Catalog, below: Option<&Path>, generation: u64) -> Result<Self> {
        let typed = below.map_or(&[][..], |below| below.as_os_str().as_bytes());
        let wanted = typed.strip_suffix(b"/").unwrap_or(typed);
        let Some(found) = catalog.entry(wanted) else {
            let why = format!("generation {generation} has no such path");
            let path = OsStr::from_bytes(wanted);
            return Err(Error::new(ErrorKind::Usage, "restore", why).at(path));
        };
        // A directory stands for what is below it, all else for itself under its name.
        let is_directory = found.stat.kind == InodeKind::Directory;
        let below = if is_directory { wanted } else { split(wanted).0 };
        let is_wanted = |path: &[u8]| is_directory || path == wanted;
        let (mut directories, mut linked) = (Vec::new(), Vec::new());
        // The place of the content, its bytes, the path: entries are understood again when they are
        // made.
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
            } else if entry.stat.links > 1 {
                linked.push(entry.path);
            } else {
                let first = entry.pieces.first().map(|piece| (piece.data, piece.offset));
                let bytes = entry.pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
                others.push((first, entry.path, bytes));
            }
        }
        if understood != catalog.len() {
            let why = "some of its lines cannot be understood: it is damaged";
            return Err(Error::new(ErrorKind::Failed, "read the manifest", why));
        }
        directories.sort_by(|one, other| one.0.cmp(&other.0));
        others.sort_unstable();
        let chunks = chunks(others.iter().map(|(_, _, bytes)| *bytes));
        let others = others.into_iter().map(|(_, path, _)| path).collect();
        Ok(Self { directories, others, chunks, linked, below: below.to_vec() })
    }
}

/// Parts of a list of entries with so much content each.
fn chunks(bytes: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let (mut start, mut content, mut count) = (0, 0, 0);
    for (index, bytes) in bytes.enumerate() {
        (content, count) = (content + bytes, index + 1);
        if count - start >= CHUNK_ENTRIES || content >= CHUNK_BYTES {
            chunks.push(start..count);
            (start, content) = (count, 0);
        }
    }
    if start < count {
        chunks.push(start..count);
    }
    chunks
}

fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_in_one_chunk() {
        assert!(chunks(std::iter::empty()).is_empty());
        let small = vec![4096; 600];
        assert_eq!(chunks(small.into_iter()), [0..256, 256..512, 512..600]);
        let large = [CHUNK_BYTES, 0, 0, 5 * CHUNK_BYTES, 1];
        assert_eq!(chunks(large.into_iter()), [0..1, 1..4, 4..5]);
    }
}
