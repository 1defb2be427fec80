//! When a mover must stop: a floor of free memory, pressure that rises, a group at its
//! limit, work that brings nothing, the person's Ctrl-C.
//!
//! The idea: one object that is asked after each batch of at most 50 ms, so that a mover ends
//! within 200 ms of the reason. It compares with what it read at its start: pressure that was
//! there before is not the mover's doing, pressure that it makes is.
//!
//! Who waits for memory is told by pressure stall information, but the mover's own reading from
//! swap counts there as well. So others are looked at in short pauses, in which the mover itself
//! waits for nothing, as long as the kernel pushes pages out. Where a helper goes on reading meanwhile, or the kernel has
//! no such account, direct reclaim is the sign: free memory has run out for somebody.

mod groups;
mod waiting;

use crate::workingset::targets::Target;
use crate::{Error, Kind, Result};
use groups::Groups;
use machine::{Rereader, Root};
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sys::clock::now_ns;
use waiting::Waiting;

/// Counters are read this often at most.
const READ_EVERY_NS: u64 = 20_000_000;

/// What a mover may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `MemAvailable` that must be left to others.
    pub floor: Bytes,
    /// The share of time, in permille, that somebody may wait for memory before the mover stops.
    pub pressure_permille: u32,
    /// The smallest share, in percent, of the pages read that must be in memory afterwards.
    pub yield_percent: u32,
    /// The longest time it may take.
    pub time: Option<Duration>,
    /// The most bytes that it may read.
    pub bytes: Option<Bytes>,
}

/// Why a mover ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// All was done.
    Done,
    /// Free memory came down to the floor.
    Floor,
    /// Others began to wait for memory.
    Pressure,
    /// The group of a process was at its limit: what is brought pushes out what was brought.
    GroupLimit,
    /// What was read did not stay.
    Yield,
    /// The time or the bytes that it was given were used up.
    Budget,
    /// The person or a signal asked for the end.
    Cancelled,
    /// What it read from is gone: swap was switched off, the process ended, the disk failed.
    SourceGone,
}

/// Watches the reasons to stop while a mover works.
#[derive(Debug)]
pub struct Guard {
    root: Root,
    limits: Limits,
    started_ns: u64,
    meminfo: Rereader,
    waiting: Waiting,
    groups: Groups,
    available: Bytes,
    /// When `available` and the groups were read, and how much had been moved then.
    read_ns: u64,
    moved_then: Bytes,
    moved: Bytes,
}

impl Guard {
    /// Starts watching: what is read now is what later readings are compared with. Takes 9 ms
    /// at 250 ticks a second to see whether anybody waits for memory already, if somebody did in the
    /// last seconds, and 40 ms more if so.
    ///
    /// # Errors
    /// `Impossible` where /proc/meminfo does not tell what is available.
    pub fn start(root: &Root, limits: Limits) -> Result<Self> {
        const FILE: &str = "/proc/meminfo";
        let unknown = |reason: String| {
            Error::new(
                Kind::Impossible,
                "read what memory is available from",
                reason,
            )
            .at(FILE)
        };
        let mut meminfo = Rereader::open(root, FILE)
            .map_err(|error| unknown(sys::plain_reason(&error.source)))?;
        let available = available(&mut meminfo)
            .ok_or_else(|| unknown("it has no line MemAvailable".to_owned()))?;
        let now_ns = now_ns();
        Ok(Self {
            root: root.clone(),
            limits,
            started_ns: now_ns,
            meminfo,
            waiting: Waiting::start(root),
            groups: Groups::default(),
            available,
            read_ns: now_ns,
            moved_then: Bytes(0),
            moved: Bytes(0),
        })
    }

    /// Watches the limits on the groups of `targets` as well; asked for by their indices.
    pub fn watch(&mut self, targets: &[Target]) {
        self.groups = Groups::of(&self.root, targets);
    }

    /// Whether to stop now, and why. Reads at most once in 20 ms, so it may be asked often.
    /// `moved` is what was read so far, in bytes. Whoever asks waits for no memory while he
    /// does, and may be held for a few ms (40 where it looks bad).
    pub fn check(&mut self, moved: Bytes) -> Option<Stop> {
        self.common(moved).or_else(|| {
            let waits = self.waiting.in_a_pause(self.limits.pressure_permille);
            waits.then_some(Stop::Pressure)
        })
    }

    /// As [`Guard::check`] for one who has others read for him meanwhile: never holds him.
    pub fn check_beside(&mut self, moved: Bytes) -> Option<Stop> {
        self.common(moved)
            .or_else(|| self.waiting.reclaims().then_some(Stop::Pressure))
    }

    /// How many bytes may be brought before the floor is met; 0 at or below it.
    #[must_use]
    pub fn room(&self) -> Bytes {
        let since = self.moved.0.saturating_sub(self.moved_then.0);
        let free = self.available.0.saturating_sub(self.limits.floor.0);
        let budget = self.limits.bytes.unwrap_or(Bytes(u64::MAX));
        let left = budget.0.saturating_sub(self.moved.0);
        Bytes(free.saturating_sub(since).min(left))
    }

    /// What may be brought for the target with this index before the limit of its group, or of
    /// a group above, is met; `None` if there is no limit.
    #[must_use]
    pub fn group_room(&self, target: u32) -> Option<Bytes> {
        let since = self.moved.0.saturating_sub(self.moved_then.0);
        let room = self.groups.room(target)?;
        Some(Bytes(room.0.saturating_sub(since)))
    }

    /// The reasons that are told by files and by the clock.
    fn common(&mut self, moved: Bytes) -> Option<Stop> {
        self.moved = moved;
        if sys::interrupt::requested() {
            return Some(Stop::Cancelled);
        }
        let now_ns = now_ns();
        let elapsed = Duration::from_nanos(now_ns - self.started_ns);
        let late = self.limits.time.is_some_and(|time| elapsed >= time);
        if late || self.limits.bytes.is_some_and(|bytes| moved >= bytes) {
            return Some(Stop::Budget);
        }
        if now_ns - self.read_ns >= READ_EVERY_NS || self.room().0 == 0 {
            self.read_ns = now_ns;
            self.moved_then = moved;
            // A file that fails half-way is no reason to believe in free memory.
            self.available = available(&mut self.meminfo).unwrap_or(Bytes(0));
            self.groups.read(&self.root);
        }
        (self.available <= self.limits.floor).then_some(Stop::Floor)
    }
}

fn available(meminfo: &mut Rereader) -> Option<Bytes> {
    machine::memory::parse_available(meminfo.text()?)
}
