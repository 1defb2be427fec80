//! Large files over a ring: opened direct, several at a time, each synced in the ring.
//!
//! The source is read past the cache unless it is in it. The target is always written past it, and
//! after the first file the cache is asked whether that is true.

use super::extents::DataExtents;
use super::{Engines, is_cached};
use crate::copy::large::{BUFFER_BYTES, LargeFile};
use crate::copy::yielding::PIECE_BYTES;
use crate::copy::{CopyShared, FileJob, verify};
use model::copy_gauges::CopyEngine;
use model::device::{Alignment, DeviceError};
use model::progress::Control;
use std::fs::File;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use sys::{ErrorKind, cachestat, file};
use transfer::files_copy::{FileCopier, FileCopy, FileEnd, Heads, InFlight};

/// What direct requests are aligned to where the kernel does not say.
const USUAL_ALIGNMENT: u32 = 4096;

/// Files for the ring, as they come from the walk.
pub(in crate::copy) struct RingFiles<'a, 'b> {
    pub(in crate::copy) shared: &'a CopyShared<'b>,
    pub(in crate::copy) jobs: &'a Receiver<FileJob>,
    /// Files that were taken from the walk before.
    pub(in crate::copy) first: Option<FileJob>,
    /// A file that the ring does not take: it is copied by calls when the ring is empty.
    pub(in crate::copy) aside: Option<Box<LargeFile>>,
    /// Files whose direct requests were refused midway: calls copy them when the ring is empty.
    pub(in crate::copy) refused: Vec<LargeFile>,
    /// Whether the cache was asked if direct writes are direct.
    pub(in crate::copy) is_checked: bool,
    /// Since when others that use the disk hold it back.
    pub(in crate::copy) held_since: Option<Instant>,
}

impl FileCopier for RingFiles<'_, '_> {
    type Tag = Box<LargeFile>;

    fn control(&mut self) -> Control {
        Control::stop_if(self.shared.is_stopped())
    }

    fn may_start(&mut self, in_flight: usize) -> bool {
        let may = self.shared.yielding.ring_may_start(in_flight);
        match (may, self.held_since) {
            (false, None) => self.held_since = Some(Instant::now()),
            (true, Some(since)) => {
                self.shared.gauges.held_back_ns.add(since.elapsed().as_nanos() as u64);
                self.held_since = None;
            }
            _ => {}
        }
        may
    }

    fn held_back(&mut self, waited: Duration) {
        self.shared.gauges.held_back_ns.add(waited.as_nanos() as u64);
    }

    fn most_piece_bytes(&self) -> u64 {
        let is_small = self.shared.yielding.is_one_at_a_time();
        if is_small { PIECE_BYTES as u64 } else { u64::MAX }
    }

    fn next_file(&mut self) -> Option<FileCopy<Self::Tag>> {
        loop {
            // What does not go to the ring waits for its end, and everything behind it.
            if self.aside.is_some() || self.shared.is_stopped() {
                return None;
            }
            let job = match self.first.take().or_else(|| self.shared.next_again()) {
                Some(job) => job,
                None => match self.jobs.try_recv() {
                    Ok(job) => job,
                    // More may come: the next run takes it.
                    Err(_) => return None,
                },
            };
            let Some(large) = LargeFile::open(self.shared, job) else { continue };
            let Some(large) = large.shared_data(self.shared) else { continue };
            match direct(large, &self.shared.engines) {
                Ok(copy) => return Some(copy),
                Err((large, why)) => {
                    if let Some(why) = why {
                        self.shared.engines.refuse(CopyEngine::Uring, &why);
                    }
                    self.aside = Some(large);
                }
            }
        }
    }

    fn heads(&self) -> Heads {
        let disks = &self.shared.disks;
        if self.shared.request.background {
            // One request at a time, or none.
            Heads::None
        } else if disks.is_one {
            Heads::Shared
        } else if disks.rotate() {
            Heads::Apart
        } else {
            Heads::None
        }
    }

    fn read(&mut self, tag: &mut Self::Tag, data: &[u8], offset: u64) {
        self.shared.gauges.read_bytes.add(data.len() as u64);
        tag.add_checksums(data, offset);
    }

    fn written(&mut self, tag: &mut Self::Tag, bytes: u64) {
        self.shared.gauges.written_bytes.add(bytes);
        tag.written += bytes;
    }

    fn wants_sync(&mut self, tag: &mut Self::Tag, whole_bytes: u64) -> bool {
        tag.wants_sync(self.shared, whole_bytes)
    }

    fn durable_to(&mut self, tag: &mut Self::Tag, whole_bytes: u64) {
        tag.durable_to(self.shared, whole_bytes);
    }

