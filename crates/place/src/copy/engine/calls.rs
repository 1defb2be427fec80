//! Copies one file by plain calls: uncached, paced, or as the kernel likes.
//!
//! `uncached` and `paced` never leave more than one window of dirty pages behind: the window before
//! the last is written when the last one is filled. `paced` drops what it brought into the cache
//! and nothing else: a window of the source that was in the cache stays.

use crate::copy::CopyShared;
use crate::copy::yielding::PIECE_BYTES;
use model::copy_gauges::CopyEngine;
use model::gauge::Gauge;
use std::fs::File;
use std::io;
use std::time::Instant;
use sys::cachestat;
use sys::file::{self, CacheAdvice};
use transfer::Extent;
use transfer::files_copy::Pace;

/// How calls move the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum CallMethod {
    /// By `RWF_DONTCACHE`.
    Uncached,
    /// Written back one window behind.
    Paced,
    /// Written back when the kernel likes; what it brought is dropped later.
    Plain,
    /// Written back when the kernel likes, and left in the cache.
    Cached,
    /// Read by one thread and written by another, both past the cache.
    TwoThread,
}

impl CallMethod {
    pub(in crate::copy) fn engine(self) -> CopyEngine {
        match self {
            Self::Uncached => CopyEngine::Uncached,
            Self::Paced => CopyEngine::Paced,
            Self::Plain => CopyEngine::Plain,
            Self::Cached => CopyEngine::Cached,
            Self::TwoThread => CopyEngine::TwoThread,
        }
    }
}

/// Sees the pieces of a file as they move.
pub(in crate::copy) trait CallObserver {
    /// A piece was read.
    fn seen(&mut self, data: &[u8], offset: u64);

    /// All before `whole_bytes` is written. An error is one of the target.
    fn written(
        &mut self,
        shared: &CopyShared<'_>,
        target: &File,
        whole_bytes: u64,
    ) -> sys::Result<()>;
}

/// Why a file was not copied.
#[derive(Debug)]
pub(in crate::copy) enum CallEnd {
    /// All of it was written; not durable yet.
    Written,
    /// The source ended before its length.
    Shorter,
    /// The copy was stopped.
    Stopped,
    /// The method is not to be had here.
    Unsupported(sys::Error),
    /// A call failed at an offset.
    Failed(u64, sys::Error),
}

/// The smallest and the largest window.
const LEAST_WINDOW: u64 = 1 << 20;
const MOST_WINDOW: u64 = 16 << 20;

/// Copies the extents of a file, a buffer at a time.
pub(in crate::copy) fn copy(
    shared: &CopyShared<'_>,
    method: CallMethod,
    (source, target): (&File, &File),
    extents: impl Iterator<Item = sys::Result<Extent>>,
    pace: &mut Pace,
    buffer: &mut [u8],
    observer: &mut dyn CallObserver,
) -> CallEnd {
    let mut windows = Windows::new(method);
    for extent in extents {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => return CallEnd::Failed(0, error),
        };
        let mut done = 0;
        while done < extent.bytes {
            let offset = extent.source + done;
            // Pieces end at multiples of the buffer, as checksums count them.
            let to_boundary = buffer.len() as u64 - offset % buffer.len() as u64;
            let is_background = shared.yielding.is_one_at_a_time();
            let most = if is_background { PIECE_BYTES as u64 } else { u64::MAX };
            let wanted = (extent.bytes - done).min(to_boundary).min(most);
            if !shared.wait_for_rate(pace, wanted) {
                return CallEnd::Stopped;
            }
            let _step = shared.yielding.step();
            windows.before_read(source, offset, wanted);
            // One thread does both: while it reads nothing is written, and the other way round.
            let answer = timed(&shared.gauges.writers_waited_ns, || {
                read(method, source, &mut buffer[..wanted as usize], offset)
            });
            let got = match answer {
                Ok(0) => return CallEnd::Shorter,
                Ok(got) => got,
                Err(error) => return refusal(method, offset, error),
            };
            shared.gauges.read_bytes.add(got as u64);
            observer.seen(&buffer[..got], offset);
            pace.started(got as u64);
            let wrote = timed(&shared.gauges.readers_waited_ns, || {
                write(method, target, &buffer[..got], offset)
            });
            pace.ended(got as u64);
            if let Err((at, error)) = wrote {
                return refusal(method, at, error);
            }
            let end = offset + got as u64;
            let noted = windows
                .written(target, offset, got as u64, pace)
                .and_then(|()| observer.written(shared, target, end));
            if let Err(error) = noted {
                return CallEnd::Failed(offset, error);
            }
            if is_background && let Err(error) = file::sync_data(target) {
                return CallEnd::Failed(offset, error);
            }
            shared.gauges.written_bytes.add(got as u64);
            done += got as u64;
        }
    }
    match windows.finish(source, target, pace) {
        Ok(()) => CallEnd::Written,
        Err(error) => CallEnd::Failed(0, error),
    }
}

