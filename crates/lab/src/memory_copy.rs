//! The driver of `memory-copy-2001`: the table of 2001, the parameters that its author left open,
//! and the measurements from which `explain::copying` says what limits each method. Every
//! measurement is one of a probe's; here is only which, in what order, in how much time.

mod open;
mod plan;
mod table;

pub use open::{Load, Stride};
pub use plan::{ARTICLE_BYTES, CACHED_BYTES, MemoryCopyPlan};
pub use table::{Row, SYSTEMS, Then, systems};

use crate::description::Experiment;
use crate::host::Host;
use crate::{Error, Result};
use explain::copying::{self, MethodLimit, MethodRates, Pair, Ratio, SystemsDifference};
use machine::Root;
use measure::Budget;
use measure::compute::{self, ComputePlan, ComputeReport};
use measure::disturbance::Tally;
use measure::memory::classic::METHODS;
use measure::memory::copy::{self, CopyRow};
use measure::memory::mover::{self, Mover};
use model::Estimate;
use plan::percent;
use record::capture::BackgroundRecording;
use serde::Serialize;

/// The string instruction on bytes: what one compiler of 2001 made of a copy.
const STRING: &str = "rep-movsb";

/// What came of it; parts that were not reached are empty.
#[derive(Debug, Default, Serialize)]
pub struct MemoryCopyOutcome {
    /// The experiment's name.
    pub experiment: String,
    /// Bytes of the original's block.
    pub size_bytes: u64,
    /// Its passes.
    pub passes: u64,
    /// The size that stands for main memory; `None` without enough of it.
    pub memory_bytes: Option<u64>,
    /// Why two systems differed.
    pub answer: Option<SystemsDifference>,
    /// What limits each method.
    pub verdicts: Vec<MethodLimit>,
    /// What moves each method's bytes.
    pub movers: Vec<Mover>,
    /// The loops as two compilers make them, at the original's size.
    pub pairs: Vec<Pair>,
    /// The table of 2001, with today's.
    pub rows: Vec<Row>,
    /// Passes of the table that something disturbed, among all; none is left out.
    pub tally: Tally,
    /// The fractal.
    pub control: Option<ComputeReport>,
    /// All methods and their counterparts, by block size, one core.
    pub blocks: Vec<CopyRow>,
    /// The seven methods beyond the caches, on two cores; rates of both together.
    pub two_cores: Vec<CopyRow>,
    /// Walks down the columns of a matrix, on both kinds of pages.
    pub strides: Vec<Stride>,
    /// Dependent loads, on both kinds of pages.
    pub loads: Vec<Load>,
    /// From which size on small pages cost more; `None` where that is not proven.
    pub reach_bytes: Option<u64>,
    /// What could not be measured.
    pub notes: Vec<String>,
}

