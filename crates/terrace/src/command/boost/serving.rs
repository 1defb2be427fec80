//! The process that serves a cache: engine, devices, the file of FUSE and the loop device over it.
//!
//! It is started by `boost serve` again and again. What a process before left goes on: the claim of
//! the volume and the channels of FUSE are with the holder, the loop device is with the kernel.

use super::control::{self, Detached, Question};
use super::parts::Parts;
use super::serve::{loop_device_over, use_of};
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use cache::{Cache, Start};
use machine::Root;
use model::device::{Alignment, BlockDevice, DeviceError};
use model::engine::{Buffers, CacheOff, ChangeProof, Engine, Event, Input, Output};
use place::boost::medium::MediumFile;
use serve::driver::{Driver, DriverDevice, DriverDevices, DriverOptions, RevocableDevice};
use serve::fuse::{FileOptions, FileServer, Session};
use serve::holder::HolderClient;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use sys::loop_device::{LoopDevice, LoopOptions};

/// The holder's name for the claimed volume.
const VOLUME: &str = "volume";
/// Threads that take requests from the kernel.
const CHANNELS: usize = 16;
/// How often questions are answered.
const TURN: Duration = Duration::from_millis(50);
/// How often it is looked whether the loop device is still there.
const DEVICE_LOOKED_FOR: Duration = Duration::from_secs(2);
/// How long a client waits for a program that has the device open.
const CLOSE_WAIT: Duration = Duration::from_secs(10);
/// How long what has the served file open may keep it.
const UNMOUNT_WAIT: Duration = Duration::from_secs(10);
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

/// What is known of the cache's service.
#[derive(Debug, Default)]
struct Service {
    /// Why nothing of the cache is served; `None` while it is.
    off: Option<String>,
    /// Why it began with nothing, or had to begin anew.
    cold: Option<String>,
    /// Whether the medium will not be used any more.
    is_given_up: bool,
}

type SharedService = Arc<Mutex<Service>>;

fn locked(service: &SharedService) -> MutexGuard<'_, Service> {
    service.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cache that is served.
struct Serving<'a> {
    args: &'a CacheArgs,
    parts: Arc<Parts>,
    cache: SharedCache,
    driver: Arc<Driver>,
    service: SharedService,
    server: FileServer,
    device: LoopDevice,
    point: PathBuf,
    listener: UnixListener,
    /// Since when the device is given up, and the client that waits for the end.
    detaching: Option<(Instant, Option<UnixStream>)>,
}

/// Looks for a medium that is gone or failed, in a thread of its own: a stick that hangs holds up
/// nothing else.
struct MediumWatch {
    args: CacheArgs,
    parts: Arc<Parts>,
    driver: Weak<Driver>,
    medium: Option<Arc<MediumFile>>,
    service: SharedService,
}

impl MediumWatch {
    fn start(self) -> Result<()> {
        let started = std::thread::Builder::new().name("medium".to_owned()).spawn(|| self.run());
        let failed = |error| Error::new(Exit::Partial, format!("cannot start a thread: {error}"));
        started.map(drop).map_err(failed)
    }

    fn run(mut self) {
        let root = Root::system();
        while let Some(driver) = self.driver.upgrade() {
            let is_wanted = {
                let service = locked(&self.service);
                service.off.is_some() && !service.is_given_up
            };
            if is_wanted && let Some(medium) = self.find(&root) {
                let _ = driver.replace_cache(Arc::new(Medium(medium)));
            }
            drop(driver);
            std::thread::sleep(MEDIUM_LOOKED_FOR);
        }
    }

    /// The same file again, or the one that is in its place now.
    fn find(&mut self, root: &Root) -> Option<Arc<MediumFile>> {
        let of = |file: std::fs::Metadata| (file.dev(), file.ino());
        let found = std::fs::metadata(&self.args.cache).ok().map(of);
        let own = self.medium.as_ref().and_then(|it| it.file().metadata().ok()).map(of);
        if own.is_none() || own != found {
            let opened = self.parts.open_medium(&self.args, root, false).ok()?;
            self.medium = Some(Arc::new(opened));
        }
        self.medium.clone()
    }
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

/// Opens the parts, and waits while requests of the process before are under way. Whether there was
/// one.
fn open_parts(args: &CacheArgs, root: &Root, holder: &HolderClient<'_>) -> Result<(Parts, bool)> {
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
                return Ok((parts, is_successor));
            }
        }
    }
}

