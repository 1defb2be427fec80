//! The sums of threads as the kernel keeps them, by processor, and what they say at an instant.
//!
//! A copy of the sums of one processor is whole if its two numbers of changes are equal. Those of
//! different processors are not from one instant: an event that is in one copy and not in another
//! makes an error of microseconds, which is gone with the next reading. So a state may seem to have
//! shrunk; a series never does: what is missing is taken from what others have grown.

use super::objects::{COUNTS, FIGURES, Maps, STATES, SUMS_WORDS, TICK_NS, kernel_state};
use crate::trace::event::{Io, Sleep, State};
use crate::trace::reclaim::{ReclaimSums, Sum};
use crate::trace::threads::{ThreadSums, WALL};
use model::recording::ProcessFigure;
use sys::clock::now_ns;

/// A copy is taken so often until it is whole.
const TRIES: usize = 16;

/// What is counted, in the order of `enum count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Events,
    Switches,
    BlockWaits,
    Waits,
    UntoldWakeups,
    ThreadsSeen,
    SampledTicks,
    RequestsIssued,
    Reclaims,
    ReclaimTicks,
    Throttles,
    ThrottledTicks,
    Compactions,
    CompactionTicks,
    DirtyWaits,
    DirtyWaitTicks,
    /// Records that had no room in the ring: new stacks, whose waits stay without a class, and
    /// samples of processors, which are missing.
    LostRecords,
    /// Stacks beyond those that are kept apart; their waits have no class.
    #[expect(dead_code, reason = "keeps the order of the kernel's side")]
    LostStacks,
    LostRequests,
}

/// The sums of one processor.
type Copied = [u64; SUMS_WORDS];

/// All sums.
#[derive(Debug)]
pub struct Sums {
    epoch_ns: u64,
    processors: Vec<Copied>,
    /// Ticks that were moved to a state when its stack was understood.
    moved: [u64; STATES],
    counts: [u64; COUNTS],
    others: [u64; FIGURES],
    begun_ticks: u64,
    now_ticks: u64,
    /// Ticks by state before the begin.
    base: [u64; State::COUNT],
    wall_base: [u64; WALL.len()],
    counts_base: [u64; COUNTS],
    states: [u64; State::COUNT],
    wall: [u64; WALL.len()],
}

impl Sums {
    /// No sums yet; instants count from `epoch_ns`.
    pub fn new(epoch_ns: u64) -> Self {
        Self {
            epoch_ns,
            processors: Vec::new(),
            moved: [0; STATES],
            counts: [0; COUNTS],
            others: [0; FIGURES],
            begun_ticks: 0,
            now_ticks: 0,
            base: [0; State::COUNT],
            wall_base: [0; WALL.len()],
            counts_base: [0; COUNTS],
            states: [0; State::COUNT],
            wall: [0; WALL.len()],
        }
    }

    /// Reads what was counted before the begin, which is then subtracted.
    ///
    /// # Errors
    /// As of the maps.
    pub fn begin(&mut self, maps: &Maps) -> sys::Result<()> {
        self.read(maps)?;
        self.base = self.states;
        self.wall_base = self.wall;
        self.counts_base = self.counts;
        // The threads that were met at the begin belong to the subject.
        self.counts_base[Count::ThreadsSeen as usize] = 0;
        self.begun_ticks = self.now_ticks;
        self.states = [0; State::COUNT];
        self.wall = [0; WALL.len()];
        self.counts = [0; COUNTS];
        self.counts[Count::ThreadsSeen as usize] = 0;
        self.read(maps)
    }

    /// Moves the time of waits from the state without a class to the one that their stack has.
    pub fn move_to(&mut self, state: State, ticks: u64) {
        let unknown = match state {
            State::BlockIo(_) => State::BlockIo(Io::Other),
            _ => State::Sleep(Sleep::Unknown),
        };
        let mut add = |state, ticks| {
            let sum = &mut self.moved[kernel_state(state) as usize];
            *sum = sum.wrapping_add(ticks);
        };
        add(unknown, ticks.wrapping_neg());
        add(state, ticks);
    }

