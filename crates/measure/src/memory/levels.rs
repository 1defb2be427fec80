//! The levels of memory side by side: one chase and the best read, write and copy
//! of each, all of them interleaved, in as many passes as the caller likes.
//!
//! A survey makes two passes, with the disks in between: a machine whose speed drifts
//! over seconds then shows it as spread, instead of as a wrong number. Each level
//! is measured at a size that it alone holds, on huge pages where granted.

use super::arena::{self, Arena, PageKind, PagesGranted};
use super::latency::Chains;
use super::technique::Technique;
use crate::disturbance::Tally;
use crate::trial::{self, Bench, Schedule, VariantTrials};
use crate::{Budget, Result, team};
use machine::Root;
use memops::{Family, Method, Operation};
use model::{ChaseOrder, Estimate};
use serde::{Deserialize, Serialize};

/// The methods that are tried for each operation: libc's own and those that win on some known
/// machine. Absent ones are passed over. `clzero` is left out: it can write nothing but zeroes.
#[rustfmt::skip]
const CANDIDATES: [&str; 19] = [
    "read-avx512", "read-avx2", "read-sse2", "read-neon",
    "memset", "rep-stosb", "write-avx512", "write-avx512-nt", "write-avx2-nt", "write-neon",
    "memcpy", "rep-movsb", "rep-movsq", "avx512", "avx512-nt", "avx2", "avx2-nt", "sse2-nt", "neon",
];

/// One level to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelPlan {
    /// `L1`, `L2`, `L3`, `RAM`.
    pub name: String,
    /// Size of the chase's buffer, and of the two buffers of a copy together.
    pub size_bytes: u64,
}

/// A rate with the method that reached it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestRate {
    /// The method.
    pub method: String,
    /// Bytes a second, copied bytes once.
    pub bytes_per_s: Estimate,
    /// Bus bytes for each byte, beyond the caches.
    pub traffic_factor: f64,
}

/// What a level gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelReport {
    /// Its name.
    pub name: String,
    /// The size it was measured at.
    pub size_bytes: u64,
    /// One dependent load, nanoseconds.
    pub load_ns: Option<Estimate>,
    /// The best reading.
    pub read: Option<BestRate>,
    /// The best writing.
    pub write: Option<BestRate>,
    /// The best copying.
    pub copy: Option<BestRate>,
    /// The C library's memcpy.
    pub libc_copy: Option<BestRate>,
    /// Every way of copying that was tried.
    pub copies: Vec<BestRate>,
    /// Trials kept and thrown away.
    pub tally: Tally,
    /// Whether some quantity had only disturbed trials.
    pub all_disturbed: bool,
}

/// Memory for all levels, resident.
#[derive(Debug)]
pub struct LevelBuffers {
    chains: Vec<Arena>,
    copied: Arena,
}

impl LevelBuffers {
    /// Buffers for `levels`: one for each chase, and two halves of the largest.
    pub fn resident(levels: &[LevelPlan], root: &Root, budget: &Budget) -> Result<Self> {
        let largest = levels.iter().map(|level| level.size_bytes).max().unwrap_or(0);
        let bytes: u64 = levels.iter().map(|level| level.size_bytes).sum();
        arena::check_fits(root, bytes + 2 * largest)?;
        let pages = PageKind::Transparent;
        let chains = levels
            .iter()
            .map(|level| Arena::resident(level.size_bytes as usize, pages, root, budget))
            .collect::<Result<Vec<_>>>()?;
        let copied = Arena::resident(2 * largest as usize, pages, root, budget)?;
        Ok(Self { chains, copied })
    }

    /// What was granted for the largest buffer.
    pub fn granted(&self) -> PagesGranted {
        self.copied.granted()
    }
}

/// The interleaved bench of all levels; borrows a [`LevelBuffers`].
#[derive(Debug)]
pub struct Levels<'a> {
    plans: Vec<LevelPlan>,
    chains: Vec<Chains<'a>>,
    /// The buffers of copies, see [`arena::pair`].
    copied: &'a mut [u8],
    techniques: Vec<(&'static str, Technique)>,
    outcomes: Vec<VariantTrials>,
}

impl<'a> Levels<'a> {
    /// Lays the chains and chooses the methods; nothing is timed yet.
    pub fn over(store: &'a mut LevelBuffers, plans: &[LevelPlan]) -> Self {
        let chains: Vec<Chains<'a>> = store
            .chains
            .iter_mut()
            .map(|arena| Chains::through(vec![arena.bytes_mut()], ChaseOrder::Random))
            .collect();
        let techniques: Vec<_> = CANDIDATES
            .iter()
            .filter_map(|name| Some((*name, Technique::prepare(name).ok()?)))
            .collect();
        let copied = store.copied.bytes_mut();
        let variants = plans.len() * (techniques.len() + 1);
        Self {
            plans: plans.to_vec(),
            chains,
            copied,
            techniques,
            outcomes: vec![VariantTrials::default(); variants],
        }
    }

    /// Measures all levels in turn for `budget`, and adds to the results of earlier passes.
    pub fn measure_pass(
        &mut self,
        schedule: &Schedule,
        root: &Root,
        budget: &Budget,
    ) -> Result<()> {
        let outcomes = team::alone(None, root, |bracket| {
            Ok(trial::interleave(self, schedule, budget, bracket))
        })?;
        for (sum, outcome) in self.outcomes.iter_mut().zip(outcomes) {
            sum.merge(outcome);
        }
        Ok(())
    }

