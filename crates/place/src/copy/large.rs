//! Files from 1 MiB on: over the ring, or by calls where the ring is refused, one after the other.
//! A file is complete when its data is synced and it has its metadata, the times last.

use super::engine::calls::{self, CallEnd, CallMethod, CallObserver};
use super::engine::extents::DataExtents;
use super::engine::two_thread::{self, BufferRing};
use super::engine::{RingFiles, is_changed};
use super::offsets::DurableOffset;
use super::outcome::CacheCount;
use super::seal::{self, Batch, SmallFile};
use super::staging::Staging;
use super::steps::SyncSteps;
use super::{CopyShared, FileJob, verify};
use crate::Result;
use crate::metadata::FileMetadata;
use model::copy_gauges::CopyEngine;
use model::device::DeviceError;
use std::fs::File;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use sys::file::{self, CacheAdvice};
use sys::file_stat::FileStat;
use sys::uring::Queue;
use transfer::files_copy::{Pace, copy_files};

/// The buffers of the ring.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
/// Files that wait to be written back: each is a name in memory.
const MOST_UNSEALED: usize = 1024;
/// How long a wait for a file lasts before others are sealed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    /// All before it is written.
    whole_bytes: u64,
    /// All before it was counted as durable.
    counted_bytes: u64,
    /// Where the next run goes on; `None` for short files.
    durable: Option<DurableOffset>,
    /// When it is synced midway; `None` for an engine that leaves that to the kernel.
    steps: Option<SyncSteps>,
}

/// What copies by calls use again and again; empty until they do.
#[derive(Default)]
struct CallBuffers {
    one: Vec<u8>,
    ring: BufferRing,
    /// Files whose data the kernel writes back when it likes: sealed at the end.
    unsealed: Batch,
}

/// Cuts what a longer file of an earlier run has behind `bytes`.
fn shorten(target: &File, bytes: u64) -> std::io::Result<()> {
    if target.metadata()?.len() > bytes { target.set_len(bytes) } else { Ok(()) }
}

