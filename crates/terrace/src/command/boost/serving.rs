//! The process that serves a cache: engine, devices, the file of FUSE and the loop device over it.
//!
//! It is started by `boost serve` again and again. What a process before left goes on: the claim of
//! the volume and the channels of FUSE are with the holder, the loop device is with the kernel.

use super::control::{self, Detached, Question};
use super::engine::{self, SharedCache, SharedState, block_bytes, locked};
use super::medium::MediumWatch;
use super::parts::Parts;
use super::published::PublishedCounters;
use super::serve::{loop_device_over, use_of};
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use machine::Root;
use model::BoostCounters;
use model::engine::ChangeProof;
use serve::driver::Driver;
use serve::fuse::{FileOptions, FileServer, Session};
use serve::holder::HolderClient;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
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
/// How long requests of a process before may hold its lock.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How long the engine may take to prove that all is well.
const PROOF_WAIT: Duration = Duration::from_secs(60);

/// A cache that is served.
struct Serving<'a> {
    args: &'a CacheArgs,
    parts: Arc<Parts>,
    cache: SharedCache,
    driver: Arc<Driver>,
    service: SharedState,
    server: FileServer,
    device: LoopDevice,
    point: PathBuf,
    listener: UnixListener,
    published: PublishedCounters,
    /// Since when the device is given up, and the client that waits for the end.
    detaching: Option<(Instant, Option<UnixStream>)>,
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
        let service = SharedState::default();
        // A successor serves at once, and looks for its stick behind: that one may hang.
        let medium = if is_successor {
            locked(&service).off = Some("the file of the cache is looked for".to_owned());
            None
        } else {
            Some(Arc::new(parts.open_medium(args, &root, true)?))
        };
        let (driver, cache) = engine::start(&parts, medium.clone(), &service)?;
        let cold = cache.lock().start().cold();
        locked(&service).cold = cold.map(|why| why.to_string());
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
        let published = PublishedCounters::open(directory);
        Ok(Self {
            args,
            parts,
            cache,
            driver,
            service,
            server,
            device,
            point,
            listener,
            published,
            detaching: None,
        })
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
            self.publish();
            if self.detaching.is_some() || looked.elapsed() >= DEVICE_LOOKED_FOR {
                looked = Instant::now();
                if matches!(loop_device_over(&self.point), Ok(None)) {
                    return Ok(self.end());
                }
            }
            std::thread::sleep(TURN);
        }
    }

    /// Tells recorders what was counted.
    fn publish(&mut self) {
        if !self.published.are_due() {
            return;
        }
        let cache = self.cache.lock();
        let counters = cache.counters();
        let frame = u64::from(self.parts.setup.geometry.frame_bytes);
        let values = [
            u64::from(cache.cached_frames()) * frame,
            counters.reads,
            counters.read_bytes,
            counters.hits,
            counters.hit_bytes,
            counters.bailed_out,
            counters.writes,
            counters.write_bytes,
            counters.filled,
            counters.prefetched,
            counters.medium_bytes,
            counters.medium_errors,
            counters.medium_wrong,
        ];
        drop(cache);
        self.published.put(&BoostCounters(values.map(Some)));
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

fn attach_loop(file: &File, point: &Path, block_bytes: u32) -> Result<LoopDevice> {
    let options =
        LoopOptions { is_direct: true, is_read_only: false, block_bytes: Some(block_bytes) };
    Ok(LoopDevice::attach(file, point, options)?)
}
