//! Files below 1 MiB: read whole and written whole by workers, made durable a batch at a time.
//!
//! The idea: an fsync for each small file costs more than everything else together. A batch is
//! synced by one call for the file system, and sealed afterwards.

use super::engine::is_changed;
use super::outcome::CacheCount;
use super::seal::{self, Batch, SmallFile};
use super::{CopyShared, FileJob, LARGE_FROM_BYTES, verify};
use crate::Result;
use crate::metadata::{FileMetadata, MetadataLoss};
use model::copy_gauges::CopyEngine;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::file;
use transfer::files_copy::{LONGEST_QUEUE, Pace};

/// The bytes of a batch: at first, and at most.
const FIRST_BATCH_BYTES: u64 = 4 << 20;
const MOST_BATCH_BYTES: u64 = 128 << 20;
/// At least, where the head moves between reading a batch and writing it.
const TURN_BYTES: u64 = 16 << 20;
/// The files of a batch at most: each is a name in memory until it is sealed.
const MOST_BATCH_FILES: usize = 8192;
/// A batch that does not grow is not kept for longer.
const LONGEST_BATCH: Duration = Duration::from_secs(2);
/// How long a worker waits for a file before it looks at the batch.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Tried again once if it changes meanwhile.
const ATTEMPTS: usize = 2;

/// The files that workers share.
pub(super) struct SmallJobs {
    jobs: Mutex<Receiver<FileJob>>,
    batch: Mutex<OpenBatch>,
}

struct OpenBatch {
    batch: Batch,
    started: Instant,
    least_bytes: u64,
    most_bytes: u64,
    /// `None` once no batch follows.
    sender: Option<SyncSender<Batch>>,
}

impl SmallJobs {
    /// `is_one_head` if they are read from and written to one disk with a head.
    pub(super) fn new(
        jobs: Receiver<FileJob>,
        sender: SyncSender<Batch>,
        is_one_head: bool,
    ) -> Self {
        let first = if is_one_head { TURN_BYTES } else { FIRST_BATCH_BYTES };
        let batch = OpenBatch {
            batch: Batch::default(),
            started: Instant::now(),
            least_bytes: first,
            most_bytes: first,
            sender: Some(sender),
        };
        Self { jobs: Mutex::new(jobs), batch: Mutex::new(batch) }
    }

    fn batch(&self) -> MutexGuard<'_, OpenBatch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the last batch on.
    pub(super) fn close(&self, shared: &CopyShared<'_>) {
        let mut open = self.batch();
        open.hand_on(shared);
        open.sender = None;
    }

    /// The next file; `None` at the end. Waits only a moment.
    fn next(&self) -> Option<std::result::Result<FileJob, RecvTimeoutError>> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        match jobs.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Disconnected) => None,
            answer => Some(answer),
        }
    }
}

impl OpenBatch {
    fn is_full(&self) -> bool {
        self.batch.bytes >= self.most_bytes
            || self.batch.files.len() >= MOST_BATCH_FILES
            || (!self.batch.files.is_empty() && self.started.elapsed() > LONGEST_BATCH)
    }

    /// Gives the batch to the thread that seals; waits while that has two.
    fn hand_on(&mut self, shared: &CopyShared<'_>) {
        let batch = std::mem::take(&mut self.batch);
        if batch.files.is_empty() {
            return;
        }
        let passed = self.started.elapsed().as_secs_f64().max(1e-3);
        // What the target takes in half a second, by the batch that is ready now.
        let rate = batch.bytes as f64 / passed;
        let wanted = (rate * LONGEST_QUEUE.as_secs_f64()) as u64;
        self.most_bytes = wanted.clamp(self.least_bytes, MOST_BATCH_BYTES);
        if let Some(sender) = &self.sender {
            shared.unsealed_batches.fetch_add(1, Ordering::Relaxed);
            // Without a receiver the thread that seals has failed, and says so.
            let _ = sender.send(batch);
        }
        self.started = Instant::now();
    }
}

/// Copies small files until there are no more.
pub(super) fn serve(shared: &CopyShared<'_>, jobs: &SmallJobs) -> Result<()> {
    let mut buffer = vec![0; LARGE_FROM_BYTES as usize];
    // Only for the limit of the rate: what is under way is bounded by the batch.
    let mut pace = Pace::new(shared.limit.clone());
    while let Some(next) = jobs.next() {
        if let Ok(job) = next
            && shared.wait_for_rate(&mut pace, job.stat.bytes)
        {
            copy_one(shared, jobs, job, &mut buffer);
        }
        let mut open = jobs.batch();
        if open.is_full() || is_waited_for(shared) {
            open.hand_on(shared);
        }
    }
    Ok(())
}

/// Whether the walk waits for directories that only the open batch holds. While another one is
/// sealed, that closes some: batches of a few files would cost a sync each.
fn is_waited_for(shared: &CopyShared<'_>) -> bool {
    shared.unsealed_batches.load(Ordering::Relaxed) == 0
        && shared.wants_batch.swap(false, Ordering::Relaxed)
}

