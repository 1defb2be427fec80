//! Files from 1 MiB on: over the ring, or by calls where the ring is refused, one after the other.
//! A file is complete when its data is synced and it has its metadata, the times last.

use super::engine::calls::{self, CallEnd};
use super::engine::extents::DataExtents;
use super::engine::{RingFiles, is_changed};
use super::outcome::CacheCount;
use super::{CopyShared, FileJob, verify};
use crate::Result;
use crate::metadata::FileMetadata;
use model::copy_gauges::CopyEngine;
use model::device::DeviceError;
use std::fs::File;
use std::sync::mpsc::Receiver;
use sys::cachestat;
use sys::file::{self, CacheAdvice};
use sys::file_stat::FileStat;
use sys::uring::Queue;
use transfer::files_copy::{Pace, copy_files};

/// The buffers of the ring: 1 MiB each, as many as keep a flash disk busy.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
const DEPTH: u32 = 32;

/// A large file under way.
#[derive(Debug)]
pub(super) struct LargeFile {
    job: FileJob,
    files: Option<(File, File)>,
    /// Bytes of the source that were in the cache before.
    cached_before: Option<u64>,
    /// The checksum of each MiB, if the copy is verified.
    checksums: Option<Vec<u32>>,
    pub(super) written: u64,
}

/// Copies all large files that the walk finds.
pub(super) fn serve(shared: &CopyShared<'_>, jobs: &Receiver<FileJob>) -> Result<()> {
    let mut pace = Pace::new(shared.limit.clone());
    let mut queue: Option<Queue> = None;
    let mut buffer = Vec::new();
    let mut is_checked = false;
    while let Ok(first) = jobs.recv() {
        if shared.is_stopped() {
            continue;
        }
        if shared.engines.may_use_ring() && queue.is_none() {
            match Queue::new(DEPTH, BUFFER_BYTES) {
                Ok(made) => queue = Some(made),
                Err(error) => {
                    shared.engines.refuse(CopyEngine::Uring, &sys::plain_reason(&error.source));
                }
            }
        }
        let aside = match queue.as_mut().filter(|_| shared.engines.may_use_ring()) {
            Some(queue) => {
                let first = Some(first);
                let refused = Vec::new();
                let mut files = RingFiles { shared, jobs, first, aside: None, refused, is_checked };
                let before = pace.held_back();
                shared.gauges.engine.set(CopyEngine::Uring.number());
                let summary = copy_files(queue, &mut pace, &mut files);
                shared.gauges.read_depth.set(0);
                shared.gauges.write_depth.set(0);
                let waited = pace.held_back().saturating_sub(before);
                shared.gauges.held_back_ns.add(waited.as_nanos() as u64);
                is_checked = files.is_checked;
                if summary.is_broken {
                    shared.engines.refuse(CopyEngine::Uring, "the ring failed");
                }
                files.refused.extend(files.aside.map(|large| *large));
                files.refused
            }
            None => {
                let opened = LargeFile::open(shared, first);
                let left = opened.and_then(|large| large.shared_data(shared));
                left.map(|large| *large).into_iter().collect()
            }
        };
        for large in aside {
            buffer.resize(BUFFER_BYTES, 0);
            Box::new(large).copy_by_calls(shared, &mut pace, &mut buffer);
        }
    }
    shared.outcome.most_under_way(pace.most_under_way());
    Ok(())
}

impl LargeFile {
    /// Opens the source, and makes the target; a failure is noted.
    pub(super) fn open(shared: &CopyShared<'_>, job: FileJob) -> Option<Box<Self>> {
        let opened = job.pair.source.open_regular(&job.name).and_then(|source| {
            let now = FileStat::of(&source)?;
            if !now.is_same_file(&job.stat) {
                let source = std::io::Error::other("it was replaced meanwhile");
                return Err(sys::Error::new("open", source));
            }
            job.make_target().map(|target| (source, target))
        });
        let files = match opened {
            Ok(files) => files,
            Err(error) => {
                shared.outcome.failed(&job, &sys::plain_reason(&error.source));
                return None;
            }
        };
        let cached_before = cachestat::of(&files.0, 0, 0).ok().map(|cached| cached.cached_bytes());
        let checksums = shared.request.verify.then(Vec::new);
        Some(Box::new(Self { job, files: Some(files), cached_before, checksums, written: 0 }))
    }

    /// Shares the data if source and target can: the file is complete then, else it comes back.
    pub(super) fn shared_data(mut self: Box<Self>, shared: &CopyShared<'_>) -> Option<Box<Self>> {
        let (source, target) = self.files.take()?;
        if !shared.engines.share(&source, &target) {
            self.files = Some((source, target));
            return Some(self);
        }
        // There is nothing to read back: both are the same data.
        self.checksums = None;
        match file::sync_data(&target) {
            Ok(()) => {
                self.written = self.bytes();
                shared.gauges.written_bytes.add(self.written);
                self.complete(shared, &source, &target, CopyEngine::Reflink);
            }
            Err(error) => shared.outcome.failed(&self.job, &sys::plain_reason(&error.source)),
        }
        None
    }

    pub(super) fn take_files(&mut self) -> Option<(File, File)> {
        self.files.take()
    }

