//! Drives an engine (`model::engine`) with real devices, as the volume that is exported.
//!
//! - Callers of the volume block until the engine has completed their requests; the engine runs
//!   under one lock, in the thread that brings it an input, and does no I/O itself.
//! - Each device has threads of its own (`pool`): a medium that hangs holds up nothing else. What a
//!   caller waits for in any case it does itself (`shared`, `caller_read`).
//!   An operation belongs to the device that was there when it was given out: after
//!   [`Driver::replace_cache`] operations of before never reach what is there now.
//! - A thread ticks four times a second.
//!
//! All buffers are made before the first request, and so many requests are open at most. Whatever
//! the kernel sends, two writes that overlap are not open at the same time.

mod caller_read;
mod device;
mod pool;
mod shared;

pub use device::{DriverDevice, RevocableDevice};

use crate::volume::{INVALID, Volume, VolumeResult};
use model::engine::{Buffers, Device, Engine, ErrorNumber, Event, Input, REQUESTS_MAX, Request};
use pool::Pool;
use shared::{Detachment, DriverState, RequestData, SharedDriver};
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::buffer_pool::BufferPool;

/// How often the engine learns the time; it must at least once a second.
const TICK: Duration = Duration::from_millis(250);

/// How an engine is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverOptions {
    /// The length of the volume in bytes, of which a part of a block at the end is left out.
    pub volume_bytes: u64,
    /// The volume's block in bytes: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Requests that are open at once, up to [`REQUESTS_MAX`].
    pub requests: u32,
    /// The bytes of one request; a longer one is cut into several. A part of a block at the end is
    /// left out, and there must be room for one.
    pub request_bytes: u32,
    /// Threads for the operations on each device, in the order of [`Device::ALL`].
    pub threads: [usize; 3],
    /// Buffers stay in memory, which needs the right to lock so much.
    pub is_locked: bool,
}

impl DriverOptions {
    /// What suits a volume of these sizes.
    #[must_use]
    pub const fn of(volume_bytes: u64, block_bytes: u32) -> Self {
        Self {
            volume_bytes,
            block_bytes,
            requests: 64,
            request_bytes: 256 << 10,
            threads: [16, 16, 2],
            is_locked: false,
        }
    }
}

/// The devices of an engine.
pub struct DriverDevices {
    /// The volume itself.
    pub backing: Arc<dyn DriverDevice>,
    /// The medium of the cache.
    pub cache: Arc<dyn DriverDevice>,
    /// The open file whose bytes are those of the medium, with zeros behind its end, if it is one.
    /// Callers then read it themselves.
    pub cache_file: Option<File>,
    /// The journal.
    pub journal: Arc<dyn DriverDevice>,
}

impl std::fmt::Debug for DriverDevices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DriverDevices").finish_non_exhaustive()
    }
}

/// A running engine.
pub struct Driver {
    shared: Arc<SharedDriver>,
    ticker: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Driver {
    /// Makes the buffers, lets `open` make the engine with those of `sizes` (pairs of bytes and
    /// count), and starts it. `report` gets what a person may want to know, from any thread.
    ///
    /// # Errors
    /// What `open` says, where memory or threads are not to be had, and for requests without room
    /// for a block.
    pub fn start<E: Engine + Send + 'static>(
        options: DriverOptions,
        devices: DriverDevices,
        sizes: &[(u32, u32)],
        open: impl FnOnce(&mut dyn Buffers) -> Result<E, String>,
        report: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let requests = options.requests.clamp(1, REQUESTS_MAX as u32);
        // Pieces of a request are of whole blocks too.
        let blocks = options.request_bytes.checked_div(options.block_bytes).unwrap_or(0);
        if blocks == 0 {
            return Err("a request has no room for a block".to_owned());
        }
        let request_bytes = blocks * options.block_bytes;
        let options = DriverOptions { requests, request_bytes, ..options };
        let all = [&[(options.request_bytes, requests)], sizes].concat();
        let mut buffers = BufferPool::new(&all, options.is_locked).map_err(|it| it.to_string())?;
        // Before the engine takes any, so that a request never lacks one.
        let own: Vec<_> =
            (0..requests).filter_map(|_| buffers.take(options.request_bytes)).collect();
        let engine = open(&mut buffers)?;
        let pools = vec![
            Pool::new(devices.backing, None),
            Pool::new(devices.cache, devices.cache_file.as_ref()),
            Pool::new(devices.journal, None),
        ];
        let core = DriverState::new(Box::new(engine), buffers, own, pools.clone());
        let shared = Arc::new(SharedDriver::new(options, core, Box::new(report)));
        // From here on an error drops it, which ends the threads that run.
        let mut driver = Self { shared: Arc::clone(&shared), ticker: None };
        for (device, pool) in Device::ALL.into_iter().zip(&pools) {
            shared.start_threads(device, pool).map_err(|error| error.to_string())?;
        }
        // The first input is a tick.
        shared.input(shared.lock(), Input::Tick { now_ns: shared.now_ns() });
        let ticker = std::thread::Builder::new()
            .name("engine-tick".to_owned())
            .spawn(move || tick(&shared))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        driver.ticker = Some(ticker);
        Ok(driver)
    }