    /// The results of all passes together.
    pub fn reports(&self) -> Vec<LevelReport> {
        (0..self.plans.len()).map(|level| self.report(level)).collect()
    }

    fn report(&self, level: usize) -> LevelReport {
        let each = self.techniques.len() + 1;
        let outcomes = &self.outcomes[level * each..(level + 1) * each];
        let mut tally = Tally::default();
        outcomes.iter().for_each(|outcome| tally.merge(&outcome.tally));
        let plan = &self.plans[level];
        let bytes = (plan.size_bytes / 2) as f64;
        let timed = self.techniques.iter().zip(&outcomes[1..]);
        let rates = timed.filter_map(|((name, _), outcome)| {
            let method = memops::find(name)?;
            let reached = BestRate {
                method: (*name).to_owned(),
                bytes_per_s: outcome.time_ns()?.rate_of(bytes),
                traffic_factor: method.traffic_factor(),
            };
            Some((method, reached))
        });
        let reached: Vec<(&Method, BestRate)> = rates.collect();
        let of = |operation| {
            let same = reached.iter().filter(move |(method, _)| method.operation() == operation);
            same.map(|(method, rate)| (method.family(), rate))
        };
        let best = |operation| {
            let rates = of(operation).map(|(_, rate)| rate);
            rates.max_by(|a, b| a.bytes_per_s.median.total_cmp(&b.bytes_per_s.median)).cloned()
        };
        let mut copies = of(Operation::Copy);
        LevelReport {
            name: plan.name.clone(),
            size_bytes: plan.size_bytes,
            load_ns: Chains::load_ns(&outcomes[0]),
            read: best(Operation::Read),
            write: best(Operation::Write),
            copy: best(Operation::Copy),
            libc_copy: copies
                .find(|(family, _)| *family == Family::Libc)
                .map(|found| found.1.clone()),
            copies: of(Operation::Copy).map(|(_, rate)| rate.clone()).collect(),
            tally,
            all_disturbed: outcomes.iter().any(VariantTrials::all_disturbed),
        }
    }

    /// Which level and which of its variants: 0 is the chase.
    fn place(&self, variant: usize) -> (usize, usize) {
        let each = self.techniques.len() + 1;
        (variant / each, variant % each)
    }
}

impl Bench for Levels<'_> {
    fn variants(&self) -> usize {
        self.outcomes.len()
    }

    fn prepare(&mut self, variant: usize) {
        let (level, which) = self.place(variant);
        match which {
            0 => self.chains[level].prepare(0),
            // One pass brings the buffers into the level that holds them; for
            // memory it would change nothing and cost as much as the trial.
            _ if self.plans[level].size_bytes < super::latency::WARMED_BYTES => {
                self.run(variant, 1);
            }
            _ => {}
        }
    }

    fn crowded_out(&self, variant: usize) -> bool {
        let (level, which) = self.place(variant);
        which == 0 && self.chains[level].crowded_out(0)
    }

    fn run(&mut self, variant: usize, calls: u64) {
        let (level, which) = self.place(variant);
        if which == 0 {
            return self.chains[level].run(0, calls);
        }
        let half = (self.plans[level].size_bytes / 2) as usize;
        let (target, source) = arena::pair(self.copied, half);
        let technique = &mut self.techniques[which - 1].1;
        for _ in 0..calls {
            // Loops of memops touch no kernel, so they cannot fail.
            let _ = technique.apply(target, source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn two_passes_add_up_and_levels_differ() {
        let root = Root::system();
        let plans = [("L1", 16 << 10), ("RAM", 128 << 20)]
            .map(|(name, size_bytes)| LevelPlan { name: name.to_owned(), size_bytes });
        let budget = Budget::of(Duration::from_secs(60));
        let mut store = LevelBuffers::resident(&plans, &root, &budget).unwrap();
        let mut levels = Levels::over(&mut store, &plans);
        let schedule = Schedule { trial_ns: 300_000, rounds: 3, ..Schedule::default() };
        levels.measure_pass(&schedule, &root, &budget).unwrap();
        levels.measure_pass(&schedule, &root, &budget).unwrap();
        let reports = levels.reports();
        let (near, far) = (&reports[0], &reports[1]);
        let trials = |report: &LevelReport| {
            let load = report.load_ns.as_ref().unwrap();
            load.trials.max(load.discarded)
        };
        assert_eq!(trials(near).max(6), 6);
        assert!(far.load_ns.as_ref().unwrap().best > near.load_ns.as_ref().unwrap().best * 10.0);
        let rate = |reached: &Option<BestRate>| reached.as_ref().unwrap().bytes_per_s.best;
        assert!(rate(&near.read) > rate(&far.read));
        // More of both where a neighbour of this machine was on the bus for one of them.
        let is_equal = |levels: &mut Levels| {
            levels.measure_pass(&schedule, &root, &budget).unwrap();
            let far = &levels.reports()[1];
            rate(&far.copy) >= rate(&far.libc_copy) * 0.8
        };
        assert!((0..5).any(|_| is_equal(&mut levels)));
    }
}