/// Carries out the plan, recorded if the outcome is kept. `progress` is given each part's name.
///
/// # Errors
/// When nothing could be measured, Ctrl-C included, or the recording fails.
pub fn run(
    host: &Host,
    experiment: &Experiment,
    plan: &MemoryCopyPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<MemoryCopyOutcome> {
    let file = plan.out.as_ref().map(|out| out.join("whole.trec"));
    let background = host.record(file.as_deref())?;
    let outcome = measure_all(&Root::system(), experiment, plan, progress);
    background.map_or(Ok(()), BackgroundRecording::finish)?;
    outcome
}

fn measure_all(
    root: &Root,
    experiment: &Experiment,
    plan: &MemoryCopyPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<MemoryCopyOutcome> {
    let budget = Budget::of(plan.budget);
    let mut outcome = MemoryCopyOutcome {
        experiment: experiment.name.clone(),
        size_bytes: ARTICLE_BYTES,
        passes: plan::PASSES,
        memory_bytes: plan.memory_bytes,
        notes: plan.notes.clone(),
        ..MemoryCopyOutcome::default()
    };
    progress("the table of 2001");
    (outcome.rows, outcome.tally) = table::measure(root, experiment, plan, &budget)?;
    if outcome.rows.is_empty() {
        let text = "stopped before anything was measured";
        return Err(Error::failed(text));
    }
    progress("the control");
    let control = control(root, plan, &budget).map(Some);
    outcome.control = noted(&mut outcome.notes, "the control", control);
    progress("what moves the data");
    find_movers(root, plan, &budget, &mut outcome);
    progress("block sizes");
    let blocks = plan.blocks(&counterparts(&outcome.movers));
    let measured = copy::measure(&blocks, root, &budget.part(blocks.budget));
    outcome.blocks = noted(&mut outcome.notes, "block sizes", measured.map(|of| of.rows));
    progress("two cores");
    if let Some(two) = plan.two_cores() {
        let measured = copy::measure(&two, root, &budget.part(two.budget));
        outcome.two_cores = noted(&mut outcome.notes, "two cores", measured.map(|of| of.rows));
    }
    progress("stride and page size");
    outcome.strides = open::strides(root, plan, &budget, &mut outcome.notes);
    progress("page tables");
    let loads = open::loads(root, plan, &budget);
    outcome.loads = noted(&mut outcome.notes, "page tables", loads);
    judge(&mut outcome, experiment, plan);
    Ok(outcome)
}

/// A part's figures; where it failed, or Ctrl-C came before it, that is noted instead.
fn noted<T: Default>(notes: &mut Vec<String>, what: &str, measured: measure::Result<T>) -> T {
    measured.unwrap_or_else(|error| {
        if sys::interrupt::requested() {
            notes.push(format!("{what}: not reached"));
        } else {
            notes.push(format!("{what}: {error}"));
        }
        T::default()
    })
}

fn control(root: &Root, plan: &MemoryCopyPlan, budget: &Budget) -> measure::Result<ComputeReport> {
    let time = plan.share(percent::CONTROL);
    let plan = ComputePlan { budget: time, ..ComputePlan::default() };
    compute::measure(&plan, root, &budget.part(time))
}

fn find_movers(
    root: &Root,
    plan: &MemoryCopyPlan,
    budget: &Budget,
    outcome: &mut MemoryCopyOutcome,
) {
    let time = plan.share(percent::MOVERS) / METHODS.len() as u32;
    for method in METHODS {
        match mover::find(method, ARTICLE_BYTES, time, root, budget) {
            Ok(found) => outcome.movers.push(found),
            Err(_) if sys::interrupt::requested() => return,
            Err(error) => outcome.notes.push(error.to_string()),
        }
    }
}

/// What `explain` makes of the figures.
fn judge(outcome: &mut MemoryCopyOutcome, experiment: &Experiment, plan: &MemoryCopyPlan) {
    let verdicts = METHODS.map(|method| copying::limit(&seen(outcome, plan, method)));
    // Without a figure there is nothing to say of any method.
    outcome.verdicts = Vec::from(verdicts);
    let over = |of: &str, loop_: &str| {
        let rate = |name| rate_of(&outcome.blocks, name, ARTICLE_BYTES);
        Ratio::of(&rate(of)?, &rate(loop_)?)
    };
    let pair = |method: &&str| Pair {
        method: (*method).to_owned(),
        string_over_loop: over(STRING, method),
        compiled_over_loop: over(&format!("{method}-compiled"), method),
    };
    outcome.pairs = METHODS[1..].iter().map(pair).collect();
    outcome.answer = Some(copying::answer(&outcome.pairs, &table::systems(experiment)));
    outcome.reach_bytes = open::reach(&outcome.loads);
}

fn seen(outcome: &MemoryCopyOutcome, plan: &MemoryCopyPlan, method: &str) -> MethodRates {
    let at = |bytes: u64| Some((bytes, rate_of(&outcome.blocks, method, bytes)?));
    let moved_by = moved_by(&outcome.movers, method);
    let streamed = streamed(method, moved_by);
    let beside = |name: &str| {
        let rate = rate_of(&outcome.blocks, name, plan.memory_bytes?)?;
        Some((name.to_owned(), rate))
    };
    MethodRates {
        method: method.to_owned(),
        cached: fastest_cached(&outcome.blocks, method),
        block: at(ARTICLE_BYTES),
        memory: plan.memory_bytes.and_then(at),
        two_cores: plan.memory_bytes.and_then(|bytes| rate_of(&outcome.two_cores, method, bytes)),
        fetches: fetches(method, moved_by),
        streamed: streamed.and_then(beside),
    }
}

/// Whether its stores fetch what they overwrite: of a C library only the loop that was seen to run
/// tells.
fn fetches(method: &str, moved_by: Option<&Mover>) -> bool {
    let by_name = memops::find(method).is_some_and(|known| known.traffic_factor() > 2.0);
    match moved_by {
        Some(mover) => !mover.store.starts_with("rep ") && !mover.store.contains("nt"),
        None => by_name,
    }
}

/// A copy of equal width that does not fetch, where this program has one.
fn streamed(method: &str, moved_by: Option<&Mover>) -> Option<&'static str> {
    let width = moved_by.and_then(|mover| mover.store.split(' ').next_back());
    match (method, width) {
        ("char", _) => Some(STRING),
        ("long" | "int64" | "double", _) => Some("rep-movsq"),
        ("memcpy", Some("zmmword")) => Some("avx512-nt"),
        ("memcpy", Some("ymmword")) => Some("avx2-nt"),
        ("memcpy", Some("xmmword")) => Some("sse2-nt"),
        _ => None,
    }
}

/// The counterparts of all methods, each once.
fn counterparts(movers: &[Mover]) -> Vec<&'static str> {
    let mut names = vec![STRING];
    names.extend(METHODS.iter().filter_map(|method| streamed(method, moved_by(movers, method))));
    names.sort_unstable();
    names.dedup();
    names
}