    /// Reads all sums, as of now.
    ///
    /// # Errors
    /// As of the maps.
    pub fn read(&mut self, maps: &Maps) -> sys::Result<()> {
        self.copy(maps)?;
        let report = maps.report_sums.get(0)?;
        let wall = maps.wall.get(0)?;
        self.now_ticks = (now_ns().saturating_sub(self.epoch_ns)) / TICK_NS;
        let all = || self.processors.iter().chain(std::iter::once(&report));
        let column = |index: usize| all().fold(0u64, |sum, copied| sum.wrapping_add(copied[index]));
        let mut states = [0; State::COUNT];
        for (index, sum) in states.iter_mut().enumerate() {
            let place = index + 1;
            let (ticks, threads) = (column(1 + place), column(1 + STATES + place));
            let until_now = threads.wrapping_mul(self.now_ticks);
            *sum = ticks.wrapping_add(until_now).wrapping_add(self.moved[place]);
        }
        let mut counts = [0; COUNTS];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = column(1 + 2 * STATES + index).wrapping_sub(self.counts_base[index]);
        }
        let mut others = [0; FIGURES];
        for figure in ProcessFigure::ALL {
            let index = figure as usize;
            let unit = if figure.unit() == "ns" { TICK_NS } else { 1 };
            others[index] = column(1 + 2 * STATES + COUNTS + index).wrapping_mul(unit);
        }
        (self.counts, self.others) = (counts, others);
        let since_base = |(sum, base): (u64, u64)| sum.wrapping_sub(base).cast_signed();
        let grown = |sums: &[u64], base: &[u64]| -> Vec<i64> {
            let pairs = sums.iter().copied().zip(base.iter().copied());
            pairs.map(since_base).collect()
        };
        grow(&mut self.states, &grown(&states, &self.base));
        let wall_grown = grown(&wall_at(&wall, self.now_ticks), &self.wall_base);
        grow(&mut self.wall, &wall_grown);
        Ok(())
    }

    /// Takes whole copies, where it can be had; else an earlier one stays.
    fn copy(&mut self, maps: &Maps) -> sys::Result<()> {
        let is_whole = |copied: &Copied| copied.first() == copied.last();
        let mut missing: Option<Vec<bool>> = None;
        for _ in 0..TRIES {
            let copies = maps.sums.read()?;
            self.processors.resize(copies.len(), [0; SUMS_WORDS]);
            let missing = missing.get_or_insert_with(|| vec![true; copies.len()]);
            for ((kept, copied), is_missing) in
                self.processors.iter_mut().zip(copies.iter()).zip(missing.iter_mut())
            {
                if *is_missing && is_whole(copied) {
                    *kept = *copied;
                    *is_missing = false;
                }
            }
            if !missing.contains(&true) {
                break;
            }
        }
        Ok(())
    }

    /// One count.
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// What threads used that had no room elsewhere, since the begin.
    pub fn others(&self) -> [u64; FIGURES] {
        self.others
    }

    /// The sums of threads.
    pub fn threads(&self) -> ThreadSums {
        ThreadSums {
            states_ns: self.states.map(|ticks| ticks * TICK_NS),
            wall_ns: self.wall.map(|ticks| ticks * TICK_NS),
            switches: self.count(Count::Switches),
            block_io_waits: self.count(Count::BlockWaits),
            waits: self.count(Count::Waits),
            untold_wakeups: self.count(Count::UntoldWakeups),
            seen: self.count(Count::ThreadsSeen),
            sampled_ns: self.count(Count::SampledTicks) * TICK_NS,
        }
    }

    /// The sums of reclaim and write-back.
    pub fn reclaim(&self) -> ReclaimSums {
        let sum =
            |count, ticks| Sum { count: self.count(count), time_ns: self.count(ticks) * TICK_NS };
        ReclaimSums {
            reclaims: sum(Count::Reclaims, Count::ReclaimTicks),
            throttles: sum(Count::Throttles, Count::ThrottledTicks),
            compactions: sum(Count::Compactions, Count::CompactionTicks),
            dirty_waits: sum(Count::DirtyWaits, Count::DirtyWaitTicks),
        }
    }

    /// From when on everything counts, on the clock of [`sys::clock`].
    pub fn opened_ns(&self) -> u64 {
        self.epoch_ns + self.begun_ticks * TICK_NS
    }

    /// Up to when everything has been counted.
    pub fn horizon_ns(&self) -> u64 {
        self.epoch_ns + self.now_ticks * TICK_NS
    }
}

