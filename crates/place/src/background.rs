//! What background work may take of the machine: a floor of free memory, a share of the processors,
//! low priority, time, bytes, and what is left below the limits of control groups.
//!
//! The idea: one [`Allowance`] that is asked after each batch of about 50 ms, so that the work ends
//! within 200 ms of a reason to stop. It compares with what it read at its start: pressure that
//! existed before is not caused by the work. It knows nothing of what is moved.
//!
//! It does not undo or retry anything, and it changes no setting of the machine.

pub mod batch;
mod groups;
mod pressure;
mod processors;

pub use groups::{GROUP_MARGIN, WatchedGroup};

use crate::{Error, ErrorKind, Result};
use groups::GroupLimits;
use machine::{ProcFile, Root, memory};
use model::Bytes;
use pressure::MemoryPressure;
pub(crate) use processors::ProcessorShare;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use sys::background::Background;

/// The shortest time between two readings of the counters.
const READ_INTERVAL: Duration = Duration::from_millis(20);
/// A pause is slept in parts, so that a reason to stop is seen this soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// The first part: a thread of the work's own that still runs counts as others, and ends soon.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Tasks may stall on memory a tenth of the time: less occurs now and then on any machine that has
/// swap.
pub(crate) const PRESSURE_PERMILLE: u32 = 100;

/// What the work may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `MemAvailable` that must be left to others.
    pub floor: Bytes,
    /// The share of time, in permille, that tasks may stall on memory before the work stops.
    pub pressure_permille: u32,
    /// The longest time it may take.
    pub time: Option<Duration>,
    /// The most bytes that it may read.
    pub bytes: Option<Bytes>,
    /// Whether it takes its share of the processors without pausing for others.
    pub hurry: bool,
}

impl Limits {
    /// The limits by default: a 16th of the memory is left to others, stalls of a tenth of the time
    /// end the work, and neither time nor bytes are limited.
    #[must_use]
    pub fn usual(root: &Root) -> Self {
        Self {
            floor: memory::left_to_others(memory::total(root)),
            pressure_permille: PRESSURE_PERMILLE,
            time: None,
            bytes: None,
            hurry: false,
        }
    }
}

/// Why the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// All was done.
    Done,
    /// Free memory came down to the floor.
    Floor,
    /// Others began to stall on memory.
    Pressure,
    /// A control group was at its limit: each page read would evict another one.
    GroupLimit,
    /// The pages that were read did not stay in memory.
    Yield,
    /// The time or the bytes were used up.
    Budget,
    /// A signal or the caller asked for the end.
    Cancelled,
    /// The source is gone: swap was switched off, the process ended, the disk failed.
    SourceGone,
}

/// Decides after each batch whether background work goes on.
///
/// The thread that started it has low I/O priority and, if permitted, a low CPU priority until the
/// first stop or the drop; threads and processes that it starts inherit both. It cannot leave its
/// thread.
///
/// What the work brings into memory is charged to a control group, mostly its own: the kernel would
/// evict as much of that group once it is at its limit. So name the group to
/// [`Allowance::watch_groups`], size each batch by [`Allowance::batch_room`], and ask one of three:
/// - [`Allowance::check`] between two batches, when no request of the work is in flight;
/// - [`Allowance::check_limits`] after each of many small steps: it does not pause for others;
/// - [`Allowance::check_unblocked`] while requests are in flight, from an observer of `transfer` or
///   while a helper reads: it never blocks.
///
/// ```
/// use model::Bytes;
/// use place::background::batch::{BATCH_TIME, next_size};
/// use place::background::{Allowance, Limits, StopReason, WatchedGroup};
/// use std::time::Instant;
///
/// # fn read(bytes: u64) -> u64 { bytes }
/// let root = machine::Root::system();
/// let limits = Limits { time: Some(BATCH_TIME), ..Limits::usual(&root) };
/// let mut allowance = Allowance::start(&root, limits)?;
/// // The first group is 0: this process reads, so its own is charged.
/// allowance.watch_groups([WatchedGroup::OfProcess(std::process::id())]);
/// let (mut moved, mut size) = (0, 64 << 10);
/// let stop = loop {
///     if let Some(stop) = allowance.check(Bytes(moved)) {
///         break stop;
///     }
///     if allowance.is_group_full(0) {
///         break StopReason::GroupLimit;
///     }
///     let start = Instant::now();
///     let bytes = read(allowance.batch_room([0]).0.min(size));
///     moved += bytes;
///     size = next_size(bytes, start.elapsed(), 4096..=16 << 20);
/// };
/// assert_ne!(stop, StopReason::Done);
/// # Ok::<(), place::Error>(())
/// ```
#[derive(Debug)]
pub struct Allowance {
    root: Root,
    limits: Limits,
    started: Instant,
    meminfo: ProcFile,
    pressure: MemoryPressure,
    groups: GroupLimits,
    /// `None` if it does not pause for others.
    processors: Option<ProcessorShare>,
    /// `None` if it was refused, which is no reason not to work, and after a stop.
    priority: Option<Background>,
    available: Bytes,
    /// When `available` and the groups were read, and how much had been moved then.
    read_at: Instant,
    moved_then: Bytes,
    moved: Bytes,
    paused: Duration,
}

