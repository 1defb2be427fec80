//! Batches of small files: made durable by one call, then each file gets its times, which say that
//! it is complete.

use super::outcome::CacheCount;
use super::staging::{Staging, sync_failed};
use super::{CopyShared, FileJob, failed_midway};
use crate::Result;
use crate::metadata::{FileMetadata, MetadataLoss};
use model::copy_gauges::CopyEngine;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use sys::cachestat;
use sys::file::{self, CacheAdvice};

/// Files whose data is written and not durable yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) files: Vec<SmallFile>,
    pub(super) bytes: u64,
}

/// A file of a batch.
#[derive(Debug)]
pub(super) struct SmallFile {
    pub(super) job: FileJob,
    pub(super) metadata: FileMetadata,
    pub(super) engine: CopyEngine,
    /// What is to be read back.
    pub(super) checksums: Option<Vec<u32>>,
    /// What the target does not hold of it, but for its times.
    pub(super) losses: Vec<MetadataLoss>,
}

/// Makes batches durable until there are no more.
///
/// # Errors
/// When the file system failed to write: none of the batch is known to be durable, and the copy is
/// stopped.
pub(super) fn serve(
    shared: &CopyShared<'_>,
    batches: &Receiver<Batch>,
    staging: &Staging,
) -> Result<()> {
    while let Ok(batch) = batches.recv() {
        if let Err(error) = seal_batch(shared, staging, batch) {
            // What follows is taken, so that no thread waits for ever.
            while batches.recv().is_ok() {}
            return Err(error);
        }
        shared.unsealed_batches.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Makes one batch durable and seals its files.
///
/// # Errors
/// As [`serve`].
pub(super) fn seal_batch(shared: &CopyShared<'_>, staging: &Staging, batch: Batch) -> Result<()> {
    if batch.files.is_empty() {
        return Ok(());
    }
    let turn = shared.disks.is_one.then(|| shared.turn.write());
    let step = shared.yielding.step();
    let synced = file::sync_file_system(staging.tree().file());
    drop(step);
    if let Err(error) = synced {
        shared.stop();
        return Err(failed_midway(sync_failed(error)));
    }
    drop(turn);
    for small in batch.files {
        seal(shared, &small);
    }
    Ok(())
}

/// Makes a file durable, and what is needed to find it.
///
/// FAT's fsync writes each changed sector of both its tables by itself: 0.2 s for 8 MiB on a stick.
/// The sync of the file system, those of other programs included, writes them together. Its error
/// may be of another file: then this one counts as failed too, as its place may be lost. The sync
/// of the file then says whether its own data failed.
pub(super) fn make_durable(target: &File) -> sys::Result<()> {
    if file::file_system(target).is_ok_and(|system| system.is_fat()) {
        file::sync_file_system(target)?;
    }
    file::sync_data(target)
}

/// The bytes of a file that are in the page cache; `None` where the kernel does not say.
pub(super) fn cached_bytes(file: &File) -> Option<u64> {
    cachestat::of(file, 0, 0).ok().map(|cached| cached.cached_bytes())
}

fn seal(shared: &CopyShared<'_>, small: &SmallFile) {
    let SmallFile { job, metadata, engine, checksums, losses } = small;
    let (directory, name) = (&job.pair.target, &job.target_name);
    let opened = match directory.open_beneath_private(name) {
        // By its permissions its owner may not read it.
        Err(error) if error.kind == sys::ErrorKind::Denied => directory.hold(name),
        opened => opened,
    };
    let sealed = opened.and_then(|target| {
        let stays = shared.request.keep_cached || *engine == CopyEngine::Cached;
        if !stays && job.stat.bytes > 0 {
            // A hint; what stays is seen in the receipt.
            let _ = file::advise(&target, 0, 0, CacheAdvice::DontNeed);
        }
        // A large file was counted when it was written.
        if *engine != CopyEngine::Cached {
            shared.outcome.cache(CacheCount {
                source_before: None,
                source_after: None,
                target_after: cached_bytes(&target),
                bytes: job.stat.bytes,
            });
        }
        metadata.seal(&target)
    });
    match sealed {
        Ok(of_seal) => {
            let losses = [losses.as_slice(), &of_seal].concat();
            shared.gauges.durable_bytes.add(job.stat.bytes);
            shared.gauges.files_done.add(1);
            shared.outcome.file_done(*engine, job.stat.bytes, &losses);
            shared.outcome.checksums(job, *engine, checksums.as_deref(), &losses);
        }
        Err(error) => shared.outcome.failed(job, &sys::plain_reason(&error.source)),
    }
}
