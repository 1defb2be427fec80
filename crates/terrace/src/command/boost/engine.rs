//! The engine of a served cache: started with its devices, looked at by the thread that answers
//! questions, and what it reports.

use super::medium::Absent;
use super::parts::Parts;
use super::shared_disk::SharedDisk;
use super::times::{ReadTimes, TimedReads};
use crate::error::{Error, Result};
use crate::exit::Exit;
use cache::Cache;
use model::device::BlockDevice;
use model::engine::{Buffers, CacheOff, Engine, Event, Input, Output};
use place::boost::medium::MediumFile;
use serve::driver::{Driver, DriverDevice, DriverDevices, DriverOptions, RevocableDevice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::device::FileDevice;

/// The engine, which the thread that answers questions also looks at.
#[derive(Clone)]
pub(super) struct SharedCache {
    cache: Arc<Mutex<Cache>>,
    /// Taken after the cache, if both are.
    times: Arc<Mutex<ReadTimes>>,
}

impl SharedCache {
    fn new(cache: Cache) -> Self {
        Self { cache: Arc::new(Mutex::new(cache)), times: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long reads took.
    pub(super) fn timed(&self) -> TimedReads {
        self.times().timed()
    }

    /// What reads take is not what they usually take, or is again.
    pub(super) fn pause_times(&self, is_paused: bool) {
        self.times().pause(is_paused);
    }

    fn times(&self) -> MutexGuard<'_, ReadTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for SharedCache {
    fn handle(&mut self, input: Input, buffers: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        /// Ends the process where the engine panics: a successor serves what waits, where this one
        /// would answer everything with an error.
        struct EndOfProcess;
        impl Drop for EndOfProcess {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    std::process::abort();
                }
            }
        }
        let _guard = EndOfProcess;
        let mut cache = self.lock();
        let before = cache.counters();
        let first = outputs.len();
        cache.handle(input, buffers, outputs);
        let after = cache.counters();
        let mut times = self.times();
        if let Input::Request { id, request } = &input {
            times.begin(*id, request, after.bailed_out > before.bailed_out);
        }
        times.end(&outputs[first..], &before, &after);
    }
}

/// What is known of a served cache.
#[derive(Debug, Default)]
pub(super) struct CacheState {
    /// Why nothing of the cache is served; `None` while it is.
    pub(super) off: Option<String>,
    /// Why it began with nothing, or had to begin anew.
    pub(super) cold: Option<String>,
    /// Whether the medium will not be used any more.
    pub(super) is_given_up: bool,
}

pub(super) type SharedState = Arc<Mutex<CacheState>>;

pub(super) fn locked(service: &SharedState) -> MutexGuard<'_, CacheState> {
    service.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the engine with its devices. Of the budget of the day so many bytes are left, if it is
/// known.
pub(super) fn start(
    parts: &Arc<Parts>,
    disk: &Arc<SharedDisk>,
    medium: Option<Arc<MediumFile>>,
    budget_left: Option<u64>,
    service: &SharedState,
) -> Result<(Driver, SharedCache)> {
    let failed = |text: String| Error::new(Exit::Partial, format!("cannot serve: {text}"));
    let setup = &parts.setup;
    parts.host.prepare_journal(cache::journal_bytes(&setup.geometry))?;
    let journal = parts.host.journal().try_clone().map_err(|error| failed(error.to_string()))?;
    let revoked = Arc::clone(parts);
    let revoke =
        move || revoked.host.revoke().map_err(|error| std::io::Error::other(error.to_string()));
    // Without a descriptor, threads of the driver read it.
    let read_bytes = medium.as_ref().map(|medium| medium.alignment().read);
    let cache_file = medium.as_ref().and_then(|medium| medium.file().try_clone().ok());
    let cache: Arc<dyn DriverDevice> = match medium {
        Some(medium) => Arc::new(medium),
        None => Arc::new(Absent(parts.medium_bytes())),
    };
    let backing: Arc<SharedDisk> = Arc::clone(disk);
    let devices = DriverDevices {
        backing,
        cache,
        cache_file,
        journal: Arc::new(RevocableDevice::new(FileDevice::new(journal)?, revoke)),
    };
    let options = DriverOptions {
        is_locked: true,
        ..DriverOptions::of(parts.volume.bytes, block_bytes(parts))
    };
    let sizes = Cache::buffers(&setup.geometry, &setup.limits);
    let mut shared = None;
    let open = |buffers: &mut dyn Buffers| {
        let mut cache = Cache::attach(setup, &parts.journal, buffers)?;
        read_bytes.into_iter().for_each(|bytes| cache.set_medium_read_bytes(bytes));
        if let Some(left_bytes) = budget_left {
            cache.limit_budget(left_bytes);
        }
        Ok(shared.insert(SharedCache::new(cache)).clone())
    };
    let reported = Arc::clone(service);
    let report = move |event: Event| {
        let mut service = locked(&reported);
        match event {
            Event::CacheOff { why } => {
                service.off = Some(words_of(why).to_owned());
                service.is_given_up |= why == CacheOff::Journal;
            }
            Event::CacheOn => service.off = None,
            Event::VolumeChanged { offset } => {
                let why = format!("the volume was written elsewhere: it differs at byte {offset}");
                service.cold = Some(why);
            }
            Event::JournalRolledBack => service.cold = Some("its journal is an old one".to_owned()),
            Event::Recovered { .. } | Event::Detached { .. } => {}
        }
    };
    let driver = Driver::start(options, devices, &sizes, open, report).map_err(failed)?;
    let cache = shared.ok_or_else(|| failed("the engine did not start".to_owned()))?;
    Ok((driver, cache))
}

fn words_of(why: CacheOff) -> &'static str {
    match why {
        CacheOff::Errors => "the flash failed or is gone",
        CacheOff::AnotherMedium => "the file is not that of this cache",
        CacheOff::Journal => "its journal cannot be written",
    }
}

/// The volume's block.
pub(super) fn block_bytes(parts: &Parts) -> u32 {
    parts.volume.device.alignment().write.max(512)
}
