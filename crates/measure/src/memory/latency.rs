//! `measure memlat`: the time of one dependent load, from L1 to main memory.
//!
//! 1. For each size of a ladder a chain of pointers is laid through a buffer,
//!    once on 4 KiB pages and once on huge ones, and both are walked in turn.
//! 2. The climbs of the curve on huge pages are the edges of the caches, found
//!    without asking anyone; what sysfs, CPUID and libc claim stands beside them.
//! 3. At the largest size the difference of the two page sizes is the page walk.
//!
//! A chain is random over the whole buffer, or random within a page: the second
//! hides most page walks and lets the prefetcher help, so it is no latency of
//! memory, but shows what locality is worth.

mod caches;
mod combine;

pub use caches::middle;

use super::SkippedMethod;
use super::arena::{self, Arena, PageKind, PagesGranted};
use crate::calibrate::{self, Overhead};
use crate::disturbance::{Bracket, Tally};
use crate::runs::{RunOrder, Runs};
use crate::trial::{self, Bench, Schedule, VariantTrials};
use crate::{Budget, Error, ErrorKind, Result, compute, team};
use machine::Root;
use memops::Chase;
use model::probe::CacheLevel;
use model::{Bytes, ChaseOrder, Estimate, Latency};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The cache line that chains step by: that of every x86-64 and most aarch64.
const LINE_BYTES: usize = 64;

/// A dependent load below this cannot be: 5 GHz and one cycle would be 0.2 ns,
/// but no processor has a load-to-use of under 3 cycles.
const LEAST_NS: f64 = 0.5;

/// Loads in one call of the harness: a microsecond in L1.
const CALL_LOADS: u64 = 1024;

/// Chains up to this size are brought into the level that holds them before each
/// trial; beyond, no level but memory does.
pub(super) const WARMED_BYTES: u64 = 32 << 20;

/// Time at most to warm a chain. A last-level cache that resists streams was seen to
/// keep a chain of 4 MiB only from its third pass on, the first of which took 9 ms;
/// after 12 ms it still answered in 96 to 130 ns, after 40 ms in 13.
const WARMING_NS: u64 = 40_000_000;

/// An edge is searched for up to this size.
const LARGEST_CACHE_BYTES: u64 = 64 << 20;

/// Loads between two looks at the clock while warming: 2 ms from memory.
const WARMING_LOADS: u64 = 16_384;

/// Passes at most: those of a chain in L1 are shorter than the clock's grain.
const WARMING_PASSES: u32 = 8;

/// A chain whose last warming pass took this many times its best one does not lie
/// where it did then: somebody took the cache. Seen: 13 ns a load when the cache is
/// there, 40 to 140 for seconds when a neighbour has it.
const CROWDED: f64 = 1.5;

/// Shorter passes say nothing of it: the clock's grain is a tenth of one in L1, and
/// what they need only this processor holds.
const CROWDED_FROM_NS: u64 = 200_000;

/// A pass that takes more than this share of the one before is steady.
const STEADY: f64 = 0.95;

/// Loads that bring the page walks' own caches back for a chain in memory, after
/// other variants used them: 1,024 huge pages several times over.
const WALK_WARMING_LOADS: u64 = 20_000;

/// The page that a chain in pages stays in: a base page, so that one page walk serves its lines.
const CHAIN_PAGE_BYTES: usize = 4096;

/// The seed of every chain: the same order in each run.
const SEED: u64 = 2001;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct LatencyPlan {
    /// Buffer sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Kinds of pages, measured in turn.
    pub pages: Vec<PageKind>,
    /// Orders of the chain, one after the other.
    pub orders: Vec<ChaseOrder>,
    /// How trials are cut.
    pub schedule: Schedule,
    /// Time for everything.
    pub budget: Duration,
    /// The processor; `None` takes the first allowed.
    pub cpu: Option<usize>,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        Self {
            sizes: ladder(4 << 10, 1 << 30, 4),
            pages: vec![PageKind::Transparent, PageKind::Base],
            orders: vec![ChaseOrder::Random, ChaseOrder::InPage],
            schedule: Schedule { trial_ns: 2_000_000, rounds: 9, ..Schedule::default() },
            budget: Duration::from_secs(45),
            cpu: None,
        }
    }
}

