//! The process that serves a cache: engine, devices, the file of FUSE and the loop device over it.
//!
//! It is started by `boost serve` again and again. What a process before left goes on: the claim of
//! the volume and the channels of FUSE are with the holder, the loop device is with the kernel.

use super::control::{self, Detached, Question};
use super::parts::Parts;
use super::serve::loop_device_over;
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use cache::{Cache, Start};
use machine::{Root, block_use};
use model::device::{Alignment, BlockDevice, DeviceError};
use model::engine::{Buffers, CacheOff, Engine, Event, Input, Output};
use place::boost::medium::MediumFile;
use serve::driver::{Driver, DriverDevice, DriverDevices, DriverOptions, RevocableDevice};
use serve::fuse::{FileOptions, FileServer, Session};
use serve::holder::HolderClient;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use sys::loop_device::{LoopDevice, LoopOptions};

/// The holder's name for the claimed volume.
const VOLUME: &str = "volume";
/// Threads that take requests from the kernel.
const CHANNELS: usize = 16;
/// How often questions are answered.
const TURN: Duration = Duration::from_millis(50);
/// How often a medium that is gone is looked for.
const MEDIUM_LOOKED_FOR: Duration = Duration::from_secs(2);
/// How long requests of a process before may hold its lock.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How long the engine may take to prove that all is well.
const PROOF_WAIT: Duration = Duration::from_secs(60);

/// The engine, which the thread that answers questions also looks at.
#[derive(Clone)]
struct SharedCache(Arc<Mutex<Cache>>);

impl SharedCache {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for SharedCache {
    fn handle(&mut self, input: Input, buffers: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        self.lock().handle(input, buffers, outputs);
    }
}

/// The file of the cache as a device of the engine.
struct Medium(Arc<MediumFile>);

/// A medium that is not there.
struct Absent(u64);

/// `ENODEV`.
const NO_DEVICE: i32 = 19;

fn absent(operation: &'static str) -> DeviceError {
    DeviceError::new(operation, None, std::io::Error::from_raw_os_error(NO_DEVICE))
}

impl BlockDevice for Absent {
    fn size_bytes(&self) -> std::result::Result<u64, DeviceError> {
        Ok(self.0)
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> std::result::Result<usize, DeviceError> {
        Err(absent("read"))
    }

    fn write_at(&self, _: &[u8], _: u64) -> std::result::Result<usize, DeviceError> {
        Err(absent("write"))
    }

    fn discard(&self, _: std::ops::Range<u64>) -> std::result::Result<(), DeviceError> {
        Err(absent("discard"))
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        Err(absent("flush"))
    }
}

impl DriverDevice for Absent {}

impl BlockDevice for Medium {
    fn size_bytes(&self) -> std::result::Result<u64, DeviceError> {
        self.0.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.0.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> std::result::Result<usize, DeviceError> {
        self.0.read_at(buffer, at)
    }

    fn write_at(&self, buffer: &[u8], at: u64) -> std::result::Result<usize, DeviceError> {
        self.0.write_at(buffer, at)
    }

    fn discard(&self, range: std::ops::Range<u64>) -> std::result::Result<(), DeviceError> {
        self.0.discard(range)
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        self.0.flush()
    }
}

impl DriverDevice for Medium {}

/// Why nothing of the cache is served; `None` while it is.
type Off = Arc<Mutex<Option<String>>>;

/// A cache that is served.
struct Serving<'a> {
    args: &'a CacheArgs,
    root: Root,
    parts: Arc<Parts>,
    cache: SharedCache,
    driver: Arc<Driver>,
    medium: Option<Arc<MediumFile>>,
    off: Off,
    cold: Option<String>,
    server: FileServer,
    device: LoopDevice,
    point: PathBuf,
    listener: UnixListener,
    /// The client that waits for the end.
    detaching: Option<Option<UnixStream>>,
}

/// Serves until it is detached. The holder is at the other end of standard input.
///
/// # Errors
/// Which part cannot be used, and why.
pub fn process(args: &CacheArgs) -> Result<Exit> {
    let _no_signal_ends_it = sys::interrupt::hold();
    // Needed only by who swaps to the volume; a container may not have the right to it.
    let _ = sys::process::serve_memory_reclaim();
    let input = std::io::stdin();
    let holder = HolderClient::new(input.as_fd());
    Serving::begin(args, &holder)?.run()
}

/// Opens the parts, and waits while requests of the process before are under way.
fn open_parts(args: &CacheArgs, root: &Root, holder: &HolderClient<'_>) -> Result<Parts> {
    let end = Instant::now() + LOCK_WAIT;
    loop {
        let held = holder.take_all()?;
        let claimed = held.into_iter().find(|(name, _)| name == VOLUME).map(|(_, held)| held);
        let is_successor = claimed.is_some();
        match Parts::open(args, root, claimed.map(File::from)) {
            Err(error)
                if is_successor && error.exit == Exit::Impossible && Instant::now() < end =>
            {
                std::thread::sleep(TURN);
            }
            opened => {
                let parts = opened?;
                holder.keep(VOLUME, parts.volume.device.file().as_fd())?;
                return Ok(parts);
            }
        }
    }
}

impl<'a> Serving<'a> {
    fn begin(args: &'a CacheArgs, holder: &HolderClient<'_>) -> Result<Self> {
        let root = Root::system();
        let parts = Arc::new(open_parts(args, &root, holder)?);
        // A stick that is not there is looked for later: the volume is served without it.
        let medium = parts.open_medium(args, &root).map(Arc::new);
        let off = Off::default();
        if let Err(error) = &medium {
            *off.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.text.clone());
        }
        let medium = medium.ok();
        let (driver, cache) = start(&parts, medium.clone(), &off)?;
        let cold = match cache.lock().start() {
            Start::Warm => None,
            Start::Cold(why) => Some(why.to_string()),
        };
        let directory = control::directory(&args.name)?;
        let point = control::path(&directory, control::EXPORT);
        let source = format!("terrace-boost-{}", args.name);
        let session = Session::open(holder, &point, &source, CHANNELS)?;
        let driver = Arc::new(driver);
        let volume = Arc::clone(&driver);
        let server = FileServer::start(session.channels, volume, FileOptions::DISK)?;
        let device = match loop_device_over(&point) {
            Some(device) => device,
            None => {
                let file = directory.open_or_create(control::EXPORT.as_ref(), 0o600)?;
                attach_loop(&file, &point, block_bytes(&parts))?
            }
        };
        let _ = directory.remove(control::DEVICE.as_ref());
        directory.create_link(control::DEVICE.as_ref(), device.path().as_os_str())?;
        let listener = control::listen(&directory)?;
        let detaching = None;
        Ok(Self {
            args,
            root,
            parts,
            cache,
            driver,
            medium,
            off,
            cold,
            server,
            device,
            point,
            listener,
            detaching,
        })
    }