/// Brings sums to new values without letting any shrink: what one lost the others gain less.
fn grow(sums: &mut [u64], now: &[i64]) {
    let growth = |(sum, now): (&u64, &i64)| now.saturating_sub(sum.cast_signed());
    let growths: Vec<i64> = sums.iter().zip(now).map(growth).collect();
    let mut owed: u64 =
        growths.iter().filter(|growth| **growth < 0).map(|g| g.unsigned_abs()).sum();
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(growths[*index]));
    for index in order {
        let gained = u64::try_from(growths[index]).unwrap_or(0);
        let paid = gained.min(owed);
        owed -= paid;
        sums[index] += gained - paid;
    }
}

/// The wall's sums at an instant: they are the time since the epoch, whatever was copied.
fn wall_at(wall: &[u64; 6], now_ticks: u64) -> [u64; WALL.len()] {
    const BITS: u32 = 21;
    const MASK: u64 = (1 << BITS) - 1;
    let [counts, _, sums @ ..] = wall;
    let holds = [counts & MASK, counts >> BITS & MASK, counts >> (2 * BITS)];
    let state = holds.iter().position(|count| *count > 0).unwrap_or(WALL.len() - 1);
    let mut sums = *sums;
    // One that a processor with a clock behind has taken from is below 0, until the next adds.
    let known = sums.iter().fold(0u64, |all, sum| all.wrapping_add(*sum));
    sums[state] = sums[state].wrapping_add(now_ticks.wrapping_sub(known));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_seems_to_shrink_is_paid_by_what_grows() {
        let mut sums = [10, 20, 30];
        grow(&mut sums, &[8, 25, 31]);
        assert_eq!(sums, [10, 23, 31], "2 of the 5 were owed");
        grow(&mut sums, &[14, 23, 31]);
        assert_eq!(sums, [14, 23, 31], "what was held back is there again");
    }

    /// Seen: a processor whose clock is behind took more from a sum than was in it.
    #[test]
    fn the_wall_s_sums_are_the_whole_time_though_one_is_below_zero() {
        let sums = wall_at(&[1, 0, 5u64.wrapping_neg(), 10, 3, 0], 100);
        assert_eq!(sums, [87, 10, 3, 0]);
        let later = wall_at(&[1 << 21, 0, 5u64.wrapping_neg(), 10, 3, 0], 100);
        assert_eq!(later, [5u64.wrapping_neg(), 102, 3, 0]);
    }

    proptest! {
        #[test]
        fn nothing_shrinks_and_the_whole_is_right(
            steps in proptest::collection::vec([0i64..1000, 0..1000, 0..1000, 0..1000], 1..20)
        ) {
            let mut sums = [0u64; 4];
            for now in steps {
                let before = sums;
                grow(&mut sums, &now);
                prop_assert!(sums.iter().zip(before).all(|(sum, before)| *sum >= before));
                let whole = now.iter().sum::<i64>().unsigned_abs();
                let grown: u64 = sums.iter().sum();
                prop_assert_eq!(grown, whole.max(before.iter().sum()));
            }
        }
    }
}
