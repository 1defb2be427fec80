//! A higher rate while the machine is under pressure, and what led up to it.
//!
//! 1. Pressure totals alone are looked at a hundred times a second; looks and ordinary
//!    samples of the last second are held back.
//! 2. When some total grew by [`JUMP_NS`] within [`JUMP_WINDOW_NS`], what is held is written,
//!    each look as a sample in which only the pressure columns are new, and every sample is
//!    full and comes at the high rate for [`RAISED_NS`].
//! 3. Without a jump a held sample is written when it is a second old, and looks are dropped.

use crate::registry::{Registry, Row};
use machine::pressure;
use machine::{Rereader, Root};
use model::recording::{Kind, Tick};
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
const TOTALS: usize = RESOURCES.len() * 2;

/// The totals at one instant; `None` where the kernel has none.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    totals_ns: [Option<i64>; TOTALS],
}

/// What is held, and until when the rate is raised.
#[derive(Debug)]
pub(super) struct Burst {
    files: [Option<Rereader>; RESOURCES.len()],
    columns: [Option<u32>; TOTALS],
    looks: VecDeque<Look>,
    held: VecDeque<(Tick, Row)>,
    written: Row,
    written_ns: u64,
    raised: Option<(u64, u64)>,
}

impl Burst {
    /// Opens the pressure files below `root`; its columns are those of the ordinary samples.
    pub fn new(root: &Root, registry: &mut Registry) -> Self {
        let path = |resource: &str| format!("/proc/pressure/{resource}");
        let mut columns = [None; TOTALS];
        for (index, column) in columns.iter_mut().enumerate() {
            let (resource, kind) = (RESOURCES[index / 2], ["some", "full"][index % 2]);
            let name = format!("pressure.{resource}.{kind}_ns");
            *column = registry.id(&name, "ns", Kind::Counter, &path(resource));
        }
        Self {
            files: RESOURCES.map(|resource| Rereader::open(root, path(resource)).ok()),
            columns,
            looks: VecDeque::new(),
            held: VecDeque::new(),
            written: Row::default(),
            written_ns: 0,
            raised: None,
        }
    }

    /// Reads the totals at `at_ns`; whether some of them jumped.
    pub fn look(&mut self, at_ns: u64) -> bool {
        let mut totals_ns = [None; TOTALS];
        for (index, file) in self.files.iter_mut().enumerate() {
            let text = file.as_mut().and_then(Rereader::text);
            if let Some(now) = text.and_then(pressure::parse) {
                totals_ns[index * 2] = total_ns(now.some_us);
                totals_ns[index * 2 + 1] = now.full_us.and_then(total_ns);
            }
        }
        self.note(Look { at_ns, totals_ns })
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
        let pairs = look.totals_ns.iter().zip(base.totals_ns);
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
        while self
            .held
            .front()
            .is_some_and(|(tick, _)| tick.at_ns < old_ns)
        {
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
        for (column, total_ns) in self.columns.iter().zip(look.totals_ns) {
            if let (Some(column), Some(total_ns)) = (column, total_ns) {
                self.written.set(*column, total_ns);
            }
        }
        let tick = Tick {
            due_ns: look.at_ns,
            at_ns: look.at_ns,
        };
        self.written_ns = look.at_ns;
        write(tick, &self.written)
    }
}

/// As a column holds it.
fn total_ns(total_us: u64) -> Option<i64> {
    i64::try_from(total_us.saturating_mul(1000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    const MS: u64 = 1_000_000;

    fn burst() -> (Burst, Registry) {
        let tree = FakeRoot::bare();
        let mut registry = Registry::new();
        registry.id("other", "count", Kind::Counter, "x");
        let burst = Burst::new(&Root::at(tree.path()), &mut registry);
        (burst, registry)
    }

    fn look(burst: &mut Burst, at_ns: u64, some_ns: i64) -> bool {
        let mut totals_ns = [None; TOTALS];
        totals_ns[0] = Some(some_ns);
        burst.note(Look { at_ns, totals_ns })
    }

    fn sample(burst: &mut Burst, at_ns: u64, other: i64, some_ns: i64) {
        let mut row = Row::default();
        row.set(0, other);
        row.set(1, some_ns);
        burst.hold(
            Tick {
                due_ns: at_ns,
                at_ns,
            },
            &row,
        );
    }

    fn written(burst: &mut Burst, now_ns: u64) -> Vec<(u64, i64, i64)> {
        let mut rows = Vec::new();
        let answer: Result<(), ()> = burst.release(now_ns, |tick, row| {
            rows.push((tick.at_ns / MS, row.values()[0], row.values()[1]));
            Ok(())
        });
        answer.unwrap();
        rows
    }

    #[test]
    fn a_jump_is_a_fifth_of_a_tenth_of_a_second() {
        let (mut burst, _) = burst();
        assert!(!look(&mut burst, 1000 * MS, 5_000_000));
        assert!(!look(&mut burst, 1050 * MS, 24_999_999));
        assert!(look(&mut burst, 1090 * MS, 25_000_000));
        // The same growth, but over a longer time.
        assert!(!look(&mut burst, 1300 * MS, 30_000_000));
        // A late look is judged by the share of the time that it covers.
        assert!(look(&mut burst, 1500 * MS, 70_000_000));
        assert!(!look(&mut burst, 1700 * MS, 109_000_000));
    }

    #[test]
    fn the_history_is_written_in_order_when_the_rate_rises() {
        let (mut burst, _) = burst();
        for at in [100, 110, 120, 130] {
            look(&mut burst, at * MS, at as i64);
        }
        sample(&mut burst, 105 * MS, 7, 105);
        sample(&mut burst, 125 * MS, 9, 125);
        assert!(written(&mut burst, 140 * MS).is_empty());
        assert!(burst.raise(140 * MS));
        // What comes before the first sample has no other columns to stand beside.
        let expected = [
            (105, 7, 105),
            (110, 7, 110),
            (120, 7, 120),
            (125, 9, 125),
            (130, 9, 130),
        ];
        assert_eq!(written(&mut burst, 140 * MS), expected);
        assert!(!burst.raise(200 * MS), "it was up already");
        assert_eq!(burst.lower(2199 * MS), None);
        assert_eq!(burst.lower(2200 * MS), Some(140 * MS));
        assert!(!burst.is_raised());
    }

    #[test]
    fn without_a_jump_only_samples_are_written_a_second_later() {
        let (mut burst, _) = burst();
        look(&mut burst, 10 * MS, 1);
        sample(&mut burst, 20 * MS, 7, 2);
        look(&mut burst, 30 * MS, 3);
        sample(&mut burst, 900 * MS, 8, 4);
        assert_eq!(written(&mut burst, 1021 * MS), [(20, 7, 2)]);
        let mut rest = 0;
        let answer: Result<(), ()> = burst.finish(|_, _| {
            rest += 1;
            Ok(())
        });
        answer.unwrap();
        assert_eq!(rest, 1);
    }
}