/// Adds the time of `work` to the gauge.
pub(super) fn timed<T>(gauge: &Gauge, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let answer = work();
    gauge.add(started.elapsed().as_nanos() as u64);
    answer
}

fn refusal(method: CallMethod, offset: u64, error: sys::Error) -> CallEnd {
    if method == CallMethod::Uncached && error.kind == sys::ErrorKind::Unsupported {
        return CallEnd::Unsupported(error);
    }
    CallEnd::Failed(offset, error)
}

/// Fills the buffer, or less at the end of the file.
fn read(method: CallMethod, source: &File, buffer: &mut [u8], offset: u64) -> sys::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let got = if method == CallMethod::Uncached {
            file::read_at_uncached(source, &mut buffer[done..], at)?
        } else {
            file::read_at(source, &mut buffer[done..], at)?
        };
        if got == 0 {
            break;
        }
        done += got;
    }
    Ok(done)
}

/// Writes all of `data`.
pub(super) fn write(
    method: CallMethod,
    target: &File,
    data: &[u8],
    offset: u64,
) -> Result<(), (u64, sys::Error)> {
    let mut done = 0;
    while done < data.len() {
        let at = offset + done as u64;
        let written = if method == CallMethod::Uncached {
            file::write_at_uncached(target, &data[done..], at)
        } else {
            file::write_at(target, &data[done..], at)
        };
        match written {
            Ok(0) => {
                let source = io::ErrorKind::WriteZero.into();
                return Err((at, sys::Error::new("write", source)));
            }
            Ok(bytes) => done += bytes,
            Err(error) => return Err((at, error)),
        }
    }
    Ok(())
}

/// The part of the target that is not written back yet, and what is dropped from the cache.
struct Windows {
    method: CallMethod,
    /// What is being filled.
    current: std::ops::Range<u64>,
    /// What is being written back.
    behind: std::ops::Range<u64>,
    /// Ranges of the source that this copy brought into the cache.
    brought: Vec<std::ops::Range<u64>>,
}

impl Windows {
    fn new(method: CallMethod) -> Self {
        Self { method, current: 0..0, behind: 0..0, brought: Vec::new() }
    }

    fn is_bounded(&self) -> bool {
        matches!(self.method, CallMethod::Uncached | CallMethod::Paced)
    }

    fn before_read(&mut self, source: &File, offset: u64, bytes: u64) {
        if self.method != CallMethod::Paced {
            return;
        }
        // Where the kernel does not say, nothing is dropped.
        if cachestat::of(source, offset, bytes).is_ok_and(|cached| cached.cached == 0) {
            self.brought.push(offset..offset + bytes);
        }
    }

    fn written(
        &mut self,
        target: &File,
        offset: u64,
        bytes: u64,
        pace: &mut Pace,
    ) -> sys::Result<()> {
        if !self.is_bounded() {
            pace.written(bytes);
            return Ok(());
        }
        let end = offset + bytes;
        if self.current.end != offset {
            self.turn(target, pace)?;
            self.current = offset..offset;
        }
        self.current.end = end;
        let window = (pace.most() / 4).clamp(LEAST_WINDOW, MOST_WINDOW);
        let behind = self.behind.end - self.behind.start;
        pace.cached(self.current.end - self.current.start + behind);
        if self.current.end - self.current.start >= window {
            self.turn(target, pace)?;
            self.current = end..end;
        }
        Ok(())
    }

    /// Starts to write the current window back, and waits for the one before.
    fn turn(&mut self, target: &File, pace: &mut Pace) -> sys::Result<()> {
        if !self.current.is_empty() {
            let bytes = self.current.end - self.current.start;
            file::sync_range_start(target, self.current.start, bytes)?;
        }
        if !self.behind.is_empty() {
            let (start, bytes) = (self.behind.start, self.behind.end - self.behind.start);
            file::sync_range_wait(target, start, bytes)?;
            // What the cache takes says nothing of the target's rate.
            pace.written(bytes);
            if self.method == CallMethod::Paced {
                file::advise(target, start, bytes, CacheAdvice::DontNeed)?;
            }
        }
        self.behind = self.current.clone();
        Ok(())
    }

    fn finish(&mut self, source: &File, target: &File, pace: &mut Pace) -> sys::Result<()> {
        if self.is_bounded() {
            self.turn(target, pace)?;
            self.current = 0..0;
            self.turn(target, pace)?;
        }
        for range in self.brought.drain(..) {
            // A hint; what stays is seen in the receipt.
            let _ =
                file::advise(source, range.start, range.end - range.start, CacheAdvice::DontNeed);
        }
        Ok(())
    }
}
