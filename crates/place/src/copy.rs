//! Copies files so that they are whole or absent under their names, on the device when it says
//! "done", and the page cache is as it was.
//!
//! 1. [`plan`] resolves what was typed and refuses what makes no sense. It touches nothing.
//! 2. [`carry_out`] builds the copy in a hidden directory beside its place ([`staging`]). One
//!    thread walks the source; large files go to a ring (`large`), small ones to workers (`small`).
//! 3. A file's data is made durable, then it gets its times: its seal. A later run of the same
//!    command finds sealed files and does not copy them again.
//! 4. When all is durable, the copy gets its name by one rename (`put`): a new tree at once, a file
//!    that existed before is replaced.
//!
//! Copies on one disk take turns ([`take_turn`]). How bytes move is chosen by [`engine`].

mod check;
mod checksum_log;
mod disks;
mod eject;
pub mod engine;
mod large;
mod merge;
mod mounted_check;
mod offsets;
mod outcome;
mod plan;
mod put;
mod queue;
mod seal;
mod send;
mod small;
pub mod staging;
mod steps;
mod tree;
mod verify;
mod yielding;

pub use check::unfit;
pub(crate) use eject::find_holders;
pub use eject::{EjectHolder, EjectMethod, EjectPlan, EjectReport, HolderUse, eject, plan_eject};
pub use mounted_check::{MountedCheck, Unverified};
pub use offsets::{offset_record, reseal_offsets, stored_offsets};
pub use outcome::{CopyReport, EngineUse};
pub use plan::{CopyPlan, plan};
pub use queue::{DiskTurn, NEVER_WAITS_BYTES, TurnHolder, take_turn};
pub use tree::{CopyCount, count};

use crate::metadata::FileMetadata;
use crate::{Error, ErrorKind, Result};
use check::Fit;
use checksum_log::ChecksumLog;
use disks::CopyDisks;
use engine::Engines;
use machine::Root;
use model::copy_gauges::{CopyEngine, CopyGauges};
use model::progress::Control;
use offsets::OffsetRecords;
use outcome::Outcome;
use staging::Staging;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::Thread;
use std::time::{Duration, Instant};
use sys::background::Background;
use sys::directory::Directory;
use sys::file_stat::FileStat;
use transfer::files_copy::{Pace, RateLimit};
use yielding::Yielding;

/// From this length on a file goes to the ring.
pub const LARGE_FROM_BYTES: u64 = 1 << 20;
/// How often the caller is asked.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Descriptors of the walk, of the files that are being copied, and of the program.
const OTHER_DESCRIPTORS: u64 = 80;
const LEAST_HELD: u64 = 2;
const MOST_HELD: u64 = 256;
/// Files that wait for a thread.
const WAITING_FILES: usize = 256;

/// What happens to a file that exists at the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    #[default]
    Replace,
    /// It is replaced if the source was changed later, or has another length.
    ReplaceOlder,
    /// It is kept.
    Keep,
}

/// What is to be copied, and how.
#[derive(Clone, Debug, Default)]
pub struct CopyRequest {
    /// What is copied.
    pub sources: Vec<PathBuf>,
    /// Where to: a directory that exists, or the name of the copy.
    pub target: PathBuf,
    /// The only engine that is used; else the best one for each file.
    pub engine: Option<CopyEngine>,
    /// What happens to files that exist at the target.
    pub existing: Existing,
    /// Other file systems below the sources are left out.
    pub one_file_system: bool,
    /// The copy is read back past the cache and compared, before it gets its name.
    pub verify: bool,
    /// With `verify`: not before, but by the caller, after a new mount ([`eject`]).
    pub verify_after_mount: bool,
    /// The copy stays in the page cache.
    pub keep_cached: bool,
    /// At most so many bytes a second.
    pub limit_rate: Option<u64>,
    /// It does not wait for other copies on its disks.
    pub now: bool,
    /// It gives way to others that use its disks or the processors.
    pub background: bool,
    /// What an earlier run left is not used.
    pub restart: bool,
    /// What the target cannot hold is left out; else nothing is copied.
    pub skip_unfit: bool,
    /// All files are counted while the copy begins, so that its gauges have totals.
    pub wants_totals: bool,
    /// What is durable is shown meanwhile: large files are synced step by step.
    pub shows_durable: bool,
}