impl LatencyPlan {
    /// The plan of one run of several.
    #[must_use]
    pub fn of_run(self, order: &RunOrder) -> Self {
        let rounds = order.rounds(self.schedule.rounds);
        let schedule = Schedule { rounds, ..self.schedule };
        Self { schedule, budget: order.budget, ..self }
    }

    /// The plan to search for the edges of the caches once more within `budget`: no larger sizes
    /// than caches have, one kind of pages.
    #[must_use]
    pub fn to_search_edges(&self, budget: Duration) -> Self {
        let sizes = self.sizes.iter().copied();
        Self {
            sizes: sizes.filter(|&size| size <= LARGEST_CACHE_BYTES).collect(),
            pages: self.pages.iter().copied().take(1).collect(),
            orders: vec![ChaseOrder::Random],
            budget,
            ..self.clone()
        }
    }
}

/// Sizes from `low` to `high` bytes, `per_octave` for each doubling up to 64 MiB
/// (where the edges are) and one for each beyond.
pub fn ladder(low: u64, high: u64, per_octave: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut octave = low.next_power_of_two();
    while octave <= high {
        let steps = if octave < 64 << 20 { per_octave.max(1) } else { 1 };
        for step in 0..steps {
            // Whole lines, so that every chain has as many as its size says.
            let size = (octave + octave * step / steps) / LINE_BYTES as u64 * LINE_BYTES as u64;
            if size <= high {
                sizes.push(size);
            }
        }
        octave *= 2;
    }
    sizes
}

/// One size, one kind of page, one order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyRow {
    /// The buffer's size.
    pub size_bytes: u64,
    /// The kind of page that was asked for.
    pub pages: PageKind,
    /// The chain's order.
    pub order: ChaseOrder,
    /// Time of one load, nanoseconds; `None` when the budget ended before.
    pub load_ns: Option<Estimate>,
    /// Why the figure is not to be leant on, if so.
    pub noisy: Option<String>,
}

/// Main memory's latency, split into memory and page walk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Translation {
    /// The buffer's size.
    pub size_bytes: u64,
    /// On 4 KiB pages, nanoseconds.
    pub base_ns: Estimate,
    /// On huge pages, nanoseconds: the memory itself.
    pub huge_ns: Estimate,
    /// The difference of the medians: what the page walks cost.
    pub walk_ns: f64,
    /// Whether huge pages really backed it.
    pub huge_share: Option<f64>,
}

/// The result of [`measure`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Every size, page and order that was asked for.
    pub rows: Vec<LatencyRow>,
    /// The caches.
    pub caches: Vec<CacheLevel>,
    /// Latency of each level by its name (`L1`, `L2`, `L3`, `RAM`), in the middle
    /// of the sizes that it alone holds; percentiles of single loads are absent.
    pub levels: Vec<(String, Latency)>,
    /// Memory and page walk.
    pub translation: Option<Translation>,
    /// Why percentiles of a single load are absent.
    pub unseen: String,
    /// Sizes and pages that were left out.
    pub left_out: Vec<SkippedMethod>,
    /// Page sizes asked for and granted.
    pub pages: Vec<PagesGranted>,
    /// Trials kept and thrown away.
    pub tally: Tally,
    /// The processor alone, measured in the same run: one step of the fractal control, nanoseconds.
    pub control_step_ns: Option<Estimate>,
    /// The harness's own cost.
    pub overhead: Overhead,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
    /// How many runs of the probe are in it.
    pub runs: Runs,
}