impl Allowance {
    /// Lowers the priority of the calling thread and reads what later readings are compared with.
    /// Takes 9 ms at 250 ticks a second if a task stalled on memory in the last seconds, and 40 ms
    /// more if one still does.
    ///
    /// # Errors
    /// `Impossible` if /proc/meminfo has no available memory.
    pub fn start(root: &Root, limits: Limits) -> Result<Self> {
        const FILE: &str = "/proc/meminfo";
        let unknown = |reason: String| {
            let operation = "read what memory is available from";
            Error::new(ErrorKind::Impossible, operation, reason).at(FILE)
        };
        let mut meminfo = ProcFile::open(root, FILE)
            .map_err(|error| unknown(sys::plain_reason(&error.source)))?;
        let available = read_available(&mut meminfo)
            .ok_or_else(|| unknown("it has no line MemAvailable".to_owned()))?;
        let now = Instant::now();
        Ok(Self {
            root: root.clone(),
            started: now,
            meminfo,
            pressure: MemoryPressure::start(root),
            groups: GroupLimits::default(),
            processors: (!limits.hurry).then(|| ProcessorShare::start(root)),
            priority: Background::take().ok(),
            limits,
            available,
            read_at: now,
            moved_then: Bytes(0),
            moved: Bytes(0),
            paused: Duration::ZERO,
        })
    }

    /// Watches the memory limits of these groups as well, and no longer those that were named
    /// before. Later calls name a group by its index in `groups`. One that cannot be seen, or that
    /// nothing limits, has no limit.
    pub fn watch_groups(&mut self, groups: impl IntoIterator<Item = WatchedGroup>) {
        self.groups = GroupLimits::find(&self.root, groups);
    }

    /// Whether to stop, and why, after `moved` bytes in all. Pauses as long as the work has had
    /// more than its share of the processors. Call it while none of the work's own reads is in
    /// flight: it blocks for a few ms, or 40 ms at signs of pressure, in which all stalls are those
    /// of others.
    pub fn check(&mut self, moved: Bytes) -> Option<StopReason> {
        let mut part = SHORTEST_SLEEP;
        loop {
            let stop = self.check_limits(moved);
            if stop.is_some() {
                return stop;
            }
            let share = self.processors.as_mut();
            let pause = share.map_or(Duration::ZERO, ProcessorShare::pause);
            if pause.is_zero() {
                return None;
            }
            let start = Instant::now();
            std::thread::sleep(pause.min(part));
            part = (2 * part).min(LONGEST_SLEEP);
            self.paused += start.elapsed();
        }
    }