/// What all threads of a copy share.
pub(crate) struct CopyShared<'a> {
    request: &'a CopyRequest,
    gauges: &'a CopyGauges,
    fit: Fit,
    disks: CopyDisks,
    engines: Engines,
    outcome: Outcome,
    /// How far large files are durable.
    offsets: OffsetRecords,
    /// Nothing new is started.
    stop: AtomicBool,
    /// What the threads may do while others use the disks.
    yielding: Yielding,
    /// What all threads keep together.
    limit: Option<Arc<RateLimit>>,
    /// Directories that are held open for files that wait.
    open_directories: Arc<AtomicU64>,
    /// How many may be.
    most_held: u64,
    /// Whether the walk waits for files to be sealed, so that directories are closed.
    wants_batch: AtomicBool,
    /// Batches of small files that were handed on and are not sealed.
    unsealed_batches: AtomicU64,
    /// On one disk with a head small files are read while none are written back.
    turn: RwLock<()>,
    /// Further names of files, which count once everything is sealed, and the bytes behind them.
    linked_files: AtomicU64,
    linked_bytes: AtomicU64,
    /// Large files that changed while they were read: tried once more.
    again: Mutex<Vec<FileJob>>,
}

impl CopyShared<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// A large file that is tried once more.
    fn next_again(&self) -> Option<FileJob> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Waits until `bytes` may move; whether they may, and the copy is not stopped.
    fn wait_for_rate(&self, pace: &mut Pace, bytes: u64) -> bool {
        while !self.is_stopped() {
            if pace.may_start(bytes) {
                return true;
            }
            let before = pace.held_back();
            pace.wait();
            let waited = pace.held_back().saturating_sub(before);
            self.gauges.held_back_ns.add(waited.as_nanos() as u64);
        }
        false
    }
}

/// A directory of the source with the one that becomes its copy.
#[derive(Debug)]
pub(crate) struct DirectoryPair {
    source: Directory,
    target: Directory,
    /// How many there are.
    open: Arc<AtomicU64>,
}

/// A regular file to copy.
#[derive(Debug)]
pub(crate) struct FileJob {
    pair: Arc<DirectoryPair>,
    name: OsString,
    /// Its name in the copy.
    target_name: OsString,
    stat: FileStat,
    /// Whether its inode was made already, because it has several names.
    is_made: bool,
    /// Bytes of its copy that an earlier run made durable; 0 for a copy from the start.
    resume_from: u64,
    /// Of a second attempt: bytes that were counted as durable in the first.
    counted_before: Option<u64>,
}

impl FileJob {
    fn path(&self) -> PathBuf {
        self.pair.source.path().join(&self.name)
    }

    fn target_path(&self) -> PathBuf {
        self.pair.target.path().join(&self.target_name)
    }
}

/// Where the walk sends files.
pub(crate) struct Queues {
    large: mpsc::SyncSender<FileJob>,
    small: mpsc::SyncSender<FileJob>,
}

/// The end of a copy.
#[derive(Debug)]
pub struct CopyEnd {
    /// What it did.
    pub report: CopyReport,
    /// What is still to be read back, after a new mount.
    pub unverified: Option<Unverified>,
}