/// Checks a plan without touching memory.
pub fn check(plan: &LatencyPlan, root: &Root) -> Result<()> {
    let least = 4 * LINE_BYTES as u64;
    if plan.sizes.is_empty() || plan.sizes.iter().any(|&size| size < least) {
        return Err(Error::new(
            ErrorKind::Usage,
            "chase pointers in so small a buffer",
            format!("give a size of at least {}", Bytes(least)),
        ));
    }
    if plan.sizes.iter().any(|&size| size > super::copy::LARGEST) {
        let reason = "the largest size is 64 GiB";
        return Err(Error::new(ErrorKind::Usage, "chase in so large a buffer", reason));
    }
    let smallest = plan.sizes.iter().min().copied().unwrap_or(0);
    arena::check_fits(root, smallest * plan.pages.len() as u64)
}

/// Measures what `plan` asks for; sizes that do not fit are left out and named.
pub fn measure(plan: &LatencyPlan, root: &Root, stop: &Budget) -> Result<LatencyReport> {
    check(plan, root)?;
    let budget = stop.part(plan.budget);
    let mut left_out = Vec::new();
    let bytes_of = |size| size * plan.pages.len() as u64;
    let sizes = arena::fitting(&plan.sizes, bytes_of, root, &mut left_out);
    let largest = sizes.last().copied().unwrap_or(0) as usize;
    team::alone(plan.cpu, root, |bracket| {
        let mut arenas = arenas(plan, largest, root, &budget, &mut left_out)?;
        let overhead = calibrate::overhead(bracket);
        let control_step_ns = compute::control(&budget, bracket);
        let mut tally = Tally::default();
        let rows = all_rows(&mut arenas, &sizes, plan, &budget, bracket, &mut tally)?;
        let caches = caches::find(&rows, root);
        let pages: Vec<PagesGranted> = arenas.iter().map(Arena::granted).collect();
        Ok(LatencyReport {
            levels: caches::latencies(&rows, &caches),
            caches,
            translation: translation(&rows, &pages),
            unseen: unseen(&overhead),
            left_out,
            pages,
            rows,
            tally,
            control_step_ns,
            overhead,
            interrupted: stop.over(),
            runs: Runs::default(),
        })
    })
}

/// A resident buffer of each kind of page; one that cannot be had is left out,
/// unless it is the only one.
fn arenas(
    plan: &LatencyPlan,
    bytes: usize,
    root: &Root,
    budget: &Budget,
    left_out: &mut Vec<SkippedMethod>,
) -> Result<Vec<Arena>> {
    let mut arenas = Vec::new();
    for &pages in &plan.pages {
        match Arena::resident(bytes, pages, root, budget) {
            Ok(arena) => arenas.push(arena),
            Err(error) if plan.pages.len() > 1 => {
                left_out.push(SkippedMethod { name: pages.to_string(), reason: error.to_string() })
            }
            Err(error) => return Err(error),
        }
    }
    Ok(arenas)
}

/// Every order over every size; each order has its share of the budget, and a size
/// may borrow from later ones, because the small ones need little.
fn all_rows(
    arenas: &mut [Arena],
    sizes: &[u64],
    plan: &LatencyPlan,
    budget: &Budget,
    bracket: &mut Bracket,
    tally: &mut Tally,
) -> Result<Vec<LatencyRow>> {
    let mut rows = Vec::new();
    for (turn, &order) in plan.orders.iter().enumerate() {
        let of_order = budget.part(budget.left() / (plan.orders.len() - turn) as u32);
        for (i, &size) in sizes.iter().enumerate() {
            let share = of_order.left() / (sizes.len() - i) as u32;
            let outcomes = one_size(arenas, size, order, plan, &of_order.part(share * 2), bracket);
            add_rows(&mut rows, tally, arenas, size, order, outcomes)?;
        }
    }
    Ok(rows)
}

/// Why the percentiles of a single load are absent.
fn unseen(overhead: &Overhead) -> String {
    format!(
        "percentiles of single loads: one reading of the clock costs {:.0} ns",
        overhead.timer_ns
    )
}