    /// Another engine copies all of it.
    pub(super) fn begin_again(&mut self, source: File, target: File) {
        // Its own descriptors: what was set on them does not last.
        let _ = file::set_direct(&source, false);
        let _ = file::set_direct(&target, false);
        if let Some(checksums) = &mut self.checksums {
            checksums.clear();
        }
        self.files = Some((source, target));
    }

    pub(super) fn put_back(&mut self, source: File, target: File) {
        self.files = Some((source, target));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.job.stat.bytes
    }

    pub(super) fn stat(&self) -> &FileStat {
        &self.job.stat
    }

    /// A piece was read.
    pub(super) fn seen(&mut self, data: &[u8], offset: u64) {
        if let Some(checksums) = &mut self.checksums {
            verify::add(checksums, data, offset);
        }
    }

    fn copy_by_calls(
        mut self: Box<Self>,
        shared: &CopyShared<'_>,
        pace: &mut Pace,
        buffer: &mut [u8],
    ) {
        let Some((source, target)) = self.files.take() else { return };
        let method = shared.engines.method(self.bytes());
        shared.gauges.engine.set(method.engine().number());
        let sized = target.set_len(self.bytes());
        if let Err(error) = sized {
            return shared.outcome.failed(&self.job, &sys::plain_reason(&error));
        }
        let (bytes, allocated) = (self.bytes(), self.job.stat.allocated_bytes);
        let extents = match DataExtents::of(&source, bytes, allocated, verify::BLOCK_BYTES) {
            Ok(extents) => extents,
            Err(error) => {
                return shared.outcome.failed(&self.job, &sys::plain_reason(&error.source));
            }
        };
        let before = shared.gauges.written_bytes.get().unwrap_or(0);
        let files = (&source, &target);
        let large = &mut self;
        let mut seen = |data: &[u8], offset: u64| large.seen(data, offset);
        let end = calls::copy(shared, method, files, extents, pace, buffer, &mut seen);
        let after = shared.gauges.written_bytes.get().unwrap_or(0);
        self.written = after.saturating_sub(before);
        match end {
            CallEnd::Written => match file::sync_data(&target) {
                Ok(()) => {
                    self.drop_from_cache(shared, &source, &target, method.engine());
                    self.complete(shared, &source, &target, method.engine());
                }
                Err(error) => {
                    shared.outcome.failed(&self.job, &sys::plain_reason(&error.source));
                }
            },
            CallEnd::Unsupported(error) => {
                shared.engines.refuse(method.engine(), &sys::plain_reason(&error.source));
                if let Some(checksums) = &mut self.checksums {
                    checksums.clear();
                }
                self.files = Some((source, target));
                self.copy_by_calls(shared, pace, buffer);
            }
            CallEnd::Shorter => self.changed(shared, "it became shorter while it was read"),
            // It stays without a seal: the next run copies it again.
            CallEnd::Stopped => {}
            CallEnd::Failed(offset, error) => {
                let failure = DeviceError::new(error.operation, Some(offset), error.source);
                self.failed(shared, &failure);
            }
        }
    }

    /// After a copy through the cache: drops the copy, and the source if it was not there before.
    fn drop_from_cache(
        &self,
        shared: &CopyShared<'_>,
        source: &File,
        target: &File,
        engine: CopyEngine,
    ) {
        if shared.request.keep_cached || engine == CopyEngine::Cached {
            return;
        }
        // Hints; what stays is seen in the receipt.
        let _ = file::advise(target, 0, 0, CacheAdvice::DontNeed);
        if self.cached_before == Some(0) {
            let _ = file::advise(source, 0, 0, CacheAdvice::DontNeed);
        }
    }

    /// The data is durable: gives the file its metadata and its seal.
    pub(super) fn complete(
        self: Box<Self>,
        shared: &CopyShared<'_>,
        source: &File,
        target: &File,
        engine: CopyEngine,
    ) {
        let dressed = FileMetadata::of(source).and_then(|metadata| {
            if is_changed(&metadata.stat, &self.job.stat) {
                return Ok(None);
            }
            let mut losses = metadata.apply(target)?;
            losses.extend(metadata.seal(target)?);
            Ok(Some(losses))
        });
        let losses = match dressed {
            Ok(Some(losses)) => losses,
            Ok(None) => return self.changed(shared, "it was changed while it was read"),
            Err(error) => {
                return shared.outcome.failed(&self.job, &sys::plain_reason(&error.source));
            }
        };
        let cached = |file| cachestat::of(file, 0, 0).ok().map(|cached| cached.cached_bytes());
        shared.outcome.cache(CacheCount {
            source_before: self.cached_before,
            source_after: cached(source),
            target_after: cached(target),
            bytes: self.bytes(),
        });
        shared.gauges.durable_bytes.add(self.bytes());
        shared.gauges.files_done.add(1);
        shared.outcome.file_done(engine, self.bytes(), &losses);
        if let Some(checksums) = self.checksums
            && let Ok(stat) = FileStat::of(target)
        {
            shared.outcome.checksums(stat.inode, checksums);
        }
    }

    /// The source was not the same all the time.
    pub(super) fn changed(&self, shared: &CopyShared<'_>, why: &str) {
        shared.outcome.failed(&self.job, why);
    }

    pub(super) fn failed(&self, shared: &CopyShared<'_>, error: &DeviceError) {
        let reason = sys::plain_reason(&error.source);
        let at = error.offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
        shared.outcome.failed(&self.job, &format!("cannot {}{at}: {reason}", error.operation));
    }
}