    /// Like [`Allowance::check`] without a pause: for steps that are too small to pause after.
    /// Reads the counters at most once in 20 ms.
    pub fn check_limits(&mut self, moved: Bytes) -> Option<StopReason> {
        let stop = self.check_counters(moved).or_else(|| {
            let stalled = self.pressure.others_stall_in_a_pause(self.limits.pressure_permille);
            stalled.then_some(StopReason::Pressure)
        });
        self.end_if(stop)
    }

    /// Like [`Allowance::check_limits`] while requests of the work are in flight: it never blocks,
    /// and sees pressure only once free memory has run out.
    pub fn check_unblocked(&mut self, moved: Bytes) -> Option<StopReason> {
        let stop = self
            .check_counters(moved)
            .or_else(|| self.pressure.has_direct_reclaim().then_some(StopReason::Pressure));
        self.end_if(stop)
    }

    /// Like [`Allowance::check_unblocked`] without regard to pressure: for work that others wait
    /// for, which may itself make the kernel reclaim memory.
    pub fn check_floor(&mut self, moved: Bytes) -> Option<StopReason> {
        let stop = self.check_counters(moved);
        self.end_if(stop)
    }

    /// Gives the thread its priority back. What follows a stop is short: it counts what was moved.
    pub fn end(&mut self) {
        self.priority = None;
    }

    /// How many bytes may be brought before the floor or the budget is met; 0 at or below it.
    #[must_use]
    pub fn room(&self) -> Bytes {
        let since = self.moved_since_reading();
        let free = self.available.0.saturating_sub(self.limits.floor.0);
        let budget = self.limits.bytes.unwrap_or(Bytes(u64::MAX));
        let left = budget.0.saturating_sub(self.moved.0);
        Bytes(free.saturating_sub(since).min(left))
    }

    /// How many bytes may be charged to the group with this index before its limit, or that of a
    /// group above, is met; `None` if there is no limit.
    #[must_use]
    pub fn group_room(&self, group: u32) -> Option<Bytes> {
        let room = self.groups.room(group)?;
        Some(Bytes(room.0.saturating_sub(self.moved_since_reading())))
    }

    /// Whether the group with this index has no room left.
    #[must_use]
    pub fn is_group_full(&self, group: u32) -> bool {
        self.group_room(group).is_some_and(|room| room < GROUP_MARGIN)
    }

    /// The most that the next batch may bring: what fits above the floor, and half of what fits
    /// into any of these groups, since their room is read only now and then.
    #[must_use]
    pub fn batch_room(&self, groups: impl IntoIterator<Item = u32>) -> Bytes {
        let rooms =
            groups.into_iter().filter_map(|group| Some(Bytes(self.group_room(group)?.0 / 2)));
        rooms.fold(self.room(), Bytes::min)
    }

    /// How long it paused for others.
    #[must_use]
    pub fn paused(&self) -> Duration {
        self.paused
    }

    fn moved_since_reading(&self) -> u64 {
        self.moved.0.saturating_sub(self.moved_then.0)
    }

    fn end_if(&mut self, stop: Option<StopReason>) -> Option<StopReason> {
        if stop.is_some() {
            self.end();
        }
        stop
    }

    /// The reasons to stop that need no pause to see.
    fn check_counters(&mut self, moved: Bytes) -> Option<StopReason> {
        self.moved = moved;
        if sys::interrupt::requested() {
            return Some(StopReason::Cancelled);
        }
        let is_late = self.limits.time.is_some_and(|time| self.started.elapsed() >= time);
        if is_late || self.limits.bytes.is_some_and(|bytes| moved >= bytes) {
            return Some(StopReason::Budget);
        }
        if self.read_at.elapsed() >= READ_INTERVAL || self.room().0 == 0 {
            self.read_at = Instant::now();
            self.moved_then = moved;
            // A file that fails half-way is no reason to assume free memory.
            self.available = read_available(&mut self.meminfo).unwrap_or(Bytes(0));
            self.groups.read(&self.root);
        }
        (self.available <= self.limits.floor).then_some(StopReason::Floor)
    }
}

fn read_available(meminfo: &mut ProcFile) -> Option<Bytes> {
    memory::parse_available(meminfo.text()?)
}