    fn in_flight(&mut self, now: &InFlight) {
        let gauges = self.shared.gauges;
        gauges.read_depth.set(now.reads as u64);
        gauges.write_depth.set(now.writes as u64);
        gauges.reads_in_flight_bytes.set((now.reads * BUFFER_BYTES) as u64);
        gauges.writes_in_flight_bytes.set((now.writes * BUFFER_BYTES) as u64);
        gauges.readers_waited_ns.add(now.reader_waited_ns);
        gauges.writers_waited_ns.add(now.writer_waited_ns);
    }

    fn ended(&mut self, file: FileCopy<Self::Tag>, end: FileEnd) {
        let FileCopy { source, target, tag: mut large, .. } = file;
        if !self.is_checked && matches!(end, FileEnd::Durable) {
            self.is_checked = true;
            let cached = cachestat::of(&target, 0, 0).map_or(0, |cached| cached.cached_bytes());
            if cached > large.written / 2 {
                let why = "direct writes go through the cache of this file system";
                self.shared.engines.refuse(CopyEngine::Uring, why);
            }
        }
        match end {
            FileEnd::Durable => large.complete(self.shared, &source, &target, CopyEngine::Uring),
            FileEnd::Shorter => large.changed(self.shared, "it became shorter while it was read"),
            FileEnd::Failed(failure) if is_refusal(&failure.error) => {
                let reason = sys::plain_reason(&failure.error.source);
                let why = format!("direct requests were refused midway: {reason}");
                self.shared.engines.refuse(CopyEngine::Uring, &why);
                let mut again = large;
                again.begin_again(source, target);
                self.refused.push(*again);
            }
            FileEnd::Failed(failure) => large.failed(self.shared, &failure.error),
            FileEnd::Stopped { whole_bytes } if self.shared.is_stopped() => {
                large.stopped(self.shared, &target, whole_bytes);
            }
            // Not asked for: no request of it was answered as it should be.
            FileEnd::Stopped { .. } => {
                let error = std::io::Error::other("the ring of requests failed");
                large.failed(self.shared, &DeviceError::new("copy", None, error));
            }
        }
    }
}

/// Whether a request was not tried because of how it was made. What is wrong with the file itself
/// is found by the calls then.
fn is_refusal(error: &DeviceError) -> bool {
    matches!(ErrorKind::of(&error.source), ErrorKind::Invalid | ErrorKind::Unsupported)
}

type Refused = (Box<LargeFile>, Option<String>);

/// The file as the ring takes it; the reason, if another will not be taken either.
fn direct(
    mut large: Box<LargeFile>,
    engines: &Engines,
) -> Result<FileCopy<Box<LargeFile>>, Refused> {
    if !engines.may_use_ring() {
        return Err((large, None));
    }
    let (source, target) = match large.take_files() {
        Some(both) => both,
        None => return Err((large, None)),
    };
    let prepared = prepare(&source, &target, &large, engines);
    match prepared {
        Ok((read_alignment, write_alignment, extents)) => Ok(FileCopy {
            source,
            target,
            bytes: large.bytes(),
            read_alignment,
            write_alignment,
            extents: Box::new(extents),
            tag: large,
        }),
        Err(error) => {
            // Its own descriptors: what was set on them does not last.
            let _ = file::set_direct(&source, false);
            let _ = file::set_direct(&target, false);
            large.put_back(source, target);
            Err((large, Some(sys::plain_reason(&error.source))))
        }
    }
}

fn prepare(
    source: &File,
    target: &File,
    large: &LargeFile,
    engines: &Engines,
) -> sys::Result<(u32, u32, DataExtents)> {
    let target_alignment = alignment(target)?;
    file::set_direct(target, true)?;
    let reads_cached = is_cached(source, large.stat());
    let read_alignment = if reads_cached {
        1
    } else {
        match alignment(source).and_then(|found| file::set_direct(source, true).map(|()| found)) {
            Ok(found) => found.read,
            // A source without direct reads is read through the cache.
            Err(_) => 1,
        }
    };
    let (bytes, allocated) = (large.bytes(), large.stat().allocated_bytes);
    let both = read_alignment.max(target_alignment.write).max(verify::BLOCK_BYTES);
    let extents = DataExtents::of(source, large.from()..bytes, allocated, both)?;
    let is_dense = bytes > 0 && allocated >= bytes;
    if is_dense && engines.reserves() {
        file::allocate(target, bytes)?;
    } else {
        let sized = target.set_len(bytes);
        sized.map_err(|error| sys::Error::new("set the length", error))?;
    }
    Ok((read_alignment, target_alignment.write, extents))
}

pub(super) fn alignment(file: &File) -> sys::Result<Alignment> {
    match file::direct_alignment(file)? {
        Some(found) if found.write > 0 => Ok(found),
        Some(_) => {
            let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
            Err(sys::Error::new("open direct", source))
        }
        None => Ok(Alignment::all(USUAL_ALIGNMENT)),
    }
}