impl CallBuffers {
    /// The next file; `None` when there are no more. Files that wait for their seal get it when
    /// they are many, or when the walk waits for the directories that they hold open.
    fn next_job(
        &mut self,
        shared: &CopyShared<'_>,
        jobs: &Receiver<FileJob>,
        staging: &Staging,
    ) -> Result<Option<FileJob>> {
        loop {
            if let Some(job) = shared.next_again() {
                return Ok(Some(job));
            }
            let next = jobs.recv_timeout(LOOK_EVERY);
            let is_awaited = next.is_err() && shared.wants_batch.load(Ordering::Relaxed);
            if is_awaited || self.unsealed.files.len() >= MOST_UNSEALED {
                seal::seal_batch(shared, staging, std::mem::take(&mut self.unsealed))?;
            }
            match next {
                Ok(job) => return Ok(Some(job)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

/// Copies all large files that the walk finds.
pub(super) fn serve(
    shared: &CopyShared<'_>,
    jobs: &Receiver<FileJob>,
    staging: &Staging,
) -> Result<()> {
    let mut pace = Pace::new(shared.limit.clone());
    let mut queue: Option<Queue> = None;
    let mut buffers = CallBuffers::default();
    let mut is_checked = false;
    while let Some(first) = buffers.next_job(shared, jobs, staging)? {
        if shared.is_stopped() {
            continue;
        }
        if shared.engines.may_use_ring() && queue.is_none() {
            let buffers = shared.disks.buffers(shared.request.background);
            match Queue::new(buffers, BUFFER_BYTES) {
                Ok(made) => queue = Some(made),
                Err(error) => {
                    shared.engines.refuse(CopyEngine::Uring, &sys::plain_reason(&error.source));
                }
            }
        }
        let aside = match queue.as_mut().filter(|_| shared.engines.may_use_ring()) {
            Some(queue) => {
                let first = Some(first);
                let (refused, held_since) = (Vec::new(), None);
                let aside = None;
                let mut files =
                    RingFiles { shared, jobs, first, aside, refused, is_checked, held_since };
                shared.gauges.engine.set(CopyEngine::Uring.number());
                let summary = copy_files(queue, &mut pace, &mut files);
                shared.yielding.ring_is_empty();
                shared.gauges.read_depth.set(0);
                shared.gauges.write_depth.set(0);
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
            Box::new(large).copy_by_calls(shared, &mut pace, &mut buffers);
        }
    }
    if !shared.is_stopped() {
        seal::seal_batch(shared, staging, buffers.unsealed)?;
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
            let target = job.open_target(shared)?;
            let durable = shared.offsets.begin(
                &job.stat,
                &FileStat::of(&target)?,
                &job.target_path(),
                job.resume_from,
            );
            Ok((source, target, durable))
        });
        let (source, target, durable) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                shared.outcome.failed(&job, &sys::plain_reason(&error.source));
                return None;
            }
        };
        let cached_before = seal::cached_bytes(&source);
        let checksums = shared.request.verify.then(Vec::new);
        let from = job.resume_from;
        let counted_bytes = job.counted_before.unwrap_or(from);
        if from > 0 {
            shared.gauges.durable_bytes.add(from);
            shared.gauges.unmoved_bytes.add(from);
            shared.outcome.goes_on(from);
        }
        Some(Box::new(Self {
            job,
            files: Some((source, target)),
            cached_before,
            checksums,
            written: 0,
            whole_bytes: from,
            counted_bytes,
            durable,
            steps: Some(SyncSteps::new(shared.disks.target_rotates)),
        }))
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
        match seal::make_durable(&target) {
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

    /// Where the copy begins: what is before it was made durable by an earlier run.
    pub(super) fn from(&self) -> u64 {
        self.job.resume_from
    }

    /// Whether what is written is to be made durable now.
    pub(super) fn wants_sync(&self, shared: &CopyShared<'_>, whole_bytes: u64) -> bool {
        let unsynced = whole_bytes.saturating_sub(self.counted_bytes);
        self.durable.as_ref().is_some_and(|durable| durable.is_due(whole_bytes))
            || self.steps.as_ref().is_some_and(|steps| steps.is_due(shared, unsynced))
    }

    /// All before `whole_bytes` is on the device.
    pub(super) fn durable_to(&mut self, shared: &CopyShared<'_>, whole_bytes: u64) {
        if let Some(durable) = self.durable.as_mut().filter(|durable| durable.is_due(whole_bytes)) {
            durable.note(&shared.offsets, whole_bytes);
        }
        if let Some(steps) = &mut self.steps {
            steps.synced();
        }
        let more = whole_bytes.saturating_sub(self.counted_bytes);
        shared.gauges.durable_bytes.add(more);
        self.counted_bytes += more;
    }

    /// The copy was stopped: the next run goes on here. Without a seal the file is not complete.
    pub(super) fn stopped(&mut self, shared: &CopyShared<'_>, target: &File, whole_bytes: u64) {
        if let Some(durable) = &mut self.durable
            && whole_bytes > 0
            && seal::make_durable(target).is_ok()
        {
            durable.note(&shared.offsets, whole_bytes);
            self.durable_to(shared, whole_bytes);
        }
    }

    pub(super) fn stat(&self) -> &FileStat {
        &self.job.stat
    }

    /// A piece was read.
    pub(super) fn add_checksums(&mut self, data: &[u8], offset: u64) {
        if let Some(checksums) = &mut self.checksums {
            verify::add(checksums, data, offset);
        }
    }

    fn copy_by_calls(
        mut self: Box<Self>,
        shared: &CopyShared<'_>,
        pace: &mut Pace,
        buffers: &mut CallBuffers,
    ) {
        let Some((source, target)) = self.files.take() else { return };
        let method = shared.engines.method(self.bytes());
        if matches!(method, CallMethod::Plain | CallMethod::Cached) {
            // The kernel writes back when it likes.
            (self.durable, self.steps) = (None, None);
        }
        if let Some(steps) = &mut self.steps {
            steps.go_by_calls();
        }
        shared.gauges.engine.set(method.engine().number());
        // Behind what is known to be durable FAT may have what was on the disk before.
        if let Err(error) = shorten(&target, self.from()) {
            return shared.outcome.failed(&self.job, &sys::plain_reason(&error));
        }
        let (range, allocated) = (self.from()..self.bytes(), self.job.stat.allocated_bytes);
        let extents = match DataExtents::of(&source, range, allocated, verify::BLOCK_BYTES) {
            Ok(extents) => extents,
            Err(error) => {
                return shared.outcome.failed(&self.job, &sys::plain_reason(&error.source));
            }
        };
        let before = shared.gauges.written_bytes.get().unwrap_or(0);
        let files = (&source, &target);
        let bytes = self.bytes();
        let end = if method == CallMethod::TwoThread {
            let ring = &mut buffers.ring;
            two_thread::copy(shared, files, extents, bytes, pace, ring, &mut *self)
        } else {
            buffers.one.resize(BUFFER_BYTES, 0);
            let buffer = &mut buffers.one;
            calls::copy(shared, method, files, extents, pace, buffer, &mut *self)
        };
        let after = shared.gauges.written_bytes.get().unwrap_or(0);
        self.written = after.saturating_sub(before);
        // Now, because FAT writes zeroes for what a file is made longer by: all of it at first.
        // What is longer here ends with a hole.
        let sized = if matches!(end, CallEnd::Written) { target.set_len(bytes) } else { Ok(()) };
        if let Err(error) = sized {
            return shared.outcome.failed(&self.job, &sys::plain_reason(&error));
        }
        match end {
            CallEnd::Written if method == CallMethod::Cached => {
                self.leave_unsealed(shared, &source, &target, &mut buffers.unsealed);
            }
            CallEnd::Written => match seal::make_durable(&target) {
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
                self.copy_by_calls(shared, pace, buffers);
            }
            CallEnd::Shorter => self.changed(shared, "it became shorter while it was read"),
            CallEnd::Stopped if !shared.is_stopped() => {
                shared.outcome.failed(&self.job, "a thread of the copy ended early");
            }
            CallEnd::Stopped => {
                let whole_bytes = self.whole_bytes;
                self.stopped(shared, &target, whole_bytes);
            }
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

    /// The metadata of the source, with the time of the last access before this copy read it.
    fn metadata_of(&self, source: &File) -> sys::Result<FileMetadata> {
        let mut metadata = FileMetadata::of(source)?;
        metadata.stat.accessed = self.job.stat.accessed;
        Ok(metadata)
    }

    /// All is written and nothing is synced: the file is sealed with others at the end.
    fn leave_unsealed(
        self: Box<Self>,
        shared: &CopyShared<'_>,
        source: &File,
        target: &File,
        unsealed: &mut Batch,
    ) {
        let dressed = self.metadata_of(source).and_then(|metadata| {
            if is_changed(&metadata.stat, &self.job.stat) {
                return Ok(None);
            }
            let losses = metadata.apply(target)?;
            Ok(Some((metadata, losses)))
        });
        let (metadata, losses) = match dressed {
            Ok(Some(dressed)) => dressed,
            Ok(None) => return self.changed(shared, "it was changed while it was read"),
            Err(error) => {
                return shared.outcome.failed(&self.job, &sys::plain_reason(&error.source));
            }
        };
        self.count_cache(shared, source, target);
        let (Self { job, checksums, .. }, engine) = (*self, CopyEngine::Cached);
        unsealed.bytes += job.stat.bytes;
        unsealed.files.push(SmallFile { job, metadata, engine, checksums, losses });
    }

    fn count_cache(&self, shared: &CopyShared<'_>, source: &File, target: &File) {
        shared.outcome.cache(CacheCount {
            source_before: self.cached_before,
            source_after: seal::cached_bytes(source),
            target_after: seal::cached_bytes(target),
            bytes: self.bytes(),
        });
    }

    /// The data is durable: gives the file its metadata and its seal.
    pub(super) fn complete(
        self: Box<Self>,
        shared: &CopyShared<'_>,
        source: &File,
        target: &File,
        engine: CopyEngine,
    ) {
        let dressed = self.metadata_of(source).and_then(|metadata| {
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
        self.count_cache(shared, source, target);
        let of_this_run = self.bytes().saturating_sub(self.from());
        shared.gauges.unmoved_bytes.add(of_this_run.saturating_sub(self.written));
        shared.gauges.durable_bytes.add(self.bytes().saturating_sub(self.counted_bytes));
        shared.gauges.files_done.add(1);
        shared.outcome.file_done(engine, self.bytes(), &losses);
        shared.outcome.checksums(&self.job, engine, self.checksums.as_deref(), &losses);
    }

    /// The source was not the same all the time: it is tried once more, as it is now.
    pub(super) fn changed(self: Box<Self>, shared: &CopyShared<'_>, why: &str) {
        let now = self.job.pair.source.stat(&self.job.name).ok();
        let is_first = self.job.counted_before.is_none();
        let Some(now) = now.filter(|now| is_first && now.is_same_inode(&self.job.stat)) else {
            return shared.outcome.failed(&self.job, why);
        };
        let counted_before = Some(self.counted_bytes);
        let job = FileJob { stat: now, resume_from: 0, counted_before, ..self.job };
        shared.again.lock().unwrap_or_else(PoisonError::into_inner).push(job);
    }

    pub(super) fn failed(&self, shared: &CopyShared<'_>, error: &DeviceError) {
        let reason = sys::plain_reason(&error.source);
        let at = error.offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
        shared.outcome.failed(&self.job, &format!("cannot {}{at}: {reason}", error.operation));
    }
}

impl CallObserver for LargeFile {
    fn seen(&mut self, data: &[u8], offset: u64) {
        self.add_checksums(data, offset);
    }

    fn written(
        &mut self,
        shared: &CopyShared<'_>,
        target: &File,
        whole_bytes: u64,
    ) -> sys::Result<()> {
        self.whole_bytes = whole_bytes;
        if self.wants_sync(shared, whole_bytes) {
            seal::make_durable(target)?;
            self.durable_to(shared, whole_bytes);
        }
        Ok(())
    }
}
