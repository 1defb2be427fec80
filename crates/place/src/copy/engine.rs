//! How the bytes of a file move: chosen by what source, target and kernel can, in this order.
//!
//! | engine | for | does |
//! |---|---|---|
//! | `reflink` | one file system that shares data | nothing moves |
//! | `uring` | from 1 MiB, where direct writes are direct | past the cache, several at a time |
//! | `uncached` | Linux 6.14, file systems that can | through the cache and out of it again |
//! | `paced` | all others | written back one window behind, dropped from the cache |
//! | `plain` | small files | one read and one write; dropped from the cache once durable |
//! | `two-thread` | experiments | one thread reads, one writes, 40 MB between; past the cache |
//!
//! A source that is all cached is read from there. What is refused is not tried again.

pub(super) mod calls;
pub(super) mod extents;
mod ring;
pub(super) mod two_thread;

use super::CopyRequest;
use super::plan::CopyPlan;
use calls::CallMethod;
use model::copy_gauges::CopyEngine;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::file::FileSystem;
use sys::file_stat::FileStat;
use sys::{ErrorKind, cachestat};

pub(super) use ring::RingFiles;

/// File systems on which space is reserved without writing it.
const RESERVES: [&str; 4] = ["ext4", "ext2", "xfs", "f2fs"];
/// A source that is in the cache from this share on is read through it. What is not there is left
/// in the cache by such a read, so it is to be little.
const CACHED_SHARE: f64 = 0.99;

/// Which engines are left.
#[derive(Debug)]
pub(super) struct Engines {
    only: Option<CopyEngine>,
    is_in_ram: bool,
    /// What is tried; each is switched off by its first refusal.
    reflink: AtomicBool,
    uring: AtomicBool,
    uncached: AtomicBool,
    two_thread: AtomicBool,
    reserves: bool,
    refusals: Mutex<Vec<String>>,
    workers: usize,
}

impl Engines {
    /// What may be tried for this target.
    pub(super) fn choose(request: &CopyRequest, plan: &CopyPlan) -> Self {
        let system = sys::file::file_system(plan.into.file()).ok();
        let name = system.as_ref().and_then(|system| system.name).unwrap_or("unknown");
        let is_in_ram = system.as_ref().is_some_and(|system| system.in_ram);
        let may = |engine| request.engine.is_none_or(|only| only == engine);
        let has_direct = system.as_ref().is_none_or(FileSystem::has_direct_writes);
        let is_direct = has_direct && !is_in_ram;
        let mut refusals = Vec::new();
        let wants_direct =
            matches!(request.engine, Some(CopyEngine::Uring | CopyEngine::TwoThread));
        if !is_direct && wants_direct {
            refusals.push(format!("direct writes on {name} go through the cache"));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            only: request.engine,
            is_in_ram,
            reflink: AtomicBool::new(may(CopyEngine::Reflink)),
            uring: AtomicBool::new(may(CopyEngine::Uring) && is_direct && !request.keep_cached),
            uncached: AtomicBool::new(may(CopyEngine::Uncached) && !request.keep_cached),
            two_thread: AtomicBool::new(request.engine == Some(CopyEngine::TwoThread) && is_direct),
            reserves: RESERVES.contains(&name),
            refusals: Mutex::new(refusals),
            workers: processors.clamp(1, 4),
        }
    }

    /// Threads for small files.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// What was refused, in words.
    pub(super) fn refusals(&self) -> Vec<String> {
        self.refusals.lock().map(|all| all.clone()).unwrap_or_default()
    }

    /// Switches an engine off.
    pub(super) fn refuse(&self, engine: CopyEngine, why: &str) {
        let switch = match engine {
            CopyEngine::Reflink => &self.reflink,
            CopyEngine::Uring => &self.uring,
            CopyEngine::Uncached => &self.uncached,
            CopyEngine::TwoThread => &self.two_thread,
            CopyEngine::Paced | CopyEngine::Plain | CopyEngine::Cached => return,
        };
        if switch.swap(false, Ordering::Relaxed)
            && let Ok(mut all) = self.refusals.lock()
        {
            all.push(format!("{}: {why}", engine.name()));
        }
    }

    /// Whether large files may go to the ring.
    pub(super) fn may_use_ring(&self) -> bool {
        self.uring.load(Ordering::Relaxed)
    }

    /// Whether reads leave nothing in the cache.
    pub(super) fn reads_uncached(&self) -> bool {
        self.uncached.load(Ordering::Relaxed)
    }

    /// Whether space may be reserved.
    pub(super) fn reserves(&self) -> bool {
        self.reserves
    }

    /// How a file is copied by calls.
    pub(super) fn method(&self, bytes: u64) -> CallMethod {
        match self.only {
            Some(CopyEngine::Plain) => return CallMethod::Plain,
            Some(CopyEngine::Cached) => return CallMethod::Cached,
            Some(CopyEngine::Paced) => return CallMethod::Paced,
            _ => {}
        }
        if bytes < super::LARGE_FROM_BYTES || self.is_in_ram {
            CallMethod::Plain
        } else if self.two_thread.load(Ordering::Relaxed) {
            CallMethod::TwoThread
        } else if self.uncached.load(Ordering::Relaxed) {
            CallMethod::Uncached
        } else {
            CallMethod::Paced
        }
    }

    /// Lets the target share the source's data; whether it does.
    pub(super) fn share(&self, source: &File, target: &File) -> bool {
        if !self.reflink.load(Ordering::Relaxed) {
            return false;
        }
        match sys::file::share_data(source, target) {
            Ok(()) => true,
            Err(error) => {
                // Of another file system this source may be; the next may not be.
                let is_for_all = error.kind == ErrorKind::Unsupported || is_across(&error);
                if is_for_all {
                    self.reflink.store(false, Ordering::Relaxed);
                }
                false
            }
        }
    }
}

fn is_across(error: &sys::Error) -> bool {
    // "Invalid cross-device link"; and EINVAL is what file systems without shared data answer.
    error.source.kind() == std::io::ErrorKind::CrossesDevices || error.kind == ErrorKind::Invalid
}

/// Whether so much of the source is in the page cache that it is read from there.
pub(super) fn is_cached(source: &File, stat: &FileStat) -> bool {
    let Ok(cached) = cachestat::of(source, 0, 0) else { return false };
    cached.cached_bytes() as f64 >= stat.bytes.max(1) as f64 * CACHED_SHARE
}

/// Whether the content was changed between two looks at the file.
pub(super) fn is_changed(now: &FileStat, before: &FileStat) -> bool {
    now.bytes != before.bytes || now.modified != before.modified
}