fn copy_one(shared: &CopyShared<'_>, jobs: &SmallJobs, mut job: FileJob, buffer: &mut [u8]) {
    // While a batch is written back, nothing is read from the same head.
    let turn = shared.disks.is_one.then(|| shared.turn.read());
    let mut answer = Err("it changed while it was read".to_owned());
    for _ in 0..ATTEMPTS {
        match copy_data(shared, &job, buffer) {
            Ok(Some(small)) => {
                answer = Ok(small);
                break;
            }
            Ok(None) => {
                // As it is now; one that became large is left to the next run.
                if let Ok(now) = job.pair.source.stat(&job.name)
                    && now.is_same_inode(&job.stat)
                    && now.bytes < LARGE_FROM_BYTES
                {
                    job.stat = now;
                }
            }
            Err(error) => {
                answer = Err(format!(
                    "cannot {}: {}",
                    error.operation,
                    sys::plain_reason(&error.source)
                ));
                break;
            }
        }
    }
    // The batch is locked without it: a worker that hands one on waits for the thread that seals,
    // and that waits for the turn.
    drop(turn);
    match answer {
        Ok((metadata, engine, checksums, losses)) => {
            let bytes = job.stat.bytes;
            let mut open = jobs.batch();
            if open.batch.files.is_empty() {
                open.started = Instant::now();
            }
            open.batch.bytes += bytes;
            open.batch.files.push(SmallFile { job, metadata, engine, checksums, losses });
        }
        Err(reason) => shared.outcome.failed(&job, &reason),
    }
}

/// What was copied of a small file: its metadata, how, its checksums, and what was lost of it.
type CopiedSmall = (FileMetadata, CopyEngine, Option<Vec<u32>>, Vec<MetadataLoss>);

/// Copies the data and all metadata but the times; `None` if the source changed meanwhile.
fn copy_data(
    shared: &CopyShared<'_>,
    job: &FileJob,
    buffer: &mut [u8],
) -> sys::Result<Option<CopiedSmall>> {
    let is_background = shared.yielding.is_one_at_a_time();
    let _step = shared.yielding.step();
    let source = job.pair.source.open_found(&job.name, &job.stat)?;
    let target = job.make_target()?;
    let bytes = job.stat.bytes as usize;
    let mut engine = CopyEngine::Plain;
    let cached_before = seal::cached_bytes(&source);
    if bytes > 0 && shared.engines.share(&source, &target) {
        engine = CopyEngine::Reflink;
    } else if bytes > 0 {
        let stays = shared.request.keep_cached || cached_before.is_some_and(|cached| cached > 0);
        let data = &mut buffer[..bytes];
        if !read_whole(shared, &source, data)? {
            return Ok(None);
        }
        write_data(&target, data, job)?;
        if is_background {
            // Alone, so that no batch of them is in flight at a time.
            file::sync_data(&target)?;
        }
        if !stays && !shared.engines.reads_uncached() {
            // A hint; what stays is seen in the receipt.
            let _ = file::advise(&source, 0, 0, file::CacheAdvice::DontNeed);
        }
    }
    shared.gauges.read_bytes.add(bytes as u64);
    shared.gauges.written_bytes.add(bytes as u64);
    let metadata = FileMetadata::of(&source)?;
    if is_changed(&metadata.stat, &job.stat) {
        return Ok(None);
    }
    let losses = metadata.apply(&target)?;
    shared.outcome.cache(CacheCount {
        source_before: cached_before,
        source_after: seal::cached_bytes(&source),
        target_after: None,
        bytes: job.stat.bytes,
    });
    let checksums = (shared.request.verify && engine == CopyEngine::Plain).then(|| {
        let mut sums = Vec::new();
        verify::add(&mut sums, &buffer[..bytes], 0);
        sums
    });
    Ok(Some((metadata, engine, checksums, losses)))
}

/// Whether the file has as many bytes as `data`, which are read.
fn read_whole(
    shared: &CopyShared<'_>,
    source: &std::fs::File,
    data: &mut [u8],
) -> sys::Result<bool> {
    let mut done = 0;
    while done < data.len() {
        let at = done as u64;
        let got = if shared.engines.reads_uncached() {
            match file::read_at_uncached(source, &mut data[done..], at) {
                Err(error) if error.kind == sys::ErrorKind::Unsupported => {
                    shared.engines.refuse(CopyEngine::Uncached, &sys::plain_reason(&error.source));
                    continue;
                }
                got => got?,
            }
        } else {
            file::read_at(source, &mut data[done..], at)?
        };
        if got == 0 {
            return Ok(false);
        }
        done += got;
    }
    Ok(true)
}

/// Writes the data, and leaves holes where the source has them.
fn write_data(target: &std::fs::File, data: &[u8], job: &FileJob) -> sys::Result<()> {
    let is_sparse = job.stat.allocated_bytes < job.stat.bytes;
    let block = if is_sparse { verify::BLOCK_BYTES as usize } else { data.len().max(1) };
    for (index, part) in data.chunks(block).enumerate() {
        if is_sparse && part.iter().all(|byte| *byte == 0) {
            continue;
        }
        let start = index * block;
        let mut done = 0;
        while done < part.len() {
            let written = file::write_at(target, &part[done..], (start + done) as u64)?;
            if written == 0 {
                let source = std::io::ErrorKind::WriteZero.into();
                return Err(sys::Error::new("write", source));
            }
            done += written;
        }
    }
    if is_sparse || job.is_made {
        let sized = target.set_len(data.len() as u64);
        sized.map_err(|source| sys::Error::new("set the length", source))?;
    }
    Ok(())
}