    /// Answers questions, looks for a medium that is gone, and ends when that was asked for.
    fn run(mut self) -> Result<Exit> {
        let (mut looked, mut was_asked) = (Instant::now(), false);
        loop {
            while let Ok((client, _)) = self.listener.accept() {
                self.answer(client);
            }
            if sys::interrupt::requested() && !was_asked {
                was_asked = true;
                if self.use_of_device().is_none() {
                    self.begin_detach(None);
                }
            }
            if self.detaching.is_some() && loop_device_over(&self.point).is_none() {
                return Ok(self.end());
            }
            if looked.elapsed() >= MEDIUM_LOOKED_FOR {
                looked = Instant::now();
                self.look_for_medium();
            }
            std::thread::sleep(TURN);
        }
    }

    fn answer(&mut self, client: UnixStream) {
        match control::question(&client) {
            None => {}
            Some(Question::Status) => control::answer(&client, &self.status()),
            Some(Question::IsCached(offset)) => {
                let is_within = offset < self.parts.volume.bytes;
                let is_cached = is_within.then(|| self.cache.lock().is_cached(offset));
                control::answer(&client, &is_cached);
            }
            Some(Question::Detach) => match self.use_of_device() {
                Some(used) => {
                    let refused = Detached { is_proved: false, refused: Some(used) };
                    control::answer(&client, &refused);
                }
                None => self.begin_detach(Some(client)),
            },
        }
    }

    /// What uses the block device, in words.
    fn use_of_device(&self) -> Option<String> {
        const LOOP_MAJOR: u32 = 7;
        let uses = block_use::uses(&self.root, LOOP_MAJOR, self.device.number());
        uses.first().map(ToString::to_string)
    }

    /// No new user comes to the device; the last one may still have it open.
    fn begin_detach(&mut self, client: Option<UnixStream>) {
        let _ = self.device.detach();
        self.detaching = Some(client);
    }