/// Copies what was planned. `ask` is called some times a second: `Stop` ends the copy soon, and the
/// same plan goes on later.
///
/// # Errors
/// `Impossible` if the target cannot be written to or another copy of the same is running; `Failed`
/// if the target as a whole failed; `Damaging` if only its file system may be damaged, and the same
/// command begins anew then. What concerns one file is in the report.
pub fn carry_out(
    request: &CopyRequest,
    plan: CopyPlan,
    gauges: &CopyGauges,
    ask: &mut dyn FnMut() -> Control,
) -> Result<CopyEnd> {
    let started = Instant::now();
    let found = unfit(request, &plan, ask)?;
    if !found.is_empty() && !request.skip_unfit {
        return Err(check::refuse(&found, &plan));
    }
    let staging = Staging::open(&plan, request.restart)?;
    let engines = Engines::choose(request, &plan);
    let fit = Fit::of(&plan)?;
    let disks = CopyDisks::of(&plan);
    let offsets =
        OffsetRecords::new(staging.offsets()?, fit.has_inodes()).for_head(disks.target_rotates);
    let checksums = if request.verify {
        let device = FileStat::of(plan.into.file())?.device;
        Some(ChecksumLog::new(staging.tree().path(), device))
    } else {
        None
    };
    let shared = CopyShared {
        request,
        gauges,
        fit,
        disks,
        offsets,
        engines,
        outcome: Outcome::new(staging.is_resumed(), staging.is_doubted(), checksums),
        stop: AtomicBool::new(false),
        yielding: Yielding::new(request.background),
        limit: request.limit_rate.map(RateLimit::new),
        open_directories: Arc::default(),
        most_held: most_held(),
        wants_batch: AtomicBool::new(false),
        unsealed_batches: AtomicU64::default(),
        turn: RwLock::default(),
        linked_files: AtomicU64::default(),
        linked_bytes: AtomicU64::default(),
        again: Mutex::default(),
    };
    if let Some(rate) = request.limit_rate {
        gauges.rate_limit.set(rate);
    }
    // Threads inherit it. What is refused is no reason not to copy.
    let _priority = request.background.then(|| Background::take().ok());
    let worked = beside_watch(&shared, &plan, || {
        move_all(&shared, &plan, &staging, ask)?;
        if shared.is_stopped() {
            return Ok(None);
        }
        finish(&shared, &plan, &staging, ask).map_err(failed_midway)
    });
    let of_target = worked.map_err(|error| staging.doubt(error))?;
    let is_whole = !shared.is_stopped();
    let staging_path = (!is_whole).then(|| staging.path());
    if is_whole {
        staging.remove()?;
        if let Some(metadata) = of_target {
            put::dress_target(&shared, &plan, &metadata)?;
        }
    }
    let outcome = &shared.outcome;
    let report = outcome.report(started.elapsed(), is_whole, staging_path, &shared.engines, gauges);
    let log = outcome.take_checksums().filter(|_| is_whole);
    let unverified = log.map(|log| Unverified::new(log, plan.into.path()));
    Ok(CopyEnd { report, unverified })
}

/// A target that took data and refuses to sync or to name it has failed, as one that was pulled:
/// its file system is read-only then.
fn failed_midway(error: Error) -> Error {
    let kind = match error.kind {
        ErrorKind::Damaging => ErrorKind::Damaging,
        _ => ErrorKind::Failed,
    };
    Error { kind, ..error }
}

/// Does the work, with `--background` beside a thread that looks whether others use the disks.
fn beside_watch<T>(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if !shared.request.background {
        return work();
    }
    let root = Root::system();
    let disks = disks::disks_of(&root, plan);
    std::thread::scope(|scope| {
        scope.spawn(|| yielding::watch(shared, &root, &disks));
        let _over = shared.yielding.over_on_drop();
        work()
    })
}

/// How many pairs of directories may be held open for files that wait: a quarter of the descriptors
/// that are left to them.
fn most_held() -> u64 {
    let limit = sys::process::open_files_limit().unwrap_or(u64::MAX);
    (limit.saturating_sub(OTHER_DESCRIPTORS) / 4).clamp(LEAST_HELD, MOST_HELD)
}

/// Whether a second walk beside the copy leaves enough descriptors to it.
fn has_descriptors_to_count() -> bool {
    sys::process::open_files_limit().is_none_or(|limit| limit >= 2 * OTHER_DESCRIPTORS)
}