impl<'a> Serving<'a> {
    fn begin(args: &'a CacheArgs, holder: &HolderClient<'_>) -> Result<Self> {
        let root = Root::system();
        let (parts, is_successor) = open_parts(args, &root, holder)?;
        let parts = Arc::new(parts);
        let service = SharedService::default();
        // A successor serves at once, and looks for its stick behind: that one may hang.
        let medium = if is_successor {
            locked(&service).off = Some("the file of the cache is looked for".to_owned());
            None
        } else {
            Some(Arc::new(parts.open_medium(args, &root, true)?))
        };
        let (driver, cache) = start(&parts, medium.clone(), &service)?;
        if let Start::Cold(why) = cache.lock().start() {
            locked(&service).cold = Some(why.to_string());
        }
        let driver = Arc::new(driver);
        let watch = MediumWatch {
            args: args.clone(),
            parts: Arc::clone(&parts),
            driver: Arc::downgrade(&driver),
            medium,
            service: Arc::clone(&service),
        };
        watch.start()?;
        let directory = control::directory(&args.name)?;
        let point = control::path(&directory, control::EXPORT);
        let source = format!("terrace-boost-{}", args.name);
        let session = Session::open(holder, &point, &source, CHANNELS)?;
        let volume = Arc::clone(&driver);
        let server = FileServer::start(session.channels, volume, FileOptions::DISK)?;
        let found = loop_device_over(&point)
            .map_err(|error| Error::new(Exit::Partial, sys::plain_reason(&error)))?;
        let device = match found {
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
        Ok(Self { args, parts, cache, driver, service, server, device, point, listener, detaching })
    }

    /// Answers questions, and ends when the loop device is gone: by a detach, a signal or a person.
    fn run(mut self) -> Result<Exit> {
        let mut looked = Instant::now();
        loop {
            while let Ok((client, _)) = self.listener.accept() {
                self.answer(client);
            }
            let is_asked = sys::interrupt::requested() && self.detaching.is_none();
            if is_asked && self.use_of_device().is_none() {
                self.begin_detach(None);
            }
            self.answer_late();
            if self.detaching.is_some() || looked.elapsed() >= DEVICE_LOOKED_FOR {
                looked = Instant::now();
                if matches!(loop_device_over(&self.point), Ok(None)) {
                    return Ok(self.end());
                }
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
                    let refused = Some(format!("{used}: unmount it first"));
                    control::answer(&client, &Detached { is_proved: false, refused });
                }
                None => self.begin_detach(Some(client)),
            },
        }
    }

    /// What uses the block device, in words.
    fn use_of_device(&self) -> Option<String> {
        let is_ours = matches!(loop_device_over(&self.point), Ok(Some(it)) if it == self.device);
        if is_ours { use_of(&self.device) } else { None }
    }

    /// No new user comes to the device; the last one may still have it open.
    fn begin_detach(&mut self, client: Option<UnixStream>) {
        // By then its number may be that of another file.
        if matches!(loop_device_over(&self.point), Ok(Some(it)) if it == self.device) {
            let _ = self.device.detach();
        }
        let since = self.detaching.take().map_or_else(Instant::now, |(since, _)| since);
        self.detaching = Some((since, client));
    }

    /// Says to a client that waits that a program still has the device open.
    fn answer_late(&mut self) {
        let Some((since, client)) = &mut self.detaching else { return };
        if since.elapsed() < CLOSE_WAIT {
            return;
        }
        if let Some(client) = client.take() {
            let device = self.device.path().display();
            let refused = Some(format!(
                "a program still has {device} open: the cache ends when that closes it"
            ));
            control::answer(&client, &Detached { is_proved: false, refused });
        }
    }

    /// Unmounts the file and has the engine prove that all is well.
    fn end(self) -> Exit {
        let unmounted = sys::mount::unmount(&self.point);
        if unmounted.is_err() {
            let _ = sys::mount::detach(&self.point);
        }
        // What has the file open, or a copy of the mount, could still write.
        let is_proved = self.server.join_within(UNMOUNT_WAIT) && {
            let volume = &self.parts.volume;
            // Read now, since this content shows a write elsewhere only from here on.
            if volume.content.proof == ChangeProof::AfterDetach
                && let Ok(now) = place::boost::content::read(&*volume.device)
                && now.proof == ChangeProof::AfterDetach
            {
                self.cache.lock().take_last_witnesses(now.witnesses);
            }
            self.driver.detach(PROOF_WAIT) == Some(true)
        };
        if let Some((_, Some(client))) = &self.detaching {
            control::answer(client, &Detached { is_proved, refused: None });
        }
        Exit::Done
    }

    fn status(&self) -> CacheStatus {
        let (cache, service) = (self.cache.lock(), locked(&self.service));
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
            cold: service.cold.clone(),
            off: service.off.clone(),
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
    service: &SharedService,
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
fn block_bytes(parts: &Parts) -> u32 {
    parts.volume.device.alignment().write.max(512)
}

fn attach_loop(file: &File, point: &Path, block_bytes: u32) -> Result<LoopDevice> {
    let options =
        LoopOptions { is_direct: true, is_read_only: false, block_bytes: Some(block_bytes) };
    Ok(LoopDevice::attach(file, point, options)?)
}
