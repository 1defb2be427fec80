//! The process that serves a cache: engine, devices, and the export to the kernel.
//!
//! It is started by `boost serve` again and again. What a process before left goes on: the claim of
//! the volume, its open directories and the channels of FUSE are with the holder, the block device
//! is with the kernel.

use super::control::{self, Question};
use super::coverage::coverage;
use super::ending::Ending;
use super::engine::{self, SharedCache, SharedState, block_bytes, locked};
use super::export::{Export, Exported};
use super::filling::Filling;
use super::history::{self, History};
use super::medium::MediumWatch;
use super::parts::{HeldParts, Parts};
use super::plain;
use super::protection::protect;
use super::published::PublishedCounters;
use super::shared_disk::SharedDisk;
use crate::args::boost::{CacheArgs, CacheProcessArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use crate::output::boost_report::{CacheHistory, CacheTotals};
use crate::service::report_ready;
use machine::Root;
use model::BoostCounters;
use model::engine::ChangeProof;
use place::boost::medium::MediumFile;
use serve::driver::Driver;
use serve::holder::HolderClient;
use serve::volume::Volume;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::directory::Directory;

/// The holder's name for the claimed volume.
const VOLUME: &str = "volume";
/// That for the directory of key and journal.
const STATE: &str = "state";
/// That for the directory of the cache while it is served.
const RUN: &str = "run";
/// Why nothing of a cache is served whose file was not found yet.
const LOOKED_FOR: &str = "the file of the cache is looked for";
/// How often questions are answered.
pub(super) const TURN: Duration = Duration::from_millis(50);
/// How often it is looked whether the block device is still there.
pub(super) const DEVICE_LOOKED_FOR: Duration = Duration::from_secs(2);
/// How long what has the served file open may keep it.
pub(super) const UNMOUNT_WAIT: Duration = Duration::from_secs(10);
/// How long requests of a process before may hold its lock.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How long the engine may take to prove that all is well.
const PROOF_WAIT: Duration = Duration::from_secs(60);

/// A cache that is served.
struct Serving<'a> {
    args: &'a CacheArgs,
    parts: Arc<Parts>,
    disk: Arc<SharedDisk>,
    cache: SharedCache,
    driver: Arc<Driver>,
    service: SharedState,
    export: Export,
    listener: UnixListener,
    published: PublishedCounters,
    ending: Ending,
    filling: Filling,
    history: History,
}

/// Serves until it is detached. The holder is at the other end of standard input.
///
/// # Errors
/// Which part cannot be used, and why.
pub fn process(process: &CacheProcessArgs) -> Result<Exit> {
    let _no_signal_ends_it = sys::interrupt::hold();
    // What was refused is said by the attach.
    let _ = protect();
    let input = std::io::stdin();
    let holder = HolderClient::new(input.as_fd());
    let args = &process.cache;
    if process.without_cache {
        return plain::process(args, &holder);
    }
    let serving = Serving::begin(args, &holder)?;
    report_ready(&format!("{} is served", args.parts.name));
    serving.run()
}

/// What a process before left of the parts of a cache.
pub(super) fn held_parts(args: &CacheArgs, holder: &HolderClient<'_>) -> Result<HeldParts> {
    let mut parts = HeldParts::default();
    for (name, held) in holder.take_all()? {
        match name.as_str() {
            VOLUME => parts.volume = Some(File::from(held)),
            STATE => {
                let path = args.parts.state.join(&args.parts.name);
                parts.state = Some(Directory::of_held(File::from(held), &path)?);
            }
            _ => {}
        }
    }
    Ok(parts)
}

/// Opens the parts, and waits while requests of the process before are under way. Whether there was
/// one.
fn open_parts(args: &CacheArgs, root: &Root, holder: &HolderClient<'_>) -> Result<(Parts, bool)> {
    let end = Instant::now() + LOCK_WAIT;
    loop {
        let held = held_parts(args, holder)?;
        let is_successor = held.volume.is_some();
        match Parts::open(args, root, held) {
            Err(error)
                if is_successor && error.exit == Exit::Impossible && Instant::now() < end =>
            {
                std::thread::sleep(TURN);
            }
            opened => {
                let parts = opened?;
                holder.keep(STATE, parts.host.directory_file().as_fd())?;
                holder.keep(VOLUME, parts.volume.device.file().as_fd())?;
                return Ok((parts, is_successor));
            }
        }
    }
}