/// Chains over the same size of several buffers, walked in turn.
#[derive(Debug)]
pub struct Chains<'a> {
    chains: Vec<Chase<'a>>,
    warmed: bool,
    /// Nanoseconds of the last warming pass of each chain, and of the best ever.
    passes_ns: Vec<(u64, u64)>,
}

impl<'a> Chains<'a> {
    /// Lays a chain through each buffer; buffers of less than two lines are an
    /// error of the caller's plan and give no chain.
    pub fn through(buffers: Vec<&'a mut [u8]>, order: ChaseOrder) -> Self {
        let size = buffers.first().map_or(0, |buffer| buffer.len() as u64);
        let chains: Vec<_> = buffers
            .into_iter()
            .filter_map(|buffer| match order {
                ChaseOrder::Random => Chase::random(buffer, LINE_BYTES, SEED),
                ChaseOrder::InPage => Chase::in_page(buffer, LINE_BYTES, CHAIN_PAGE_BYTES, SEED),
            })
            .collect();
        Self { passes_ns: vec![(0, u64::MAX); chains.len()], chains, warmed: size <= WARMED_BYTES }
    }

    /// Nanoseconds of one load from the time of one call of the harness.
    pub fn load_ns(outcome: &VariantTrials) -> Option<Estimate> {
        Some(outcome.time_ns()?.scaled(1.0 / CALL_LOADS as f64))
    }
}

impl Bench for Chains<'_> {
    fn variants(&self) -> usize {
        self.chains.len()
    }

    fn prepare(&mut self, variant: usize) {
        let chain = &mut self.chains[variant];
        let pass = chain.len() as u64;
        if !self.warmed {
            return chain.walk(WALK_WARMING_LOADS);
        }
        // Passes until one is no faster than the last: then the chain lies where it will stay.
        let start_ns = sys::clock::now_ns();
        let (mut last_ns, mut pass_start_ns) = (u64::MAX, start_ns);
        for _ in 0..WARMING_PASSES {
            let mut left = pass;
            while left > 0 && sys::clock::now_ns() - start_ns < WARMING_NS {
                let loads = left.min(WARMING_LOADS);
                chain.walk(loads);
                left -= loads;
            }
            let now_ns = sys::clock::now_ns();
            let pass_ns = now_ns - pass_start_ns;
            if left == 0 {
                let best_ns = self.passes_ns[variant].1.min(pass_ns);
                self.passes_ns[variant] = (pass_ns, best_ns);
            }
            if left > 0 || pass_ns as f64 > last_ns as f64 * STEADY {
                break;
            }
            (last_ns, pass_start_ns) = (pass_ns, now_ns);
        }
    }

    fn crowded_out(&self, variant: usize) -> bool {
        let (last_ns, best_ns) = self.passes_ns[variant];
        last_ns > CROWDED_FROM_NS && last_ns as f64 > best_ns as f64 * CROWDED
    }

    fn run(&mut self, variant: usize, calls: u64) {
        self.chains[variant].walk(calls * CALL_LOADS);
    }
}

fn one_size(
    arenas: &mut [Arena],
    size: u64,
    order: ChaseOrder,
    plan: &LatencyPlan,
    budget: &Budget,
    bracket: &mut Bracket,
) -> Vec<VariantTrials> {
    if budget.over() {
        return vec![VariantTrials::default(); arenas.len()];
    }
    let buffers = arenas.iter_mut().map(|arena| &mut arena.bytes_mut()[..size as usize]).collect();
    let mut chains = Chains::through(buffers, order);
    trial::interleave(&mut chains, &plan.schedule, budget, bracket)
}