/// Walks the source and moves the data of all files.
fn move_all(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    staging: &Staging,
    ask: &mut dyn FnMut() -> Control,
) -> Result<()> {
    let (large, large_jobs) = mpsc::sync_channel(WAITING_FILES);
    let (small, small_jobs) = mpsc::sync_channel(WAITING_FILES);
    let (batches, sealing) = mpsc::sync_channel(1);
    let queues = Queues { large, small };
    let small_jobs = &small::SmallJobs::new(small_jobs, batches, shared.disks.is_one);
    let waiter = &std::thread::current();
    std::thread::scope(|scope| {
        let walk = scope.spawn(move || tree::walk_all(shared, plan, staging, &queues));
        let mut threads = vec![
            scope.spawn(move || waking(waiter, || large::serve(shared, &large_jobs, staging))),
        ];
        for _ in 0..shared.engines.workers() {
            threads.push(scope.spawn(|| waking(waiter, || small::serve(shared, small_jobs))));
        }
        let sealer = scope.spawn(move || waking(waiter, || seal::serve(shared, &sealing, staging)));
        if shared.request.wants_totals && has_descriptors_to_count() {
            scope.spawn(|| set_totals(shared, plan));
        }
        wait_for(shared, ask, || {
            walk.is_finished() && threads.iter().all(|thread| thread.is_finished())
        });
        let mut answer = joined(walk.join());
        for thread in threads {
            answer = answer.and(joined(thread.join()));
        }
        small_jobs.close(shared);
        wait_for(shared, ask, || sealer.is_finished());
        let sealed = answer.and(joined(sealer.join()));
        if sealed.is_ok() && !shared.is_stopped() {
            count_linked(shared);
        }
        sealed
    })
}

/// Counts the further names of files, whose data is durable now.
fn count_linked(shared: &CopyShared<'_>) {
    let bytes = shared.linked_bytes.load(Ordering::Relaxed);
    shared.gauges.durable_bytes.add(bytes);
    shared.gauges.unmoved_bytes.add(bytes);
    shared.gauges.files_done.add(shared.linked_files.load(Ordering::Relaxed));
}

/// Counts everything, which brings the metadata into memory for the copy too.
fn set_totals(shared: &CopyShared<'_>, plan: &CopyPlan) {
    let mut ask = || {
        drop(shared.yielding.step());
        Control::stop_if(shared.is_stopped())
    };
    // What cannot be counted has no total; the walk of the copy names it.
    if let Ok(counted) = count(shared.request, plan, &mut ask)
        && !shared.is_stopped()
    {
        shared.gauges.files_total.set(counted.files);
        shared.gauges.bytes_total.set(counted.bytes);
    }
}

/// Verifies, makes everything durable, and gives the copy its name. Returns what the target itself
/// gets when nothing is changed in it any more.
fn finish(
    shared: &CopyShared<'_>,
    plan: &CopyPlan,
    staging: &Staging,
    ask: &mut dyn FnMut() -> Control,
) -> Result<Option<FileMetadata>> {
    let waiter = &std::thread::current();
    std::thread::scope(|scope| {
        let finish = || -> Result<Option<FileMetadata>> {
            let verifies_now = shared.request.verify && !shared.request.verify_after_mount;
            if verifies_now && !shared.is_stopped() {
                verify::read_back(shared, staging)?;
            }
            put::remove_broken(shared, staging)?;
            put::dress_directories(shared, plan, staging);
            staging.remove_links()?;
            staging.make_durable()?;
            if shared.is_stopped() {
                return Ok(None);
            }
            put::put_in_place(shared, plan, staging)
        };
        let work = scope.spawn(move || waking(waiter, finish));
        wait_for(shared, ask, || work.is_finished());
        joined(work.join())
    })
}

/// Asks the caller until `is_done`, and stops all threads if it says so.
fn wait_for(shared: &CopyShared<'_>, ask: &mut dyn FnMut() -> Control, is_done: impl Fn() -> bool) {
    let mut naps = 0;
    while !is_done() {
        if ask().is_stop() {
            shared.stop();
        }
        // A short copy is not kept waiting, and no copy when a thread says that it ends.
        naps += 1;
        let nap = if naps < 20 { Duration::from_millis(1) } else { ASK_EVERY };
        let started = Instant::now();
        std::thread::park_timeout(nap);
        if started.elapsed() < nap {
            naps = 0;
        }
    }
}

/// Does `work`, and wakes who waits for its end.
fn waking<T>(waiter: &Thread, work: impl FnOnce() -> T) -> T {
    let answer = work();
    waiter.unpark();
    answer
}

/// The result of a thread; a panic is a failure of the copy.
fn joined<T>(answer: std::thread::Result<Result<T>>) -> Result<T> {
    answer.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Failed, "copy", "a thread of the copy panicked".to_owned()))
    })
}