/// The directory of a cache while it is served: the one that the process before had, else by its
/// path.
///
/// # Errors
/// If it cannot be opened.
pub(super) fn run_directory(args: &CacheArgs, holder: &HolderClient<'_>) -> Result<Directory> {
    let held = holder.take_all()?.into_iter().find(|(name, _)| name == RUN);
    if let Some((_, held)) = held {
        return Ok(Directory::of_held(File::from(held), &control::place(&args.parts.name)?)?);
    }
    let directory = control::directory(&args.parts.name)?;
    holder.keep(RUN, directory.file().as_fd())?;
    Ok(directory)
}

/// The medium of a first process; `None` where it may be absent, and cannot be used.
fn first_medium(
    args: &CacheArgs,
    parts: &Parts,
    root: &Root,
    service: &SharedState,
) -> Result<Option<Arc<MediumFile>>> {
    match parts.open_medium(args, root, !args.file_optional) {
        Err(error) if args.file_optional => {
            locked(service).off = Some(format!("{LOOKED_FOR}: {error}"));
            Ok(None)
        }
        opened => opened.map(|medium| Some(Arc::new(medium))),
    }
}

impl<'a> Serving<'a> {
    fn begin(args: &'a CacheArgs, holder: &HolderClient<'_>) -> Result<Self> {
        let root = Root::system();
        let (parts, is_successor) = open_parts(args, &root, holder)?;
        let parts = Arc::new(parts);
        let mut history = History::open(&parts, is_successor);
        history.save();
        let service = SharedState::default();
        // A successor serves at once, and looks for its stick behind: that one may hang.
        let medium = if is_successor {
            locked(&service).off = Some(LOOKED_FOR.to_owned());
            None
        } else {
            first_medium(args, &parts, &root, &service)?
        };
        let budget_left = history.budget_left(parts.setup.limits.budget_bytes_per_day);
        let disk = Arc::new(SharedDisk::new(Arc::clone(&parts.volume.device)));
        let (driver, cache) = engine::start(&parts, &disk, medium.clone(), budget_left, &service)?;
        let cold = cache.lock().start().cold();
        locked(&service).cold = cold.map(|why| why.to_string());
        let driver = Arc::new(driver);
        let watch = MediumWatch {
            args: args.clone(),
            parts: Arc::clone(&parts),
            driver: Arc::downgrade(&driver),
            cache: cache.clone(),
            medium,
            service: Arc::clone(&service),
        };
        watch.start()?;
        let directory = run_directory(args, holder)?;
        let volume: Arc<dyn Volume> = Arc::<Driver>::clone(&driver);
        let exported = Exported {
            args,
            volume,
            backing: &parts.volume,
            block_bytes: block_bytes(&parts),
            directory: &directory,
            point: control::path(&directory, control::EXPORT),
        };
        let export = Export::begin(&exported, holder)?;
        let _ = directory.remove(control::DEVICE.as_ref());
        directory.create_link(control::DEVICE.as_ref(), export.device.path().as_os_str())?;
        let listener = control::listen(&directory)?;
        let published = PublishedCounters::open(directory);
        Ok(Self {
            args,
            parts,
            disk,
            cache,
            driver,
            service,
            export,
            listener,
            published,
            ending: Ending::default(),
            filling: Filling::default(),
            history,
        })
    }

    /// Answers questions, and ends when the block device is gone: by a detach, a signal, a person.
    fn run(mut self) -> Result<Exit> {
        let mut looked = Instant::now();
        loop {
            while let Ok((client, _)) = self.listener.accept() {
                self.answer(client);
            }
            self.ending.begin_if_asked(&self.export);
            self.ending.answer_late(&self.export);
            self.publish();
            if self.ending.is_begun() {
                self.filling.end();
            }
            if self.ending.is_begun() || looked.elapsed() >= DEVICE_LOOKED_FOR {
                looked = Instant::now();
                update(&mut self.history, &self.cache);
                if !self.export.is_there() {
                    return Ok(self.end());
                }
            }
            std::thread::sleep(TURN);
        }
    }