fn add_rows(
    rows: &mut Vec<LatencyRow>,
    tally: &mut Tally,
    arenas: &[Arena],
    size: u64,
    order: ChaseOrder,
    outcomes: Vec<VariantTrials>,
) -> Result<()> {
    for (arena, outcome) in arenas.iter().zip(outcomes) {
        tally.merge(&outcome.tally);
        let load_ns = Chains::load_ns(&outcome);
        if let Some(load) = load_ns.as_ref().filter(|load| load.best < LEAST_NS) {
            return Err(Error::new(
                ErrorKind::Implausible,
                format!("trust the chase over {}", Bytes(size)),
                format!("{:.2} ns for a dependent load cannot be", load.best),
            ));
        }
        rows.push(LatencyRow {
            size_bytes: size,
            pages: arena.pages(),
            order,
            load_ns,
            noisy: outcome.all_disturbed().then(|| "something disturbed every trial".to_owned()),
        });
    }
    Ok(())
}

/// Searches for the edges again, with `plan`, and adds what is found to `caches`.
pub fn search_again(
    caches: &mut [CacheLevel],
    plan: &LatencyPlan,
    root: &Root,
    stop: &Budget,
) -> Result<()> {
    let again = measure(plan, root, stop)?.caches;
    for cache in caches {
        let found = again.iter().find(|other| other.level == cache.level);
        cache.add_search(found.and_then(|other| other.measured.as_ref()));
    }
    Ok(())
}

fn translation(rows: &[LatencyRow], granted: &[PagesGranted]) -> Option<Translation> {
    let of = |pages: PageKind| {
        rows.iter().rfind(|row| {
            row.pages == pages && row.order == ChaseOrder::Random && row.load_ns.is_some()
        })
    };
    let base = of(PageKind::Base)?;
    let huge = of(PageKind::Huge).or_else(|| of(PageKind::Transparent))?;
    if base.size_bytes != huge.size_bytes || base.size_bytes < WARMED_BYTES {
        return None;
    }
    let (base_ns, huge_ns) = (base.load_ns.clone()?, huge.load_ns.clone()?);
    Some(Translation {
        size_bytes: base.size_bytes,
        walk_ns: base_ns.median - huge_ns.median,
        base_ns,
        huge_ns,
        huge_share: (granted.iter())
            .find(|granted| granted.asked == huge.pages)
            .and_then(PagesGranted::share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_is_fine_where_the_edges_are() {
        let sizes = ladder(4 << 10, 1 << 30, 4);
        assert_eq!(sizes[..5], [4096, 5120, 6144, 7168, 8192]);
        assert_eq!(sizes.last(), Some(&(1 << 30)));
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(sizes.iter().all(|size| size % 64 == 0));
    }

    #[test]
    fn levels_differ_on_this_machine() {
        let plan = LatencyPlan {
            sizes: vec![16 << 10, 256 << 10, 128 << 20],
            orders: vec![ChaseOrder::Random],
            pages: vec![PageKind::Transparent],
            budget: Duration::from_secs(20),
            ..LatencyPlan::default()
        };
        let stop = Budget::of(Duration::from_secs(60));
        let report = measure(&plan, &Root::system(), &stop).unwrap();
        let ns = |i: usize| report.rows[i].load_ns.as_ref().unwrap().best;
        assert!(ns(0) >= LEAST_NS && ns(0) < 20.0, "{}", ns(0));
        assert!(ns(1) > ns(0) * 1.5, "{} {}", ns(1), ns(0));
        assert!(ns(2) > ns(0) * 10.0, "{} {}", ns(2), ns(0));
        assert!(report.tally.kept + report.tally.discarded() > 3);
    }

    #[test]
    fn nonsense_is_refused_before_anything_runs() {
        let plan = LatencyPlan { sizes: vec![64], ..LatencyPlan::default() };
        assert_eq!(check(&plan, &Root::system()).unwrap_err().kind, ErrorKind::Usage);
        let plan = LatencyPlan { sizes: vec![1 << 50], ..LatencyPlan::default() };
        assert_eq!(check(&plan, &Root::system()).unwrap_err().kind, ErrorKind::Usage);
    }
}