    /// Unmounts the file and has the engine prove that all is well.
    fn end(self) -> Exit {
        let unmounted = sys::mount::unmount(&self.point);
        if unmounted.is_err() {
            let _ = sys::mount::detach(&self.point);
        }
        self.server.join();
        let is_proved = self.driver.detach(PROOF_WAIT) == Some(true);
        if let Some(Some(client)) = self.detaching {
            control::answer(&client, &Detached { is_proved, refused: None });
        }
        Exit::Done
    }

    /// Puts a medium that was gone, or that failed, into its place again.
    fn look_for_medium(&mut self) {
        if self.off.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        let found = std::fs::metadata(&self.args.cache).map(|file| (file.dev(), file.ino()));
        let own = |medium: &MediumFile| {
            medium.file().metadata().map(|file| (file.dev(), file.ino())).ok()
        };
        let is_same = self.medium.as_deref().and_then(own) == found.as_ref().ok().copied();
        if !is_same || self.medium.is_none() {
            let Ok(medium) = self.parts.open_medium(self.args, &self.root) else { return };
            self.medium = Some(Arc::new(medium));
        }
        if let Some(medium) = &self.medium {
            let _ = self.driver.replace_cache(Arc::new(Medium(Arc::clone(medium))));
        }
    }

    fn status(&self) -> CacheStatus {
        let cache = self.cache.lock();
        let counters = cache.counters();
        let frame = u64::from(self.parts.setup.geometry.frame_bytes);
        CacheStatus {
            name: self.args.name.clone(),
            device: self.device.path().display().to_string(),
            volume: self.parts.volume.name.clone(),
            volume_bytes: self.parts.volume.bytes,
            cache: self.args.cache.display().to_string(),
            cache_bytes: self.parts.medium_bytes(),
            process: std::process::id(),
            cold: self.cold.clone(),
            off: self.off.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cached_bytes: u64::from(cache.cached_frames()) * frame,
            reads: counters.reads,
            read_bytes: counters.read_bytes,
            hits: counters.hits,
            hit_bytes: counters.hit_bytes,
            bailed_out: counters.bailed_out,
            writes: counters.writes,
            write_bytes: counters.write_bytes,
            medium_bytes: counters.medium_bytes,
            medium_errors: counters.medium_errors,
            medium_wrong: counters.medium_wrong,
        }
    }
}

/// Starts the engine with its devices.
fn start(
    parts: &Arc<Parts>,
    medium: Option<Arc<MediumFile>>,
    off: &Off,
) -> Result<(Driver, SharedCache)> {
    let failed = |text: String| Error::new(Exit::Partial, format!("cannot serve: {text}"));
    let setup = &parts.setup;
    parts.host.size_journal(cache::journal_bytes(&setup.geometry))?;
    let journal = parts.host.journal().try_clone().map_err(|error| failed(error.to_string()))?;
    let revoked = Arc::clone(parts);
    let revoke =
        move || revoked.host.revoke().map_err(|error| std::io::Error::other(error.to_string()));
    let cache: Arc<dyn DriverDevice> = match medium {
        Some(medium) => Arc::new(Medium(medium)),
        None => Arc::new(Absent(parts.medium_bytes())),
    };
    let backing: Arc<FileDevice> = Arc::clone(&parts.volume.device);
    let devices = DriverDevices {
        backing,
        cache,
        journal: Arc::new(RevocableDevice::new(FileDevice::new(journal)?, revoke)),
    };
    let options = DriverOptions {
        is_locked: true,
        ..DriverOptions::of(parts.volume.bytes, block_bytes(parts))
    };
    let sizes = Cache::buffers(&setup.geometry, &setup.limits);
    let mut shared = None;
    let open = |buffers: &mut dyn Buffers| {
        let cache = Cache::attach(setup, &parts.journal, buffers)?;
        Ok(shared.insert(SharedCache(Arc::new(Mutex::new(cache)))).clone())
    };
    let state = Arc::clone(off);
    let report = move |event: Event| {
        let mut off = state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CacheOff { why } => *off = Some(words_of(why).to_owned()),
            Event::CacheOn => *off = None,
            Event::VolumeChanged { offset } => {
                *off = Some(format!("the volume was written elsewhere, at byte {offset}"));
            }
            Event::JournalRolledBack => *off = Some("its journal is an old one".to_owned()),
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
fn block_bytes(parts: &Parts) -> u32 {
    parts.volume.device.alignment().write.max(512)
}

fn attach_loop(file: &File, point: &Path, block_bytes: u32) -> Result<LoopDevice> {
    let options =
        LoopOptions { is_direct: true, is_read_only: false, block_bytes: Some(block_bytes) };
    Ok(LoopDevice::attach(file, point, options)?)
}