fn moved_by<'m>(movers: &'m [Mover], method: &str) -> Option<&'m Mover> {
    movers.iter().find(|one| one.method == method)
}

/// Where a method was fastest below the original's size: in a cache, and not slowed by a neighbour.
fn fastest_cached(rows: &[CopyRow], method: &str) -> Option<(u64, Estimate)> {
    let sizes = plan::SIZES.iter().filter(|&&bytes| bytes < ARTICLE_BYTES);
    let rates = sizes.filter_map(|&bytes| Some((bytes, rate_of(rows, method, bytes)?)));
    rates.max_by(|a, b| a.1.best.total_cmp(&b.1.best))
}

/// The rate of a method at a size, unless something made it no figure to lean on.
fn rate_of(rows: &[CopyRow], method: &str, bytes: u64) -> Option<Estimate> {
    let found = rows.iter().find(|row| row.method == method && row.size_bytes == bytes)?;
    let sound = found.noisy.is_none() && found.verified;
    found.bytes_per_s.clone().filter(|_| sound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::Better;

    fn mover(store: &str) -> Mover {
        Mover {
            method: "memcpy".to_owned(),
            load: String::new(),
            store: store.to_owned(),
            seen: 9,
            looks: 9,
        }
    }

    /// What a C library does is known from the loop that ran, not by its name.
    #[test]
    fn the_counterpart_has_the_width_that_was_seen() {
        for (store, beside, fetching) in [
            ("vmovdqa64 zmmword", Some("avx512-nt"), true),
            ("vmovdqu ymmword", Some("avx2-nt"), true),
            ("movups xmmword", Some("sse2-nt"), true),
            ("vmovntdq ymmword", Some("avx2-nt"), false),
            ("rep movs byte", None, false),
        ] {
            let seen = mover(store);
            assert_eq!(streamed("memcpy", Some(&seen)), beside, "{store}");
            assert_eq!(fetches("memcpy", Some(&seen)), fetching, "{store}");
        }
        assert_eq!(streamed("memcpy", None), None);
        assert!(fetches("char", None));
        let names = counterparts(&[mover("vmovdqu ymmword")]);
        assert_eq!(names, ["avx2-nt", "rep-movsb", "rep-movsq"]);
    }

    #[test]
    fn a_noisy_rate_is_none_to_lean_on() {
        let row = |noisy: Option<&str>, verified| CopyRow {
            method: "char".to_owned(),
            operation: "copy".to_owned(),
            size_bytes: 4096,
            bytes_per_s: Estimate::from_values(&[1e9; 8], Better::Higher, 0),
            bus_bytes_per_s: None,
            verified,
            noisy: noisy.map(str::to_owned),
        };
        let mut slowed = row(None, true);
        slowed.bytes_per_s = Estimate::from_values(&[2e9; 8], Better::Higher, 0);
        slowed.size_bytes = CACHED_BYTES;
        let mut quiet = slowed.clone();
        quiet.size_bytes = 1 << 20;
        quiet.bytes_per_s = Estimate::from_values(&[3e9; 8], Better::Higher, 0);
        let fastest = fastest_cached(&[slowed, quiet], "char");
        assert_eq!(fastest.map(|(bytes, _)| bytes), Some(1 << 20));
        let known = |row: CopyRow| rate_of(&[row], "char", 4096).is_some();
        assert!(known(row(None, true)));
        assert!(!known(row(Some("disturbed"), true)) && !known(row(None, false)));
    }
}
