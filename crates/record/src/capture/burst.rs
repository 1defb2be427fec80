//! A higher rate while the machine is under pressure, and what led up to it.
//!
//! 1. Totals of pressure and of the scheduler (the machine's, the leader's) are looked at a
//!    hundred times a second; looks and ordinary samples of the last second are held back.
//! 2. When some pressure grew by [`JUMP_NS`] within [`JUMP_WINDOW_NS`], what is held is written,
//!    each look as a sample in which only those columns are new, and every sample is
//!    full and comes at the high rate for [`RAISED_NS`].
//! 3. Without a jump a held sample is written when it is a second old, and looks are dropped.

use crate::collect::schedstat::{self, Schedstat};
use crate::registry::{ABSENT, Registry, Row};
use machine::pressure;
use machine::{ProcFile, Root};
use model::recording::{SeriesKind, Tick};
use std::collections::VecDeque;

/// Between two looks, and between two samples while the rate is raised.
pub(super) const LOOK_NS: u64 = 10_000_000;
/// Stalled for this long ...
const JUMP_NS: u64 = 20_000_000;
/// ... within this time: a fifth of it, which people notice.
const JUMP_WINDOW_NS: u64 = 100_000_000;
/// How long the rate stays up after the last jump.
const RAISED_NS: u64 = 2_000_000_000;
/// How far back the looks reach.
const HISTORY_NS: u64 = 1_000_000_000;
/// The resources that have pressure.
const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];
/// Totals of each: some, full.
const PRESSURES: usize = RESOURCES.len() * 2;
/// Scheduler totals: the machine's and the leader's.
const TOTALS: usize = PRESSURES + 2 * schedstat::TOTALS.len();

/// The totals at one instant, pressure first; `None` where the kernel has none.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    totals: [Option<i64>; TOTALS],
}

/// What is held, and until when the rate is raised.
#[derive(Debug)]
pub(super) struct Burst {
    files: [Option<ProcFile>; RESOURCES.len()],
    schedstat: Vec<Schedstat>,
    columns: [Option<u32>; TOTALS],
    looks: VecDeque<Look>,
    held: VecDeque<(Tick, Row)>,
    written: Row,
    written_ns: u64,
    raised: Option<(u64, u64)>,
}

impl Burst {
    /// Opens the pressure files below `root`, and the scheduler's of the machine and of the
    /// first of `processes`; its columns are those of the ordinary samples.
    pub fn new(root: &Root, processes: &[u32], registry: &mut Registry) -> Self {
        let path = |resource: &str| format!("/proc/pressure/{resource}");
        let mut columns = [None; TOTALS];
        for (index, column) in columns[..PRESSURES].iter_mut().enumerate() {
            let (resource, kind) = (RESOURCES[index / 2], ["some", "full"][index % 2]);
            let name = format!("pressure.{resource}.{kind}_ns");
            *column = registry.id(&name, "ns", SeriesKind::Counter, &path(resource));
        }
        let schedstat = schedstat::open(root, processes, registry);
        let of_scheduler = schedstat.iter().flat_map(Schedstat::columns);
        for (column, id) in columns[PRESSURES..].iter_mut().zip(of_scheduler) {
            *column = id;
        }
        Self {
            files: RESOURCES.map(|resource| ProcFile::open(root, path(resource)).ok()),
            schedstat,
            columns,
            looks: VecDeque::new(),
            held: VecDeque::new(),
            written: Row::default(),
            written_ns: 0,
            raised: None,
        }
    }

    /// Reads the totals at `at_ns`; whether some pressure jumped.
    pub fn look(&mut self, at_ns: u64) -> bool {
        let mut totals = [None; TOTALS];
        for (index, file) in self.files.iter_mut().enumerate() {
            let text = file.as_mut().and_then(ProcFile::text);
            if let Some(now) = text.and_then(pressure::parse) {
                totals[index * 2] = total_ns(now.some_us);
                totals[index * 2 + 1] = now.full_us.and_then(total_ns);
            }
        }
        let of_scheduler = self.schedstat.iter_mut().flat_map(Schedstat::totals);
        for (total, now) in totals[PRESSURES..].iter_mut().zip(of_scheduler) {
            *total = now;
        }
        self.note(Look { at_ns, totals })
    }