    /// Puts a medium, and the file that it is, in the place of the cache's, and says to the engine
    /// that it is there before the engine can give out an operation for it. Operations that were
    /// given out before go to the old one, also if they have not begun.
    ///
    /// # Errors
    /// When a thread cannot be started; the old one stays then, and the engine learns nothing.
    pub fn replace_cache(&self, by: Arc<dyn DriverDevice>, file: Option<&File>) -> sys::Result<()> {
        let pool = Pool::new(by, file);
        if let Err(error) = self.shared.start_threads(Device::Cache, &pool) {
            pool.close();
            return Err(error);
        }
        // One lock for both: what the engine gave out in between would reach a medium that it has
        // not compared.
        let mut core = self.shared.lock();
        core.set_pool(Device::Cache, pool).close();
        self.shared.input(core, Input::CacheReturned);
        Ok(())
    }

    /// Hints that a range will be read; returns when the engine has taken note.
    ///
    /// # Errors
    /// `EINVAL` for a range that is not of whole blocks within the volume.
    pub fn prefetch(&self, offset: u64, len: u64) -> VolumeResult {
        self.shared.check(offset, len)?;
        self.shared.request(Request::Prefetch { offset, len })
    }

    /// Ends the use of the volume, which has no request open and gets none any more. Whether the
    /// engine proved that all is well for the next start; `None` if it did not end within `limit`.
    #[must_use]
    pub fn detach(&self, limit: Duration) -> Option<bool> {
        let end = Instant::now() + limit;
        let shared = &self.shared;
        shared.input(shared.lock(), Input::Detach);
        let mut core = shared.lock();
        loop {
            if let Detachment::Ended { is_proved } = core.detachment {
                return Some(is_proved);
            }
            let left = end.checked_duration_since(Instant::now())?;
            core = shared.wait_for_detachment(core, left.min(TICK));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            let _ = ticker.join();
        }
        // A thread whose device hangs is not waited for.
        self.shared.lock().close_pools();
    }
}

fn tick(shared: &SharedDriver) {
    while !shared.is_ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(TICK);
        shared.input(shared.lock(), Input::Tick { now_ns: shared.now_ns() });
    }
}

impl Volume for Driver {
    fn bytes(&self) -> u64 {
        self.shared.volume_bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        self.shared.check(offset, buffer.len() as u64)?;
        let pieces = buffer.chunks_mut(self.shared.options.request_bytes as usize);
        self.shared.transfer(offset, pieces, RequestData::Read)
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        self.shared.check(offset, data.len() as u64)?;
        let pieces = data.chunks(self.shared.options.request_bytes as usize);
        self.shared.transfer(offset, pieces, RequestData::Write)
    }

    fn flush(&self) -> VolumeResult {
        self.shared.request(Request::Flush)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        self.shared.check(offset, len)?;
        self.shared.request(Request::WriteZeroes { offset, len })
    }

    fn discard(&self, offset: u64, len: u64) -> VolumeResult {
        self.shared.check(offset, len)?;
        self.shared.request(Request::Discard { offset, len })
    }
}

impl SharedDriver {
    fn volume_bytes(&self) -> u64 {
        let block = u64::from(self.options.block_bytes);
        self.options.volume_bytes / block * block
    }

    /// Whether a range is of whole blocks within the volume.
    fn check(&self, offset: u64, len: u64) -> Result<(), ErrorNumber> {
        let block = u64::from(self.options.block_bytes);
        let is_aligned = offset.is_multiple_of(block) && len.is_multiple_of(block);
        let is_within = crate::volume::is_within(self.volume_bytes(), offset, len);
        if is_aligned && is_within { Ok(()) } else { Err(INVALID) }
    }

    fn wait_for_detachment<'a>(
        &self,
        core: MutexGuard<'a, DriverState>,
        limit: Duration,
    ) -> MutexGuard<'a, DriverState> {
        let waited = self.detached.wait_timeout(core, limit);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests;