    /// Publishes the counters for recorders.
    fn publish(&mut self) {
        if !self.published.are_due() {
            return;
        }
        let cache = self.cache.lock();
        let counters = cache.counters();
        let values = [
            cache.cached_bytes(),
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
            Some(Question::History) => {
                update(&mut self.history, &self.cache);
                control::answer(&client, &self.history());
            }
            Some(Question::Coverage(parts)) => {
                control::answer(&client, &coverage(&self.cache, &parts));
            }
            Some(Question::Fill(before)) => {
                self.filling.begin(client, &self.driver, &self.cache, &self.disk, before);
            }
            Some(Question::Detach) => self.ending.ask(&self.export, client),
        }
    }

    /// Ends the export and has the engine prove that all is well.
    fn end(mut self) -> Exit {
        // The driver gets no request any more once it ends.
        self.filling.end();
        let is_proved = self.export.end(UNMOUNT_WAIT) && {
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
        update(&mut self.history, &self.cache);
        self.history.save();
        self.ending.answer(is_proved);
        Exit::Done
    }

    fn history(&self) -> CacheHistory {
        let (major, minor) = self.parts.volume.numbers;
        let disk = machine::block::name_and_rotation(&Root::system(), major, minor);
        CacheHistory {
            name: self.args.parts.name.clone(),
            volume: self.parts.volume.name.clone(),
            is_rotational: disk.and_then(|(_, is_rotational)| is_rotational),
            attached_unix_s: self.history.attached_unix_s(),
            now_unix_s: history::unix_s(),
            since_attach: self.history.since_attach(),
            days: self.history.week(),
            today: self.history.today(),
            budget_bytes_per_day: self.cache.lock().budget_bytes_per_day(),
            cache_bytes: self.parts.medium_bytes(),
        }
    }

    fn status(&self) -> CacheStatus {
        let (cache, service) = (self.cache.lock(), locked(&self.service));
        let counters = cache.counters();
        CacheStatus {
            name: self.args.parts.name.clone(),
            device: self.export.device.path().display().to_string(),
            volume: self.parts.volume.name.clone(),
            volume_bytes: self.parts.volume.bytes,
            cache: self.args.parts.cache.display().to_string(),
            cache_bytes: self.parts.medium_bytes(),
            process: std::process::id(),
            cold: service.cold.clone(),
            off: service.off.clone(),
            cached_bytes: cache.cached_bytes(),
            filled_bytes: counters.filled_bytes,
            brought_bytes: counters.brought_bytes,
            reads: counters.reads,
            read_bytes: counters.read_bytes,
            hits: counters.hits,
            hit_bytes: counters.hit_bytes,
            bailed_out: counters.bailed_out,
            writes: counters.writes,
            write_bytes: counters.write_bytes,
            medium_bytes: counters.medium_bytes,
            budget_bytes: cache.budget_bytes(),
            medium_errors: counters.medium_errors,
            medium_wrong: counters.medium_wrong,
        }
    }
}

/// Takes into the history what this process counted.
fn update(history: &mut History, cache: &SharedCache) {
    let budget_bytes = cache.lock().budget_bytes();
    history.update(totals(cache), budget_bytes);
}

/// What this process counted.
fn totals(cache: &SharedCache) -> CacheTotals {
    let (counters, timed) = (cache.lock().counters(), cache.timed());
    CacheTotals {
        reads: counters.reads,
        read_bytes: counters.read_bytes,
        hits: counters.hits,
        hit_bytes: counters.hit_bytes,
        hit_seeks: counters.hit_seeks,
        timed_hits: timed.hits,
        timed_hits_ns: timed.hit_ns,
        timed_misses: timed.misses,
        timed_misses_ns: timed.miss_ns,
        medium_bytes: counters.medium_bytes,
    }
}