    fn note(&mut self, look: Look) -> bool {
        self.looks.push_back(look);
        let start_ns = look.at_ns.saturating_sub(JUMP_WINDOW_NS);
        // The last one before the window: looks may be late themselves when pressure is high.
        let mut looks = self.looks.iter();
        let before = looks.rfind(|past| past.at_ns <= start_ns);
        let Some(base) = before.or(self.looks.front()).copied() else {
            return false;
        };
        let elapsed_ns = (look.at_ns - base.at_ns).max(JUMP_WINDOW_NS);
        let enough_ns = u128::from(JUMP_NS) * u128::from(elapsed_ns);
        let pairs = look.totals.iter().zip(base.totals).take(PRESSURES);
        pairs
            .filter_map(|(now, then)| u128::try_from((*now)?.saturating_sub(then?)).ok())
            .any(|growth_ns| growth_ns * u128::from(JUMP_WINDOW_NS) >= enough_ns)
    }

    /// Raises the rate at `now_ns` or keeps it up; whether it was not up before.
    pub fn raise(&mut self, now_ns: u64) -> bool {
        let since_ns = self.raised.map_or(now_ns, |(since_ns, _)| since_ns);
        let fresh = self.raised.is_none();
        self.raised = Some((since_ns, now_ns.saturating_add(RAISED_NS)));
        fresh
    }

    /// Whether the rate is up.
    pub fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// If the rate was up until now: since when it was. It is not any more.
    pub fn lower(&mut self, now_ns: u64) -> Option<u64> {
        let (since_ns, until_ns) = self.raised?;
        if now_ns < until_ns {
            return None;
        }
        self.raised = None;
        Some(since_ns)
    }

    /// Holds an ordinary sample.
    pub fn hold(&mut self, tick: Tick, row: &Row) {
        self.held.push_back((tick, row.clone()));
    }

    /// Gives what is to be written now, in order of time: samples that are old enough; while
    /// the rate is up everything, looks included.
    ///
    /// # Errors
    /// Those of `write`; what was given is not held any more.
    pub fn release<E>(
        &mut self,
        now_ns: u64,
        mut write: impl FnMut(Tick, &Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let old_ns = now_ns.saturating_sub(HISTORY_NS);
        if self.is_raised() {
            while self.release_first(&mut write)? {}
            return Ok(());
        }
        while self.held.front().is_some_and(|(tick, _)| tick.at_ns < old_ns) {
            self.release_sample(&mut write)?;
        }
        while self.looks.front().is_some_and(|look| look.at_ns < old_ns) {
            self.looks.pop_front();
        }
        Ok(())
    }

    /// Gives every sample that is held, at the end; looks that nothing followed are dropped.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn finish<E>(
        &mut self,
        mut write: impl FnMut(Tick, &Row) -> Result<(), E>,
    ) -> Result<(), E> {
        while !self.held.is_empty() {
            self.release_sample(&mut write)?;
        }
        Ok(())
    }

    /// Gives the oldest sample or look; false when nothing is held.
    fn release_first<E>(
        &mut self,
        write: &mut impl FnMut(Tick, &Row) -> Result<(), E>,
    ) -> Result<bool, E> {
        let look_ns = self.looks.front().map(|look| look.at_ns);
        let sample_ns = self.held.front().map(|(tick, _)| tick.at_ns);
        match (look_ns, sample_ns) {
            (None, None) => return Ok(false),
            (Some(look_ns), sample_ns) if sample_ns.is_none_or(|at_ns| look_ns < at_ns) => {
                self.release_look(write)?;
            }
            _ => self.release_sample(write)?,
        }
        Ok(true)
    }

    fn release_sample<E>(
        &mut self,
        write: &mut impl FnMut(Tick, &Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((tick, row)) = self.held.pop_front() else {
            return Ok(());
        };
        write(tick, &row)?;
        self.written_ns = tick.at_ns;
        self.written = row;
        Ok(())
    }

    /// Gives a look as a sample, unless samples have gone by it.
    fn release_look<E>(
        &mut self,
        write: &mut impl FnMut(Tick, &Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(look) = self.looks.pop_front() else {
            return Ok(());
        };
        if look.at_ns <= self.written_ns || self.written.values().is_empty() {
            return Ok(());
        }
        for (column, total) in self.columns.iter().zip(look.totals) {
            if let Some(column) = column {
                self.written.set(*column, total.unwrap_or(ABSENT));
            }
        }
        let tick = Tick { due_ns: look.at_ns, at_ns: look.at_ns };
        self.written_ns = look.at_ns;
        write(tick, &self.written)
    }
}

/// As a column holds it.
fn total_ns(total_us: u64) -> Option<i64> {
    i64::try_from(total_us.saturating_mul(1000)).ok()
}

#[cfg(test)]
mod tests;
